# Sourced by the scripts beside it.

# get PACKAGE...: installs Debian packages.
get() {
  local as_root=()
  if ! command -v apt-get > /dev/null; then
    echo "$* is missing, and there is no apt-get to install it with; use this system's package manager." >&2
    exit 1
  fi
  if [ "$(id -u)" -ne 0 ]; then as_root=(sudo -n); fi
  install() { "${as_root[@]}" apt-get install -y --no-install-recommends "$@"; }
  install "$@" || { "${as_root[@]}" apt-get update && install "$@"; }
}

# need COMMAND PACKAGE...: installs the packages unless the command is there.
need() {
  local command="$1"
  shift
  command -v "$command" > /dev/null || get "$@"
}

# A Python that can make environments.
need_venv() {
  python3 -c 'import venv, ensurepip' 2> /dev/null || get python3 python3-venv
}
