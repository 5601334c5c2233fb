# What each target does: make help

VERSION ?= desarrollo
GO      ?= go
LINTER  ?= $(shell command -v golangci-lint || ls "$$($(GO) env GOPATH)/bin/golangci-lint" 2>/dev/null)

# ./... passes over folders named testdata; the mirror is a package like any other.
PACKAGES := ./... ./testdata/mirror
# A module of its own, with the standard library alone: what it finds must not rest on our code.
VERIFIER := verificador
# Where two goroutines can disagree about money, about keys or about which files are current.
RACED    := ./store/... ./snapshots/... ./accounts ./api/... ./admin ./accesslog ./ratelimit
# Where a process is killed while it writes, and the mistakes that the crash test must find.
KILLED   := ./cmd/cotejo
KILLS    ?= 60
# The race detector makes these some twelve times as slow; make test runs 5000 and 100.
# -short leaves out what a single goroutine does.
RACED_CRASHES ?= 30
RACED_CHECKS  ?= 20
FUZZTIME ?= 10s
# The C++ library that DuckDB links, where there is one: only the program that benches
# compare with needs it.
CPLUSPLUS := $(filter /%,$(shell $${CC:-cc} -print-file-name=libstdc++.so))

# Flags of the machine must not change what is built and tested here.
export GOFLAGS := -mod=readonly

.DEFAULT_GOAL := help
.PHONY: help build demo test postgres check fmt vet lint race kill flips duckdb bench fuzz openapi clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | \
		while IFS="$$(printf '\t')" read -r target what; do printf '  make %-8s %s\n' "$$target" "$$what"; done

build: ## bin/cotejo, reproducible: the same source and VERSION give the same bytes
	$(GO) build -trimpath -buildvcs=false -ldflags '-X main.version=$(VERSION)' -o bin/cotejo ./cmd/cotejo

demo: build ## everything running on invented data: first verified answer, keys and lines to paste
	bin/cotejo demo

test: ## every test
	$(GO) test $(PACKAGES)
	cd $(VERIFIER) && $(GO) test ./...

postgres: ## the tests of the PostgreSQL engine, on the server of COTEJO_POSTGRES or on one that it starts
	@run=; test -n "$$COTEJO_POSTGRES" || run=.ci/postgres; set -x; \
		$$run $(GO) test -count=1 -v -run 'Postgres|Race|AgainstModel/postgres|Order$$/postgres|CutConnections|TwoNodesSteal|TerminatedBackends|KilledServer$$|Standby|FrozenNode|Database|TablesHoldTheLedger/postgres|SameBytes/postgres|OneMoment/postgres' \
		./store ./ledger ./export ./cmd/cotejo

check: fmt vet lint race kill flips ## what CI runs besides the tests

fmt: ## fails and names the files that gofmt would change
	@files=$$(git ls-files --cached --others --exclude-standard -- '*.go' | xargs gofmt -l); \
		test -z "$$files" || { echo "gofmt -w these:"; echo "$$files"; exit 1; }

vet: ## go vet, of what only make kill builds too
	$(GO) vet $(PACKAGES)
	$(GO) vet -tags mutants ./ledger
	@if [ -n "$(CPLUSPLUS)" ]; then set -x; $(GO) vet -tags duckdb ./bench/duckdb; fi
	cd $(VERIFIER) && $(GO) vet ./...

lint: ## golangci-lint, when it is installed (.ci/run names the version)
	@if [ -n "$(LINTER)" ]; then "$(LINTER)" run $(PACKAGES) && cd $(VERIFIER) && "$(LINTER)" run ./...; else echo "golangci-lint is not installed: skipped"; fi

race: ## the tests of whatever shares money, keys or files between goroutines, under the race detector
	$(GO) test -race -short $(RACED)
	COTEJO_CRASHES=$(RACED_CRASHES) $(GO) test -race -short ./ledger -rapid.checks=$(RACED_CHECKS)

kill: ## kill -9 of a writing process, KILLS times: no acknowledged write may be missing; and the mutants
	COTEJO_KILLS=$(KILLS) $(GO) test -count=1 -v -run Kill $(KILLED)
	$(GO) test -count=1 -tags mutants -run Mutant ./ledger

flips: ## every byte of an evidence export changed, one at a time; make test tries a sample
	cd $(VERIFIER) && COTEJO_FLIPS=all $(GO) test -count=1 -timeout 30m -v -run 'Flipped|Altered' ./...

duckdb: ## bin/cotejo-duckdb, which bench company and ingest compare with; needs a C++ library (g++)
	$(GO) build -tags duckdb -o bin/cotejo-duckdb ./bench/duckdb

bench: build duckdb ## what we claim about speed, as ratios; the generated files (2.2 GB) lie in TMPDIR
	@set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; set -x; \
		bin/cotejo bench generate --scale 1 --seed 69 --out "$$dir/archivos" >/dev/null; \
		bin/cotejo bench company --from "$$dir/archivos"; \
		bin/cotejo bench ingest --from "$$dir/archivos"
	bin/cotejo bench ledger
	bin/cotejo bench checks
	bin/cotejo bench batch
	@test -z "$$COTEJO_POSTGRES" || (set -x; bin/cotejo bench ledger --store "$$COTEJO_POSTGRES")

fuzz: ## every fuzz target for FUZZTIME
	@set -e; for package in $$($(GO) list $(PACKAGES)); do \
		for target in $$($(GO) test -list '^Fuzz' "$$package" | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package"; \
		done; \
	done

# Answers are checked against the document, and the document shows answers: first
# the schemas, then the examples, then both as they are now.
openapi: ## writes api/openapi.yaml and the examples anew from the list of operations
	$(GO) test -count=1 -run '^TestOpenAPIIsCurrent$$' ./api -update
	$(GO) test -count=1 -run '^TestExamples$$' ./api -update
	$(GO) test -count=1 -run '^TestOpenAPIIsCurrent$$' ./api -update
	$(GO) test -count=1 ./api

clean: ## removes what make build wrote
	rm -rf bin
