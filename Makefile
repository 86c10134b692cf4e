# Needs Python >= 3.11 and make, nothing else. Everything is installed into $(VENV).

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
INSTALL := $(UV) pip install --quiet --no-config --python $(BIN)/python

# The locks decide: no uv.toml is read, and no variable that would send an installation, or an
# import, somewhere else. Those that say how the package index is reached stay (UV_DEFAULT_INDEX,
# PIP_INDEX_URL, certificates, proxies).
unexport PYTHONHOME PYTHONPATH VIRTUAL_ENV CONDA_PREFIX
unexport PIP_TARGET PIP_PREFIX PIP_ROOT PIP_USER PIP_CONSTRAINT PIP_REQUIREMENT PIP_NO_BINARY PIP_DRY_RUN PIP_PYTHON
unexport UV_PYTHON UV_SYSTEM_PYTHON UV_BREAK_SYSTEM_PACKAGES UV_CONSTRAINT UV_OVERRIDE UV_EXCLUDE UV_BUILD_CONSTRAINT
unexport UV_EXCLUDE_NEWER UV_NO_BINARY UV_NO_BINARY_PACKAGE UV_NO_BUILD UV_OFFLINE UV_RESOLUTION UV_PRERELEASE
unexport UV_PROJECT UV_WORKING_DIRECTORY UV_WORKING_DIR UV_REQUIRE_HASHES UV_NO_VERIFY_HASHES UV_NO_INDEX UV_TORCH_BACKEND

# Where these are set, pytest draws every difference whole, which of megabytes takes it for ever.
unexport CI BUILD_NUMBER

# A machine behind a proxy has that proxy's certificate in its own store.
UV_SYSTEM_CERTS ?= $(if $(wildcard /etc/ssl/cert*),true,false)
export UV_SYSTEM_CERTS

# Stamps lie inside the environment and vanish with it. One that was moved, or whose Python
# is gone, counts as none.
PLACE := $(VENV)/.place
ifneq ($(shell test -x $(BIN)/python && cat $(PLACE) 2>/dev/null),$(CURDIR))
$(shell rm -f $(VENV)/.uv $(VENV)/.run $(VENV)/.test)
endif

.DEFAULT_GOAL := help
.PHONY: help demo setup test suite lint format soak azure corpus bench-core bench-full bench-stores bench-tokens bench-proxy bench-runtime adapters pythons lock clean

help: ## print this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s%s\n", $$1, $$2 }' Makefile

