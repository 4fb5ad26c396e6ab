#!/usr/bin/env bash
# Everything about the form of the code; each check says its name, all are run, any failure fails.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
# The findings themselves first: those of an early file would be lost behind the notes of a late one.
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
if [ "${1:-}" = --tidy ]; then
  cmake --preset dev >/dev/null
  check clang-tidy bash -c "$(declare -f sources); sources 'src/*.cpp' ':!src/bindings' | xargs -P $(nproc) -n 2 clang-tidy -p build/dev --quiet --extra-arg=-fconstexpr-steps=200000000"
fi
exit $failed
