#!/usr/bin/env bash
# Runs all checks of the code's form at the same time, names each and fails if any failed.
# clang-tidy, which takes half an hour, is a step of make test-all.
set -uo pipefail
cd "$(dirname "$0")/.."
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
names=()
# Prints the errors first: the notes of a late file would hide those of an early one.
print_findings() { grep -E "error: " "$1"; tail -n 60 "$1"; }
check() {
  local name=$1
  shift
  names+=("$name")
  { "$@" >"$logs/$name" 2>&1 && touch "$logs/$name.ok"; } &
}
list_sources() { git ls-files "$@" | while read -r file; do [ -e "$file" ] && echo "$file"; done; }
check_cpp() { list_sources '*.cpp' '*.hpp' '*.c' '*.h' | xargs -r clang-format --dry-run --Werror; }
check_cmake() { list_sources '*CMakeLists.txt' '*.cmake' | xargs -r gersemi --check; }

check mypy mypy
check modules python tools/check_modules.py
check prose python -m tools.prose
check sizes python tools/check_sizes.py
check cycles python tools/check_cycles.py
check import-linter lint-imports
check ruff ruff check python tests tools bench
check ruff-format ruff format --check python tests tools bench
check clang-format check_cpp
check gersemi check_cmake
check changelog towncrier build --draft --version 0
check docs python -m tools.site.build
check codespell codespell src python docs tools examples bench \
  README.md CHANGELOG.md CONTRIBUTING.md
wait
failed=0
for name in "${names[@]}"; do
  if [ -e "$logs/$name.ok" ]; then
    echo "ok    $name"
  else
    echo "FAIL  $name"
    print_findings "$logs/$name"
    failed=1
  fi
done
exit $failed
