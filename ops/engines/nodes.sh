#!/usr/bin/env bash
# Puts the other lines of Node that Agon runs on on this machine: the specs and a start are tried on each of them.
# They come as npm's package `node`, with its checksums.
set -euo pipefail

folder="${XDG_CACHE_HOME:-$HOME/.cache}/agon"

for version in ${*:-22 24 26}; do
  place="$folder/node-$version"
  if [ ! -x "$place/node_modules/node/bin/node" ]; then
    mkdir -p "$place"
    npm install --silent --no-audit --no-fund --prefix "$place" "node@$version" > /dev/null
  fi
  echo "node $("$place/node_modules/node/bin/node" --version)"
done
