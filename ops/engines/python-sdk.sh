#!/usr/bin/env bash
# Makes a Python of its own with what the SDK for Python needs: its specs run the SDK against a real arena, hold it to its
# types (mypy) and build what is published (setuptools).
# Exact versions; kept in the user's cache, and made anew when they change.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

pins=(grpcio==1.85.1 protobuf==7.36.2 typing-extensions==4.16.0 mypy==2.4.1 setuptools==84.2.1)
folder="${XDG_CACHE_HOME:-$HOME/.cache}/agon/python-sdk-2"
python="$folder/bin/python"

if [ -x "$python" ] && [ "$(cat "$folder/pins" 2> /dev/null)" = "${pins[*]}" ] && "$python" -c 'import grpc, mypy' 2> /dev/null; then
  echo "$python"
  exit 0
fi
need_venv
rm -rf "$folder"
python3 -m venv "$folder"
"$python" -m pip install --quiet --disable-pip-version-check "${pins[@]}"
echo "${pins[*]}" > "$folder/pins"
echo "$python"
