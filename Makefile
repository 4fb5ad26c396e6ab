# make demo      set up, run the demonstration; ends with the path of its report
# make test      set up, run the quick tests (90 seconds once built)
# make check     check modules, imports, language, sizes, format, lint, types
# make benchmarks   run the benchmarks in turn, record them, render docs/benchmarks.md.
#                ONLY="move readers" selects, UNTIL=23:50 or MINUTES=50 ends, DIRECTORY is measured
# make docs      build the documentation site, build/site/index.html; part of make check
# make test-system   one representative of every real system; part of .ci/run
# make asan tsan     unit tests under the sanitizers
# make test-all  every test, in steps; an interrupted run continues where it stopped.
#                RESTART=1 begins anew, STEPS="unit suites" selects steps;
#                PARTS='docs/results/*' leaves out tests that are good at these earlier commits
# make changelog RELEASE=0.2.0   join the fragments of changelog.d into CHANGELOG.md
# make manuals   manual page and completions of bash, zsh, fish in build/share
# make wheel     wheels in dist/ for glibc 2.28, x86-64 and aarch64, by Zig from PyPI; checks them
# make conformance   keep the results of make test-all in docs/results, write docs/conformance.md.
#                BUSY=1 leaves out their seconds
# make flaky     run tests COUNT=20 times each beside a load, to find those that fail sometimes.
#                TESTS='tests/mpi -m "not exhaustive"' selects tests, RESTART=1 begins anew
# make fuzz      run each fuzzer for SECONDS_EACH=60; new inputs stay in build/fuzz/corpus
# make coverage  line coverage of C++ and Python under the tests of CI
#
# PYTEST_OPTIONS=... passes options to pytest, for example PYTEST_OPTIONS="-k archive -x".
.DEFAULT_GOAL := help
VENV := .venv
PYTHON := $(VENV)/bin/python
JOBS ?= $(shell nproc)
# The longest unit tests wait most of the time.
TEST_JOBS := $(shell expr 4 \* $(JOBS))
COUNT ?= 20
SECONDS_EACH ?= 60
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# Without bytecode each worker of pytest compiles all tests again, and each `pario` all modules.
unexport PYTHONDONTWRITEBYTECODE
# The version is that of the commit and its tags (CONTRIBUTING.md).
COMMIT := $(wildcard $(shell git rev-parse --git-path logs/HEAD --git-path refs/tags 2>/dev/null))
NATIVE := $(shell find src cmake CMakeLists.txt pyproject.toml -type f 2>/dev/null) $(COMMIT)
TIMED := tools/timed.sh
# The editable installation and the unit tests share one build directory and so their objects.
INSTALL := $(PYTHON) -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps \
  -C build-dir=build/dev -e .
PYTEST := $(PYTHON) -m pytest -q -n $(JOBS) --dist loadgroup

.PHONY: help setup build build-unit unit test test-system test-all wheel manuals conformance \
  flaky fuzz changelog coverage demo check docs benchmarks format asan tsan bench clean

help:
	@sed -n 's/^# //p' Makefile

# tools/setup.sh lists the packages of each level of set-up.
$(VENV)/setup-%.stamp: tools/setup.sh pyproject.toml
	@$(TIMED) "set-up ($*)" tools/setup.sh $(VENV) $*

setup: $(VENV)/setup-build.stamp

# The stamp has the time of the beginning: a file that changes during the build is built next time.
$(VENV)/build.stamp: $(VENV)/setup-build.stamp $(NATIVE)
	@touch $@.begun
	@$(TIMED) "build" $(INSTALL)
	@mv $@.begun $@

build: $(VENV)/build.stamp

# The set-up for tests comes first: it includes the one for the build.
build-unit: $(VENV)/setup-test.stamp build
	@$(TIMED) "configure unit tests" cmake --preset dev
	@$(TIMED) "build unit tests" cmake --build --preset dev -j $(JOBS)

unit: build-unit
	@$(TIMED) "unit tests" ctest --preset dev -j $(TEST_JOBS)

