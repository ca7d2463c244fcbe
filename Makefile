# stretto: `make demo`, `make test` and the others set up what they need in .venv.

.DEFAULT_GOAL := help
# Every process of a test would compile the same sources again.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help demo studio wheel dist test test-all check bench site format clean
# The lanes of test-all, each by itself `make test-NAME`. No name may hold a space, and .ci/run takes one a day.
KILLS := $(addprefix kills-,ceql sase clause totals ahead afa current patterns dataflow)
LANES := uncompiled checked seeds seeds-uncompiled fuzz spark versions cluster $(KILLS) kafka delta benchmarks browser wheel
.PHONY: lanes test-kills test-mutations $(LANES:%=test-%)

VENV ?= .venv
BIN := $(VENV)/bin
# The first Python from 3.11 on that can make a virtual environment.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$python && break; done)

# Kernels are compiled before the workers would all do it at once. A file is run by one worker, for what its tests share; in the order of
# folders, so that the last files are short ones.
PYTEST = $(BIN)/stretto compile && $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations=10
PICTURE ?= out/delay_chain.png

help:
	@echo "make demo       complex events in a year of flights, on local Spark; draws $(PICTURE)"
	@echo "make studio     the studio's page, into the package (docs/studio.md); make wheel: a wheel, in dist/"
	@echo "make dist       what is published, in dist/: this platform's wheel, the pure one, and the sources (docs/releasing.md)"
	@echo "make test       the tests to run before each commit: compiled, with Spark, a tenth of the random cases"
	@echo "make test-all   test and all lanes, each by itself a make test-NAME:"
	@echo "                  uncompiled        kernels interpreted, with branch coverage and its floor"
	@echo "                  checked           kernels bounds-checked"
	@echo "                  seeds             all random cases, compiled"
	@echo "                  seeds-uncompiled  all random cases, interpreted: many more where each would be compiled"
	@echo "                  fuzz              mistyped queries, and random queries over random tables for FUZZ_MINUTES=10"
	@echo "                  spark             all of Spark, all random cases, sessions of all kinds"
	@echo "                  versions          batch and streams with each PySpark of tests/spark/versions; the oldest Numba"
	@echo "                  cluster           batch and streams on executors that share nothing, and are killed"
	@echo "                  kills-ceql, …     a continuous query of that kind killed at random moments, many times; kills: of all kinds"
	@echo "                  kafka, delta      against a real broker; against Delta tables"
	@echo "                  browser           the studio as a user clicks it, in Chromium, which npm installs"
	@echo "                  benchmarks        the benchmarks at toy size, against their oracles"
	@echo "make test-mutations  snapshots with another number in them, 5,000 of each kind, which takes hours: refused, or going on"
	@echo "make check      linter, formatter, type checker (of the tests, too)"
	@echo "make bench      the benchmarks of benchmarks/"
	@echo "make site       the documentation as a site, in out/site"
	@echo "make format     let the formatter write"

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "stretto needs Python 3.11 or newer with venv: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# pip learned about dependency groups in 25.1.
$(VENV)/.stamp: pyproject.toml $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

site: $(VENV)/.stamp
	$(BIN)/sphinx-build -q -W --keep-going docs out/site
	@echo "out/site/index.html"

# The demo needs a part of what the tests need. It says how long that takes, since nothing else moves in the meantime.
$(VENV)/.demo: pyproject.toml $(VENV)/.made
	@echo "== installing what the demo runs, once: PySpark (490 MB), NumPy, pyarrow, Numba, Matplotlib"
	@date +%s > $@.began
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[spark,draw]'
	@$(BIN)/python -c 'import sys; from stretto.spark.sessions import find_java; sys.exit(find_java() is None)' || { \
		echo "== no Java of version 17 or newer is here: installing that of PyPI"; \
		$(BIN)/python -m pip install --disable-pip-version-check --editable '.[jdk]'; }
	@echo "== installed in $$(($$(date +%s) - $$(cat $@.began))) s"; rm $@.began
	@touch $@

