# `make demo` shows, `make test` checks, `make bench` measures. Each builds .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint types layers browser unit bench golden clean

# Types are checked on one core while tests run: they take a minute where nothing is cached yet.
test: lint layers browser
	$(MAKE) --no-print-directory -j 2 types unit

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/seedless demo

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

layers: $(VENV)/.installed
	$(BIN)/lint-imports

# Tests look at pages in a browser where there is one: installed if this user may, else they skip.
browser:
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	  && { apt-get update -qq; apt-get install -qq -y --no-install-recommends chromium; } >/dev/null 2>&1 \
	  || echo "no chromium here and none could be installed: tests that need it are skipped"; }

# With one BLAS thread each, two test processes do not spin against each other on two cores; and
# the hundred processes they start read compiled modules, whatever the shell says of those.
unit: $(VENV)/.installed
	PYTHONDONTWRITEBYTECODE= OMP_WAIT_POLICY=PASSIVE OPENBLAS_NUM_THREADS=1 \
	  $(BIN)/python -m pytest -n 2 --dist worksteal

bench: $(VENV)/.installed
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.foundation
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.training
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.data
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.simulated
	OMP_WAIT_POLICY=PASSIVE $(BIN)/seedless bench --out benchmarks/results/bench-cpu.json
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.pooling
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.evaluate
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.report
	$(BIN)/python -m benchmarks.portable_page
	$(BIN)/python -m benchmarks.speed

# Rewrites the committed digests. A changed digest is a broken promise: say why in CHANGELOG.md.
golden: $(VENV)/.installed
	$(BIN)/python -m tests.golden.write
	$(BIN)/python -m tests.golden.write_portable --full

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
