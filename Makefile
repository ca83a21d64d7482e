# The two commands of the README are `make demo` and `make test`; each makes .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
# The extras to install. With torch: make EXTRAS=dev,service,onnx,experiments,torch
EXTRAS ?= dev,service,onnx,experiments
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test attacks check lint format bench docs soak clean

demo: .venv/demo
	$(BIN)/dppp demo

test: .venv/ready
	$(BIN)/pytest -n auto --dist worksteal

# Every attack that was tried, and each again with its defence taken out (docs/attacks.md).
attacks: .venv/ready
	$(BIN)/pytest -m attack tests/masks tests/paillier tests/protocol

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

# The documentation as a site, in build/site: open build/site/index.html. It loads nothing from elsewhere.
docs: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# Minutes of trouble: kill -9 at every write, every reader under two fuzzers, 10,000 queries with faults, a real deployment
# whose processes are killed and put to sleep at random, a batch over Flower; then an hour of the page under load (DPPP_SOAK_PAGE_SECONDS for less).
soak: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[fuzz,language]'
	DPPP_SOAK=1 $(BIN)/pytest -n auto tests/crash tests/fuzz
	DPPP_FUZZ_SECONDS=$${DPPP_FUZZ_SECONDS:-300} $(BIN)/python -m tests.fuzz.coverage_guided build/fuzz
	DPPP_SOAK_QUERIES=10000 $(BIN)/pytest -n auto tests/simulation
	DPPP_SOAK=1 $(BIN)/pytest tests/deployment/test_soak.py tests/deployment/test_bench.py
	DPPP_SOAK=1 $(BIN)/pytest tests/service/teacher/chat/test_real_server.py
	DPPP_SOAK=1 $(BIN)/pytest tests/test_flower_example.py
	DPPP_SOAK=1 $(BIN)/pytest tests/page/test_hour.py

# What the README goes on with: less than the tests need, so that a newcomer waits less.
.venv/demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[service,experiments]'
	touch $@

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]'
	touch .venv/demo $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
