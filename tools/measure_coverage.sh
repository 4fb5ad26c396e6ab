#!/usr/bin/env bash
# Measures the line coverage of C++ (gcov) and Python (coverage.py), subprocesses included.
# usage: tools/measure_coverage.sh VENV system|all
# Level system runs the tests of CI and writes build/coverage/system.json; level all runs the
# exhaustive tests after them and writes build/coverage/all.json as well. Failed tests do not end
# the measurement: instrumented programs are slower than some tests allow.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(realpath "$1") level=$2
build=$PWD/build/coverage
export PATH=$venv/bin:$PATH
"$venv/bin/python" -m pip install -q "coverage>=7.10" gcovr
"$venv/bin/python" -m pip install -q --no-build-isolation --no-deps -C build-dir="$build" \
  -C cmake.build-type=RelWithDebInfo -C cmake.define.PARIO_COVERAGE=ON -e .
cmake -DPARIO_TESTS=ON "$build" >/dev/null
cmake --build "$build" -j "$(nproc)"

cat >"$build/coveragerc" <<RC
[run]
source = $PWD/python/pario
parallel = true
patch = subprocess
data_file = $build/python/data
RC
mkdir -p "$build/python"

# An instrumented process writes its counts by some 450,000 calls at its end, and traces them: the
# logs of the 300 processes of this test take more than 19 GB to read.
storm=tests/preload/test_call_sites.py::test_a_storm_of_processes_names_the_line_that_starts_them

# run_tests MARKERS: the Python tests with these markers
run_tests() {
  PARIO_TEST_PATIENCE=4 "$venv/bin/python" -m coverage run --rcfile="$build/coveragerc" \
    -m pytest -q -n "$(nproc)" --dist loadgroup -p no:cacheprovider -m "$1" --timeout 600 \
    --deselect "$storm" || echo "some tests failed"
}

# report NAME: writes NAME.json and prints both figures; a line counts once, also that of a template
# with a hundred instances
report() {
  "$venv/bin/python" -m coverage combine -q --keep --rcfile="$build/coveragerc" \
    --data-file="$build/$1.coverage" "$build"/python/data.*
  "$venv/bin/python" -m coverage json -q --rcfile="$build/coveragerc" \
    --data-file="$build/$1.coverage" -o "$build/$1-python.json"
  "$venv/bin/gcovr" -r . --merge-lines --filter 'src/' --object-directory "$build" -j "$(nproc)" \
    --gcov-ignore-parse-errors=all --gcov-ignore-errors=no_working_dir_found \
    --json-summary "$build/$1-cpp.json" >/dev/null
  "$venv/bin/python" tools/join_coverage.py "$build" "$1"
}

ctest --test-dir "$build" -j "$(nproc)" >"$build/ctest.log" || echo "some unit tests failed"
run_tests "not exhaustive"
report system
if [ "$level" = all ]; then
  run_tests exhaustive
  report all
fi
