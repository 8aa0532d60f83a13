# Each target makes what it needs; `make help` lists the first, `make help-all` all.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Of the control plane in hack/: 1.35, 1.36 or 1.37.
export KUBERNETES ?= 1.37
NODES ?= 3
INPUTS ?= 1000000
# Anything here goes to pytest, e.g. make test ARGS='-k expiry'
ARGS ?=

# Without its caches Python compiles all that it imports at each start: three seconds instead of one.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help help-all venv demo test test-rest quick check check-lint check-types check-unit check-decisions e2e e2e-scenarios e2e-others grpcurl helm cluster controlplane chaos hostile moving differential conformance descheduler browser page-pictures fuzz mutants optimum release image-archive workflows-check release-check bench bench-live bench-cycle bench-upstream bench-start sbom dist image image-check proto proto-check cli-reference metrics-reference dashboard pictures docs lock clean

# The few targets that most people need, in this order; `help-all` lists the others, too.
USE := demo venv docs cluster
CHANGE := quick check test e2e
named = for each in $(1); do sed -nE "s/^($$each):.*\#\# /  \1\t/p" Makefile; done | expand -t 20

help: ## List the targets that most people need
	@echo 'To use Reserver:'; $(call named,$(USE))
	@printf '\nTo change it:\n'; $(call named,$(CHANGE))
	@printf '\nThe others:\n'; $(call named,help-all)

help-all: ## List all targets
	@sed -nE 's/^([a-z0-9-]+):.*\#\# /  \1\t/p' Makefile | expand -t 20

venv: $(VENV)/.installed ## Create .venv with the reserver command in .venv/bin

# uv installs in seconds what pip needs half a minute for. It, the build backend and all else are checked
# against their hashes; without build isolation nothing is fetched that is in no lock.
$(VENV)/.installed: requirements-build.lock requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "reserver needs Python 3.11 or newer; set PYTHON=")'
	@echo 'Making .venv, once; it takes about half a minute: 1 of 3, pip and uv'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r requirements-build.lock
	@echo 'Making .venv: 2 of 3, what Reserver and its tests need'
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-dev.lock
	@echo 'Making .venv: 3 of 3, Reserver itself'
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

demo: venv ## See holds at work; TOUR=1: you type; ONCE=1: play and exit
	@$(BIN)/reserver demo $(if $(ONCE),--once) $(if $(TOUR),--tour)

# On all cores. Each begins with its part, in order; who has ended takes from the end of the longest.
SPREAD = $(BIN)/pytest -q --numprocesses auto --dist worksteal

test: venv ## Run the tests that need nothing but Python
	$(SPREAD) $(ARGS)

test-rest: venv
	$(SPREAD) --numprocesses 4 -m 'long or not unit' $(ARGS)

quick: venv ## Format, lint, types, tests of core decisions: half a minute
	@$(MAKE) --no-print-directory check-lint
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target check-decisions check-types

check: venv ## Format, lint, types, import contracts, scripts, unit tests
	@$(MAKE) --no-print-directory check-lint
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target check-unit check-types

check-lint:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/shellcheck hack/*.sh hack/krew/kubectl-reserver .ci/run

check-types:
	$(BIN)/mypy
	@$(BIN)/python -m hack.page.types --if-built

check-unit:
	RESERVER_HYPOTHESIS=brief $(SPREAD) tests/unit -m 'not long' $(ARGS)

# The folders that do no I/O and that everything else rests on; what counts lines or bytes is left to `check`.
check-decisions:
	RESERVER_HYPOTHESIS=brief $(SPREAD) tests/unit/cluster tests/unit/reservations tests/unit/scheduling --ignore-glob='*/test_costs*' -m 'not long' $(ARGS)

controlplane: venv ## Build kube-apiserver, kube-scheduler, etcd and KWOK (once)
	$(BIN)/python -m hack.controlplane.build

e2e: controlplane grpcurl helm proto-check workflows-check ## Run scenarios and API contracts on the real control plane
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target e2e-scenarios $(if $(ARGS),,e2e-others)

AUDIT = build/audit-logs

