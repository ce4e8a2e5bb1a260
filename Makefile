# The commands of this repository. Each sets up what it needs.
SHELL := /bin/bash
export PATH := $(PATH):$(HOME)/.cargo/bin
# Networks fail for a moment.
export CARGO_NET_RETRY ?= 10
WHOLE := $(shell scripts/features)

# Two targets at a time: the bindings beside the others, for tests of processes wait more than they work.
# What a command says comes in one piece. Nothing that is run is to take part in this make's counting of jobs.
ifneq ($(filter test,$(MAKECMDGOALS))$(SOAK),)
MAKEFLAGS += --jobs=2 --output-sync=line
unexport MAKEFLAGS MFLAGS
endif

.PHONY: help feed-kafka cluster dashboard demo frameworks test test-all test-more test-soak test-whole test-release format built lint lint-more unit models promise bindings python-built step hold storm hostile fuzz faults prove clients bench bench-full bench-check bench-serve bench-resp bench-bindings bench-python bench-ruby docs python ruby install clean miri cross

help:
	@echo 'make demo     several processes count the words of this machine in one store; one is killed'
	@echo 'make test     format, unit, promise, bindings, two at a time; 9 minutes from a fresh clone on two processors'
	@echo 'make test-all the same, lint, Miri, enumerations in full, the release builds of all languages with every compiler and sanitizer'
	@echo 'make lint     format, clippy, types and stubs of Python; make lint-more: links of the documentation, the fuzz targets'
	@echo 'make unit     unit tests, crash enumeration, models, examples of the documentation'
	@echo 'make promise  the tests of each promise with many processes, and of the command'
	@echo 'make models   small scenarios of the engine under a scheduler, every interleaving by chance'
	@echo 'make miri     the memory abstraction and the calls of the engine under Miri'
	@echo 'make cross    built for aarch64; unit tests, a part of the engine'"'"'s and the command under an emulator'
	@echo 'make bindings all languages: tests, sanitizers, samples, the ABI, all of them on one store'
	@echo 'make step     death behind every machine instruction of the release build'
	@echo 'make hold     a process stopped inside each critical section, for SECONDS=60 each'
	@echo 'make storm    processes killed and stopped at random for MINUTES=10'
	@echo 'make hostile  files damaged before or while they are used, for MINUTES=10; ASAN=1 with AddressSanitizer'
	@echo 'make fuzz     fuzz targets of the memcached and HTTP front ends, for SECONDS=60 each; TARGET=text only that one'
	@echo 'make faults   known faults of the engine, each of which some test must find'
	@echo 'make python   the Python package: lint, types, stubs, tests, Django'"'"'s tests of a cache'
	@echo 'make ruby     the gem: built, installed, its tests and samples'
	@echo 'make test-soak  the tests ROUNDS=20 times, half of them beside two busy loops: how often each failed'
	@echo 'make prove    all of these for longer, in about an hour, with one table at the end'
	@echo 'make clients  memcached clients of Python, C, Ruby, Go, Java and Node against the server; Redis clients too'
	@echo 'make feed-kafka  the sink for Kafka with a real broker, which is fetched; feeders and broker are killed'
	@echo 'make cluster  three servers behind proxies: clients of five languages, one server killed, all restarted in turn'
	@echo 'make dashboard  the dashboard in a real browser: what is drawn against the statistics'
	@echo 'make frameworks  Flask, Django and Celery in servers that fork their workers, which are killed'
	@echo 'make bench    beside LMDB, Kyoto Cabinet, Tkrzw, memcached and HashMap: a quarter of an hour; bench-full: longer'
	@echo 'make bench-check  have the ratios to the peers become worse than those of docs/performance.md?'
	@echo 'make bench-serve  the memcached server beside memcached and redis, with bars'
	@echo 'make bench-resp  the server of the protocol of Redis beside redis-server'
	@echo 'make bench-python  the Python package beside dict, lmdb, pymemcache and diskcache'
	@echo 'make bench-ruby  the gem beside a plain Hash and Dalli with memcached'
	@echo 'make bench-bindings  a call from C beside the same in Rust'
	@echo 'make docs     the reference of each language, into target/docs'
	@echo 'make install  command, library, headers and their packages into PREFIX (default ~/.local)'

feed-kafka:
	@scripts/setup rust
	@scripts/kafka

demo:
	@scripts/setup rust
	@cargo build --quiet --release -p hashmere-demo
	@target/release/hashmere-demo

test: python-built bindings format unit promise

# What takes longer than `make test` may, and guards main as well.
test-all:
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-more

