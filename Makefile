# The commands of this repository. Each sets up what it needs.
SHELL := /bin/bash
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: help demo test lint unit model miri bench storm install clean

help:
	@echo 'make demo     several processes count the words of this machine in one store; one is killed'
	@echo 'make test     all tests: lint, unit, by promise, model checking, Miri'
	@echo 'make bench    benchmarks beside LMDB, Kyoto Cabinet, Tkrzw, memcached and HashMap'
	@echo 'make storm    kill storm: MINUTES=10 SEED=n'
	@echo 'make install  the hashmere command into PREFIX (default ~/.local)'

demo:
	@scripts/setup rust
	@cargo build --quiet --release -p hashmere-cli
	@target/release/hashmere demo

test: lint unit model miri

lint:
	@scripts/setup rust
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings

unit:
	@scripts/setup rust
	cargo test --quiet --workspace

# The real engine under a scheduler that explores interleavings, with faults that it must catch.
model:
	@scripts/setup rust
	cargo test --quiet -p hashmere --lib --features shuttle,canary model

# The engine on heap memory under an interpreter that knows undefined behaviour and data races.
miri:
	@scripts/setup rust
	@scripts/setup miri
	MIRIFLAGS='-Zmiri-disable-isolation -Zmiri-strict-provenance' cargo +nightly miri test --quiet -p hashmere-mem -p hashmere --lib

bench:
	@scripts/setup rust
	@bench/run

storm:
	@scripts/setup rust
	cargo run --quiet --release -p hashmere-testkit --bin storm -- --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

PREFIX ?= $(HOME)/.local
install:
	@scripts/setup rust
	cargo build --quiet --release -p hashmere-cli
	install -D -m 755 target/release/hashmere $(PREFIX)/bin/hashmere
	target/release/hashmere man $(PREFIX)/share/man/man1
	@echo 'installed $(PREFIX)/bin/hashmere and its manual pages'

clean:
	cargo clean
