# A cluster without Docker: etcd, the control plane and CoreDNS are processes of this machine, its
# nodes are machines inside it (see `node`), and its pods are real containers. Only for root.
# shellcheck shell=bash

. "$here/layout.sh"

# The processes beside the nodes, in the order in which they start.
control_plane=(etcd kube-apiserver kube-controller-manager kube-scheduler coredns)

node_name() { echo "node$1"; }
node_kill() { "$here/node" kill "$1"; }
node_start() { "$here/node" start "$1"; }
node_freeze() { "$here/node" freeze "$1"; }
node_thaw() { "$here/node" thaw "$1"; }
node_cut() { "$here/node" cut "$1"; }
node_join() { "$here/node" join "$1"; }
node_pid() { "$here/node" pid "$@"; }
node_exec() { "$here/node" exec "$@"; }

has_image() { [[ -e $(layout_of "$1")/oci-layout ]]; }
build_image() { "$here/image" build "$@"; }
build_weir() { "$here/image" weir; }
image_size() { "$here/image" size "$1"; }

put_image() {
  local number imports=() import
  "$here/image" offer "$1"
  for number in "${nodes[@]}"; do
    [[ -n $(members "node$number") ]] || continue
    "$here/node" import "$number" "$(layout_of "$1")" &
    imports+=($!)
  done
  for import in "${imports[@]}"; do wait "$import" || die "a node did not take $1; see above."; done
}

is_up() { [[ -d $run/pki ]]; }

# --- What must be so ------------------------------------------------------------------------------

