# The commands of this repository. Each sets up what it needs.
SHELL := /bin/bash
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: help demo test lint unit promise bench bench-serve install clean miri

help:
	@echo 'make demo     several processes count the words of this machine in one store; one is killed'
	@echo 'make test     lint, unit tests, crash enumeration'
	@echo 'make promise  the tests of each promise with many processes, and of the command'
	@echo 'make miri     the memory abstraction under Miri'
	@echo 'make bench    benchmarks beside LMDB, Kyoto Cabinet, Tkrzw, memcached and HashMap'
	@echo 'make bench-serve  the memcached server beside memcached: CPU time a request'
	@echo 'make install  the hashmere command into PREFIX (default ~/.local)'

demo:
	@scripts/setup rust
	@cargo build --quiet --release -p hashmere-cli
	@target/release/hashmere demo

test: lint unit

lint:
	@scripts/setup rust
	cargo fmt --all --check
	cargo clippy --quiet --workspace -- -D warnings

unit:
	@scripts/setup rust
	cargo test -p hashmere-format -p hashmere-os -p hashmere-mem -p hashmere -p hashmere-server --lib

# Many processes, kills, stops, forks, the command itself.
promise:
	@scripts/setup rust
	cargo test --quiet -p hashmere-testkit -p hashmere-server -p hashmere-cli

# The memory abstraction under an interpreter that knows undefined behaviour and data races.
miri:
	@scripts/setup rust
	@scripts/setup miri
	MIRIFLAGS='-Zmiri-disable-isolation -Zmiri-strict-provenance' cargo +nightly miri test --quiet -p hashmere-mem --lib --test conformance

bench:
	@scripts/setup rust
	@bench/run

bench-serve:
	@scripts/setup rust
	@bench/serve

PREFIX ?= $(HOME)/.local
install:
	@scripts/setup rust
	cargo build --quiet --release -p hashmere-cli
	install -D -m 755 target/release/hashmere $(PREFIX)/bin/hashmere
	target/release/hashmere man $(PREFIX)/share/man/man1
	@echo 'installed $(PREFIX)/bin/hashmere and its manual pages'

clean:
	cargo clean
