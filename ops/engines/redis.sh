#!/usr/bin/env bash
# Puts a redis-server on this machine if it is missing: the specs of the hot boards run against a real one.
set -euo pipefail

if command -v redis-server > /dev/null; then
  redis-server --version
  exit 0
fi
if ! command -v apt-get > /dev/null; then
  echo 'redis-server is missing, and there is no apt-get to install it with; use the package manager of this system.' >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo -n); fi
install() { "${as_root[@]}" apt-get install -y --no-install-recommends redis-server; }
install || { "${as_root[@]}" apt-get update && install; }
redis-server --version
