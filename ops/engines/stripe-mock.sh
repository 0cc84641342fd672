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
need go golang ca-certificates
export GOFLAGS=''
go=go
minor="$(go version | sed -nE 's/.*go1\.([0-9]+).*/\1/p')"
if [ "${minor:-0}" -lt 21 ]; then
  # From 1.21 on, Go gets the toolchain that a module asks for by itself. Older ones can at least download it.
  toolchain="golang.org/toolchain@v0.0.1-go1.22.12.$(go env GOOS)-$(go env GOARCH)"
  place="$(cd / && go mod download -json "$toolchain" | sed -nE 's/.*"Dir": "(.*)".*/\1/p')"
  chmod -R u+w,a+x "$place/bin" "$place/pkg/tool"
  go="$place/bin/go"
fi
mkdir -p "$folder"
GOBIN="$folder/bin" env -u GOROOT "$go" install "github.com/stripe/stripe-mock@$version"
mv "$folder/bin/stripe-mock" "$binary"
echo "stripe-mock $version"
