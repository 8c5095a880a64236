# Every command that a developer types: `make` lists them.
PYTHON ?= python3
RUN = .venv/bin/python
AGAIN = results/local/reproduce

.DEFAULT_GOAL := help
.PHONY: help setup build test slow lint format pages docs serve executed outputs notebook reproduce gate faults mutants ci clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:  ## make .venv with everything that tests, documentation and notebook need
	$(PYTHON) -m venv .venv
	BPE_HARNESS_GRID=1 $(RUN) -m pip install -e '.[test,docs,notebook,distributed]'

build:  ## build the compiled modules again, after a change of a .pyx or a header
	$(RUN) setup.py build_ext --inplace

test:  ## the tests that everybody runs
	$(RUN) -m pytest

slow:  ## the tests that take long
	$(RUN) -m pytest -m slow

lint:  ## style and types, changing nothing
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

format:  ## put the style right where a tool can
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

pages:  ## write the generated parts and stored tables of all pages again
	PYTHONPATH=docs/hooks $(RUN) docs/hooks/stored_tables.py $$(grep -rl "<!-- BEGIN " README.md docs results --include=*.md)

docs: executed  ## build the documentation into site/, with the notebook executed
	$(RUN) docs/hooks/site_pages.py
	$(RUN) -m mkdocs build --strict

serve:  ## read the documentation at http://127.0.0.1:8000, as it is now
	$(RUN) docs/hooks/site_pages.py
	$(RUN) -m mkdocs serve

executed:  ## execute the notebook into build/notebook, for the site
	$(RUN) -m nbconvert --execute --to markdown --output-dir build/notebook notebooks/series.ipynb

outputs:  ## execute the notebook in place, so that a forge shows its figures
	$(RUN) -m nbconvert --execute --inplace --ExecutePreprocessor.record_timing=False notebooks/series.ipynb

notebook:  ## open the notebook
	$(RUN) -m jupyterlab notebooks/series.ipynb

reproduce:  ## measure what the published claims say, and judge them: some 25 minutes
	-$(RUN) -m harness experiment=series_instructions results=$(AGAIN)/series
	-$(RUN) -m harness experiment=series_python results=$(AGAIN)/series
	-$(RUN) -m harness experiment=series_python results=$(AGAIN)/series variants=incremental,multiprocess variant.params.parallel_max=2 variant.params.pool=fresh vocab_size=300
	-$(RUN) -m harness experiment=series_cpp results=$(AGAIN)/series
	-$(RUN) -m harness -m variant=heap interpreter=python3,pypy3 data=stdlib_full vocab_size=3000,10000 repeat=6 results=$(AGAIN)/pypy
	-$(RUN) -m harness experiment=issue_1400 data=stdlib results=$(AGAIN)/issue_1400
	-$(RUN) -m harness experiment=ladder variants=naive,flat repeat=6 results=$(AGAIN)/ladder
	-$(RUN) -m harness variants=flat_file,peer_huggingface tie_break=own vocab_size=10000 repeat=6 results=$(AGAIN)/board
	$(RUN) results/published/published.py $(AGAIN)/*

gate:  ## what this checkout changes against main: merges, work and times
	$(RUN) -m harness.gate

faults:  ## plant faults one by one and see which test catches each
	$(RUN) tests/support/planted_faults.py

mutants:  ## change where truth is decided, one operator at a time, and see what no test notices
	$(RUN) -m pip install cosmic-ray
	$(RUN) tests/support/mutants.py

ci:  ## everything from nothing, as CI does; it makes .venv again
	bash .ci/run

clean:  ## remove what a build, a test or a run has made, except .venv and the records
	rm -rf build dist site *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
