#!/usr/bin/env bash
# Runs a command and prints its name and how many seconds it took.
# usage: tools/timed.sh NAME COMMAND [ARGUMENT...]
name=$1
shift
start=$(date +%s%N)
"$@"
status=$?
printf -- '--- %s: %.1f s%s\n' "$name" "$(($(date +%s%N) - start))e-9" \
  "$([ $status = 0 ] || echo ", failed (exit $status)")"
exit $status
