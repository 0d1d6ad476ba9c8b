# Every command of the project. From a bare clone, Python 3.11+ and make are enough: each target sets up what it needs.
.DEFAULT_GOAL := help
SHELL := /bin/bash

# A newer Python is fine; the pinned versions are tested on 3.11.
PYTHON ?= $(firstword $(foreach name,python3.11 python3 python3.12 python3.13,$(shell command -v $(name))))
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# PyTorch's threads sleep while they wait for each other. Spinning, as they would, two programs on the same two cores
# slowed each other down five times as much.
export OMP_WAIT_POLICY ?= PASSIVE
# What lies beside the project: public data sets, and the naive reference that verdicts are compared with.
SHARED ?= ../shared
# What `make bench` measures (`python -m benchmarks list` names the grids), and after how many minutes it begins no further cell.
GRID ?= speed
MINUTES ?= 60
# As many processes as cores, but not more than a server's memory holds PyTorch for; each computes with one thread.
TEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal
# What `make test` and `make test-all` take beside, for example TESTS="tests/api -k keys".
TESTS ?=
COMPOSE ?= docker compose
# How much torture.
RUNS ?= 3000
KILLS ?= 30
CALLS ?= 10000
CODE := axformer store api worker migrations benchmarks tests

# The virtual environment is complete when this file is newer than what says what belongs into it.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "Python 3.11 or newer is needed; name one: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --build-constraint constraints.txt --editable . --group dev
	@touch $@

.PHONY: help install demo gpu serve test test-all torture restore-drill images compose-test bench evidence families check lint types imports migrations containers docs pins audit sbom dist clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED) ## Make the virtual environment .venv with every pinned package

demo: $(INSTALLED) ## Prune a real model through the whole service, and show what came of it
	$(BIN)/python -m benchmarks.demo

gpu: $(INSTALLED) ## Measure on a CUDA device: laws, runs, throughput, memory (GPU="--rehearse" on a CPU)
	$(BIN)/python -m benchmarks.gpu $(GPU)

serve: $(INSTALLED) ## Run the whole service on this machine until Ctrl-C (PORT=8000)
	$(BIN)/python -m store.serve $(if $(PORT),--port $(PORT))

test: $(INSTALLED) ## Run the tests that are quick, on a PostgreSQL and a Valkey of their own (TESTS="tests/api -k keys")
	$(TEST) -m "not slow" $(TESTS)

test-all: $(INSTALLED) ## Run every test, also those of whole services, real workers and a browser
	$(TEST) $(TESTS)

torture: $(INSTALLED) ## Simulate and break the service many times, put load on it, and print the figures (an hour)
	$(TEST) -m hypothesis --hypothesis-profile wandering
	$(BIN)/python -m tests.simulation --runs $(RUNS)
	$(BIN)/python -m tests.faults --kills $(KILLS) --others 3
	$(BIN)/python -m tests.faults --matrix
	$(BIN)/python -m tests.contract --calls $(CALLS)
	$(BIN)/python -m benchmarks.load --processes 2

restore-drill: $(INSTALLED) ## Dump a database, lose it and restore it, and see that nothing is gone
	$(BIN)/python -m tests.restore_drill

images: ## Build the images of API and worker (COMPOSE="docker compose")
	$(COMPOSE) build

compose-test: $(INSTALLED) ## Build the images with docker or podman, start all services, and kill their containers one by one
	AXFORMER_TEST_CONTAINERS=1 $(BIN)/python -m pytest -v tests/containers

evidence: GRID = compress
evidence: MINUTES = 480
evidence: bench ## Measure the models of docs/evidence.md that are missing, in parts of eight hours (MINUTES=480)

bench: $(INSTALLED) ## Measure the cells that are missing and write their pages (GRID=speed, MINUTES=60, BENCH="--only 'rte-*' --again")
	@test -d $(SHARED)/data || { echo "there are no public data sets in $(SHARED)/data; name the directory that holds data/:" \
	    "make bench SHARED=DIR"; exit 1; }
	$(BIN)/python -m benchmarks run $(GRID) --source $(SHARED)/data --minutes $(MINUTES) --threads 2 --bfloat16 $(BENCH)
	$(BIN)/python -m benchmarks page

families: $(INSTALLED) ## Run every law over every family and task, and write docs/families.md
	$(BIN)/python -m pytest --quiet -p tests.families_table --families-table docs/families.md tests/axformer/test_families.py

check: lint types imports migrations containers docs ## Check style, types, import rules, migrations, containers and documents

lint: $(INSTALLED) ## Check style and layout of the code
	$(BIN)/ruff check $(CODE) docs/hooks
	$(BIN)/ruff format --check $(CODE) docs/hooks

types: $(INSTALLED) ## Check types
	$(BIN)/mypy

imports: $(INSTALLED) ## Check which part may import which
	$(BIN)/lint-imports

migrations: $(INSTALLED) ## Check that migrations and tables agree, on a PostgreSQL of their own
	$(BIN)/python -m tests.with_servers $(BIN)/alembic check

containers: $(INSTALLED) ## Check the images' and the service's description
	$(BIN)/python -m pytest --quiet tests/test_containers.py

docs: $(INSTALLED) ## Build the site of the documents into build/site; a link that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

# For Linux on x86-64. PyTorch is the package index's, which is CUDA's build; `make install` takes any build of these versions
# from whatever index pip is told of, so it checks no hashes.
PINS = $(BIN)/uv pip compile --quiet --constraints constraints.txt --generate-hashes --only-binary :all: --no-header \
    --no-annotate --python-platform x86_64-manylinux_2_28 --python-version 3.11

pins: $(INSTALLED) ## Write what the images install into api/ and worker/requirements.txt, with hashes, from constraints.txt
	$(PINS) --group pyproject.toml:api --output-file api/requirements.txt
	$(PINS) --group pyproject.toml:worker --output-file worker/requirements.txt pyproject.toml

audit: $(INSTALLED) ## Look up known vulnerabilities of what the images install (AUDIT="--osv URL")
	$(BIN)/python -m tests.advisories $(AUDIT)

sbom: $(INSTALLED) ## Write a list of the images' parts (SBOM) in CycloneDX's format into build/
	mkdir -p build
	for image in api worker; do \
	    $(BIN)/cyclonedx-py requirements $$image/requirements.txt --output-reproducible --output-file build/$$image.cdx.json \
	        || exit 1; \
	done

dist: $(INSTALLED) ## Build the library's wheel and sdist into dist/, and check them as an index does
	rm -rf dist
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

clean: ## Remove the virtual environment, caches, and all that the service and the demo keep in var/
	rm -rf $(VENV) var build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