# Each process has a control plane of its own, and mostly waits. Rights are judged by what all of them requested.
# With memory to spare Go's collector takes a sixth of the processors less.
e2e-scenarios: export GOGC = 400
e2e-scenarios: export GOMEMLIMIT = 1536MiB
e2e-scenarios:
	@rm -rf $(AUDIT)
	$(BIN)/pytest -q tests/e2e --controlplane --numprocesses 4 --dist loadfile --no-loadscope-reorder --durations 25 --audit-logs $(AUDIT) $(or $(ARGS),-m 'not release')
	$(if $(ARGS),,$(BIN)/pytest -q tests/rights --audit-logs $(AUDIT))

e2e-others:
	$(BIN)/pytest -q tests/contract --controlplane -k real
	$(BIN)/python -m hack.differential --pairs 100
	$(BIN)/python -m hack.descheduler --pairs 60 --files 500 --seed 1

grpcurl: venv ## Build grpcurl, a gRPC client for the e2e tests (once)
	@$(BIN)/python -m hack.go_tool grpcurl

helm: venv ## Build Helm, for the tests of the chart (once)
	@$(BIN)/python -m hack.go_tool helm

cluster: controlplane ## Run a real control plane with NODES=3 nodes, until Ctrl-C
	@$(BIN)/python -m hack.controlplane --nodes $(NODES)

chaos: controlplane ## Storm that control plane while all fails; ARGS='--minutes 0.5 --faults none' and others
	$(BIN)/python -m hack.chaos $(ARGS)

hostile: controlplane ## Measure on that control plane what a hostile tenant costs; ARGS='--seconds 300'
	$(BIN)/python -m hack.hostile $(ARGS)

moving: controlplane ## Storm that control plane with moves while others take free room; ARGS='--faults --seed 7'
	$(BIN)/python -m hack.chaos.moving $(ARGS)

differential: controlplane ## Compare fit with that control plane's kube-scheduler; ARGS='--pairs 2000 --seed 7'
	$(BIN)/python -m hack.differential $(ARGS)

conformance: controlplane ## Run upstream's scheduling tests on that control plane, with and without Reserver; ARGS=--record writes down what passed
	$(BIN)/python -m hack.conformance $(ARGS)

descheduler: venv ## Compare with the descheduler's own code (builds it once); ARGS='--pairs 2000 --seed 7'
	$(BIN)/python -m hack.descheduler $(ARGS)

browser: venv ## Test the page in Chromium, which has to be installed
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-browser.lock
	$(BIN)/python -m hack.page.types
	$(BIN)/pytest -q tests/browser $(ARGS)

page-pictures: venv ## Draw the page's views into docs/ui, with Chromium
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-browser.lock
	$(BIN)/python -m hack.page.pictures

fuzz: venv ## Feed everything that reads what others wrote INPUTS=1000000 inputs (Linux, x86_64)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-fuzz.lock
	$(BIN)/python -m hack.fuzz --inputs $(INPUTS) $(ARGS)

optimum: venv ## Compare plans with CP-SAT's best; ARGS='--nodes 20 50 --seeds 1 2'
	@test -x build/optimum/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python build/optimum
	@$(BIN)/uv pip install --quiet --python build/optimum/bin/python --require-hashes -r requirements-optimum.lock
	$(BIN)/python -m hack.optimum --python build/optimum/bin/python $(ARGS)

mutants: venv ## Put faults in, one at a time, and say which no test notices; ARGS='--drawn 50 --seed 7'
	$(BIN)/python -m hack.mutants $(ARGS)

release-check: controlplane grpcurl helm ## Run all that takes long, three hours; write docs/compatibility.md's record; ARGS='--steps chaos,kubernetes-1.36'
	$(BIN)/python -m hack.release $(ARGS)

bench: venv ## Print the tables of docs/performance-reference.md; ARGS=--write writes them there
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-browser.lock
	$(BIN)/python -m hack.bench $(ARGS)

bench-live: controlplane ## Print what a scheduled pod costs, on that control plane; ARGS='--nodes 1000 --only stock,reserver'
	$(BIN)/python -m hack.bench.throughput $(ARGS)

bench-cycle: controlplane ## Print where the time of a Filter call goes, on that control plane (as root); ARGS='--nodes 5000'
	$(BIN)/python -m hack.bench.throughput.cycle $(ARGS)

