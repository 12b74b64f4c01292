#!/usr/bin/env bash
# Makes reports/samples/ anew: a whole bundle of each verdict, from real runs of tests/data/samples/drill.yaml, and one
# of them filled in as an auditor's protocol. Signed with a key that is checked in, so that everybody can do so:
# it proves how signed bundles look, and nothing else.
#   QUAKEPROOF_EXE=target/debug/quakeproof
set -euo pipefail
cd "$(dirname "$0")/.."
exe="${QUAKEPROOF_EXE:-target/debug/quakeproof}"
drill="tests/data/samples/drill.yaml" key="tests/data/samples/key.pem" samples="reports/samples"
QUAKEPROOF_STATE="$(mktemp -d)"
export QUAKEPROOF_STATE
trap 'rm -rf "$QUAKEPROOF_STATE"' EXIT

# Logs name the binaries that were run; whose cache they came from is of no use to anybody who reads them.
mkdir "$QUAKEPROOF_STATE/toolchain"
"$exe" toolchain list --json |
  jq -r '.releases[] | select(.directory) | "\(.product)-\(.version) \(.directory)"' |
  while read -r name directory; do ln -s "$directory" "$QUAKEPROOF_STATE/toolchain/$name"; done
export QUAKEPROOF_BIN_DIR="$QUAKEPROOF_STATE/toolchain"

run() { # verdict, exit code, arguments…
  local verdict="$1" expected="$2" code=0
  shift 2
  rm -rf "${samples:?}/$verdict"
  "$exe" run "$drill" --sign "$key" --out "$samples/$verdict" "$@" >&2 || code=$?
  [ "$code" = "$expected" ] || { echo "ci/samples.sh: $verdict ended with $code" >&2; exit 1; }
}
run pass 0 --set bump=auto --set settle=10s --set then=14s
run fail 1

# Interrupted while etcd is lost, so that nothing about the restore can be told.
rm -rf "$samples/inconclusive"
"$exe" run "$drill" --sign "$key" --out "$samples/inconclusive" >&2 &
runner=$!
until grep -qs '"injectionVerified"' "$samples/inconclusive/journal.jsonl"; do
  kill -0 "$runner"
  sleep 0.05
done
kill -INT "$runner"
code=0
wait "$runner" || code=$?
[ "$code" = 130 ] || { echo "ci/samples.sh: the interrupted run ended with $code" >&2; exit 1; }

# What a team makes of the failed run.
"$exe" findings draft "$samples/fail" |
  sed -e '1s/.*/# What the team made of this run./' \
    -e 's/^# reviewed: .*/reviewed: {by: J. Auditor, on: 2026-12-02}/' \
    -e 's/^# nextDue:.*/nextDue: 2027-03-01/' \
    -e 's/owner: "".*/owner: platform-team/' \
    -e 's/due: "".*/due: 2027-01-31/' \
    -e 's/# closedWhen: ""/closedWhen: the same drill with the bump passes on this version/' \
    -e '/^    # /d' >"$QUAKEPROOF_STATE/findings.yaml"
"$exe" findings attach "$samples/fail" "$QUAKEPROOF_STATE/findings.yaml"
"$exe" report "$samples/fail" --format markdown --out "$samples/protocol.md"
for verdict in pass fail inconclusive; do
  "$exe" verify "$samples/$verdict" --key "$samples/key.pub" | tail -n 1
done
du -sh "$samples"
