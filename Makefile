# Everything runs in .venv, which the first target makes: Python >= 3.11 with venv, make and git are enough.
# `make help` lists the targets.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.PHONY: help env demo test check check-workers generate bench lock upgrade format clean

# An interpreter may be chosen: make PYTHON=python3.13
PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
# uv is told to use the environment that make made, and never to fetch a Python of its own.
UV := UV_PYTHON_DOWNLOADS=never VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv

# Our own projects, installed so that edits count at once. Those of the frameworks are not among them: each has an
# environment of its own.
LOCAL := . $(patsubst %/pyproject.toml,%,$(wildcard $(foreach name,worker steps payments,workloads/$(name)/pyproject.toml)))

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

# --- Environment -----------------------------------------------------------------------------------------------------

env: $(VENV)/.installed ## Make or refresh .venv

# Three stamps: pip and uv, then what the lock pins, then our own projects on top.
# A Python that CrewAI takes (3.13 at most) goes before any newer one, with which all but its setups run.
$(VENV)/.bootstrapped: requirements-bootstrap.lock
	@python=; for below in 3,14 4,0; do for candidate in $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python3.14); do \
	  if "$$candidate" -c "import sys; sys.exit(not (3, 11) <= sys.version_info < ($$below))" 2>/dev/null; then \
	    python=$$candidate; break 2; \
	  fi; \
	done; done; \
	if [ -z "$$python" ]; then \
	  echo "killpoint needs Python 3.11 or newer, and none was found: install one, or name it: make PYTHON=/path/to/python3" >&2; \
	  exit 1; \
	fi; \
	if ! "$$python" -m venv $(VENV); then \
	  rm -rf $(VENV); \
	  echo "$$python could not make $(VENV): it needs its venv module (Debian and Ubuntu: apt-get install python3-venv)" >&2; \
	  exit 1; \
	fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r $<
	@touch $@

$(VENV)/.synced: requirements.lock $(VENV)/.bootstrapped
	$(UV) pip sync --quiet --require-hashes requirements.lock
	@touch $@

$(VENV)/.installed: pyproject.toml $(addsuffix /pyproject.toml,$(LOCAL)) $(VENV)/.synced
	$(UV) pip install --quiet --no-deps --no-build-isolation $(addprefix --editable ,$(LOCAL))
	@touch $@

# --- What people run -------------------------------------------------------------------------------------------------

demo: env ## Run the crash table on this machine and write crash-table.html
	$(BIN)/killpoint run experiments/crash-table.yaml --report crash-table.html

# PYTEST: further arguments, such as make test PYTEST="tests/unit -k judge"
test: env ## Run all tests
	$(BIN)/pytest $(PYTEST)

bench: env ## Run the benchmarks
	$(BIN)/python -m bench

# Every check runs, also after one has failed: one round shows all there is to mend.
generate: env ## Make the generated files anew: the CRD and the field reference
	$(BIN)/python -m killpoint.api.generate

check: env ## Check style, types, layers, locks and generated files: what CI checks
	@failed=; \
	for step in \
	  "ruff check" \
	  "ruff format --check" \
	  "mypy" \
	  "lint-imports --no-logo" \
	  "python -m killpoint.api.generate --check" \
	  "python -m tools.lock --check" \
	  "python -m tools.check_house"; \
	do \
	  echo "== $$step"; \
	  $(BIN)/$$step || failed="$$failed\n  $$step"; \
	done; \
	if [ -n "$$failed" ]; then printf "\nFailed:$$failed\n" >&2; exit 1; fi

check-workers: env ## Check the framework workers' types against the frameworks (makes their environments: large)
	$(BIN)/python -m tools.check_workers

# --- A cluster for tests: tests/cluster/README.md --------------------------------------------------------------------

.PHONY: cluster cluster-down images

cluster: env ## Have a Kubernetes: that of KUBECONFIG, kind, or one node of our own (Linux, root, Go)
	$(BIN)/python -m tests.cluster up

cluster-down: env ## End it, and remove all it left on this machine
	$(BIN)/python -m tests.cluster down

# IMAGES: only these, such as make images IMAGES="langgraph payments"
images: env ## Build the images and load them into the cluster, if one is up
	$(BIN)/python -m tests.cluster images $(IMAGES)

# --- Upkeep ----------------------------------------------------------------------------------------------------------

format: env ## Format, and mend what ruff can mend
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

lock: env ## Make all locks again; versions that still fit stay
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tools.lock

upgrade: env ## Make all locks again with the newest versions
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tools.lock --upgrade

clean: ## Remove .venv and what was made in the checkout
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build crash-table.html
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
