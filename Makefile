# The commands of this folder; GNU make 3.81, which macOS has, is enough.
# PYTHON=... names the Python to build with, when .venv is made; ARGS=... is handed on.

PYTHON =
ARGS =
NAME =
UV = uv
BIN = .venv/bin

.DEFAULT_GOAL := help
.PHONY: help install run test lint bench nightly lock package

help:
	@echo "make run       install what is missing, start Inglenook, open the browser"
	@echo "make test      install what the tests need, and run all of them"
	@echo "make install   what both have in common; does nothing the second time"
	@echo "make lint      format, style and types"
	@echo "make bench     one benchmark: make bench NAME=decode ARGS=--busy"
	@echo "make nightly   the long proofs"
	@echo "make package   what users get, into dist/ (ARGS=--no-vision leaves vision out)"
	@echo "make lock      the locks anew from pyproject.toml (ARGS=--upgrade for newer versions)"

install:
	@sh packaging/install.sh "$(PYTHON)"

run: install
	@$(BIN)/inglenook run $(ARGS)

# Everything a change must pass, in the order of what answers first. Two processes share the files:
# most of a test is waiting for a page, a process or a disk. Threads that spin while they wait for
# one another would take the other one's core.
test: check-style check-types
	@$(BIN)/python packaging/chromium.py
	@GOMP_SPINCOUNT=100 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile $(ARGS)
	@$(BIN)/python packaging/torch_environment.py
	@[ ! -x $(BIN)/../torch/bin/python ] || $(BIN)/../torch/bin/python -m pytest \
		--numprocesses 2 --dist loadfile tests/kernels tests/engine/backends/torch

package: install-test
	@$(BIN)/python packaging/package.py $(ARGS)

nightly: install-test
	@$(BIN)/python packaging/chromium.py
	@$(BIN)/python -m pytest -m nightly $(ARGS)

lint: check-style check-types

.PHONY: install-test check-style check-types
install-test:
	@sh packaging/install.sh "$(PYTHON)" --test

check-style: install-test
	@$(BIN)/python -m ruff format --check --quiet . || { echo "Some files are not formatted: '$(BIN)/ruff format' does it." >&2; exit 1; }
	@$(BIN)/python -m ruff check --quiet .

check-types: install-test
	@$(BIN)/python -m mypy
	@$(BIN)/python -m mypy --strict packaging/*.py

bench: install
	@$(BIN)/inglenook bench $(NAME) $(ARGS)

LOCK = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	--no-emit-index-url --no-emit-find-links $(ARGS)
R = packaging/requirements
lock:
	@command -v $(UV) >/dev/null || { echo "The locks are made by uv: install it, or name it with UV=." >&2; exit 1; }
	$(LOCK) pyproject.toml -o $(R)/app.lock
	$(LOCK) pyproject.toml --group test --constraint $(R)/app.lock -o $(R)/test.lock
	$(LOCK) --group build -o $(R)/build.lock
	$(LOCK) --group starter --no-deps -o $(R)/starter.lock
	$(LOCK) --group embedder --no-deps -o $(R)/embedder.lock