bench-upstream: controlplane ## Run Kubernetes' scheduler_perf with and without Reserver (builds it once); ARGS=--long
	$(BIN)/python -m hack.bench.upstream $(ARGS)

bench-start: controlplane ## Print what a start takes beside the API server of 5,000 nodes and 150,000 pods; ARGS='--pods 20000'
	$(BIN)/python -m hack.bench.starting $(ARGS)

sbom: venv ## List what the image installs, in CycloneDX's form, in dist/reserver.cdx.json
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-sbom.lock
	@mkdir -p dist
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible -o dist/reserver.cdx.json requirements.lock

dist: venv ## Build wheels, source distribution and krew plug-in in dist/; try the wheel on its own
	@$(BIN)/python -m hack.dist

# Image, chart and manifests name the image IMAGE:VERSION.
IMAGE ?= reserver

TAG ?=
# `debian` where no registry is reached: a base to try the image on, not to publish it.
BASE ?= registry
ARTEFACTS = $(BIN)/python -m hack.artefacts --image $(IMAGE) $(if $(TAG),--tag $(TAG))
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
IMAGE_ARCHIVE = dist/reserver-$(VERSION)-image.tar

release: controlplane ## Build what a release publishes, in dist/ (root, Debian); IMAGE=registry.example/reserver, BASE=debian
	@$(ARTEFACTS) --check
	@$(MAKE) --no-print-directory sbom image-archive
	@$(ARTEFACTS) --also dist/reserver.cdx.json $(IMAGE_ARCHIVE)

image-archive: venv ## Build the image for amd64 and arm64, in dist/ (root, buildah)
	@$(BIN)/python -m hack.image.archive --base $(BASE) $(IMAGE_ARCHIVE)

workflows-check: venv ## Check .github/workflows (builds actionlint once)
	@$$($(BIN)/python -m hack.go_tool actionlint | tail -n 1) -shellcheck $(BIN)/shellcheck .github/workflows/*.yaml

image: ## Build the container image reserver:dev
	docker build --tag reserver:dev .

image-check: controlplane helm ## Build it without a registry and run it there (Debian, root); three minutes
	$(BIN)/pytest -q -s tests/load/test_image.py

proto: venv ## Generate reserver/v1 and docs/grpc-reference.md from the contracts in proto/
	@$(BIN)/python -m hack.proto.generate
	@$(BIN)/python -m hack.proto.reference

proto-check: venv ## Lint the contracts; compare them with the last release (builds buf once)
	@$(BIN)/python -m hack.proto.check

cli-reference: venv ## Write what is generated from the settings: docs/cli-reference.md, the fields of docs/configuration.md, schemas
	@$(BIN)/python -m hack.cli_reference
	@$(BIN)/python -m hack.configuration_reference
	@$(BIN)/python -m hack.chart

metrics-reference: venv ## Write docs/metrics-reference.md from what Reserver exposes
	$(BIN)/python -m hack.metrics_reference

dashboard: venv ## Write monitoring/dashboard.json from monitoring/dashboard.yaml
	@$(BIN)/python -m hack.dashboard

pictures: venv ## Draw the pictures of docs/
	@$(BIN)/python -m hack.picture
	@$(BIN)/python -m hack.diagrams

docs: venv ## Build the site in dist/docs; SERVE=1: serve it on a port
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-docs.lock
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs $(if $(SERVE),serve,build --strict) 
	@$(if $(SERVE),,echo 'Open file://$(CURDIR)/dist/docs/index.html')

COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate

lock: venv ## Pin what pyproject.toml asks for, with hashes
	$(COMPILE) --extra tracing -c requirements-dev.lock pyproject.toml -o requirements.lock
	$(COMPILE) --group dev pyproject.toml -o requirements-dev.lock
	$(COMPILE) --group build -c requirements-dev.lock -o requirements-build.lock
	$(COMPILE) --group sbom -c requirements-dev.lock -o requirements-sbom.lock
	$(COMPILE) --group docs -c requirements-dev.lock -o requirements-docs.lock
	$(COMPILE) --group fuzz -o requirements-fuzz.lock
	$(COMPILE) --group optimum -o requirements-optimum.lock
	$(COMPILE) --group browser -c requirements-dev.lock -o requirements-browser.lock

clean: ## Remove what the other targets made
	rm -rf $(VENV) .controlplane build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