$(VENV)/.uv: requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Coatcheck needs Python 3.11 or later, and '$(PYTHON)' is none. Try: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { \
	  echo "'$(PYTHON)' lacks venv or ensurepip. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@# Removed is only what was made or taken over here, and is of no use any more.
	@[ ! -e $(PLACE) ] || { [ "$$(cat $(PLACE))" = '$(CURDIR)' ] && $(BIN)/python -m pip --version >/dev/null 2>&1; } \
	  || rm -rf $(VENV)
	@[ -x $(BIN)/python ] || { mkdir -p $(VENV) && echo '$(CURDIR)' > $(PLACE) && $(PYTHON) -m venv $(VENV); }
	$(BIN)/python -m pip install --no-user --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@echo '$(CURDIR)' > $(PLACE)
	@touch $@

$(VENV)/.run: $(VENV)/.uv requirements/run.txt pyproject.toml
	$(INSTALL) --require-hashes -r requirements/run.txt
	$(INSTALL) --offline --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.run requirements/test.txt
	$(INSTALL) --require-hashes -r requirements/test.txt
	@touch $@

# Servers for tests are programs of others: each group has an environment of its own, which all
# Pythons share. Those from npm are for who has npm.
SERVERS := .venvs/servers/.made .venvs/servers-old/.made
NPM := $(shell command -v npm 2>/dev/null)
ifneq ($(NPM),)
SERVERS += tests/servers/node_modules/.made
endif

.venvs/%/.made: requirements/%.txt | $(VENV)/.uv
	@$(UV) venv --quiet --no-config --clear --python $(BIN)/python $(@D)
	$(UV) pip install --quiet --no-config --compile-bytecode --python $(@D)/bin/python --require-hashes -r $<
	@touch $@

# Adapters are tested with the frameworks themselves, side by side in an environment of theirs:
# one of them holds mcp back, which the rest of the tests has at its newest.
FRAMEWORKS := $(if $(filter .venv,$(VENV)),.venvs/frameworks,$(VENV)-frameworks)
$(FRAMEWORKS)/.made: requirements/frameworks.txt | $(VENV)/.uv
	@$(UV) venv --quiet --no-config --clear --python $(BIN)/python $(@D)
	$(UV) pip install --quiet --no-config --python $(@D)/bin/python --require-hashes -r $<
	$(UV) pip install --quiet --no-config --python $(@D)/bin/python \
	  --offline --no-deps --no-build-isolation --editable .
	@touch $@

tests/servers/node_modules/.made: tests/servers/package-lock.json
	@if cd tests/servers && $(NPM) ci --ignore-scripts --silent; then touch node_modules/.made; \
	  else echo 'npm installed nothing: tests of servers from npm are skipped' >&2; fi

demo: $(VENV)/.run ## see it work on real input: a scripted agent, no key, no network
	$(BIN)/coatcheck demo

setup: $(VENV)/.test $(FRAMEWORKS)/.made $(SERVERS) ## install everything the tests need

# Two tests at a time. A worker that ended, as after a hang, is not replaced: the run fails.
JOBS ?= 2
PARALLEL := --numprocesses=$(JOBS) --dist=worksteal --max-worker-restart=0
ADAPTERS := --all-frameworks tests/adapters src/coatcheck/adapters

test: setup ## run the tests, with branch coverage
	COVERAGE_FILE=.coverage.rest $(BIN)/python -m pytest $(PARALLEL) --cov --cov-report=
	COVERAGE_FILE=.coverage.adapters $(FRAMEWORKS)/bin/python -m pytest $(PARALLEL) --cov --cov-report= $(ADAPTERS)
	$(BIN)/coverage combine .coverage.rest .coverage.adapters
	$(BIN)/coverage report --fail-under=95
	$(BIN)/coverage report --fail-under=100 --include='*/coatcheck/records/*,*/coatcheck/errors/*'

suite: setup ## run the tests alone; PYTEST='-k name' picks
	$(BIN)/python -m pytest $(PARALLEL) $(PYTEST)
	$(FRAMEWORKS)/bin/python -m pytest $(PARALLEL) $(ADAPTERS) $(PYTEST)

# Those of a framework that is not in $(FRAMEWORKS) are checked by `make adapters`.
TYPED := $(filter-out tests/adapters/test_crewai.py,$(wildcard src/coatcheck/adapters/*.py tests/adapters/*.py))

LINTS := lint-rest lint-mypy lint-mypy-adapters lint-pyright lint-pyright-adapters
.PHONY: $(LINTS)
lint: setup ## run every check that runs no code
	@$(MAKE) --no-print-directory --jobs=$(JOBS) $(LINTS)

lint-rest:
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell
	$(BIN)/deptry .
	$(BIN)/lint-imports
	$(BIN)/towncrier build --draft --version next >/dev/null

lint-mypy:
	$(BIN)/mypy

lint-mypy-adapters:
	$(BIN)/mypy --cache-dir=.mypy_cache/frameworks --python-executable=$(FRAMEWORKS)/bin/python $(TYPED)

lint-pyright:
	$(BIN)/basedpyright --pythonpath $(BIN)/python

lint-pyright-adapters:
	$(BIN)/basedpyright -p tests/adapters --pythonpath $(FRAMEWORKS)/bin/python

format: setup ## put the code into form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

soak: setup ## run the property tests and the proxy for long, and lifetimes at full size
	$(BIN)/python -m pytest -m 'hypothesis or soak' --hypothesis-profile=soak
	$(BIN)/python bench/lifetimes.py

AZURITE := $(VENV)/azurite/node_modules/.bin
azure: setup ## run the tests of Azure on an Azurite, which takes npm
	[ -x $(AZURITE)/azurite-blob ] || npm install --no-audit --no-fund --no-save --prefix $(VENV)/azurite azurite@3.37.0
	PATH="$(CURDIR)/$(AZURITE):$$PATH" $(BIN)/python -m pytest tests/stores/test_object_azure.py

corpus: setup ## answer the questions of the corpus, where there is one
	$(BIN)/python bench/corpus.py

bench-core: setup ## measure the core against its limits and rivals
	$(BIN)/python bench/core.py

bench-full: setup ## measure a file store of a million artifacts
	$(BIN)/python bench/full.py

bench-stores: setup ## measure files, Redis and S3 against their bare clients
	$(BIN)/python bench/stores.py

bench-tokens: setup ## count the tokens of whole tasks, with pointers and raw
	$(BIN)/python bench/tasks.py

bench-proxy: setup ## measure calls through the proxy against direct ones and rivals
	$(BIN)/python bench/proxy.py

bench-runtime: setup ## measure what the executors add to their model
	$(BIN)/python bench/runtime.py

adapters: setup ## test each adapter alone, with the lowest and the newest version of its framework
	$(BIN)/nox

pythons: setup ## run the tests on each Python from 3.11 on that this machine has
	$(BIN)/python scripts/pythons.py

COMPILE = $(UV) pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --custom-compile-command 'make lock' $(LOCKFLAGS)
lock: $(VENV)/.uv ## write the locks anew; LOCKFLAGS=--upgrade moves to newer versions
	$(COMPILE) --group uv -o requirements/uv.txt
	$(COMPILE) pyproject.toml --extra proxy --extra sql --group run -o requirements/run.txt
	for group in test browsers; do \
	  $(COMPILE) --group $$group -c requirements/run.txt -o requirements/$$group.txt || exit 1; done
	$(COMPILE) pyproject.toml --extra all --group run --group frameworks -o requirements/frameworks.txt
	$(COMPILE) pyproject.toml --group run --group crewai -o requirements/crewai.txt
	for group in servers servers-old; do \
	  $(COMPILE) --group $$group -o requirements/$$group.txt || exit 1; done
	[ -z '$(NPM)' ] || (cd tests/servers && $(NPM) install --package-lock-only --ignore-scripts --silent)
	! grep -n '://' requirements/*.txt
	! grep -n '"resolved"' tests/servers/package-lock.json

clean: ## remove whatever these targets made
	rm -rf .venv .venvs .nox tests/servers/node_modules dist .coverage .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find src tests scripts -name __pycache__ -prune -exec rm -rf {} +
