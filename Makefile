# make demo   sets everything up, runs the demonstration, ends with the report's path
# make test   sets everything up, runs the quick tests (under two minutes once built)
# make check  rooms, imports, sizes, format, lint, types
# make test-all  runs every test there is (hours); goes on where an interrupted run was left.
#                RESTART=1 begins anew, STEPS="unit suites" runs only these steps
# make conformance  writes docs/conformance.md from the results of make test-all
# make flaky  runs tests COUNT=20 times each beside a load, to find those that fail sometimes.
#             TESTS='tests/mpi -m "not exhaustive"' chooses them, RESTART=1 begins anew
#
# PYTEST_OPTIONS=--last-failed make test   what has failed once more; other options as pytest has them
.DEFAULT_GOAL := help
VENV := .venv
PYTHON := $(VENV)/bin/python
JOBS ?= $(shell nproc)
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
NATIVE := $(shell find src cmake CMakeLists.txt pyproject.toml VERSION -type f 2>/dev/null)

.PHONY: help setup build unit test test-slow test-all conformance flaky demo check format asan tsan bench clean

help:
	@sed -n 's/^# //p' Makefile

# What each level of set-up installs stands in tools/setup.sh.
$(VENV)/setup-%.stamp: tools/setup.sh pyproject.toml
	tools/setup.sh $(VENV) $*
	@touch $@

setup: $(VENV)/setup-build.stamp

$(VENV)/build.stamp: $(VENV)/setup-build.stamp $(NATIVE)
	$(PYTHON) -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

build: $(VENV)/build.stamp

unit: build $(VENV)/setup-test.stamp
	cmake --preset dev
	cmake --build --preset dev -j $(JOBS)
	ctest --preset dev -j $(JOBS)

test: unit
	$(PYTHON) -m pytest -q -m "not slow and not exhaustive" $(PYTEST_OPTIONS)

test-slow: build $(VENV)/setup-slow.stamp
	$(PYTHON) -m pytest -q -m slow $(PYTEST_OPTIONS)

test-all: build $(VENV)/setup-slow.stamp
	$(PYTHON) -m tools.test_all --jobs $(JOBS) $(if $(RESTART),--restart) $(STEPS)

conformance:
	$(PYTHON) -m tools.write_conformance build/test-all/results.jsonl > build/conformance.md
	mv build/conformance.md docs/conformance.md

COUNT ?= 20
flaky: build $(VENV)/setup-slow.stamp
	$(PYTHON) -m tools.find_flaky --count $(COUNT) $(if $(RESTART),--restart) -- $(TESTS)

demo: build
	examples/demo.sh

check: build $(VENV)/setup-test.stamp
	tools/check.sh

format:
	git ls-files '*.cpp' '*.hpp' '*.c' '*.h' | xargs clang-format -i
	git ls-files '*CMakeLists.txt' '*.cmake' | xargs gersemi -i
	ruff format python tests tools bench
	ruff check --fix python tests tools bench

asan tsan: $(VENV)/setup-test.stamp
	cmake --preset $@
	cmake --build --preset $@ -j $(JOBS)
	ctest --preset $@ -j $(JOBS)

bench: build
	@cat bench/README.md

clean:
	rm -rf build $(VENV)
