# What one does with ffclock. Everything is a program of its own below tools/ or a cargo command; this file only names them.

.PHONY: help setup build test test-vm test-uml lint loom fuzz-smoke fuzz-campaign bench demo demo-chrony demo-serve demo-ptp demo-snapshot live evidence figures figures-live figures-counters figures-theta figures-probe campaign mutation install packages clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

setup: ## install what is missing (Debian packages, peers unpacked below target, Python environment)
	@tools/setup

build: ## build the daemon and both commands (ffclock-lab with its eBPF programs where clang is there)
	cargo build --release --locked --package ffclock-daemon --package ffclock-serve --package ffclock-steer --package ffclock-cli --package ffclock-lab $$(tools/ebpf-features ffclock-lab/ebpf ffclock-serve/xdp)

test: ## run every check and test, after setup; the last line is the count
	@begun=$$(date +%s) && tools/setup && TEST_BEGUN=$$begun tools/test

lint: ## format, rules of the house, licences, clippy
	@tools/test format tidy licences clippy

loom: ## prove the page's lock on every order of memory accesses
	@tools/test loom

test-vm: ## build the kernel module and check it in virtual machines, both kernels, every counter and probe them by fentry and kprobes (a quarter of an hour)
	@tools/setup rust vm
	@tests/vm/run

test-uml: ## five minutes: the interposer beside a real kernel, by a script and with daemons in both, the path through a router, both guests of user-mode Linux, and the monitor beside its witnesses
	@tools/setup rust peers uml
	@FFCLOCK_UML_LONG=1 cargo test --locked --package ffclock-lab --bin ffclock-lab live::uml -- --nocapture
	@FFCLOCK_UML_LONG=1 cargo test --locked --package ffclock-lab --test system -- --nocapture --test-threads 1 live::the_monitor live::a_guest

fuzz-smoke: ## run each fuzz target for 10 s
	@tools/fuzz-smoke

fuzz-campaign: ## run each fuzz target for an hour
	@SECONDS_EACH=3600 tools/fuzz-smoke

campaign: ## the goals and the containment of the bound, every scenario with many seeds (hours; goes on where it was broken off)
	@tools/campaign

mutation: ## move each constant of the estimator and see that some figure notices (an hour)
	@tools/mutation

bench: setup ## measure against peers; table on the terminal, out/bench.json
	@tools/bench

demo: setup build ## three minutes: daemon and reader against the truth; a server that is lost, one of three that lies
	@tools/demo
	@tools/demo liar

demo-chrony: setup build ## the same with Debian's chronyd as server
	@tools/demo chrony

demo-serve: setup build ## a minute: the time served on by ffclock-serve and by chronyd to clients of three kinds, plainly and with NTS
	@tools/demo serve

demo-ptp: setup build ## five minutes, as root: ffclockd, ptp4l and ptpd follow one grandmaster, and ptp4l follows ffclock-serve
	@tools/demo-ptp

demo-snapshot: ## three minutes: a virtual machine with chronyd and two ffclockd, one on its host's page, is stopped, saved and restored; the truth is outside
	@tools/setup rust peers python vm
	@tools/demo-snapshot

live: setup build ## five minutes, as root: ffclockd, chronyd and ntpd side by side, each with a clock of its own
	@"$${CARGO_TARGET_DIR:-target}/release/ffclock-lab" live run quiet-16 --output "out/live-$$(date +%Y%m%d-%H%M%S)"

figures: setup ## simulated counterparts of the paper's figures and a table of all clocks: target/figures/index.html
	@tools/figures
figures-live: setup ## half an hour, as root: running daemons for figures 2 to 8, 10 and 11, beside the simulated values and the papers': target/figures-live/index.html
	@tools/figures-live
figures-counters: setup build ## measure this machine's counters and draw figures 12-18 and table I beside the papers'
	@tools/figures-counters
figures-theta: setup build ## message delays live and simulated: figures 3-8 of their paper, with verdicts: target/figures-theta/index.html
	@tools/figures-theta
figures-probe: setup build ## measure where packets wait in this host and draw counterparts of the latencies paper's figures 1-5
	@tools/figures-probe
evidence: setup build ## every figure and table of the papers with its verdict, in short runs (three quarters of an hour, as root for the live ones): docs/evidence.md, target/evidence/index.html
	@tools/evidence

install: ## install daemon, command and C library (as root; DESTDIR, PREFIX=/usr, LIBDIR, ...: tools/install); docs/operations.md says what follows
	cargo build --release --locked --package ffclock-daemon --package ffclock-serve --package ffclock-steer --package ffclock-cli --package ffclock-client
	@tools/install

packages: ## build the Debian packages and the Python wheel: target/packages/deb (tools/packages product: without the laboratory)
	@tools/setup rust packages python
	@tools/packages

clean: ## remove what was built, measured and unpacked
	rm -rf target out .venv fuzz/target fuzz/corpus fuzz/artifacts
