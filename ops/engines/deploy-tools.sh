#!/usr/bin/env bash
# Puts what judges the descriptions of a deployment on this machine, without Docker or a Kubernetes: the loader of Compose's
# own specification, kustomize, and Kubernetes' validation with the schemas of its resources built in. Go gets them by name
# and version, checks what it gets by its checksums, and builds them.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

# The same names as in deploy-tools.ts.
compose=github.com/compose-spec/compose-go/v2/cmd@v2.16.2
kustomize=sigs.k8s.io/kustomize/kustomize/v5@v5.6.0
validate=sigs.k8s.io/kubectl-validate@v0.0.4
folder="${XDG_CACHE_HOME:-$HOME/.cache}/agon/deploy-tools-1"

build() { # build NAME MODULE BINARY
  if [ -x "$folder/$1" ]; then return; fi
  echo "building ${2##*/}"
  if [ -z "${go:-}" ]; then need_go; fi
  go_install "$folder/bin" "$2"
  mv "$folder/bin/$3" "$folder/$1"
}
build compose "$compose" cmd
build kustomize "$kustomize" kustomize
build kubectl-validate "$validate" kubectl-validate
echo "compose-go ${compose##*@}, kustomize ${kustomize##*@}, kubectl-validate ${validate##*@}"
