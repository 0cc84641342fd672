# Sourced by the scripts beside it. need COMMAND PACKAGE...: installs Debian packages unless the command is there.
need() {
  local command="$1" as_root=()
  shift
  if command -v "$command" > /dev/null; then return; fi
  if ! command -v apt-get > /dev/null; then
    echo "$command is missing, and there is no apt-get to install it with; use this system's package manager." >&2
    exit 1
  fi
  if [ "$(id -u)" -ne 0 ]; then as_root=(sudo -n); fi
  install() { "${as_root[@]}" apt-get install -y --no-install-recommends "$@"; }
  install "$@" || { "${as_root[@]}" apt-get update && install "$@"; }
}
