# Every target sets itself up: it makes .venv with a Python it finds and installs what it needs, once.
# Another Python: make test PYTHON=/path/to/python3.13

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check
CHECKED := src tests examples benchmarks explorer/build.py hatch_build.py

# Workers and the many programs that tests start import the same modules: each would compile them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test simulations lint types servers explorer bench clean
.DELETE_ON_ERROR:

help:
	@echo "make demo    four tables drawn, and each access pattern with its result and cost"
	@echo "make test    everything that must pass: lint, types and tests"
	@echo "make simulations  all that make test takes a fixed share of: SEEDS=1000, FIRST=0"
	@echo "make lint    ruff: rules and format"
	@echo "make types   mypy, strict"
	@echo "make explorer the page of adjoin explore, built with npm"
	@echo "make servers the servers and clients that tests run against"
	@echo "make bench   the benchmarks of docs/benchmarks.md"
	@echo "make clean   removes .venv and what tools left behind"

demo: $(VENV)/.installed
	@$(BIN)/python -m examples.demo

# Types are checked meanwhile: mypy has one process, and tests that wait leave time for it. What it says comes last.
TYPES := .mypy_cache/said.txt
test:
	@$(MAKE) --no-print-directory -j2 lint programs
	@mkdir -p $(dir $(TYPES))
	@$(BIN)/mypy >$(TYPES) 2>&1 & types=$$!; \
	trap 'kill $$types 2>/dev/null; exit 130' INT TERM HUP; \
	$(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder; tests=$$?; \
	wait $$types; typed=$$?; cat $(TYPES); \
	test $$tests -eq 0 && test $$typed -eq 0

# What `make test` takes a fixed share of; each seed is another history. From 1000 seeds on, tests that try every case
# of many try them all.
SEEDS := 1000
FIRST := 0
simulations: $(VENV)/.installed-dev
	ADJOIN_SIMULATION_SEEDS=$(SEEDS) ADJOIN_SIMULATION_FIRST=$(FIRST) $(BIN)/python -m pytest -q -n auto --dist loadgroup -m simulation

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# Independent implementations of DynamoDB and clients of it that tests run against; once, into build/.
servers: $(VENV)/.made
	@$(BIN)/python -m tests.servers.install

# Neither needs what is installed for development, so `make test` gets both while pip installs that. One after the
# other: each of them gets a Node where there is none.
.PHONY: programs
programs: servers
	@$(MAKE) --no-print-directory explorer

# The page of `adjoin explore`, from the sources in explorer/ into the package; once, until they change.
explorer: $(VENV)/.made
	@$(BIN)/python explorer/build.py --check

bench: $(VENV)/.installed-peers
	$(BIN)/python -m benchmarks $(ARGS)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist explorer/node_modules src/adjoin/explorer/page
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml | $(VENV)/.made
	@echo "installing adjoin into $(VENV)"
	@$(PIP) -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/.made
	@echo "installing adjoin and the tools for development into $(VENV)"
	@$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.installed

# Both extras at once, so that one choice of versions fits all of them.
$(VENV)/.installed-peers: pyproject.toml | $(VENV)/.made
	@echo "installing adjoin, the tools for development and the other clients into $(VENV)"
	@$(PIP) -e '.[dev,peers]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-dev

# A .venv that is there and works is used as it is. A name on the path may be a shim without a Python
# behind it, so each candidate has to answer.
$(VENV)/.made:
	@set -e; found=; recent='import sys; sys.exit(sys.version_info < (3, 11))'; \
	for candidate in "$(PYTHON)" $(BIN)/python python3.13 python3.12 python3.11 python3 python; do \
		if [ -n "$$candidate" ] && "$$candidate" -c "$$recent" >/dev/null 2>&1; then found=$$candidate; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "adjoin needs Python 3.11 or newer, and none was found; install one, or name it: make PYTHON=..." >&2; \
		exit 1; \
	fi; \
	if [ "$$found" = $(BIN)/python ]; then "$$found" -m pip --version >/dev/null 2>&1 || "$$found" -m ensurepip; \
	elif "$$found" -c 'import ensurepip, venv' >/dev/null 2>&1; then "$$found" -m venv --clear $(VENV); \
	elif "$$found" -m virtualenv --version >/dev/null 2>&1; then "$$found" -m virtualenv --quiet --clear $(VENV); \
	elif command -v virtualenv >/dev/null 2>&1; then virtualenv --quiet --clear --python "$$found" $(VENV); \
	else \
		version=$$("$$found" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		echo "$$found cannot make a virtual environment; on Debian and Ubuntu: sudo apt install python$$version-venv" >&2; \
		exit 1; \
	fi; \
	touch $@
