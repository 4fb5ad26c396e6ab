#!/bin/bash
# Runs a temporary Slurm on pretend hosts (hosts.sh; root): slurmctld here, one slurmd on each host.
# Debian: slurmctld slurmd slurm-client munge.
#   slurm.sh up DIR HOST...   start it, with all its files in DIR; return when the hosts are idle.
#                             Use it with SLURM_CONF=DIR/slurm.conf
#   slurm.sh down DIR         end it
set -eu
here=$(dirname "$(readlink -f "$0")")
state=/run/pario-hosts
patience=120 # seconds to wait until the hosts are idle

address() { awk -v host="$1" '$2 == host { print $1 }' "$state"/*/hosts | head -n 1; }

start_munge() {
  dd if=/dev/urandom of="$1/munge/key" bs=128 count=1 status=none
  chmod 400 "$1/munge/key"
  munged --force --key-file="$1/munge/key" --socket="$1/munge/socket" \
    --pid-file="$1/munge.pid" --log-file="$1/munge/log" --seed-file="$1/munge/seed"
}

configuration() {
  local dir=$1 cpus memory host
  shift
  cpus=$(nproc) memory=$(($(awk '/MemTotal/ { print $2 }' /proc/meminfo) / 1024 / 4))
  cat << END
ClusterName=pario
SlurmctldHost=$(hostname)($(address "$1" | sed 's/[0-9]*$/1/'))
SlurmctldPort=$((9000 + $(address "$1" | cut -d. -f3))) # one for each network of hosts
SlurmdPort=9818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/log/slurmctld
SlurmdLogFile=$dir/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=pmi2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SchedulerParameters=bf_interval=2
END
  for host in "$@"; do
    echo "NodeName=$host NodeAddr=$(address "$host") CPUs=$cpus RealMemory=$memory State=UNKNOWN"
  done
  echo "PartitionName=all Nodes=$(IFS=,; echo "$*") Default=YES MaxTime=INFINITE State=UP" \
    "OverSubscribe=FORCE:8"
}

up() {
  local dir=$1 host
  shift
  mkdir -p "$dir"/{state,log,munge}
  chmod 755 "$dir/munge"
  start_munge "$dir"
  configuration "$dir" "$@" > "$dir/slurm.conf"
  echo "PMIxCliTmpDirBase=/dev/shm" > "$dir/mpi.conf" # private to a host, unlike /tmp
  export SLURM_CONF=$dir/slurm.conf
  setsid slurmctld -D -f "$SLURM_CONF" < /dev/null > "$dir/log/slurmctld.out" 2>&1 &
  for host in "$@"; do
    mkdir -p "$dir/spool.$host"
    setsid "$here/hosts.sh" exec "$host" "exec slurmd -D -f $SLURM_CONF" \
      < /dev/null > "$dir/log/slurmd.$host.out" 2>&1 &
  done
  local end=$((SECONDS + patience))
  while [ "$SECONDS" -lt "$end" ]; do
    [ "$(sinfo -h -t idle -o %D 2> /dev/null)" = $# ] && return
    sleep 0.2
  done
  echo "slurm.sh: the hosts were not idle in $patience s: $(tail -n 5 "$dir"/log/*)" >&2
  exit 1
}

# Ends the daemons by their PID files, then hanging job steps, found by their environment.
down() {
  local file pids=()
  for file in "$1"/slurmd.*.pid "$1"/slurmctld.pid "$1"/munge.pid; do
    [ -s "$file" ] && pids+=("$(cat "$file")")
  done
  end "${pids[@]}"
  mapfile -t pids < <(list_steps "$1")
  end "${pids[@]}"
}

# list_steps DIR: print the processes of job steps of this Slurm
list_steps() {
  local pid
  grep -lszxF "SLURM_CONF=$1/slurm.conf" /proc/[0-9]*/environ | cut -d/ -f3 | while read -r pid; do
    [ "$(cat "/proc/$pid/comm" 2> /dev/null)" != slurmstepd ] || echo "$pid"
  done
}

# end PID...: terminate processes; kill those that have not ended after 5 s
end() {
  [ $# != 0 ] || return 0
  kill "$@" 2> /dev/null || true
  for _ in $(seq 50); do
    kill -0 "$@" 2> /dev/null || return 0
    sleep 0.1
  done
  kill -KILL "$@" 2> /dev/null || true
}

case ${1:-} in
  up) shift; up "$@" ;;
  down) down "$2" ;;
  *) sed -n '2,6s/^# //p' "$0" >&2; exit 2 ;;
esac
