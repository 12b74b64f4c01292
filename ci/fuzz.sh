#!/usr/bin/env bash
# `make fuzz`: the snapshot reader on mutated snapshots. Needs a nightly compiler and cargo-fuzz
# (`cargo install cargo-fuzz`). Seeds are the snapshots in tests/data/snapshot/.
#   RUNS=10000000  JOBS=1; a corpus on a disk that others use slows it down tenfold
set -euo pipefail
cd "$(dirname "$0")/.."
corpus=fuzz/corpus/snapshot
mkdir -p "$corpus"
cp tests/data/snapshot/small-pages.db "$corpus/"
for seed in tests/data/snapshot/*.gz; do
  gunzip -c "$seed" >"$corpus/$(basename "$seed" .gz)"
done
# Overflow checks and debug assertions are on. No unsafe code is on this path, so a sanitizer would only cost time.
cargo +nightly fuzz run --fuzz-dir fuzz --sanitizer none snapshot "$corpus" --jobs "${JOBS:-1}" -- \
  -runs="${RUNS:-10000000}" -max_len=65536 -timeout=5 -rss_limit_mb=1024 -print_final_stats=1
