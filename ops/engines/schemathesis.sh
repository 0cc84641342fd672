#!/usr/bin/env bash
# Puts schemathesis on this machine, in a place of its own: with it, the specs hold the gateway to its OpenAPI document.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

version=4.32.5
folder="${XDG_CACHE_HOME:-$HOME/.cache}/agon"
place="$folder/schemathesis-$version"

if [ -x "$place/bin/st" ] && "$place/bin/python" -c 'import schemathesis' 2> /dev/null; then
  echo "schemathesis $version"
  exit 0
fi
need_venv
mkdir -p "$folder"
# Scripts of an environment know where they are: it is made in its place, and counts once it can be loaded.
rm -rf "$place"
python3 -m venv "$place"
"$place/bin/python" -m pip install --quiet --disable-pip-version-check "schemathesis==$version"
"$place/bin/python" -c 'import schemathesis'
echo "schemathesis $version"
