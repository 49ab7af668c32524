# From a clone to a running program: `make run`. Needs python3 >= 3.11 and make, nothing else.

SHELL := /bin/sh
PYTHON ?=
BIN := .venv/bin
READY := .venv/.ready
TOOLS := .venv/.test-tools
# Many tests wait for processes and clocks: three at once leave no core idle.
PYTEST := $(BIN)/pytest -q -n 3 --dist worksteal

.DEFAULT_GOAL := run
.PHONY: run test test-long matrix mutants check bench docs picture prices lock clean help

run: $(READY)  ## examine this machine, then show in a minute what Holdfast is for
	@$(BIN)/holdfast doctor | tail -n 2
	@$(BIN)/holdfast demo

test: $(READY) $(TOOLS)  ## run the tests, in less than 15 minutes; of those that fail, the quarantined ones twice
	@$(PYTEST) -p tests.plugins.quarantine

test-long: $(READY) $(TOOLS)  ## run all tests, also the long ones
	@$(PYTEST) --long

matrix: $(READY) $(TOOLS)  ## prove what survives what, each cell of docs/what-survives-what.md
	@$(BIN)/python -m tests.faults.host_table docs/what-survives-what.md
	@$(PYTEST) --long tests/faults/test_host_matrix.py tests/faults/test_host_power.py tests/journeys/test_host_mcp.py

mutants: $(READY) $(TOOLS)  ## change the code in 200 places, one at a time, and see a test fail each time
	@$(BIN)/python -m tests.mutants.check docs/mutants.md

check: $(READY)  ## lint, types, layers and the shape of the code
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/pyright --warnings >.venv/pyright.log || { cat .venv/pyright.log; exit 1; }
	@$(BIN)/lint-imports >.venv/lint-imports.log 2>&1 || { cat .venv/lint-imports.log; exit 1; }
	@$(BIN)/pytest -q tests/shape
	@$(BIN)/python -m tests.plugins.quarantine
	@echo "All checks passed."

bench: $(READY)  ## measure, and write docs/benchmarks.md
	@$(BIN)/python bench/run.py docs/benchmarks.md

docs: $(READY)  ## write the pages that are made from the code
	@$(BIN)/python -m holdfast.app.failure_catalogue docs/failures.md
	@$(BIN)/python -m holdfast.cli.reference docs/reference/cli.md
	@$(BIN)/python scripts/write_reference.py docs/reference

picture: $(READY) $(TOOLS)  ## write docs/terminal.svg, the picture of a real session
	@$(BIN)/python -m tests.journeys.tutorial_stage docs/terminal.svg

prices: $(READY)  ## fetch what models cost and how much fits into them
	@scripts/uv run --quiet --no-project --with genai-prices python scripts/refresh_prices.py src/holdfast/agent/prices.json

lock: $(READY)  ## choose the newest versions anew and write requirements.lock
	@scripts/uv pip compile pyproject.toml --group dev --upgrade --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --quiet -o requirements.lock

clean:  ## remove everything that can be made again
	@rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist

help:  ## say what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

$(READY): requirements.lock pyproject.toml scripts/bootstrap scripts/uv
	@PYTHON="$(PYTHON)" scripts/bootstrap

$(TOOLS): scripts/test-tools | $(READY)
	@scripts/test-tools && touch $@
