# `make demo` shows, `make test` checks, `make docs` documents, `make bench` measures. Each builds .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-torch lint types layers docs browser model-signing unit attacks bench golden clean

# Types are checked on one core while tests run: they take a minute where nothing is cached yet.
test: lint layers
	$(MAKE) --no-print-directory -j 2 types unit

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --editable '.[dev,integrations]'
	touch $@

# The demonstration needs the package alone, not what developers use.
$(VENV)/.demo: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

demo: $(VENV)/.demo
	$(BIN)/seedless demo

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

layers: $(VENV)/.installed
	$(BIN)/lint-imports

# The documentation as a site in site/. A test builds it too: a broken link is an error.
docs: $(VENV)/.installed
	$(BIN)/mkdocs build --strict  # with --quiet, mkdocs does not count warnings

# Installs a system package, and so runs only when asked for. Some tests look at pages in Chromium;
# without it they are skipped.
browser:
	@if command -v chromium >/dev/null; then echo "chromium is installed"; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq >/dev/null 2>&1 \
	  && apt-get install -qq -y --no-install-recommends chromium >/dev/null 2>&1; \
	then echo "installed chromium"; \
	else echo "chromium could not be installed here: tests that need it will be skipped"; fi

# The published tool that verifies model signatures, in an environment of its own. Two tests use it;
# without it they are skipped.
model-signing: $(VENV)/.installed
	@if [ -x $(VENV)/model-signing/bin/model_signing ]; then echo "model-signing is installed"; \
	elif $(PYTHON) -m venv $(VENV)/model-signing && $(VENV)/model-signing/bin/python -m pip install \
	  --quiet model-signing pyopenssl >/dev/null 2>&1; \
	then echo "installed model-signing"; \
	else echo "model-signing could not be installed here: tests that need it will be skipped"; fi

# With one BLAS thread each, two test processes do not compete for two cores; and the hundred
# processes they start read compiled modules, whatever the shell says about those.
unit: $(VENV)/.installed
	PYTHONDONTWRITEBYTECODE= OMP_WAIT_POLICY=PASSIVE OPENBLAS_NUM_THREADS=1 \
	  $(BIN)/python -m pytest -n 2 --dist worksteal

# What a release of torch can change, in an environment of its own: other releases than the
# constrained one bring gigabytes of CUDA with them. Torch says which setuptools it needs: 2.11 wants
# an older one than is constrained. make test-torch TORCH=2.15.0
TORCH ?= 2.15.0
test-torch:
	test -x $(VENV)-torch/bin/python || $(PYTHON) -m venv $(VENV)-torch
	grep -v -E '^(torch|setuptools)' constraints.txt > $(VENV)-torch/constraints.txt
	PIP_CONSTRAINT=$(VENV)-torch/constraints.txt $(VENV)-torch/bin/python -m pip install --quiet \
	  torch==$(TORCH) --editable '.[dev]'
	OMP_WAIT_POLICY=PASSIVE OPENBLAS_NUM_THREADS=1 $(VENV)-torch/bin/python -m benchmarks.torch_releases

# Every attack on files that other people send; `make test` makes one in three of those that are alike.
attacks: $(VENV)/.installed
	$(BIN)/python -m benchmarks.attacks

bench: $(VENV)/.installed
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.foundation
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.training
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.data
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.simulated
	OMP_WAIT_POLICY=PASSIVE $(BIN)/seedless bench --processor-time --rounds 5 \
	  --out benchmarks/results/bench-cpu.json
	OMP_WAIT_POLICY=PASSIVE $(BIN)/seedless bench --model resnet18 --processor-time --rounds 5 \
	  --out benchmarks/results/bench-cpu-resnet18.json
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.pooling
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.evaluate
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.report
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.demo
	$(BIN)/python -m benchmarks.portable_page
	$(BIN)/python -m benchmarks.speed

# Rewrites the committed digests. A changed digest is a broken promise: say why in CHANGELOG.md.
golden: $(VENV)/.installed
	$(BIN)/python -m tests.golden.write
	$(BIN)/python -m tests.golden.write_portable --full

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis
