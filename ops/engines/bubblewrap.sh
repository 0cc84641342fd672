#!/usr/bin/env bash
# Puts bubblewrap on this machine if it is missing: the process driver runs Python, Node and any executable in it.
set -euo pipefail

if command -v bwrap > /dev/null; then
  bwrap --version
  exit 0
fi
if ! command -v apt-get > /dev/null; then
  echo 'bubblewrap is missing, and there is no apt-get to install it with; use the package manager of this system.' >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo -n); fi
install() { "${as_root[@]}" apt-get install -y --no-install-recommends bubblewrap; }
install || { "${as_root[@]}" apt-get update && install; }
bwrap --version
