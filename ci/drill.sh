#!/usr/bin/env bash
# `make drill`: builds quakeproof, provides the binaries, runs one drill and says where its report is.
# Succeeds exactly when the drill reaches the verdict that its file expects.
set -euo pipefail
cd "$(dirname "$0")/.."
scenario="$1"
kubernetes="${2:-}"
export PATH="$PATH:/usr/sbin:/sbin"

ci/packages.sh cluster
cargo build --release --locked
quakeproof=target/release/quakeproof
"$quakeproof" toolchain provide ${kubernetes:+"$kubernetes"} >&2

out="target/drill/$(basename "$scenario" .yaml)${kubernetes:+-$kubernetes}"
rm -rf "$out"
mkdir -p "$(dirname "$out")"
code=0
"$quakeproof" run "$scenario" ${kubernetes:+--kubernetes "$kubernetes"} --out "$out" || code=$?

. ci/expected.sh
expected="$(expected_verdict "$scenario")"
if [ "$code" != "$(expected_code "$expected")" ]; then
  echo "the drill ended with exit code $code; its file expects the verdict \`$expected\`" >&2
  exit 1
fi
echo
echo "verdict: $expected, as this drill expects"
echo "report:  $PWD/$out/report.html"
