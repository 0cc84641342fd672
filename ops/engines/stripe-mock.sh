#!/usr/bin/env bash
# Puts stripe-mock, Stripe's own test server, on this machine: our calls are checked against the schema it brings.
# It comes through Go's module proxy by name and version, and its content is checked by Go's checksum database.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

version=v0.203.0
folder="${XDG_CACHE_HOME:-$HOME/.cache}/agon"
binary="$folder/stripe-mock-$version"

if [ -x "$binary" ]; then
  echo "stripe-mock $version"
  exit 0
fi
need_go
mkdir -p "$folder"
go_install "$folder/bin" "github.com/stripe/stripe-mock@$version"
mv "$folder/bin/stripe-mock" "$binary"
echo "stripe-mock $version"
