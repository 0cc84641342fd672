#!/usr/bin/env bash
# Puts anvil, Foundry's chain for trying things out, on this machine. It comes from npm by name and version; nothing that it
# brings along is run.
set -euo pipefail

version=1.7.1
folder="${XDG_CACHE_HOME:-$HOME/.cache}/agon"
binary="$folder/anvil-$version"

if [ ! -x "$binary" ]; then
  work="$(mktemp -d)"
  trap 'rm -rf "$work"' EXIT
  npm install --prefix "$work" --ignore-scripts --no-audit --no-fund --no-save --silent "@foundry-rs/anvil@$version"
  mkdir -p "$folder"
  cp "$work"/node_modules/@foundry-rs/anvil-*/bin/anvil "$binary.new"
  chmod +x "$binary.new"
  mv "$binary.new" "$binary"
fi
"$binary" --version | head -1