# The unit tests, which often wait, run beside the quick ones; their failures are printed last.
test: build-unit
	@$(TIMED) "unit tests" ctest --preset dev -j $(TEST_JOBS) >build/unit.log 2>&1 & unit=$$!; \
	  $(TIMED) "quick tests" $(PYTEST) -m "not system and not exhaustive" $(PYTEST_OPTIONS); \
	  quick=$$?; wait $$unit; failed=$$?; grep -vE ' Passed |^ +Start ' build/unit.log; \
	  exit $$((quick | failed))

test-system: $(VENV)/setup-system.stamp build
	@$(TIMED) "system tests" $(PYTEST) -m "system and not exhaustive" $(PYTEST_OPTIONS)

test-all: $(VENV)/setup-all.stamp build
	PARIO_TEST_RANDOM=1 $(PYTHON) -m tools.test_all --jobs $(JOBS) $(if $(RESTART),--restart) \
	  $(addprefix --part=,$(wildcard $(PARTS))) $(STEPS)

conformance:
	$(PYTHON) -m tools.write_conformance --add build/test-all/results.jsonl \
	  $(if $(BUSY),--busy)

flaky: $(VENV)/setup-all.stamp build
	$(PYTHON) -m tools.find_flaky --count $(COUNT) $(if $(RESTART),--restart) -- $(TESTS)

fuzz: $(VENV)/setup-all.stamp build
	PARIO_FUZZ_SECONDS=$(SECONDS_EACH) $(PYTHON) -m tools.test_all --restart \
	  --results build/fuzz/results.jsonl fuzz python-fuzz

manuals: $(VENV)/setup-test.stamp build
	$(PYTHON) -m tools.write_manuals build/share

wheel:
	@$(TIMED) "wheels" python3 -m tools.build_wheels

demo: build
	@$(TIMED) "demonstration" examples/demo.sh

check: $(VENV)/setup-test.stamp build
	@$(TIMED) "checks" tools/check.sh

changelog: $(VENV)/setup-test.stamp
	$(VENV)/bin/towncrier build --yes --version "$(RELEASE)"

# Without libbenchmark-dev the micro-benchmarks are skipped.
benchmarks: build
	-@$(TIMED) "build micro-benchmarks" sh -c 'cmake --preset release && \
	  cmake --build --preset release -j $(JOBS) --target trace_bench pattern_bench'
	$(PYTHON) bench/run_all.py $(if $(ONLY),--only "$(ONLY)") $(if $(UNTIL),--until $(UNTIL)) \
	  $(if $(MINUTES),--minutes $(MINUTES)) $(if $(DIRECTORY),--directory "$(DIRECTORY)")

docs: $(VENV)/setup-test.stamp build
	@$(TIMED) "documentation" $(PYTHON) -m tools.site.build

format:
	git ls-files '*.cpp' '*.hpp' '*.c' '*.h' | xargs clang-format -i
	git ls-files '*CMakeLists.txt' '*.cmake' | xargs gersemi -i
	ruff format python tests tools bench
	ruff check --fix python tests tools bench

# The presets select the modules that need the sanitizer; MODULES=all tests all of them.
asan tsan: $(VENV)/setup-test.stamp
	cmake --preset $@ $(if $(MODULES),-DPARIO_UNIT_TESTS="$(MODULES)")
	@$(TIMED) "build $@" cmake --build --preset $@ -j $(JOBS)
	@$(TIMED) "unit tests $@" ctest --preset $@ -j $(TEST_JOBS)

# An environment and a build directory of its own. TIERS=all: the exhaustive tests, too.
coverage:
	$(MAKE) VENV=.venv-coverage .venv-coverage/setup-$(if $(TIERS),$(TIERS),system).stamp
	tools/measure_coverage.sh .venv-coverage $(if $(TIERS),$(TIERS),system)

bench: build
	@cat bench/README.md

clean:
	rm -rf build $(VENV)