refuse_unfit_machine() {
  [[ $(id -u) == 0 ]] || die "without a Docker engine the cluster makes nodes of its own, which only root may.
Either start Docker ('docker info' must succeed), or become root: sudo --shell, then ./dev cluster up"
  [[ $run != /run/* ]] || die "the cache is $store, but each node has a /run of its own. Set WEIR_CACHE to another place."
  local free memory least=8000
  [[ -x $bin/kubernetes ]] || least=20000 # the first build downloads and compiles all of Kubernetes
  free=$(df --output=avail -m -- "$store" | tail -n 1)
  ((free >= least)) || die "$store has $((free)) MB free; $least MB are needed. Make room, or set WEIR_CACHE to a larger disk."
  memory=$(megabytes /proc/meminfo MemAvailable)
  ((memory >= 3000)) || die "$memory MB of memory are available; the cluster and a job need 3000 MB. End something large."
}

# A machine that was switched off has left files, and nothing that runs.
clear_remains() {
  if is_up && [[ -z $(members) ]]; then
    say "An earlier cluster went down with its machine; what is left of it goes, too."
    stop_cluster
  fi
}

refuse_remains() {
  local dead=() program
  if is_up; then
    for program in "${control_plane[@]}"; do runs "$program" || dead+=("$program"); done
    for number in "${nodes[@]}"; do [[ -n $(members "node$number") ]] || dead+=("node$number"); done
    ((${#dead[@]} == 0)) || die "an earlier cluster is half dead; these do not run: ${dead[*]}.
'./dev cluster node start N' gives a node its power back; './dev cluster down' clears everything away."
  elif [[ -n $(members) ]] || ip link show "$bridge" >/dev/null 2>&1; then
    die "a cluster runs on this machine that was not started from $store.
'./dev cluster down' ends it, by whichever command it was started."
  fi
}

refuse_what_is_taken() {
  local taken
  taken=$(ip -4 route show | grep -E "^(${host_address%.*}|${pods%.*.*}|${services%.*.*})\." || true)
  [[ -z $taken ]] || die "the addresses of the cluster are in use on this machine:
$taken
Take that network down, or choose others in e2e/cluster/layout.sh."
  for port in "$etcd_port" "$etcd_peer_port"; do
    taken=$(ss -Hltnp "sport = :$port")
    [[ -z $taken ]] || die "port $port, which etcd needs, is in use:
$taken
End that program, or choose another port in e2e/cluster/layout.sh."
  done
}

refuse_new_cgroups() {
  [[ -d /sys/fs/cgroup/freezer ]] || die "this machine has cgroup v2 only; the nodes made here need v1.
Install Docker and start it; then the cluster is kind's."
}

# --- Up -------------------------------------------------------------------------------------------

start_cluster() {
  refuse_unfit_machine
  clear_remains
  refuse_remains
  "$here/build" packages
  is_up || refuse_what_is_taken
  refuse_new_cgroups
  "$here/build"
  if ! is_up; then
    mkdir -p -- "$run"/{log,pid,etcd,new}
    "$here/certificates" "$run/new" "$host_address" "${services%.*}.1"
    mv -- "$run/new/kubeconfig" "$KUBECONFIG"
    mv -- "$run/new" "$run/pki"
    lay_network
    make_cgroup control
    for number in "${nodes[@]}"; do "$here/node" start "$number"; done
    start_control_plane
  fi
  for number in "${nodes[@]}"; do
    await 90 "node$number to be ready" kubectl wait --for=condition=Ready "node/node$number" --timeout=1s
  done
  await 30 "the default service account" kubectl get serviceaccount default
  await 30 "CoreDNS" curl -sf --noproxy '*' --max-time 2 "http://$host_address:8181/ready"
}

# Every node has a cable to one bridge. Pods are routed by their nodes; nothing leaves the bridge, and
# a program that tries gets an error at once.
lay_network() {
  ip link add "$bridge" type bridge
  ip addr add "$host_address/24" dev "$bridge"
  ip link set "$bridge" up
  sysctl -qw "net.ipv4.conf.$bridge.forwarding=1"
  iptables -A FORWARD "${to_outside[@]}"
  for number in "${nodes[@]}"; do ip route add "$(pods_of "$number")" via "$(address_of "$number")"; done
  ip route add "$services" via "$(address_of 1)" # from here, services are reached by way of node 1
}

# begin PROGRAM ARGUMENTS...: in the background, in the control plane's cgroup.
begin() {
  (
    exec 9>&-
    enter_cgroup control
    exec setsid nohup "$bin/kubernetes" "$@" >>"$run/log/$1.log" 2>&1 </dev/null
  ) &
  echo $! >"$run/pid/$1"
}

runs() { members control | grep -qx "$(cat -- "$run/pid/$1" 2>/dev/null || echo none)"; }

start_control_plane() {
  local pki=$run/pki etcd=http://127.0.0.1:$etcd_port peer=http://127.0.0.1:$etcd_peer_port
  begin etcd --data-dir "$run/etcd" --unsafe-no-fsync --log-level warn \
    --listen-client-urls "$etcd" --advertise-client-urls "$etcd" --listen-peer-urls "$peer" \
    --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer"
  begin kube-apiserver --etcd-servers="$etcd" --bind-address="$host_address" --secure-port=6443 \
    --advertise-address="$host_address" --service-cluster-ip-range="$services" \
    --allow-privileged=true --authorization-mode=Node,RBAC --enable-aggregator-routing=true \
    --client-ca-file="$pki/ca.crt" --tls-cert-file="$pki/apiserver.crt" \
    --tls-private-key-file="$pki/apiserver.key" --kubelet-preferred-address-types=InternalIP \
    --kubelet-client-certificate="$pki/admin.crt" --kubelet-client-key="$pki/admin.key" \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local \
    --service-account-key-file="$pki/accounts.pub" \
    --service-account-signing-key-file="$pki/accounts.key" \
    --default-not-ready-toleration-seconds=5 --default-unreachable-toleration-seconds=5
  await 90 "the API server" kubectl get --raw /readyz --request-timeout=2s
  begin kube-controller-manager --kubeconfig="$KUBECONFIG" --leader-elect=false --secure-port=0 \
    --use-service-account-credentials --root-ca-file="$pki/ca.crt" \
    --service-account-private-key-file="$pki/accounts.key" \
    --cluster-signing-cert-file="$pki/ca.crt" --cluster-signing-key-file="$pki/ca.key" \
    --node-monitor-grace-period=15s --node-monitor-period=1s --node-eviction-rate=10
  begin kube-scheduler --kubeconfig="$KUBECONFIG" --leader-elect=false --secure-port=0
  corefile >"$run/Corefile"
  begin coredns -conf "$run/Corefile"
}

# Names of the cluster are answered; there are no others.
corefile() {
  cat <<TEXT
cluster.local in-addr.arpa ip6.arpa {
  bind $host_address
  errors
  ready $host_address:8181
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    kubeconfig "$KUBECONFIG" weir
    pods insecure
    ttl 1
  }
}
. {
  bind $host_address
  template ANY ANY {
    rcode NXDOMAIN
  }
}
TEXT
}

# --- Down, status ---------------------------------------------------------------------------------

# Goes by what is on the machine and not by what was written down, so that it ends any remains.
stop_cluster() {
  [[ $(id -u) == 0 ]] || die "only root can end the cluster: sudo --shell, then ./dev cluster down"
  for number in "${nodes[@]}"; do "$here/node" kill "$number" & done
  wait
  end_all control
  remove_cgroup control
  remove_cgroup
  iptables -D FORWARD "${to_outside[@]}" 2>/dev/null || true
  ip link del "$bridge" 2>/dev/null || true
  rm -rf --one-file-system -- "$run"
  rmdir -- "${mount_points[@]}" 2>/dev/null || true
}

report() {
  local program state
  for program in "${control_plane[@]}"; do
    state=dead
    ! runs "$program" || state=runs
    printf '%-24s %s\n' "$program" "$state"
  done
  for number in "${nodes[@]}"; do printf '%-24s %s\n' "node$number" "$("$here/node" state "$number")"; done
}
