# One word each: build, test, debug, lint, docs, bench. They work in the active Python environment.
.PHONY: build test debug lint docs bench clean

build:
	python -m pip install -q -e ".[test,lint,docs]" --config-settings editable_mode=compat

test:
	pytest

debug:
	TILING_DEBUG=1 python setup.py -q build_ext --inplace --force
	pytest --hypothesis-profile=quick
	python setup.py -q build_ext --inplace --force

lint:
	ruff check .
	ruff format --check .
	cython-lint src_cython
	mypy

docs:
	sphinx-build -W --keep-going -b html docs build/docs

bench:
	python benchmarks/run.py

clean:
	rm -rf build *.egg-info tiling/*.so tiling/*.pyd
