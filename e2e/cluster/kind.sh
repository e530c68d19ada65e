# The cluster where there is a Docker engine: kind makes it, and its nodes are Docker's containers.
# What Docker cannot do to a machine (pull its cable) is done on the node itself.
# shellcheck shell=bash

containers=([1]=$name-worker [2]=$name-worker2)
cut_off=("INPUT -i eth0" "OUTPUT -o eth0" "FORWARD -i eth0" "FORWARD -o eth0")

node_name() { echo "${containers[$1]}"; }
node_kill() { docker kill "${containers[$1]}" >/dev/null; }
node_start() { docker start "${containers[$1]}" >/dev/null; }
node_freeze() { docker pause "${containers[$1]}" >/dev/null; }
node_thaw() { docker unpause "${containers[$1]}" >/dev/null; }
node_cut() { each_rule "$1" -I; }
node_join() { each_rule "$1" -D; }
node_pid() { docker exec "${containers[$1]}" pidof "$2"; }

node_exec() {
  local container=${containers[$1]}
  shift
  docker exec "$container" "$@"
}

each_rule() {
  local rule
  for rule in "${cut_off[@]}"; do
    # shellcheck disable=SC2086  # one word for each argument
    docker exec "${containers[$1]}" iptables "$2" $rule -j DROP
  done
}

has_image() { docker image inspect "$1" >/dev/null 2>&1 && is_on_nodes "$1"; }
build_weir() { build_image "$weir_image" "$root"; }
put_image() { kind load docker-image --name "$name" "$1" >&2; }
image_size() { docker image inspect --format '{{.Size}}' "$1" | awk '{ printf "%d MB", $1 / 1e6 }'; }

is_on_nodes() { node_exec 1 crictl inspecti "$1" >/dev/null 2>&1; }

build_image() {
  local image=$1 context=$2
  shift 2
  docker build "$@" --tag "$image" "$context" >&2 || die "docker build failed; see above."
}

is_up() { [[ -e $run/kubeconfig ]] && kind get clusters 2>/dev/null | grep -qx "$name"; }

start_cluster() {
  "$here/build" tools
  is_up && return
  mkdir -p -- "$run/log"
  kind get clusters 2>/dev/null | grep -qx "$name" &&
    die "kind has a cluster '$name' that is not in $run. './dev cluster down' removes it, then try again."
  timeout 20m kind create cluster --name "$name" --config "$here/kind.yaml" --kubeconfig "$KUBECONFIG" --wait 180s >&2 ||
    die "kind could not make the cluster; see above. './dev cluster down' clears away what it left."
}

stop_cluster() {
  "$here/build" tools
  kind delete cluster --name "$name" --kubeconfig "$KUBECONFIG" >&2
  rm -rf -- "$run"
}

report() { docker ps --all --filter "label=io.x-k8s.kind.cluster=$name" --format '{{.Names}}: {{.Status}}'; }
