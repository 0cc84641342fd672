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

# A Go that can build modules of today: the one that is there, or from the one that is there.
need_go() {
  need go golang ca-certificates
  export GOFLAGS=''
  go=go
  local minor toolchain place
  minor="$(go version | sed -nE 's/.*go1\.([0-9]+).*/\1/p')"
  if [ "${minor:-0}" -lt 21 ]; then
    # From 1.21 on, Go gets the toolchain that a module asks for by itself. Older ones can at least download it.
    toolchain="golang.org/toolchain@v0.0.1-go1.24.5.$(go env GOOS)-$(go env GOARCH)"
    place="$(cd / && go mod download -json "$toolchain" | sed -nE 's/.*"Dir": "(.*)".*/\1/p')"
    chmod -R u+w,a+x "$place/bin" "$place/pkg/tool"
    go="$place/bin/go"
  fi
}

# go_install FOLDER MODULE@VERSION: builds it into the folder.
go_install() {
  GOBIN="$1" env -u GOROOT "$go" install "$2"
}
