#!/usr/bin/env bash
# Puts EventStoreDB's client for Python on this machine, in a place of its own: with it, the specs read the log as
# somebody does who has never seen Agon.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

version=1.3.5
folder="${XDG_CACHE_HOME:-$HOME/.cache}/agon"
place="$folder/kurrentdbclient-$version"

if [ -x "$place/bin/python" ] && "$place/bin/python" -c 'import kurrentdbclient' 2> /dev/null; then
  echo "kurrentdbclient $version"
  exit 0
fi
need_venv
mkdir -p "$folder"
# Scripts of an environment know where they are: it is made in its place, and counts once its client can be loaded.
rm -rf "$place"
python3 -m venv "$place"
"$place/bin/python" -m pip install --quiet --disable-pip-version-check "kurrentdbclient==$version"
"$place/bin/python" -c 'import kurrentdbclient'
echo "kurrentdbclient $version"
