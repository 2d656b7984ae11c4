# Everything a newcomer types is here; `make demo` and `make test` need nothing installed by hand
# but Python 3.11 or newer.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

NEWEST_SPARK := .venv-newest-spark

.PHONY: demo test test-all check bench conformance soak faults lock clean

demo: $(READY)
	@$(BIN)/python -m demo

# Without Apache Kafka the tests that need it are skipped, which CI takes for a failure.
test: $(READY)
	@$(BIN)/python -m bench.fetch || test -z "$$CI"
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "not full" $(ARGS)

# Also what takes minutes, and the pipelines on the newest Spark.
test-all: $(READY) $(NEWEST_SPARK)/.ready
	@$(BIN)/python -m bench.fetch || test -z "$$CI"
	@$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)
	@conf=$$($(NEWEST_SPARK)/bin/python -m bench.newest_spark) && SPARK_CONF_DIR=$$conf \
	  $(NEWEST_SPARK)/bin/python -m pytest -n 0 tests/pipelines/run tests/pipelines/sinks \
	  tests/pipelines/source tests/system/test_pipeline_*.py $(ARGS)

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	@$(BIN)/python -m bench $(ARGS)

conformance: $(READY)
	@$(BIN)/python -m conformance $(ARGS)

# Whole clusters in virtual time: make soak SEEDS=10000 ARGS="--start 300".
soak: $(READY)
	@$(BIN)/python -m simulation --seeds $(or $(SEEDS),1000) $(ARGS)

faults: $(READY)
	@$(BIN)/python -m faults $(ARGS)

# The environment, made once and again whenever the lock or the package's own settings change.
# The compiled modules (hatch_build.py) are made with it.
$(READY): requirements.lock pyproject.toml hatch_build.py src/ottla/records/walk.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Ottla needs Python 3.11 or newer; this one is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Making the environment in $(VENV) (once; about a minute) ..."
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "Python has no venv module here. On Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

# As a user gets it today, so without hashes.
$(NEWEST_SPARK)/.ready: pyproject.toml
	@echo "Making the environment with the newest Spark in $(NEWEST_SPARK) (once; minutes) ..."
	@$(PYTHON) -m venv $(NEWEST_SPARK)
	@$(NEWEST_SPARK)/bin/python -m pip install --quiet --disable-pip-version-check \
	  pyspark==4.2.0 delta-spark==4.4.0 -e '.[dev]'
	@touch $@

# Needs uv. The Spark pair is the newest whose every jar resolves through Spark's own Ivy.
lock:
	printf 'pyspark==4.0.0\ndelta-spark==4.0.1\n' > .constraints
	uv pip compile --universal --python-version 3.11 --generate-hashes --extra dev -c .constraints \
	  --no-annotate --no-header -q pyproject.toml -o requirements.lock
	rm .constraints

clean:
	rm -rf $(VENV) $(NEWEST_SPARK) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
