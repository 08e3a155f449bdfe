# Dragoman. `make help` lists the targets.
PYTHON  ?= python3
# One worker more than there are cores: some tests wait for other processes.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)' 2>/dev/null)
ARGS    ?=
ROOM    ?=
# The environment is .venv. If an interpreter is named and .venv has another version of Python, it is .venv-<version>.
VENV    := .venv
ifneq ($(origin PYTHON),file)
  PYTHON_VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
  ifeq ($(PYTHON_VERSION),)
    $(error "$(PYTHON)" cannot be run; name an interpreter, as in: make PYTHON=python3.12 $(MAKECMDGOALS))
  endif
  ifeq ($(wildcard .venv/bin/python$(PYTHON_VERSION)),)
    ifneq ($(wildcard .venv/bin/python),)
      VENV := .venv-$(PYTHON_VERSION)
    endif
  endif
endif
BIN     := $(VENV)/bin
# The versions that are installed; `make PINNED= test` tests with the newest ones.
PINNED  ?= --constraint $(VENV)/.versions
# What is compiled once is not compiled again by each of the many processes that tests start.
unexport PYTHONDONTWRITEBYTECODE

# pip, told briefly: what it is at, on one line of a terminal; all that it said if it fails.
define INSTALL
import subprocess, sys
is_terminal, said = sys.stdout.isatty(), []
def tell(words):
    print(f"\r\x1b[K  {words[:70]}" if is_terminal else f"  {words}", end="" if is_terminal else "\n", flush=True)
try:
    pip = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in pip.stdout:
        said.append(line)
        first, _, rest = line.strip().partition(" ")
        if first in ("Collecting", "Downloading", "Building"):
            tell(f"{first.lower()} {rest}")
        elif rest.startswith("collected packages:"):
            tell(f"unpacking {rest.partition(':')[2].strip()}")
    code = pip.wait()
except KeyboardInterrupt:
    code = 130
print("\r\x1b[K" if is_terminal else "", end="")
sys.exit("".join(said) if code not in (0, 130) else code)
endef
export INSTALL

# `docs` and `bench` are folders, too.
.PHONY: run test prove lint bench soak kill crash dist lock release docs venv clean help

# Ctrl-C and SIGTERM reach the server through make, which waits for its end.
run: $(VENV)/.run       ## serve the demo agent, or what ARGS name (ARGS="--config my.yaml")
	@exec $(BIN)/dragoman serve $(ARGS)

test: $(VENV)/.test     ## lint, types and tests in about five minutes; ROOM=engine: of one room; PYTHON=python3.13; ARGS: for pytest
	@exec $(BIN)/python -m tests --workers $(if $(ROOM),0,$(WORKERS)) $(if $(ROOM),--room $(ROOM)) -- $(ARGS)

prove: $(VENV)/.test    ## what takes long, measures or starts many processes (ARGS="--list", "--sample", "--only NAME", "--help")
	@exec $(BIN)/python -m tests.prove $(ARGS)

lint: $(VENV)/.test     ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/mypy

bench: $(VENV)/.test    ## what the gateway costs, measured against a bare handler (ARGS=--help)
	@$(BIN)/python -m bench $(ARGS)

soak: $(VENV)/.test     ## work a server for ten minutes and look whether it grows (ARGS="--minutes 1")
	@$(BIN)/python -m bench.soak $(ARGS)

kill: $(VENV)/.test     ## damage correct servers in every way and look whether the examiners notice (ARGS=--help)
	@$(BIN)/python -m conformance.faults.kill $(ARGS)

crash: $(VENV)/.test    ## kill a server again and again under load and look whether anything was lost (ARGS="--kills 300")
	@$(BIN)/python -m tests.prove.crash $(ARGS)

dist: $(VENV)/.release  ## wheel, sdist, bill of materials and checksums of the last commit, in dist/
	@$(BIN)/python -m deploy.release dist $(ARGS)

lock: $(VENV)/.release  ## renew constraints.txt and deploy/requirements.txt, which pin what the tests run with
	@$(BIN)/python -m deploy.release lock

release: $(VENV)/.release ## write VERSION=x.y.z into the files that name it, print the commands that follow (ARGS=--dry-run)
	@$(BIN)/python -m deploy.release next "$(VERSION)" $(ARGS)

docs: $(VENV)/.docs     ## a site of all pages, with search, in site/; reports every link that leads nowhere
	@$(BIN)/python docs/build_site.py $(ARGS)

venv: $(VENV)/.test     ## make the environment and install what the tests need; nothing is run

clean:                  ## remove environments, caches and logs
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .prove build dist site *.egg-info

help:                   ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 8

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Dragoman needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@echo "making $(VENV)$(if $(filter .venv,$(VENV)),, for Python $(PYTHON_VERSION); .venv has another version and stays as it is)"
	@$(PYTHON) -m venv $(VENV)

# constraints.txt without its hashes, which pip does not take beside an editable project.
$(VENV)/.versions: $(VENV)/bin/python constraints.txt
	@sed -n 's/^\([a-z0-9].*==[^\\]*\).*/\1/p' constraints.txt > $@

$(VENV)/.run: $(VENV)/bin/python pyproject.toml $(VENV)/.versions
	@echo "installing Dragoman into $(VENV)"
	@$(BIN)/python -c "$$INSTALL" $(BIN)/pip install --disable-pip-version-check --progress-bar off $(PINNED) -e .
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
	@$(BIN)/python -c "$$INSTALL" $(BIN)/pip install --disable-pip-version-check --progress-bar off $(PINNED) -e '.[test]'
	@touch $@

$(VENV)/.release: $(VENV)/.run
	@echo "installing what makes a release"
	@$(BIN)/python -c "$$INSTALL" $(BIN)/pip install --disable-pip-version-check --progress-bar off $(PINNED) -e '.[acp,agui,mcp,otel,redis,release]'
	@touch $@

$(VENV)/.docs: $(VENV)/.run
	@echo "installing what makes the site"
	@$(BIN)/python -c "$$INSTALL" $(BIN)/pip install --disable-pip-version-check --progress-bar off $(PINNED) -e '.[docs]'
	@touch $@
