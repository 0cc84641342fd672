#!/usr/bin/env bash
# Puts a redis-server on this machine if it is missing: the specs of the hot boards run against a real one.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

need redis-server redis-server
redis-server --version
