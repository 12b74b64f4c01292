#!/usr/bin/env bash
# `make soak`: each scenario five times with real durations, on the newest pinned version or on all of them
# (ci/expected.sh says which).
# Writes reports/soak/soak.json and reports/soak/soak.md; fails when a run misses the verdict that its file expects.
#   ROUNDS=5
#   VERSIONS="v1.37.2"   for every scenario, instead
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/expected.sh
rounds="${ROUNDS:-5}"
export PATH="$PATH:/usr/sbin:/sbin"

ci/packages.sh test
cargo build --release --locked
exe="$PWD/target/release/quakeproof"
pinned="$(pinned_versions "$exe")"
newest="$(tail -n 1 <<<"$pinned")"
# shellcheck disable=SC2086 # a list of words
"$exe" toolchain provide ${VERSIONS:-$pinned} >&2
work="target/soak"
rm -rf "$work"
mkdir -p "$work" reports/soak
: >"$work/runs.jsonl"

while IFS= read -r file; do
  versions="${VERSIONS:-$newest}"
  ! is_everywhere "$file" || versions="${VERSIONS:-$pinned}"
  for version in $versions; do
    for round in $(seq "$rounds"); do
      name="$(basename "$file" .yaml)"
      out="$work/$name-$version-$round"
      code=0
      start=$SECONDS
      "$exe" run "$file" --kubernetes "$version" --out "$out" </dev/null >"$out.log" 2>&1 || code=$?
      expected="$(expected_verdict "$file")"
      verified=0
      "$exe" verify "$out" </dev/null >>"$out.log" 2>&1 || verified=$?
      report="$out/report.json"
      [ -s "$report" ] || { report="$work/none.json"; echo '{}' >"$report"; }
      jq -c --arg scenario "$name" --arg version "$version" --argjson round "$round" --argjson code "$code" \
        --argjson verify "$verified" --arg expected "$expected" --arg wanted "$(expected_code "$expected")" \
        --argjson seconds "$((SECONDS - start))" \
        '{scenario: $scenario, kubernetes: $version, round: $round, expected: $expected, verdict: (.verdict // null),
          exitCode: $code, verifyExitCode: $verify, asExpected: (($code | tostring) == $wanted and $verify == 0),
          seconds: $seconds,
          objectives: [(.objectives // [])[] | {name, verdict, unit, observed, lower, upper}]}' \
        "$report" >>"$work/runs.jsonl"
      tail -n 1 "$work/runs.jsonl" | jq -r '"\(.scenario) \(.kubernetes) round \(.round): \(.verdict), exit code \(.exitCode), \(.seconds) s"'
    done
  done
done < <(find scenarios -name '*.yaml' | sort)

jq -s --arg date "$(date -u +%Y-%m-%d)" --arg tool "$("$exe" --version)" --arg kernel "$(uname -sr)" \
  --arg arch "$(uname -m)" --argjson cpus "$(nproc)" \
  '{date: $date, tool: $tool, machine: {kernel: $kernel, arch: $arch, cpus: $cpus}, runs: .}' \
  "$work/runs.jsonl" >reports/soak/soak.json
jq -r '
  "# Soak\n\nEach scenario several times in a row with real durations. Written by `make soak` on \(.date), \(.tool), \(.machine.kernel) \(.machine.arch), \(.machine.cpus) CPUs.\n",
  "| scenario | Kubernetes | expected | verdicts | as expected | evidence verifies | seconds |\n|---|---|---|---|---|---|---|",
  (.runs | group_by([.scenario, .kubernetes])[] |
    "| \(.[0].scenario) | \(.[0].kubernetes) | \(.[0].expected) | \(map(.verdict // "none") | join(", ")) | \(map(select(.asExpected)) | length) of \(length) | \(map(select(.verifyExitCode == 0)) | length) of \(length) | \(map(.seconds) | min)-\(map(.seconds) | max) |")
' reports/soak/soak.json >reports/soak/soak.md
cat reports/soak/soak.md
jq -e '(.runs | length) > 0 and all(.runs[]; .asExpected)' reports/soak/soak.json >/dev/null
