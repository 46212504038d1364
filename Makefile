# The developer commands; CI calls the same ones. Bare `make` explains them.

SHELL := /bin/bash
.DEFAULT_GOAL := help
# Targets share the machine and .venv; their order is part of what they mean.
.NOTPARALLEL:
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
STAMP := .venv/.installed
CODE := $(wildcard processor tests benchmarks requirements fuzz)
TYPED := $(wildcard processor tests benchmarks fuzz)
PYTEST := $(BIN)/python -m pytest

.PHONY: help setup check test test-core test-kafka demo bench bench-all chaos simulate fuzz approvals oracle docs format lock clean

help: ## Explain the targets (this)
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1|/' | awk -F'|' '{printf "  make %-11s %s\n", $$1, $$2}'

setup: $(STAMP) ## Make .venv from the pinned list and install callgate into it (the others do it by themselves)

$(STAMP): pyproject.toml $(wildcard requirements/*.txt)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later was not found: install it (with its venv module), or set PYTHON=..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { echo "Python's venv module is missing: install it (on Debian: python3-venv)." >&2; exit 1; }
	@echo "Installing what callgate needs into .venv (once; a minute or two) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

check: setup ## Lint, format and types, all strict
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy $(TYPED)

test: test-core test-kafka ## All tests: those without a broker first, then those on a real one

test-core: setup ## Tests that need no broker (minutes on 2 cores)
	$(PYTEST) -m "not kafka"

test-kafka: setup ## Tests on a real Kafka (fetched once; or set CALLGATE_TEST_BOOTSTRAP=host:port)
	@$(BIN)/python -c 'import sys; from processor.broker import BrokerUnavailable, find_tools; exec("try:\n find_tools()\nexcept BrokerUnavailable as e:\n sys.exit(str(e))")'
	$(PYTEST) -m kafka

demo: setup ## Everything at once on this machine: Kafka, streams, decisions
	$(BIN)/callgate demo

bench: setup ## Measure callgate against the cost of reading alone (some minutes)
	$(BIN)/python -m benchmarks

bench-all: setup ## Make every section of benchmarks/RESULTS.md anew (25 minutes; the machine must be quiet)
	$(BIN)/python -m benchmarks.everything

simulate: setup ## Simulate members on a broker in memory, seed by seed (SEEDS=200000 FIRST=1 JOBS=1)
	$(BIN)/python -m tests.simulation --seeds $${SEEDS:-200000} --first $${FIRST:-1} --jobs $${JOBS:-1}

fuzz: setup ## Fuzz the core guided by coverage (FUZZ_SECONDS=300; installs atheris)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'atheris>=3'
	@mkdir -p .cache/fuzz-found
	$(BIN)/python fuzz/atheris_target.py -max_total_time=$${FUZZ_SECONDS:-300} -max_len=4000 -artifact_prefix=.cache/fuzz-found/

approvals: setup ## Hold a million approvals against two other readers (ten minutes; CALLGATE_FUZZ=1000000 inputs)
	CALLGATE_FUZZ=$${CALLGATE_FUZZ:-1000000} $(PYTEST) tests/core/test_no_wrong_approval.py

oracle: setup ## Hold the core against the naive reading on a million streams (an hour; CALLGATE_TEST_ORACLE_N=400000 logs)
	$(BIN)/python -m tests.oracle

chaos: setup ## Break members, broker and connections at least 200 times under load, and count (half an hour)
	$(BIN)/python -m tests.chaos

docs: setup ## Draw the generated pages of docs/ again
	$(BIN)/python -m processor.docs
	$(BIN)/python -m tests.quirks
	$(BIN)/python -m tests.helm.values_schema

format: setup ## Put the code into the one format
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

lock: ## Pin the newest versions that pyproject.toml allows
	rm -rf .cache/lock
	$(PYTHON) -m venv .cache/lock
	.cache/lock/bin/python -m pip install --quiet --disable-pip-version-check hatchling editables '.[dev]'
	.cache/lock/bin/python requirements/lock.py
	rm -rf .cache/lock

clean: ## Remove .venv, caches and the fetched Kafka
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist benchmarks/out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
