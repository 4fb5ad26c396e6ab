#!/usr/bin/env bash
# Runs all checks of the code's form, names each and fails if any failed. clang-tidy, which takes
# half an hour, is a step of make test-all.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
# Prints the errors first: the notes of a late file would hide those of an early one.
findings() { grep -E "error: " <<<"$1"; tail -n 60 <<<"$1"; }
check() {
  local name=$1
  shift
  if output=$("$@" 2>&1); then echo "ok    $name"; else echo "FAIL  $name"; findings "$output"; failed=1; fi
}
sources() { git ls-files "$@" | while read -r file; do [ -e "$file" ] && echo "$file"; done; }

check rooms python tools/check_rooms.py
check sizes python tools/check_sizes.py
check import-linter lint-imports
check ruff ruff check python tests tools bench
check ruff-format ruff format --check python tests tools bench
check mypy mypy
check clang-format bash -c "$(declare -f sources); sources '*.cpp' '*.hpp' '*.c' '*.h' | xargs -r clang-format --dry-run --Werror"
check gersemi bash -c "$(declare -f sources); sources '*CMakeLists.txt' '*.cmake' | xargs -r gersemi --check"
check codespell codespell src python docs tools examples bench README.md CHANGELOG.md CONTRIBUTING.md
exit $failed
