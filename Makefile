# `make demo` and `make test` work on a fresh clone; both make .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow bench lint lock clean

demo: .venv/ready
	$(BIN)/netmargin train digits-mlp --until-log10-loss -40 --out runs/demo

test: .venv/ready lint
	$(BIN)/pytest -q

test-slow: .venv/ready
	$(BIN)/pytest -q -m slow

bench: .venv/ready
	$(BIN)/python -m benchmarks

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.venv/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --editable .
	touch $@

# Tested versions of everything that the set-up installs.
lock: .venv/ready
	$(BIN)/pip freeze --exclude-editable | sed 's/+cpu$$//' > requirements.lock

clean:
	rm -rf .venv runs
