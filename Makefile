# One command for each thing a person does here. Every target sets up what it needs, asks nothing,
# and ends with one line on standard output that says how it went.
#
#   make setup              a virtual environment with the program in it
#   make demo   ARGS=…      set up, then the demonstration
#   make test   ARGS=…      the tests, or those that ARGS names
#   make check              all that CI runs
#   make format             let ruff put the layout right
#   make bench  ARGS=…      claims with numbers
#   make lock   ARGS=…      write the lock files anew; ARGS=--upgrade moves the pins
#
# Kept to what GNU Make 3.81 knows, since macOS ships that one.

SHELL := bash
.SUFFIXES:
.PHONY: setup demo test check format bench lock

VENV := .venv
BIN := $(VENV)/bin
PYTHON := $(BIN)/python
PIP := $(PYTHON) -m pip --disable-pip-version-check --no-input -qq
UV_VERSION := 0.13.9
ARGS ?=
# By another name, since make runs every line that says MAKE even when it is asked to run none (-n).
SUBMAKE := $(MAKE) --no-print-directory
comma := ,
space := $(subst ,, )
# Twice the two cores that CI has: half of the tests wait for a process of their own.
TEST_WORKERS ?= 4

PACKAGES := protocol storage actors deploy

# What `make check` does, in this order; the tests are last, so that the runner's own line comes last
# but one. To add a check: name it here and write a target step-<name>.
STEPS := ruff format mypy pyright contracts docs tests

# Modules that write a document out of the code. With --check, each fails when the document on disk
# is no longer what the code would write.
GENERATED_DOCS := $(if $(wildcard protocol/asyncapi.py),temporality.protocol.asyncapi)

# --- setting up ------------------------------------------------------------------------------------

# Stamps: a second run finds them newer than the lock files and starts at once.
RUN_READY := $(VENV)/.ready-run
DEV_READY := $(VENV)/.ready-dev

# An environment that works is kept; one whose interpreter is gone (a removed Python, a copied
# checkout) is made anew.
define make_venv
@$(PYTHON) -c '' 2>/dev/null && exit 0; \
for python in python3 python3.13 python3.12 python3.11; do \
  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
  $$python -c 'import ensurepip, venv' 2>/dev/null || { without_venv=$${without_venv:-$$python}; continue; }; \
  $$python -m venv --clear $(VENV) >&2 && exit 0; \
  echo "setup: failed — $$python -m venv $(VENV)"; exit 1; \
done; \
if [ -n "$$without_venv" ]; then \
  echo "setup: failed — $$without_venv cannot make virtual environments; on Debian: apt-get install python3-venv"; \
else \
  echo "setup: failed — needs Python 3.11 or newer as python3, python3.13, python3.12 or python3.11"; \
fi; exit 1
endef

# $(call install,LOCK): the locked packages, then this project on top, which asks no index anything.
define install
@echo "setup: installing $(1)" >&2
@$(PIP) install --require-hashes -r $(1) >&2 || { echo "setup: failed — installing $(1)"; exit 1; }
@$(PIP) install --no-index --no-deps --no-build-isolation --editable . >&2 \
  || { echo "setup: failed — installing the project itself"; exit 1; }
endef

$(RUN_READY): requirements.lock pyproject.toml
	$(make_venv)
	$(call install,requirements.lock)
	@touch $@

# The larger set holds the smaller one at the same versions, so it makes that one ready too.
$(DEV_READY): requirements-dev.lock pyproject.toml
	$(make_venv)
	$(call install,requirements-dev.lock)
	@touch $(RUN_READY) $@

setup: $(RUN_READY)
	@echo "setup: ok — $$($(PYTHON) --version) in $(VENV)"

# --- what a person runs ----------------------------------------------------------------------------

demo: $(RUN_READY)
	@start=$$(date +%s); \
	$(BIN)/temporality demo $(ARGS) || { echo "demo: failed — $(strip temporality demo $(ARGS))"; exit 1; }; \
	echo "demo: ok in $$(($$(date +%s) - start)) s"

# Reads how many tests passed from the runner's own last line.
TEST_LOG := $(VENV)/tests.log
TESTS_PASSED = sed -n '$$ { / passed/ { s/ passed.*//; s/.*[^0-9]//; p; }; }' $(TEST_LOG)