test-more: lint lint-more miri test-whole test-release
	HASHMERE_INTERRUPTIONS=2000 cargo test $(WHOLE) --quiet --lib -- interleaving
	HASHMERE_WHOLE=1 HASHMERE_BIG=1 HASHMERE_DEATHS=160 cargo test $(WHOLE) --quiet --test sizes --test step
	bindings/python/run frameworks

# All of what `make test` takes samples of: enumerations, models, tests that could go on forever.
test-whole: export HASHMERE_WHOLE = 1
test-whole: export RUST_TEST_THREADS ?= 4
test-whole: built
	@scripts/setup clients
	@scripts/setup feed
	@scripts/setup http
	cargo test $(WHOLE) --quiet --no-fail-fast --lib --test '*'

# What is published, in all languages, with every compiler and sanitizer; `make test` takes builds with assertions.
test-release:
	@scripts/setup rust
	@scripts/setup compilers
	@scripts/setup ruby
	@scripts/setup python
	EVERY_COMPILER=1 HASHMERE_PROFILE=release bindings/test c cpp python ruby together

# All that Cargo builds for the tests, in one go.
built:
	@scripts/setup rust
	cargo build --quiet $(WHOLE) --lib --tests --examples

format:
	@scripts/setup rust
	cargo fmt --all --check

lint: format
	@scripts/setup python
	cargo clippy --quiet $(WHOLE) --all-targets -- -D warnings
	bindings/python/run lint

# The documents of the code and what is outside the workspace.
lint-more:
	@scripts/setup rust
	RUSTDOCFLAGS='-D warnings' cargo doc --quiet $(WHOLE) --no-deps --document-private-items
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --quiet --manifest-path fuzz/Cargo.toml --target-dir $(or $(CARGO_TARGET_DIR),target)/fuzz --no-default-features -- -D warnings

# HASHMERE_MODELS=20000 lets the models among them look longer; test-whole tries all of what is enumerated.
unit: built
	cargo test $(WHOLE) --quiet --no-fail-fast --lib --bins
	cargo test $(WHOLE) --quiet --no-fail-fast --doc

models: export HASHMERE_WHOLE = 1
models:
	@scripts/setup rust
	cargo test $(WHOLE) --quiet --lib -- models

# Many processes, kills, stops, forks, the command itself. They wait for each other more than they work: so four at a time.
promise: export RUST_TEST_THREADS ?= 4
promise: built
	@scripts/setup clients
	@scripts/setup feed
	@scripts/setup http
	cargo test $(WHOLE) --quiet --no-fail-fast --test '*'

# The library is built once for all of them.
bindings: built
	@scripts/setup compilers
	@scripts/setup ruby
	@scripts/setup python
	bindings/test

# Cargo builds the package of Python in a folder of its own, so it can do that beside the rest.
python-built:
	@scripts/setup rust
	@scripts/setup python
	ONLY=build bindings/python/run test

# Single-stepping: HASHMERE_SEED replays the sampled instructions of the longest operations.
step:
	@scripts/setup rust
	@cargo build --quiet --release -p hashmere-testkit
	target/release/hashmere-testkit-step

SECONDS ?= 60
hold:
	@scripts/setup rust
	@cargo build --quiet --release -p hashmere-testkit
	target/release/hashmere-testkit-step --hold $(SECONDS)

# Prints the seed of each storm; `make storm SEED=n` begins with that one.
MINUTES ?= 10
storm:
	@scripts/setup rust
	@cargo build --quiet --release -p hashmere-testkit
	target/release/hashmere-testkit-storm --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

# Keeps the file of each failure in target/hostile, and says how to try it again. ASAN=1 builds it with AddressSanitizer.
hostile:
	@scripts/setup rust
	@cargo build --quiet --release -p hashmere-testkit
	@mkdir -p target/hostile
	$(if $(ASAN),scripts/asan,target/release/hashmere-testkit-hostile) --minutes $(MINUTES) --keep target/hostile $(if $(SEED),--seed $(SEED))

fuzz:
	@scripts/setup rust
	@scripts/fuzz $(SECONDS) $(TARGET)

# One with any test: HASHMERE_FAULT=Name cargo test -p hashmere-engine --lib
faults:
	@scripts/setup rust
	@scripts/faults

prove:
	@scripts/prove

# One with some of them: scripts/test-soak 20 promise bindings
ROUNDS ?= 20
test-soak:
	@scripts/setup rust
	@scripts/test-soak $(ROUNDS)

