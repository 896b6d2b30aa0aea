# Every target sets up .venv by itself; a fresh machine needs Python >= 3.11 and make.
PYTHON ?= python3
BIN := .venv/bin
WHAT ?= 000_table1
export REGBAYES_DATA ?= $(abspath $(wildcard ../shared/data))

.PHONY: demo test lint format check-slow reproduce bench docs readme transcript release-check clean

.venv/.installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

.venv/.installed-docs: .venv/.installed
	$(BIN)/python -m pip install --quiet --editable ".[dev,docs]"
	touch $@

.venv/.installed-peers: .venv/.installed
	$(BIN)/python -m pip install --quiet --editable ".[dev,peers]"
	# aeon (MiniRocket) asks for older numba and numpy than ours, and works with these.
	$(BIN)/python -m pip install --quiet --no-deps aeon==1.6.0 Deprecated wrapt
	touch $@

demo: .venv/.installed          ## fit on embedded data, compare with a linear SVM, draw a picture
	$(BIN)/python -m regbayes.demo

test: .venv/.installed          ## fast tests and doctests
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal

lint: .venv/.installed          ## style, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check-slow: .venv/.installed    ## statistical suites: enumeration, Geweke, Kolmogorov-Smirnov grids
	$(BIN)/python -m pytest -m slow --durations=10

reproduce: .venv/.installed-peers   ## make reproduce WHAT=000_table1 [QUICK=1]
	# glibc keeps freed arrays: asking the system for fresh ones costs scores of documents much time.
	MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=1000000000000 $(BIN)/python -m experiments $(WHAT) $(if $(QUICK),--quick)

bench: .venv/.installed-peers   ## ratios against named peers
	$(BIN)/python -m benchmarks $(if $(QUICK),--quick)

docs: .venv/.installed-docs     ## HTML in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

readme: .venv/.installed        ## README's tables, from the results
	$(BIN)/python -m experiments.comparison

transcript: .venv/.installed    ## docs/transcript.md and its pictures, from a clean clone [TESTS=0]
	$(BIN)/python docs/make_transcript.py $(if $(filter 0,$(TESTS)),--no-tests)

release-check: .venv/.installed ## wheel and sdist, built, installed in a clean environment, used
	$(BIN)/python tests/release_check.py

clean:
	rm -rf .venv docs/_build build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
