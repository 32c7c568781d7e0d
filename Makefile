# The only commands of this project. `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
BIN := .venv/bin
PADDLE := .venv-paddle
JOBS ?= 4
NODE ?= kwok
NODES ?= 8
FOLDER := $(if $(CLUSTER),--folder "$(CLUSTER)")

.PHONY: help install demo test lint mutants bench bench-kube kube kube-up kube-down clean

help:  ## list these commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 12

install: .venv/.installed  ## make .venv and install the project into it

demo: .venv/.installed $(PADDLE)/.installed  ## train wide & deep: 2 servers and 2 workers on this machine
	$(BIN)/regatta run examples/wide_and_deep/job.yaml --python $(PADDLE)/bin/python --replace
	@echo && $(BIN)/regatta get wide-and-deep
	@$(BIN)/regatta stop wide-and-deep

test: lint kube $(PADDLE)/.installed  ## check everything: style, types, layers, and all tests, on the real thing
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder

lint: .venv/.installed
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

mutants: .venv/.installed  ## try small mistakes in the code and tell which no test notices (ONLY=part/of/a/path)
	$(BIN)/python -m tools.mutants $(ONLY)

bench: .venv/.installed .venv-bench/.installed  ## measure what a user waits for, against peers in the same run
	$(BIN)/python -m benchmarks

bench-kube: .venv/.installed  ## measure the operator on a real API server, beside its peers (half an hour)
	$(BIN)/python -m benchmarks.kubernetes

kube: .venv/.installed  ## build the test cluster's programs from source, once (minutes, then cached)
	$(BIN)/python -m tests.kubernetes.controlplane.build

kube-up: .venv/.installed  ## a Kubernetes on this machine: NODES=8 kwok nodes, or NODE=real as root (CLUSTER=folder)
	$(BIN)/python -m tests.kubernetes.controlplane.cluster up $(FOLDER) --node $(NODE) --nodes $(NODES)

kube-down: .venv/.installed  ## stop what kube-up started
	$(BIN)/python -m tests.kubernetes.controlplane.cluster down $(FOLDER)

clean:  ## remove environments and caches
	rm -rf .venv .venv-paddle .venv-bench .mypy_cache .ruff_cache .pytest_cache .hypothesis .mutants build dist

.venv/.installed: requirements/dev.txt pyproject.toml scripts/make-venv
	@scripts/make-venv .venv requirements/dev.txt --editable

$(PADDLE)/.installed: requirements/paddle.txt scripts/make-venv
	@scripts/make-venv $(PADDLE) requirements/paddle.txt

.venv-bench/.installed: requirements/bench.txt scripts/make-venv
	@scripts/make-venv .venv-bench requirements/bench.txt