# Memory and engine under an interpreter that knows undefined behaviour, data races and weakly ordered memory.
# Miri runs the threads of one process in turns; so the tests of the engine go as two processes.
miri: export MIRIFLAGS = -Zmiri-disable-isolation -Zmiri-strict-provenance
miri: SLOW = miri_subset::leaves miri_subset::processes miri_subset::threads miri_subset::crashed
miri:
	@scripts/setup rust
	@scripts/setup miri
	cargo +nightly miri test --quiet -p hashmere-mem --lib --test conformance
	cargo +nightly miri test --quiet -p hashmere-engine --lib --no-run
	printf '%s\n' '$(SLOW)' 'miri_subset $(addprefix --skip ,$(SLOW))' | \
	  xargs -P 2 -I {} sh -c 'cargo +nightly miri test --quiet -p hashmere-engine --lib -- {}'
	cargo +nightly miri test --quiet -p hashmere-queue --lib transfer
	cargo +nightly miri test --quiet -p hashmere-log --lib beside

# Another architecture, under an emulator; a part of it: scripts/cross command
cross:
	@scripts/cross

# Go, Java and Node want packages that are too large for `make test`.
clients:
	@scripts/setup rust
	cargo test --quiet -p hashmere-server --test serve clients -- --include-ignored --nocapture

# One of clients, kill, rolling, proxy, memory: scripts/cluster kill
cluster:
	@scripts/cluster

# The pictures of its guide: scripts/dashboard --save
dashboard:
	@scripts/dashboard

frameworks:
	@scripts/setup rust
	@scripts/setup python
	@bindings/python/run frameworks

# Writes the figures and, from them, docs/performance.md.
bench:
	@scripts/setup rust
	@bench/run --save --runs 1
	@bench/document

bench-full:
	@scripts/setup rust
	@bench/run --save --full
	@bench/document
	@$(MAKE) --no-print-directory bench-bindings
	@$(MAKE) --no-print-directory bench-python
	@$(MAKE) --no-print-directory bench-ruby

bench-check:
	@scripts/setup rust
	@bench/run --check --only w1,sizes

bench-serve:
	@scripts/setup rust
	@bench/serve

bench-resp:
	@scripts/setup rust
	@bench/resp

bench-python:
	@scripts/setup rust
	@scripts/setup python
	@scripts/setup packages memcached
	@bindings/python/run bench

# Builds the package into an environment of its own, target/python.
python:
	@scripts/setup rust
	@scripts/setup python
	@bindings/python/run lint
	@bindings/python/run test

bench-ruby:
	@scripts/setup rust
	@scripts/setup ruby
	@scripts/setup packages memcached ruby-dalli
	@bench/ruby/run

# The gem is installed into the stage of bindings/test, nowhere else.
ruby:
	@scripts/setup rust
	@scripts/setup ruby
	@bindings/test ruby

bench-bindings:
	@scripts/setup rust
	@scripts/setup compilers
	@bench/bindings

docs:
	@scripts/setup rust
	@scripts/setup doxygen
	@scripts/setup python
	@scripts/setup yard
	@bindings/docs

# DESTDIR is put in front of everything; LIBDIR (default PREFIX/lib) is where the library goes.
PREFIX ?= $(HOME)/.local
install:
	@scripts/setup rust
	@echo 'make install: builds the command and the library with all optimizations, about ten minutes on two processors the first time,'
	@echo '  and puts them below $(DESTDIR)$(PREFIX) (PREFIX=/usr/local for all users). Nothing else is changed.'
	@echo '1 of 4: building the command'
	@cargo build --quiet --release -p hashmere-cli
	@echo '2 of 4: building libhashmere, for C, C++ and Ruby'
	@cargo build --quiet --release -p hashmere-ffi
	@echo '3 of 4: the command and its manual pages'
	@install -D -s -m 755 $(or $(CARGO_TARGET_DIR),target)/release/hashmere $(DESTDIR)$(PREFIX)/bin/hashmere
	@$(or $(CARGO_TARGET_DIR),target)/release/hashmere man $(DESTDIR)$(PREFIX)/share/man/man1
	@echo '4 of 4: libhashmere, shared and static, headers, pkg-config, CMake'
	@bindings/c/install $(PREFIX)
	@echo 'Installed below $(DESTDIR)$(PREFIX): bin/hashmere, share/man/man1, lib/libhashmere.so, lib/libhashmere.a, include/hashmere*.h'
	@case ":$$PATH:" in *:$(PREFIX)/bin:*) ;; *) echo 'The folder $(PREFIX)/bin is not in PATH: add it to run hashmere.';; esac
	@bindings/c/linker $(PREFIX)

clean:
	cargo clean