# Kernels that the query does not need are not compiled.
demo: $(if $(wildcard $(VENV)/.stamp),$(VENV)/.stamp,$(VENV)/.demo)
	STRETTO_COMPILE=now $(BIN)/python -m stretto.demo $(PICTURE)

# The page is built with the machine's Node, or with that of PyPI.
NPM := $(if $(shell command -v npm),npm,PATH="$(abspath $(BIN)):$$PATH" npm)
NODE := $(if $(shell command -v npm),,$(BIN)/npm)
studio: $(NODE)
	$(NPM) ci --prefix studio --loglevel error --no-audit --no-fund
	$(NPM) run --prefix studio --silent build

$(BIN)/npm: $(VENV)/.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group node

# The wheel of this platform holds compiled code; STRETTO_KERNELS= makes a pure one, which compiles where it runs.
STRETTO_KERNELS ?= build/kernels
wheel: $(VENV)/.stamp
	test -z "$(STRETTO_KERNELS)" || $(BIN)/python packaging/kernels.py $(STRETTO_KERNELS)
	STRETTO_KERNELS=$(abspath $(STRETTO_KERNELS)) $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

# All that is published, of one version.
dist: $(VENV)/.stamp
	rm -rf dist
	$(MAKE) --no-print-directory wheel
	$(MAKE) --no-print-directory wheel STRETTO_KERNELS=
	$(BIN)/python -m hatchling build -t sdist -d dist
	ls -l dist

# Classes of Spark as Java has them once they are loaded: each JVM of the tests starts with them.
$(VENV)/spark-classes.jsa: $(VENV)/.stamp
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m tests.spark.java $@

# What one runs before each commit. What is left out here is a lane of its own below.
test: $(VENV)/.stamp $(VENV)/spark-classes.jsa
	@echo "== test: compiled, Spark included, a tenth of the random cases"
	$(PYTEST) -m "not (kafka or delta or benchmark or everywhere or session or browser or wheel)"

# Every lane, whatever happens to those before it; it fails if one did.
test-all: $(VENV)/.stamp
	@took=; failed=; for lane in test $(LANES:%=test-%); do \
		began=$$(date +%s); \
		$(MAKE) --no-print-directory $$lane || failed="$$failed $$lane"; \
		took="$$took\n$$lane $$(($$(date +%s) - began)) s"; \
	done; printf "== seconds of each lane$$took\n"; \
	test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

lanes:
	@echo $(LANES:%=test-%)

test-uncompiled: $(VENV)/.stamp
	@echo "== test-uncompiled: kernels interpreted, with branch coverage, a tenth of the random cases"
	rm -f .coverage .coverage.*
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -n 2 --durations=10 -m "not (spark or benchmark or browser or wheel)"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

test-checked: $(VENV)/.stamp
	@echo "== test-checked: kernels bounds-checked, a tenth of the random cases"
	export NUMBA_BOUNDSCHECK=1; $(PYTEST) -m "not (spark or benchmark or fuzz or browser or wheel)"

test-seeds: $(VENV)/.stamp
	@echo "== test-seeds: all random cases, compiled"
	export STRETTO_CASES=all; $(PYTEST) -m "seeds and not (spark or benchmark)"

test-seeds-uncompiled: $(VENV)/.stamp
	@echo "== test-seeds-uncompiled: all random cases, interpreted"
	export STRETTO_CASES=all NUMBA_DISABLE_JIT=1; $(PYTEST) -m "seeds and not (spark or benchmark)"

# Numbers of cases differ from run to run; a failure is told with its own.
FUZZ_MINUTES ?= 10
test-fuzz: $(VENV)/.stamp
	@echo "== test-fuzz: all cases of mistyped queries and automata, and random queries over random tables for $(FUZZ_MINUTES) minutes"
	export STRETTO_CASES=all; $(PYTEST) -m "fuzz and not spark"
	STRETTO_COMPILE=now $(BIN)/python -m tests.fuzz all --minutes $(FUZZ_MINUTES)

