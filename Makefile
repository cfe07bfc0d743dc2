# Every target does its own set-up in .venv, once; a stamp file remembers that it is done.

PYTHON ?= python3
WORKERS ?= 2
BENCH ?=
SUITE ?=

VENV := .venv
BIN := $(VENV)/bin
DEMO_READY := $(VENV)/.ready-demo
DEV_READY := $(VENV)/.ready-dev
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: setup check types tiny test programs instructions test-all keras-suite bench demo docs clean

setup: $(DEV_READY)

check: $(DEV_READY)  ## lint, types, the tests that take milliseconds
	$(BIN)/ruff check .
	@$(MAKE) --no-print-directory -j 2 types tiny

types: $(DEV_READY)
	$(BIN)/mypy

tiny: $(DEV_READY)
	$(BIN)/pytest -m tiny -n $(WORKERS) $$(grep -rl "mark.tiny" tests --include="test_*.py")

test: $(DEV_READY)  ## everything but the slow tests
	$(BIN)/pytest -m "not slow" -n $(WORKERS)

programs: $(DEV_READY)  ## the random programs that make test leaves out: with its own, 500, compiled with tapes inside and outside
	$(BIN)/pytest -m slow tests/function/test_function_random_programs.py -n $(WORKERS)

instructions: $(DEV_READY)  ## of six small programs, at most 3 % more than before; needs valgrind
	$(BIN)/python tools/count_instructions.py

test-all: $(DEV_READY)
	$(BIN)/pytest -n $(WORKERS)

keras-suite: $(DEV_READY)  ## Keras's own tests on our backend, ten minutes on two cores; e.g. make keras-suite SUITE="keras/src/ops -k relu"
	$(BIN)/python tools/keras_suite.py -n $(WORKERS) $(SUITE)

bench: $(DEV_READY)  ## e.g. make bench BENCH="--quick --json out/bench.json"
	$(BIN)/python benchmarks/run.py $(BENCH)

demo: $(DEMO_READY)  ## two spirals: NumPy, matplotlib and a progress bar are all it needs
	$(BIN)/python examples/two_spirals.py

docs: $(DEV_READY)  ## redraw the pictures, then run every example on every page
	$(BIN)/python docs/images/draw.py
	$(BIN)/pytest tests/test_docs.py

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	find src tests examples benchmarks docs -name __pycache__ -type d -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(DEV_READY): pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) -e ".[dev]"
	touch $(DEV_READY) $(DEMO_READY)

$(DEMO_READY): pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) -e ".[demo]"
	touch $(DEMO_READY)
