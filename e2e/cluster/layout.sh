# Where the native cluster is on this machine: its addresses, ports, cgroups and mount points.
# It knows nothing of what runs there.
# shellcheck shell=bash

bridge=${name}0
host_address=10.250.0.1 # the control plane; node N is 10.250.0.1N, its pods are 10.251.N.0/24
pods=10.251.0.0/16
services=10.96.0.0/16
etcd_port=23790
etcd_peer_port=23800
to_outside=(-i "$bridge" ! -o "$bridge" -j REJECT)
node_disk=/var/lib/weir # on each node a disk of its own, for hostPath and local volumes
mount_points=("$node_disk" /var/lib/kubelet /var/lib/cni /var/log/containers)
pause_image=localhost/pause:1

address_of() { echo "${host_address%.*}.1$1"; }
pods_of() { echo "${pods%.*.*}.$1.0/24"; }

# --- cgroups: weir/control, weir/node1, ...; the freezer's tell who belongs to whom ----------------

hierarchies() {
  local procs
  for procs in /sys/fs/cgroup/*/cgroup.procs; do
    [[ $procs == */unified/* ]] || echo "${procs%/*}"
  done
}

make_cgroup() {
  local top group file
  for top in $(hierarchies); do
    for group in "$top/$name" "$top/$name/$1"; do
      mkdir -p -- "$group"
      [[ -e $top/cpuset.cpus ]] || continue
      for file in cpuset.cpus cpuset.mems; do cat -- "$top/$file" >"$group/$file"; done
    done
  done
}

enter_cgroup() {
  local top
  for top in $(hierarchies); do echo "$BASHPID" >"$top/$name/$1/cgroup.procs"; done
}

remove_cgroup() {
  local group
  for group in /sys/fs/cgroup/*/"$name${1+/$1}"; do
    [[ ! -d $group ]] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
}

# members [GROUP]: the processes of a cgroup and those below it.
members() {
  find "/sys/fs/cgroup/freezer/$name${1+/$1}" -name cgroup.procs -exec cat {} + 2>/dev/null || true
}

freezer() { echo "$2" >"/sys/fs/cgroup/freezer/$name/$1/freezer.state"; }

# Frozen first, so that none sees another die; they take the signal when they thaw.
end_all() {
  local end=$((SECONDS + 20)) left
  while left=$(members "$1") && [[ -n $left ]]; do
    ((SECONDS < end)) || die "these processes of $1 do not end: $left"
    freezer "$1" FROZEN
    # shellcheck disable=SC2086  # one word for each process
    kill -KILL $left 2>/dev/null || true
    freezer "$1" THAWED
    sleep 0.05
  done
}