test: $(DEV_READY)
	@start=$$(date +%s); \
	$(SUBMAKE) step-tests || { echo "test: failed — tests"; exit 1; }; \
	echo "test: ok — $$($(TESTS_PASSED)) tests in $$(($$(date +%s) - start)) s"

# All steps run, also after one has failed: one round shows all that is wrong.
check: $(DEV_READY)
	@start=$$(date +%s); failed=; \
	for step in $(STEPS); do \
	  echo "check: $$step"; \
	  $(SUBMAKE) step-$$step || failed="$$failed, $$step"; \
	done; \
	took=$$(($$(date +%s) - start)); \
	if [ -n "$$failed" ]; then echo "check: failed — $${failed#, } in $$took s"; exit 1; fi; \
	echo "check: ok — $(subst $(space),$(comma)$(space),$(filter-out tests,$(STEPS))), $$($(TESTS_PASSED)) tests in $$took s"

format: $(DEV_READY)
	@$(BIN)/ruff check --quiet --select I --fix . && $(BIN)/ruff format . \
	  || { echo "format: failed — ruff"; exit 1; }
	@echo "format: ok"

# The measurements have one front door once they have one; until then each that can be run is run.
bench: $(DEV_READY)
	@start=$$(date +%s); count=0; \
	if [ -f bench/__main__.py ]; then benches=bench; \
	else benches=$$(grep -l '^\(async \)\{0,1\}def main(' bench/*.py 2>/dev/null | sed 's|/|.|; s|\.py$$||'); fi; \
	[ -n "$$benches" ] || { echo "bench: failed — nothing to run in bench/"; exit 1; }; \
	for bench in $$benches; do \
	  echo "bench: $$bench"; count=$$((count + 1)); \
	  $(PYTHON) -m $$bench $(ARGS) || { echo "bench: failed — $$bench"; exit 1; }; \
	done; \
	echo "bench: ok — $$count run in $$(($$(date +%s) - start)) s"

# --- the steps of `make check` ---------------------------------------------------------------------

.PHONY: $(addprefix step-,$(STEPS))

# Mypy takes a folder without Python files for a mistake, so it is given only those that have some.
with_python = $(foreach folder,$(1),$(if $(shell find $(folder) -name '*.py' 2>/dev/null | head -n 1),$(folder)))

step-ruff:
	@$(BIN)/ruff check .

step-format:
	@$(BIN)/ruff format --check .

# What is shipped and what measures it; tests, whose arguments pytest fills in by name, are left to pyright.
step-mypy:
	@$(BIN)/mypy $(addprefix src/temporality/,$(PACKAGES)) $(call with_python,bench)

step-pyright:
	@$(BIN)/basedpyright

step-contracts:
	@$(BIN)/lint-imports --no-logo

step-docs:
	@for module in $(GENERATED_DOCS); do $(PYTHON) -m $$module --check || exit 1; done

step-tests:
	@set -o pipefail; $(PYTHON) -m pytest -n $(TEST_WORKERS) --dist loadfile $(or $(ARGS),tests) 2>&1 | tee $(TEST_LOG)

# --- lock files ------------------------------------------------------------------------------------

# Every file of every version is hashed, for all systems and Pythons at once, so one lock serves
# Linux and macOS. The hashes are those of the public index, whatever this machine's pip prefers.
# The smaller lock is held to the versions of the larger one.
LOCK_VENV := .venv-lock
COMPILE = $(LOCK_VENV)/bin/uv pip compile --quiet pyproject.toml --universal --python-version 3.11 \
  --generate-hashes --no-emit-index-url --no-config --custom-compile-command "make lock" $(ARGS)

lock:
	@$(SUBMAKE) VENV=$(LOCK_VENV) $(LOCK_VENV)/.ready-lock
	@$(COMPILE) --all-extras --group dev --output-file requirements-dev.lock \
	  && $(COMPILE) --extra demo --group build --constraint requirements-dev.lock --output-file requirements.lock \
	  || { echo "lock: failed — uv pip compile"; exit 1; }
	@if grep -n '://' requirements.lock requirements-dev.lock >&2; then \
	  echo "lock: failed — a lock file names an address"; exit 1; fi
	@echo "lock: ok — $$(grep -c == requirements.lock) packages to run, $$(grep -c == requirements-dev.lock) to develop"

$(LOCK_VENV)/.ready-lock: Makefile
	$(make_venv)
	@$(PIP) install uv==$(UV_VERSION) >&2 || { echo "lock: failed — installing uv"; exit 1; }
	@touch $@
