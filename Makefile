# Dragoman. `make run` serves; `make test` proves; `make bench` measures; `make lint` reads;
# `make kill` damages correct servers and looks whether the examiners notice (ARGS=--help says more);
# `make crash` kills a server again and again under load and looks whether anything was lost (ARGS="--kills 300").
# `make soak` works a server for ten minutes and looks whether it grows (ARGS="--minutes 1").
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=
# What is compiled once is not compiled again by each of the many processes that tests start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test lint bench soak kill crash clean

# Ctrl-C and SIGTERM reach the server through make, which waits for its end.
run: $(VENV)/.run
	@exec $(BIN)/dragoman serve $(ARGS)

# What reads the sources reads them beside the tests: it keeps one processor busy for a while, and the tests another.
test: $(VENV)/.test
	@{ $(BIN)/ruff check . && $(BIN)/mypy; } & lint=$$!; $(BIN)/pytest -n 3 --dist worksteal $(ARGS); tested=$$?; \
	wait $$lint && exit $$tested

lint: $(VENV)/.test
	@$(BIN)/ruff check .
	@$(BIN)/mypy

bench: $(VENV)/.test
	@$(BIN)/python -m bench $(ARGS)

soak: $(VENV)/.test
	@$(BIN)/python -m bench.soak $(ARGS)

kill: $(VENV)/.test
	@$(BIN)/python -m conformance.faults.kill $(ARGS)

crash: $(VENV)/.test
	@$(BIN)/python -m tests.crash $(ARGS)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Dragoman needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python pyproject.toml
	@echo "installing Dragoman into $(VENV)"
	@$(BIN)/pip install -q --disable-pip-version-check -e .
	@touch $@

# What Debian has and the tests use for real; installed only where it is missing and we may.
$(VENV)/.debian: $(VENV)/bin/python Makefile
	@missing=""; for need in node:nodejs npm:npm curl:curl chromium:chromium redis-server:redis-server nginx:nginx-light; do \
	  PATH="$$PATH:/usr/sbin" command -v $${need%%:*} >/dev/null || missing="$$missing $${need##*:}"; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing$$missing"; apt-get update -qq && RUNLEVEL=1 apt-get install -y -qq $$missing >/dev/null; fi
	@touch $@

$(VENV)/.test: $(VENV)/.run $(VENV)/.debian
	@echo "installing what the tests need"
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[test]'
	@touch $@
