# stretto: `make demo` and `make test` set up what they need in .venv.

.DEFAULT_GOAL := help
.PHONY: help demo test check bench format clean

VENV ?= .venv
BIN := $(VENV)/bin
# The first Python from 3.11 on that can make a virtual environment.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$python && break; done)

PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup
COVERAGE := $(VENV)/coverage.ini
PICTURE ?= out/delay_chain.png

help:
	@echo "make demo     complex events in a year of flights, on local Spark; draws $(PICTURE)"
	@echo "make test     the tests: compiled, uncompiled with branch coverage, bounds-checked"
	@echo "make check    linter, formatter, type checker"
	@echo "make bench    the benchmarks of benchmarks/"
	@echo "make format   let the formatter write"

# pip learned about dependency groups in 25.1.
$(VENV)/.stamp: pyproject.toml
	@test -n "$(PYTHON)" || { echo "stretto needs Python 3.11 or newer with venv: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@printf '[run]\nbranch = true\nsource = stretto\nparallel = true\npatch = subprocess\ndisable_warnings = module-not-imported, no-data-collected\n\n[report]\nshow_missing = true\nskip_covered = true\nskip_empty = true\n' > $(COVERAGE)
	@touch $@

demo: $(VENV)/.stamp
	$(BIN)/python -m stretto.demo $(PICTURE)

test: $(VENV)/.stamp
	@echo "== compiled, Spark included"
	$(PYTEST)
	@echo "== kernels uncompiled, with branch coverage"
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run --rcfile=$(COVERAGE) -m pytest -n 2 -m "not spark"
	$(BIN)/coverage combine --quiet --rcfile=$(COVERAGE)
	$(BIN)/coverage report --rcfile=$(COVERAGE)
	@echo "== kernels bounds-checked"
	NUMBA_BOUNDSCHECK=1 $(PYTEST) -m "not spark"

check: $(VENV)/.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.stamp
	$(BIN)/python -m benchmarks

format: $(VENV)/.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis out
