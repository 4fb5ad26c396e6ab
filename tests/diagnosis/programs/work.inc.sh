# Arguments and computation of the shell programs: PROGRAM SIZE [repaired]. Does no I/O.
size=$1
repaired=${2:-}
compute() { awk 'BEGIN { for (i = 0; i < 5000000; i++) s += i; exit s < 0 }'; }
