# Two commands do everything on a fresh clone: `make demo` and `make test`.
# Each creates the virtual environment it needs, once.

PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test check lint fast-tests docs bench-speed clean

help:
	@echo "make demo   train on a generated problem, explain it, write a report for the browser"
	@echo "make test   lint, types and the whole test suite"
	@echo "make check  the quick loop: format, lint, types, fast tests"
	@echo "make bench-speed  ratios of time and memory, measured in one run, into results/speed.json"
	@echo "make docs   write the generated pages again"
	@echo "make clean  remove the virtual environment and caches"

# torch first and pinned: the CPU build is enough, and newer ones bring gigabytes of GPU libraries.
$(VENV)/core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/dev: $(VENV)/core
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

demo: $(VENV)/core
	$(BIN)/pdftime demo

test: $(VENV)/dev lint
	$(BIN)/pytest -n 2

check: $(VENV)/dev
	$(BIN)/ruff format src tests docs benchmarks
	$(MAKE) lint fast-tests

lint: $(VENV)/dev
	$(BIN)/ruff check src tests docs benchmarks
	$(BIN)/ruff format --check src tests docs benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

fast-tests: $(VENV)/dev
	$(BIN)/pytest -n 2 -m "not slow"

docs: $(VENV)/dev
	$(BIN)/python docs/make_cli_page.py
	$(BIN)/python docs/make_benchmark_page.py

bench-speed: $(VENV)/dev
	$(BIN)/python -m benchmarks.speed --out results/speed.json

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
