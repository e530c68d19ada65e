# What the scripts of the cluster agree on: its names, places and addresses, how to speak, how to
# wait. Sourcing it changes nothing on the machine, and it knows no program of the cluster.
# shellcheck shell=bash

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
root=${here%/e2e/cluster}
store=${WEIR_CACHE:-${XDG_CACHE_HOME:-${HOME:-/nowhere}/.cache}/weir}/cluster # kept: what was built
bin=$store/bin
images=$store/images # what nodes may take
run=$store/run # the running cluster; `down` removes it
export KUBECONFIG=$run/kubeconfig PATH=$bin:$PATH

name=weir # of the bridge (weir0), of the cgroups, of kind's cluster
nodes=(1 2)
base_image=localhost/base:bookworm
weir_image=localhost/weir:dev

layout_of() { echo "$images/$(tr /: -- <<<"$1")"; }

say() { printf '%s\n' "$*" >&2; }
die() { say "cluster: $1"; exit "${2:-1}"; }

# await SECONDS WHAT COMMAND...: tries the command until it succeeds; in vain, says for what it waited.
await() {
  local seconds=$1 what=$2 end=$((SECONDS + $1))
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || die "waited $seconds s for $what, in vain. What the programs said is in
    $run/log
'./dev cluster down' clears it all away, then try again."
    sleep 0.2
  done
}

# megabytes FILE KEY: a line of /proc/meminfo or the like, which counts in kB.
megabytes() { awk -v key="$2:" '$1 == key { print int($2 / 1024) }' "$1"; }