# Kernels are compiled before: a process that restores has no memory to compile in.
test-mutations: $(VENV)/.stamp
	@echo "== test-mutations: snapshots with another number in them, 5,000 of each kind"
	$(BIN)/stretto compile && STRETTO_COMPILE=now $(BIN)/python -m tests.snapshots.mutations --count 5000

test-spark: $(VENV)/.stamp $(VENV)/spark-classes.jsa
	@echo "== test-spark: all of Spark, all random cases"
	export STRETTO_CASES=all; $(PYTEST) -m "spark and not (kill or kafka or delta or benchmark)"

# Each version has an environment of its own, of the project's dependencies as they are pinned for it.
VERSIONS ?= 3.5 4.0 4.1 4.2
$(VENV)/pyspark-%/.stamp: tests/spark/versions/%.txt tests/spark/versions/common.txt pyproject.toml $(VENV)/.stamp
	$(BIN)/python -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# Numba's internals are used in one module, stretto._jit.internals: what it does with them is tested, with code that is compiled by it.
$(VENV)/numba-oldest/.stamp: tests/numba/oldest.txt pyproject.toml $(VENV)/.stamp
	$(BIN)/python -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

test-versions: $(VENV)/.stamp $(VERSIONS:%=$(VENV)/pyspark-%/.stamp) $(VENV)/numba-oldest/.stamp
	@echo "== test-versions: the oldest Numba"
	STRETTO_COMPILE=now $(VENV)/numba-oldest/bin/python -m pytest tests/project/test_bundle.py tests/project/test_compiling.py tests/matching/api/test_match.py
	@echo "== test-versions: batch and streams with PySpark $(VERSIONS)"
	$(BIN)/stretto compile
	@failed=; for version in $(VERSIONS); do \
		echo "-- PySpark $$version"; \
		$(VENV)/pyspark-$$version/bin/python -m pytest -m everywhere tests/spark/test_everywhere.py || failed="$$failed $$version"; \
	done; test -z "$$failed" || { echo "failed with PySpark$$failed" >&2; exit 1; }

test-cluster: $(VENV)/.stamp
	@echo "== test-cluster: executors of their own, which are killed"
	export STRETTO_SPARK_MASTER='local-cluster[2,1,1024]'; $(PYTEST) -m everywhere tests/spark/test_everywhere.py

test-kills: $(KILLS:%=test-%)

$(KILLS:%=test-%): $(VENV)/.stamp
	@echo "== $@: a continuous query killed at random moments"
	export STRETTO_CASES=all; $(PYTEST) -m kill -k "$(@:test-kills-%=%)" tests/spark/test_kill.py

test-kafka: $(VENV)/.stamp
	@echo "== test-kafka: sources and sinks against a real broker"
	export STRETTO_CASES=all; $(PYTEST) -m kafka

test-delta: $(VENV)/.stamp
	@echo "== test-delta: Delta tables"
	export STRETTO_CASES=all; $(PYTEST) -m delta

test-benchmarks: $(VENV)/.stamp
	@echo "== test-benchmarks: the benchmarks at toy size"
	export STRETTO_CASES=all; $(PYTEST) -m benchmark

test-wheel: $(VENV)/.stamp
	@echo "== test-wheel: a wheel with compiled code, in an empty environment"
	$(BIN)/python -m pytest -m wheel -rP tests/project/test_wheel.py

test-browser: $(VENV)/.stamp studio
	@echo "== test-browser: the studio in Chromium"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group browser
	$(NPM) ci --prefix tests/studio/browser --loglevel error --no-audit --no-fund
	$(BIN)/stretto compile && PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pytest -m browser tests/studio/browser

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
	rm -rf $(VENV) studio/node_modules tests/studio/browser/node_modules dist .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis out
