# make is optional: `go build ./cmd/chela` and `go test ./...` do everything.
export CGO_ENABLED = 0
FUZZTIME ?= 30s

.PHONY: build test race lint fuzz bench kill sim cage damage commands conformance tour ci full

build: ## one stripped binary
	go build -trimpath -ldflags "-s -w" -o bin/chela ./cmd/chela

test:
	go test ./...

race:
	CGO_ENABLED=1 go test -race -timeout 40m ./...

lint:
	golangci-lint run ./...

fuzz: ## every fuzz target for FUZZTIME
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read d; do \
		for f in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$d/*_test.go | sed 's/func //'); do \
			echo "$$d $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$d || exit 1; done; done

bench: ## the figures of docs/performance.md
	go test -run '^$$' -bench . -benchmem ./internal/test/chelatest ./internal/plugin/store/sqlite ./internal/surface/gateway ./internal/plugin/llm/...

# The counts of `make full` are those that fit into its 75 minutes.
KILLS ?= $(if $(FULL),300,2000)
SEEDS ?= $(if $(FULL),300,10000)
TRACED ?= $(if $(FULL),200,1000)

kill: ## KILLS kills, twice as many of subagents, and the tests with many clients at full size
	CHELA_TEST_KILLS=$(KILLS) go test -run '^Test(Kill|KillClients|Cuts|SubagentFailures|Month|CachedDay)$$' -timeout 60m -v ./internal/test/chelatest
	CHELA_TEST_KILLS=$$((2 * $(KILLS))) go test -run '^TestKillSubagents$$' -timeout 60m -v ./internal/test/chelatest
	CHELA_TEST_KILLS=$(KILLS) go test -run '^TestSpawnKilled$$' -timeout 60m -v ./internal/engine/dispatch
	CHELA_TEST_KILLS=$(KILLS) go test -run '^TestKillStarting$$' -timeout 60m -v ./cmd/chela

sim: ## SEEDS simulated days
	CHELA_SIM_SEEDS=$(SEEDS) go test -run '^TestDays$$' -timeout 12h ./internal/test/sim

cage: ## floods of processes, memory and sandboxes
	CHELA_TEST_CAGE=1 go test -timeout 60m -v ./internal/core/sandbox/... ./internal/plugin/sandbox/... ./internal/plugin/tool/exec

damage: ## 300 damaged copies of a database
	CHELA_TEST_DAMAGE=300 go test -run '^TestDamage$$' -v ./internal/test/chelatest

commands: ## a day's commands, which must not ask, and hostile ones, which must have no effect, also TRACED of them as strace records them
	CHELA_TEST_TRACED=$(TRACED) go test -tags conformance -run '^Test(Everyday|Attacks|TracedAttacks)$$' -timeout 180m -v ./internal/test/chelatest

conformance: ## OpenClaw's own clients, installed from npm, against the gateway
	go test -tags conformance -timeout 30m -parallel 4 -v ./internal/test/conformance

tour: build ## what the assistant does by itself, on a fresh home without a key
	CHELA=bin/chela docs/tour.sh

ci: ## what decides whether a change lands
	bash .ci/run

full: ## what ci leaves out, within 75 minutes
	bash .ci/run-full
