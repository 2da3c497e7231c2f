# Only names for what scripts/ and CMakePresets.json do; see docs/development.md.

PRESET ?= release
PYTHON := build/venv/bin/python
SETUP  := scripts/setup

.PHONY: help build check demo check-torch bench device docs format setup
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

setup: ## system packages and the Python environment (every other target does this first)
	@$(SETUP)

build: setup ## the compiler into build/bin, the runtime into build/lib; PRESET=dev|asan|tsan|cuda for others
	@$(PYTHON) scripts/build.py --preset $(PRESET)

check: build ## every test; the last line is "N passed, N failed"
	@$(PYTHON) scripts/check.py --preset $(PRESET)

demo: build ## compile and train examples/hstu_retrieval; DATA=<folder> trains on MovieLens-1M
	@$(PYTHON) examples/hstu_retrieval/demo.py $(if $(DATA),--data "$(DATA)")

check-torch: build ## loss parity with PyTorch, in an environment of its own (5 GB)
	@scripts/check-torch

bench: build ## the benchmarks; PEER=<checkout of the public PyTorch code> to compare with it
	@scripts/bench $(if $(PEER),--peer "$(PEER)")

device: build ## pack tests, benchmarks and examples for a CUDA device, and run them where there is one; HKV=<checkout of HierarchicalKV> and PEER=<of generative-recommenders> compare
	@$(PYTHON) scripts/device_pack.py --preset $(PRESET) $(if $(HKV),--hkv "$(HKV)") $(if $(PEER),--peer "$(PEER)")

docs: build ## docs/reference from TableGen (ops, passes), docs/api from the docstrings of the Python package
	@scripts/docs

format: setup ## clang-format and ruff over the whole tree
	@scripts/format
