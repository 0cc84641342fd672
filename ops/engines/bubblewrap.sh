#!/usr/bin/env bash
# Puts bubblewrap on this machine if it is missing: the process driver runs Python, Node and any executable in it.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

need bwrap bubblewrap
bwrap --version
