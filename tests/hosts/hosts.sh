#!/bin/bash
# Pretend hosts on one machine (root). Each has its own network, host name, IPC objects, /dev/shm,
# boot id and monotonic clock; they share file systems, like the nodes of a cluster.
#   hosts.sh up TAG N         create hosts TAG0 ... on a bridge, the clock of host i shifted by
#                             1000 i seconds; print their names
#   hosts.sh exec HOST CMD..  run a command there, like `ssh HOST CMD`; options before HOST are
#                             ignored (a launcher's agent)
#   hosts.sh rate TAG RATE    limit each host's link in both directions; RATE for tc: 800mbit
#   hosts.sh down TAG         remove the hosts
set -eu
state=/run/pario-hosts
patience=120 # seconds to wait until a host has started

up() {
  local tag=$1 count=$2 dir="$state/$1" net i host
  mkdir -p "$dir"
  net=$(reserve_network "$tag")
  {
    echo "127.0.0.1 localhost"
    echo "$net.1 $(hostname)"
    for ((i = 0; i < count; i++)); do echo "$net.$((10 + i)) $tag$i"; done
  } > "$dir/hosts"
  ip link add "${tag}br" type bridge
  ip addr add "$net.1/24" dev "${tag}br"
  ip link set "${tag}br" up
  for ((i = 0; i < count; i++)); do
    host=$tag$i
    ip netns add "$host"
    ip link add "v$host" type veth peer name eth0 netns "$host"
    ip link set "v$host" master "${tag}br" up
    ip -n "$host" link set lo up
    ip -n "$host" addr add "$net.$((10 + i))/24" dev eth0
    ip -n "$host" link set eth0 up
    cat /proc/sys/kernel/random/uuid > "$dir/$host.boot_id"
    start_host "$dir" "$host" $((1000 * i))
    echo "$host" >> "$dir/names"
  done
  cat "$dir/names"
}

# reserve_network TAG: print the first three numbers of a free network's addresses
reserve_network() {
  local number
  for number in $(seq 0 199); do
    if mkdir "$state/network.$number" 2> /dev/null; then
      echo "$number" > "$state/$1/network"
      echo "10.79.$number"
      return
    fi
  done
  echo "hosts.sh: all networks are in use: $state/network.*" >&2
  exit 1
}

# start_host DIR HOST SHIFT: start a sleeping process that keeps the name spaces of a host open
start_host() {
  local dir=$1 host=$2 shift=$3
  nsenter --net="/run/netns/$host" setsid unshare --uts --mount --ipc --time --monotonic "$shift" \
    --fork bash -c "
    hostname $host
    mount --bind $dir/hosts /etc/hosts
    mount --bind $dir/$host.boot_id /proc/sys/kernel/random/boot_id
    mount -t tmpfs shm /dev/shm
    echo \$\$ > $dir/$host.pid
    exec sleep infinity" < /dev/null > "$dir/$host.out" 2>&1 &
  local end=$((SECONDS + patience))
  while [ "$SECONDS" -lt "$end" ] && kill -0 $! 2> /dev/null; do
    [ -s "$dir/$host.pid" ] && [ "$(cat "/proc/$(cat "$dir/$host.pid")/comm")" = sleep ] && return
    sleep 0.02
  done
  echo "hosts.sh: host $host did not start in $patience s: $(tail -n 1 "$dir/$host.out")" >&2
  exit 1
}

run_on() {
  while [ "${1#-}" != "$1" ]; do shift; done
  local pid
  pid=$(cat "$state"/*/"$1.pid")
  shift
  exec nsenter -t "$pid" --net --uts --mount --ipc --time --wd="$PWD" /bin/sh -c "$*"
}

rate() {
  local host queue="tbf rate $2 burst 256kb latency 20ms"
  # shellcheck disable=SC2086
  for host in $(cat "$state/$1/names"); do
    tc qdisc replace dev "v$host" root $queue
    tc -n "$host" qdisc replace dev eth0 root $queue
  done
}

down() {
  local dir="$state/$1" host
  [ -d "$dir" ] || return 0
  for host in $(cat "$dir/names"); do
    kill "$(cat "$dir/$host.pid")" || true
    ip netns del "$host" || true
    ip link del "v$host" 2> /dev/null || true # normally deleted with the name space
  done
  ip link del "${1}br" || true
  [ ! -s "$dir/network" ] || rmdir "$state/network.$(cat "$dir/network")"
  rm -rf "$dir"
}

case ${1:-} in
  up) up "$2" "$3" ;;
  exec) shift; run_on "$@" ;;
  rate) rate "$2" "$3" ;;
  down) down "$2" ;;
  *) sed -n '2,9s/^# //p' "$0" >&2; exit 2 ;;
esac
