#!/bin/bash
# Runs a CephFS on one machine, its data in memory. Needs root and Debian's ceph-mon, ceph-osd,
# ceph-mds, ceph-fuse and ceph-common.
#   ceph.sh up DIR ADDRESS OSDS [TAG]   start it, listening on ADDRESS, with all its files in DIR;
#                                       with TAG: OSD i on host TAGi (hosts.sh)
#   ceph.sh mount DIR POINT             mount it with a new client, in the caller's name spaces
#   ceph.sh down DIR                    end its processes
# On a timeout it prints the last messages of the processes. PARIO_CEPH_PATIENCE: seconds to wait
# for each of them (default 120). PARIO_CEPH_OPTIONS: more lines of ceph.conf for `up`.
set -eu
patience=${PARIO_CEPH_PATIENCE:-120}

# fail DIR TEXT: print the text and the end of each process's output; exit with status 1
fail() {
  local file
  echo "ceph.sh: $2" >&2
  for file in "$1"/*.out; do
    [ -s "$file" ] || continue
    echo "--- ${file##*/}" >&2
    tail -n 5 "$file" >&2
  done
  exit 1
}

# await DIR TEXT COMMAND..: wait until the command succeeds
await() {
  local dir=$1 text=$2 end=$((SECONDS + patience))
  shift 2
  until "$@" > /dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || fail "$dir" "$text in $patience s"
    sleep 0.1
  done
}

# free_port ADDRESS: print the first of two adjacent free ports
free_port() {
  local port=$((20000 + $$ % 10000))
  while (exec 3<> "/dev/tcp/$1/$port") 2> /dev/null \
    || (exec 3<> "/dev/tcp/$1/$((port + 1))") 2> /dev/null; do
    port=$((port + 2))
  done
  echo "$port"
}

# start DIR NAME COMMAND..: run the command in the background, in a new session
start() {
  local dir=$1 name=$2
  shift 2
  setsid "$@" -c "$dir/ceph.conf" < /dev/null >> "$dir/$name.out" 2>&1 &
  echo "$! $name" >> "$dir/pids"
}

configure() {
  local dir=$1 address=$2 port=$3
  cat > "$dir/ceph.conf" << C
[global]
fsid = $(cat /proc/sys/kernel/random/uuid)
mon_host = [v2:$address:$port/0,v1:$address:$((port + 1))/0]
public_addr = $address
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
run_dir = $dir
admin_socket = $dir/\$name.\$pid.asok
log_file = $dir/\$name.log
crash_dir = $dir
mon_data = $dir/\$name
osd_data = $dir/\$name
mds_data = $dir/\$name
osd_crush_chooseleaf_type = 0
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
osd_objectstore = memstore
memstore_device_bytes = $((2 << 30))
osd_class_update_on_start = false
osd_max_object_name_len = 256
osd_max_object_namespace_len = 64
mon_data_avail_warn = 1
mon_data_avail_crit = 0
paxos_propose_interval = 0.1
client_mount_timeout = $patience
${PARIO_CEPH_OPTIONS:-}
C
}

# address_of ADDRESS HOST: print the host's address, or ADDRESS if the host does not exist
address_of() {
  ip netns exec "$2" ip -4 -o addr show dev eth0 2> /dev/null \
    | awk '{ sub("/.*", "", $4); print $4; found = 1 } END { exit !found }' || echo "$1"
}

up() {
  local dir=$1 address=$2 osds=$3 tag=$4 port osd uuid where
  port=$(free_port "$address")
  mkdir -p "$dir/mon.a" "$dir/mds.a"
  configure "$dir" "$address" "$port"
  ceph() {
    command ceph -c "$dir/ceph.conf" --connect-timeout "$patience" "$@" >> "$dir/ceph.out" 2>&1 \
      || fail "$dir" "ceph $* failed"
  }
  monmaptool --create --fsid "$(awk '/^fsid/ { print $3 }' "$dir/ceph.conf")" \
    --addv a "[v2:$address:$port,v1:$address:$((port + 1))]" "$dir/monmap" > /dev/null
  ceph-mon -c "$dir/ceph.conf" -i a --mkfs --monmap "$dir/monmap"
  start "$dir" mon.a ceph-mon -i a -f
  for ((osd = 0; osd < osds; osd++)); do
    mkdir "$dir/osd.$osd"
    uuid=$(cat /proc/sys/kernel/random/uuid)
    ceph osd new "$uuid" "$osd"
    ceph-osd -c "$dir/ceph.conf" -i "$osd" --mkfs --osd-uuid "$uuid" > "$dir/mkfs.out" 2>&1
    where=()
    [ -z "$tag" ] || where=("$(dirname "$0")/../hosts/hosts.sh" exec "$tag$osd" exec)
    start "$dir" "osd.$osd" "${where[@]}" ceph-osd -i "$osd" -f \
      --public-addr "$(address_of "$address" "$tag$osd")"
  done
  start "$dir" mds.a ceph-mds -i a -f
  ceph osd pool create meta 4 4
  ceph osd pool create data 32 32
  ceph fs new cephfs meta data
  await "$dir" "the file system did not become active" is_active "$dir"
}

is_active() { timeout 30 ceph -c "$1/ceph.conf" mds stat | grep -q up:active; }

mount_at() {
  local dir=$1 point=$2
  mkdir -p "$point"
  start "$dir" "client-$(hostname)" ceph-fuse -f "$point" --client_mountpoint=/
  await "$dir" "$point was not mounted" mountpoint -q "$point"
}

is_ours() { [ "$(tr '\0' ' ' < "/proc/$1/cmdline" 2> /dev/null | cut -c1-5)" = ceph- ]; }

# Clients end first, by SIGTERM: accesses to a mount without servers would hang.
down() {
  local dir=$1 pid name
  [ -e "$dir/pids" ] || return 0
  tac "$dir/pids" | while read -r pid name; do
    is_ours "$pid" || continue
    if [ "${name#client}" = "$name" ]; then kill -KILL "$pid"; else kill "$pid"; fi
    for _ in $(seq 100); do
      is_ours "$pid" || continue 2
      sleep 0.05
    done
    kill -KILL "$pid" || true
  done
  rm -f "$dir/pids"
}

case ${1:-} in
  up) up "$2" "$3" "$4" "${5:-}" ;;
  mount) mount_at "$2" "$3" ;;
  down) down "$2" ;;
  *) sed -n '2,9s/^# //p' "$0" >&2; exit 2 ;;
esac
