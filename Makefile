# The two commands of the README are `make demo` and `make test`; each makes .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test check lint format bench clean

demo: .venv/ready
	$(BIN)/dppp demo

test: .venv/ready
	$(BIN)/pytest -n auto

# What CI runs.
check: lint test

lint: .venv/ready
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: .venv/ready
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: .venv/ready
	$(BIN)/dppp bench

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,experiments]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
