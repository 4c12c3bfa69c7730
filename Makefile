# `make demo` and `make test` need only Python 3.11 or newer and make: they build .venv themselves.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
DEMO := instances/real/satgpa-view.json
# The comparison of docs/oracles.md: every family, all oracles for density, equal time for each call.
STUDY := instances/small instances/medium instances/real instances/large \
  --oracles milp,cells,random,pca,ransac,ascent,anneal,rounding --etas 1,0.9,0.6,0.3 \
  --seconds-per-call 0.5 --full-time --reference-seconds 60

# Tests on all cores. Each takes a stretch of the files, so that what a file's tests share is made
# once, and whoever is done takes over from the others.
SHARED := -n auto --dist worksteal

.PHONY: help demo test test-fast test-long test-lowest lint format bench instances instances-large known study clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# A stamp per set of packages, so that a second run installs nothing.
$(VENV)/.run: pyproject.toml
	@test -n "$(PYTHON)" || { echo "mipmech needs Python 3.11 or newer; none was found" >&2; exit 1; }
	@echo "Setting up $(VENV) with $(PYTHON) (once) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "$(PYTHON) cannot make virtual environments; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "Installing the test tools into $(VENV) (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,cluster,parquet]'
	@touch $@

demo: $(VENV)/.run  ## set up, then solve, certify and check a real admissions instance
	@mkdir -p out
	$(BIN)/mipmech solve $(DEMO) --plot out/solve.png
	@echo
	@echo "(The engine is compiled when it is first used: some ten seconds, once.)"
	$(BIN)/mipmech certify $(DEMO) --gap 1e-4 --against milp,projection --out out/demo.cert.json \
	  --plot out/demo.png
	@echo
	$(BIN)/mipmech check out/demo.cert.json
	@echo
	@echo "make demo: on a sample of 1,000 students, ran Algorithm 1 with the exact MILP oracle; found the"
	@echo "best rule of all and proved it; checked the proof file with an independent program; and compared"
	@echo "the two (share of the best, above). Pictures: out/solve.png, out/demo.png."

lint: $(VENV)/.dev  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint  ## everything that must hold: lint, types, tests
	$(BIN)/pytest $(SHARED) -m "not long"
	@echo "make test: linters, type check and all tests passed."

test-fast: $(VENV)/.dev  ## unit tests only, no lint: under a minute, to run while you work
	$(BIN)/pytest $(SHARED) -m "not long and not slow" --hypothesis-profile=fast

test-long: $(VENV)/.dev  ## the long campaigns too: thousands of wild instances and properties
	$(BIN)/pytest $(SHARED) --hypothesis-profile=long

test-lowest:  ## the tests again, on the oldest packages that pyproject.toml allows
	$(PYTHON) tests/lowest.py

format: $(VENV)/.dev  ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev  ## the tables of benchmarks/README.md
	$(BIN)/python benchmarks/ground.py
	$(BIN)/python benchmarks/milp.py
	$(BIN)/python benchmarks/cells.py
	$(BIN)/python benchmarks/gain.py
	$(BIN)/python benchmarks/costs.py
	$(BIN)/python benchmarks/requirements.py
	$(BIN)/python benchmarks/facets.py
	$(BIN)/python benchmarks/certify_workers.py
	$(BIN)/python benchmarks/batch.py

instances: $(VENV)/.run  ## make the shipped instance files again
	$(BIN)/python instances/build.py

instances-large: $(VENV)/.run  ## make the large instances of the library from their seeds
	$(BIN)/python instances/build.py --large

known: $(VENV)/.run  ## prove again what is known of every instance
	$(BIN)/python instances/certify.py --check

study: instances-large  ## compare all oracles on the library, and make a report
	$(BIN)/mipmech compare $(STUDY) --out out/study
	$(BIN)/mipmech report out/study -o out/study.html

clean:  ## remove what make made
	rm -rf $(VENV) out build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
