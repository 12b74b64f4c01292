#!/usr/bin/env bash
# `make test`: everything that CI runs. Closes with `N passed, N failed, N skipped`.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/expected.sh
export PATH="$PATH:/usr/sbin:/sbin"
export CARGO_TERM_COLOR=never QUAKEPROOF_OFFLINE=1
logs="$PWD/target/ci"
rm -rf "$logs"
mkdir -p "$logs"
passed=0 failed=0 skipped=0

say() { echo "== $*"; }
close() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" = 0 ]
}
# Runs one step; it counts as one test. Its output is shown when it fails.
step() { # name, command…
  local name="$1" start=$SECONDS
  shift
  if "$@" >"$logs/step.log" 2>&1; then
    passed=$((passed + 1))
    say "ok $name ($((SECONDS - start)) s)"
  else
    failed=$((failed + 1))
    say "FAILED $name ($((SECONDS - start)) s)"
    tail -n 80 "$logs/step.log"
    return 1
  fi
}
must() { step "$@" || { close; exit 1; }; }

must "system packages" ci/packages.sh test
must "build" cargo build --locked

# Upstream binaries take a quarter of an hour the first time: meanwhile the rest is compiled.
cp target/debug/quakeproof "$logs/quakeproof"
versions="$(pinned_versions "$logs/quakeproof")"
# shellcheck disable=SC2086 # a list of words
nice -n 10 "$logs/quakeproof" toolchain provide $versions >"$logs/toolchain.log" 2>&1 &
provider=$!
trap 'kill "$provider" 2>/dev/null || true' EXIT

step "formatting" cargo fmt --check || true
step "clippy" cargo clippy --locked --all-targets -- -D warnings || true
step "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items || true
must "tests compile" cargo test --locked --no-run
mutants() { cargo "$1" --locked --manifest-path mutants/Cargo.toml --target-dir target/mutants/tool "${@:2}"; }
step "formatting of mutants" cargo fmt --check --manifest-path mutants/Cargo.toml || true
step "clippy of mutants" mutants clippy --all-targets -- -D warnings || true
step "tests of mutants" mutants test || true

awaited() { wait "$provider" || { cat "$logs/toolchain.log"; return 1; }; }
say "awaiting upstream binaries: $(tail -n 1 "$logs/toolchain.log")"
must "toolchain" awaited
trap - EXIT
must "toolchain digests" "$logs/quakeproof" toolchain list --verify
step "doctor" "$logs/quakeproof" doctor || true

# Tests find the binaries in a directory laid out as a person would.
export QUAKEPROOF_BIN_DIR="$logs/toolchain"
mkdir -p "$QUAKEPROOF_BIN_DIR"
"$logs/quakeproof" toolchain list --json |
  jq -r '.releases[] | "\(.product)-\(.version) \(.directory)"' |
  while read -r name directory; do ln -sfn "$directory" "$QUAKEPROOF_BIN_DIR/$name"; done

export QUAKEPROOF_SKIPS="$logs/skips.tsv"
: >"$QUAKEPROOF_SKIPS"
say "tests"
{ cargo test --locked --no-fail-fast 2>&1 || echo "cargo test ended with exit code $?"; } | tee "$logs/tests.log" |
  grep --line-buffered -E '^(test .*FAILED|test result: |error|cargo test ended| +(Running|Doc-tests))' || true
read -r ran broken ignored < <(awk '/^test result: / { p += $4; f += $6; i += $8 } END { print p + 0, f + 0, i + 0 }' "$logs/tests.log")
# Something that never came to a result line, such as a crash.
! grep -q '^cargo test ended' "$logs/tests.log" || [ "$broken" != 0 ] || broken=1
[ "$broken" = 0 ] || sed -n '/^failures:$/,/^test result/p' "$logs/tests.log"
[ "$ran" != 0 ] || broken=$((broken + 1))

# A test that skips returns normally, so the test runner counts it as passed.
said="$(wc -l <"$QUAKEPROOF_SKIPS")"
passed=$((passed + ran - said))
failed=$((failed + broken))
skipped=$((skipped + ignored + said))
sed -n 's/^test \(.*\) \.\.\. ignored.*/\1\tignored/p' "$logs/tests.log" >>"$QUAKEPROOF_SKIPS"
allowed() {
  local bad=0 name reason
  if grep -v '^#' ci/allowed-skips.txt | grep -Ei 'rootless|unprivileged|v[0-9]+\.[0-9]+'; then
    echo "ci/allowed-skips.txt lists what may never skip"
    bad=1
  fi
  while IFS=$'\t' read -r name reason; do
    grep -v '^#' ci/allowed-skips.txt | awk -v uid="$(id -u)" '$2 != "non-root" || uid != 0 { print $1 }' |
      grep -qxF -- "$name" ||
      { echo "$name may not skip: $reason"; bad=1; }
  done <"$QUAKEPROOF_SKIPS"
  return "$bad"
}
step "skips are on the list" allowed || true

say "scenarios"
QUAKEPROOF_EXE="$logs/quakeproof" ci/scenarios.sh "$logs/scenarios" | tee "$logs/scenarios.txt" || true
passed=$((passed + $(grep -c '^ok ' "$logs/scenarios.txt" || true)))
bad="$(grep -c '^FAILED ' "$logs/scenarios.txt" || true)"
[ -s "$logs/scenarios.txt" ] || bad=1
failed=$((failed + bad))
close
