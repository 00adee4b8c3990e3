# `make reproduce` and `make test` need only python3 and make: they set up everything else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PLAIN := $(VENV)/.installed
STAMP := $(VENV)/.installed-dev
OUT ?= results/reproduce
SITE ?= site
MORE ?=# options for what a target runs: `make bench MORE=--quick`

# `uv` where it is found; else pip brings it into .venv, and goes on by itself where uv fails.
# Byte code is left to Python, which compiles what is used.
UV := $(shell command -v uv 2>/dev/null)
comma := ,
WITH_UV := pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable
ifeq ($(UV),)
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
VENV_WITH := $(PYTHON) -m venv $(VENV) && { $(PIP) uv || true; }
install = { $(BIN)/uv $(WITH_UV) $(1) 2>/dev/null || $(PIP) --editable $(1); }
else
VENV_WITH := $(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
install = $(UV) $(WITH_UV) $(1)
endif

# Every process below reads the byte code that the first one kept, whatever the shell asks for.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: reproduce test test-all test-browser test-portable kernels lint bench docs results clean

reproduce: $(PLAIN)
	@echo "Running the paper's experiments; report and figures go to $(OUT)"
	@$(BIN)/steadytd reproduce --out $(OUT) $(MORE)

# Loops are compiled while the development tools are installed and the linters run.
# Two workers have two cores: more BLAS threads than one each only wait for each other.
test:
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=line lint kernels
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m "not slow" --ignore tests/browser $(MORE)

test-all:
	@STEADYTD_TEST_ALL=1 $(MAKE) --no-print-directory --jobs 2 --output-sync=line lint kernels
	STEADYTD_TEST_ALL=1 $(BIN)/pytest -n 2 --dist loadfile --ignore tests/browser $(MORE)

# As on other processors, terminals and homes, and with the oldest versions that pyproject.toml allows.
# SIZE=small: the part of it that CI runs.
test-portable: $(STAMP) kernels
	SIZE=$(SIZE) tests/portable.sh

# Pages in a real browser: Playwright comes from PyPI, Chromium from the system's packages. Where no
# browser can be had, `make test-browser` fails and says so, and with BROWSER=wanted only says so.
BROWSER ?= needed
FIND_BROWSER := command -v chromium || command -v chromium-browser || command -v google-chrome
GET_BROWSER := apt-get update && apt-get install --yes --no-install-recommends chromium

test-browser: $(STAMP)
	@{ $(FIND_BROWSER) || timeout 300 sh -c '$(GET_BROWSER)'; } >/dev/null 2>&1 || true
	@if $(call install,'.[browser$(comma)docs]') && $(BIN)/python -m tests.browser.chromium; then \
		$(BIN)/pytest -n 0 -rs tests/browser; \
	else \
		echo "NOT TESTED IN A BROWSER: Chromium can neither be found nor installed on this machine."; \
		test "$(BROWSER)" != needed; \
	fi

# The loops of all learners, compiled once for all workers of a test run and kept on disk.
# In two processes; the linters, which are one after the other, go first.
kernels: $(PLAIN)
	PYTHONPATH=src nice $(BIN)/python -m tests.support.compile_all

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python benchmarks/speed.py $(MORE)

# The studies behind docs/results: about two hours on two cores. Stop and go on as you like.
STUDIES ?= paper_stepsizes collision rooms_penalty cures rooms high_variance_rooms
results: $(STAMP)
	for study in $(STUDIES); do \
		$(BIN)/steadytd study studies/$$study.toml && $(BIN)/steadytd report results/$$study || exit; \
	done
	$(BIN)/python docs/cure_wins.py results/cures $(MORE)
	$(BIN)/python docs/certificate_right.py $(MORE)
	$(BIN)/python docs/write_results.py

# The site, in `site/`: open site/index.html. A broken link or anchor, or any other warning, fails.
docs: $(STAMP)
	$(BIN)/python docs/write_learner_pages.py
	$(call install,'.[docs]')
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --jobs 2 --quiet -d build/docs docs $(SITE)

# The plain install is what `make reproduce` needs; the development tools come with `make test`.
define set_up
	@echo "Installing $(1) into $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "steadytd needs Python 3.11 or newer")'
	@test -x $(BIN)/python || { $(VENV_WITH); }
	@$(call install,$(2))
	@touch $@
endef

$(PLAIN): pyproject.toml constraints.txt
	$(call set_up,steadytd and what it runs with,.)

$(STAMP): pyproject.toml constraints.txt | $(PLAIN)
	$(call set_up,steadytd with its development tools,'.[dev]')
	@touch $(PLAIN)

clean:
	rm -rf $(VENV) results build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
