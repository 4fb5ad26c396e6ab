#!/bin/sh
# tools/suites.sh list | fetch | run SUITE [PROGRAM...] --mpi MPI [--pario LIB] [--resume] | table: suites that others wrote, with the MPI's own
# MPI-IO or pario's. Sources, programs and results lie in PARIO_SUITES (else build/suites). See tests/suites/suites.toml.
set -eu
cd "$(dirname "$0")/.."
exec "${PYTHON:-.venv/bin/python}" -m tests.suites "$@"
