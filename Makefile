# `make drill` and `make test` start from a machine with Rust, Go and a package manager.
K8S ?=
SCENARIO ?= scenarios/etcd/restore-without-bump.yaml

.PHONY: build drill test lint soak matrix bench fuzz mutants

build:
	ci/packages.sh build
	cargo build --release --locked

# One drill on a real cluster, with its report. `make drill K8S=v1.30.4` picks another version.
drill:
	ci/drill.sh "$(SCENARIO)" "$(K8S)"

# Everything that CI runs.
test:
	ci/test.sh

lint:
	ci/packages.sh build
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo fmt --check --manifest-path mutants/Cargo.toml
	cargo clippy --locked --manifest-path mutants/Cargo.toml --target-dir target/mutants/tool --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items

# Each scenario five times with real durations; writes reports/soak/.
soak:
	ci/soak.sh

# What each client sees after a restore, predicted and seen, by procedure and version; writes docs/track-record.md.
matrix:
	ci/matrix.sh

# Start-up of an embedded cluster beside a bare script that starts the same binaries, the snapshot reader beside
# etcdutl, and hashing beside openssl.
bench:
	ci/bench.sh

# The snapshot reader on ten million mutated snapshots; needs a nightly compiler and cargo-fuzz.
fuzz:
	ci/fuzz.sh

# Which changes to the code that judges no test notices; an hour. `make mutants ARGS="--again src/check"` runs only
# those in that folder that were not noticed the last time.
mutants:
	ci/packages.sh build
	cargo run --release --locked --manifest-path mutants/Cargo.toml --target-dir target/mutants/tool -- $(ARGS)
