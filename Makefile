# `make demo` and `make test` work on a fresh clone; both make .venv first.
PYTHON ?= python3
BIN := .venv/bin

# Compiled files are kept: without them each process of the tests, and each that a test starts, compiles all files anew.
unexport PYTHONDONTWRITEBYTECODE

# One thread of torch and BLAS in each of the processes that pytest starts: more would wait for each other.  Each
# process takes half of the files and then what the other has left, so that few fixtures are made twice.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -q --numprocesses=2 --dist=worksteal

.PHONY: demo test test-quick test-slow test-nightly test-integrations check-all bench docs lint lint-page charts lock clean

demo: .venv/ready
	$(BIN)/netmargin train digits-mlp --until-log10-loss -40 --out runs/demo
	$(BIN)/netmargin page runs/demo --radii 16
	@echo "The command is $(BIN)/netmargin; or: source .venv/bin/activate"

# The linters beside the tests: each is one process, and so is each half of the tests.
test: .venv/ready
	$(MAKE) --no-print-directory --jobs=2 lint test-quick

test-quick: .venv/ready
	$(PYTEST) --ignore=tests/integrations

# What takes more than some seconds: figures, the quick ledger, kills, long flows, pages in a browser; and Lightning,
# transformers, Dask and skops themselves, in the same call, as collecting the tests takes long.
test-slow: .venv/integrations-ready
	$(PYTEST) -m "(slow or integrations) and not nightly"

# What takes longer than what it adds to a smaller test of its kind.
test-nightly: .venv/integrations-ready
	$(PYTEST) -m nightly

# Of these, the frameworks alone.
test-integrations: .venv/integrations-ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -m integrations tests/integrations tests/test_docs.py

# Everything, hours: the site, the tests with other random numbers, ten minutes of the judge in exact
# arithmetic, all mutations, the whole ledger.
check-all: test test-slow test-nightly docs
	NETMARGIN_TEST_SEED=1 $(PYTEST) -m "not integrations"
	$(BIN)/python -m tests.exact --instances 1000000 --seconds 600 --jobs 2
	$(BIN)/python -m tests.mutations
	$(BIN)/netmargin verify

bench: .venv/ready
	$(BIN)/python -m benchmarks

# The site with examples, reference and search; five minutes, as it runs every example.
docs: .venv/docs-ready .venv/integrations-ready
	mkdir -p examples/runs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going docs build/site
	$(BIN)/python -m tests.site_links build/site
	@echo "Open build/site/index.html"

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tests.docstrings

# The charts of the page: compiled by whoever changes them, shipped compiled.
charts: .venv/ready
	$(BIN)/python -m charts

# The scripts of the page, joined as a page joins them; needs node, and npm's eslint from the network.
lint-page: .venv/ready
	mkdir -p runs
	$(BIN)/python -c "from netmargin.page.render import _join_scripts as s; print('(() => {', s(), 'start(); })();', sep='\n')" > runs/page.js
	npx --yes eslint@9 --config charts/eslint.config.mjs --no-ignore runs/page.js

# What is imported is compiled then: pip would compile 18,000 files, a minute of a core.
.venv/ready: requirements.lock pyproject.toml
	@echo "Installing tested versions of torch, numpy, scipy and others into .venv: one or two minutes, once."
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --no-compile --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --editable .
	touch $@

# What only some tests and pages need has locks of its own; without dependencies, as the locks name them all.
.venv/%-ready: requirements-%.lock .venv/ready
	$(BIN)/pip install --quiet --no-compile --no-deps --requirement $<
	touch $@

# Tested versions of everything that the set-up installs; to be made before the others are installed.
lock: .venv/ready
	$(BIN)/pip freeze --exclude-editable | sed 's/+cpu$$//' > requirements.lock

clean:
	rm -rf .venv runs
