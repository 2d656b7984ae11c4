# Everything a newcomer types is here; `make demo` and `make test` need nothing installed by hand
# but Python 3.11 or newer.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

BUILT  := $(VENV)/.built

NEWEST_SPARK := .venv-newest-spark

# The tests of the rooms with compiled modules.
PURE   := $(addprefix tests/,api log network protocol records replica runtime timelines)

.PHONY: demo test test-slow test-all check packages docs bench conformance soak faults lock clean

demo: $(BUILT)
	@$(BIN)/python -m demo $(ARGS)

# Without Apache Kafka the tests that need it are skipped, which CI takes for a failure.
test: $(BUILT)
	@$(BIN)/python -m components.fetch || test -z "$$CI"
	@$(BIN)/python -m tests.pipelines.jars
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not full" $(ARGS)

# The tests of which each takes seconds: those of tests/slow.txt.
test-slow: $(BUILT)
	@$(BIN)/python -m components.fetch || test -z "$$CI"
	@$(BIN)/python -m tests.pipelines.jars
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "slow and not full" $(ARGS)

# Also what takes minutes, the sources of the compiled modules, and the pipelines on the newest
# Spark.
test-all: $(BUILT) $(NEWEST_SPARK)/.ready
	@$(BIN)/python -m components.fetch --all || test -z "$$CI"
	@$(BIN)/python -m tests.pipelines.jars
	@$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)
	@OTTLA_PURE_PYTHON=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not full" $(PURE) $(ARGS)
	@conf=$$($(NEWEST_SPARK)/bin/python -m components.newest_spark) && SPARK_CONF_DIR=$$conf \
	  $(NEWEST_SPARK)/bin/python -m pytest -n 0 tests/pipelines/spark/jvm \
	  tests/pipelines/run tests/pipelines/sinks tests/pipelines/source tests/system/test_pipeline_*.py \
	  tests/system/test_engine_declarative.py $(ARGS)

check: $(BUILT)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The sdist, the wheel of this platform with the compiled modules, and the one of Python alone. PyPI
# takes a compiled wheel of Linux only with the tag of the oldest C library that it runs with.
packages: $(BUILT)
	$(BIN)/python -m hatchling build -t sdist -d dist
	rm -rf dist/compiled
	$(BIN)/python -m hatchling build -t wheel -d dist/compiled
	if [ "$$(uname)" = Linux ]; then PATH=$(abspath $(BIN)):$$PATH \
	  $(BIN)/python -m auditwheel repair -w dist dist/compiled/*.whl; \
	else mv dist/compiled/*.whl dist; fi
	rm -r dist/compiled
	OTTLA_PURE_PYTHON=1 $(BIN)/python -m hatchling build -t wheel -d dist

# The documentation as a site, in .cache/docs/html.
docs: $(BUILT)
	@$(BIN)/python -m website $(ARGS)

bench: $(BUILT)
	@$(BIN)/python -m bench $(ARGS)

conformance: $(BUILT)
	@$(BIN)/python -m conformance $(ARGS)

# Whole clusters in virtual time: make soak SEEDS=10000 ARGS="--start 300".
soak: $(BUILT)
	@$(BIN)/python -m simulation --seeds $(or $(SEEDS),1000) $(ARGS)

faults: $(BUILT)
	@$(BIN)/python -m faults $(ARGS)

# The environment, made once and again whenever the lock or the package's own settings change.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Ottla needs Python 3.11 or newer; this one is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Making the environment in $(VENV) (once; about a minute) ..."
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "Python has no venv module here. On Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $(READY)

# The package itself. Its compiled modules are made again whenever one of their sources changes.
$(BUILT): $(READY) hatch_build.py $(shell $(PYTHON) -I src/ottla/accelerator.py)
	@echo "Compiling the broker's hottest modules (a minute; OTTLA_PURE_PYTHON=1 does without) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -c 'from ottla.accelerator import why_from_source; why = why_from_source(); \
	  why and print("Ottla runs from source, which is slower:", why)'
	@touch $(BUILT)

# As a user gets it today, so without hashes; with what Spark's declarative pipelines need,
# among it Spark Connect.
$(NEWEST_SPARK)/.ready: pyproject.toml
	@echo "Making the environment with the newest Spark in $(NEWEST_SPARK) (once; minutes) ..."
	@$(PYTHON) -m venv $(NEWEST_SPARK)
	@$(NEWEST_SPARK)/bin/python -m pip install --quiet --disable-pip-version-check \
	  'pyspark[pipelines]==4.2.0' delta-spark==4.4.0 -e '.[dev]'
	@touch $@

# Needs uv. The Spark pair is the newest whose every jar resolves through Spark's own Ivy.
lock:
	printf 'pyspark==4.0.0\ndelta-spark==4.0.1\n' > .constraints
	uv pip compile --universal --python-version 3.11 --generate-hashes --extra dev -c .constraints \
	  --no-annotate --no-header -q pyproject.toml -o requirements.lock
	rm .constraints

clean:
	rm -rf $(VENV) $(NEWEST_SPARK) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
