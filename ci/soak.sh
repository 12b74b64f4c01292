#!/usr/bin/env bash
# `make soak`: each scenario five times with real durations, on the newest pinned version or on all of them
# (ci/expected.sh says which).
# Writes reports/soak/<area>.json for each directory of scenarios, and reports/soak/soak.md from all of these; fails when
# a run misses the verdict that its file expects.
#   ROUNDS=5
#   AREAS="etcd apf"     directories of scenarios/; those that are not named keep their last results
#   SCENARIOS="seed-450" only these; the others keep their last results
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

versions_of() { # scenario
  if [ -n "${VERSIONS:-}" ]; then
    echo "$VERSIONS"
  elif is_soaked_everywhere "$1"; then
    echo "$pinned"
  else
    echo "$newest"
  fi
}

wanted() { # scenario
  local name
  name="$(basename "$1" .yaml)"
  case " ${SCENARIOS:-$name} " in *" $name "*) return 0 ;; *) return 1 ;; esac
}

soak() { # scenario, version, round; appends what came of it to the area's runs
  local name out code=0 start=$SECONDS expected verified=0 report
  name="$(basename "$1" .yaml)"
  out="$work/$name-$2-$3"
  "$exe" run "$1" --kubernetes "$2" --out "$out" </dev/null >"$out.log" 2>&1 || code=$?
  expected="$(expected_verdict "$1")"
  "$exe" verify "$out" </dev/null >>"$out.log" 2>&1 || verified=$?
  report="$out/report.json"
  [ -s "$report" ] || { report="$work/none.json"; echo '{}' >"$report"; }
  jq -c --arg scenario "$name" --arg version "$2" --argjson round "$3" --argjson code "$code" \
    --argjson verify "$verified" --arg expected "$expected" --arg wanted "$(expected_code "$expected")" \
    --argjson seconds "$((SECONDS - start))" \
    '{scenario: $scenario, kubernetes: $version, round: $round, expected: $expected, verdict: (.verdict // null),
      exitCode: $code, verifyExitCode: $verify, asExpected: (($code | tostring) == $wanted and $verify == 0),
      seconds: $seconds,
      objectives: [(.objectives // [])[] | {name, verdict, unit, observed, lower, upper}]}' \
    "$report" >>"$work/runs.jsonl"
  tail -n 1 "$work/runs.jsonl" | jq -r '"\(.scenario) \(.kubernetes) round \(.round): \(.verdict), exit code \(.exitCode), \(.seconds) s"'
}

for area in ${AREAS:-$(ls scenarios)}; do
  : >"$work/runs.jsonl"
  while IFS= read -r file; do
    wanted "$file" || continue
    for version in $(versions_of "$file"); do
      for round in $(seq "$rounds"); do
        soak "$file" "$version" "$round"
      done
    done
  done < <(find "scenarios/$area" -name '*.yaml' | sort)
  # Results of scenarios that were not run now stay.
  kept="$work/kept.json"
  echo '[]' >"$kept"
  [ ! -s "reports/soak/$area.json" ] || jq --slurpfile now "$work/runs.jsonl" \
    '[.runs[] | select(.scenario as $s | any($now[]; .scenario == $s) | not)]' "reports/soak/$area.json" >"$kept"
  jq -s --slurpfile kept "$kept" --arg date "$(date -u +%Y-%m-%d)" --arg tool "$("$exe" --version)" --arg kernel "$(uname -sr)" \
    --arg arch "$(uname -m)" --argjson cpus "$(nproc)" \
    '{date: $date, tool: $tool, machine: {kernel: $kernel, arch: $arch, cpus: $cpus}, runs: (. + $kept[0])}' \
    "$work/runs.jsonl" >"reports/soak/$area.json"
done

{
  printf '# Soak\n\nEach scenario several times in a row with real durations. Written by `make soak`.\n'
  for results in reports/soak/*.json; do
    jq -r --arg area "$(basename "$results" .json)" '
      "\n## \($area)\n\nOn \(.date), \(.tool), \(.machine.kernel) \(.machine.arch), \(.machine.cpus) CPUs.\n",
      "| scenario | Kubernetes | expected | verdicts | as expected | evidence verifies | seconds |\n|---|---|---|---|---|---|---|",
      (.runs | group_by([.scenario, .kubernetes])[] |
        "| \(.[0].scenario) | \(.[0].kubernetes) | \(.[0].expected) | \(map(.verdict // "none") | join(", ")) | \(map(select(.asExpected)) | length) of \(length) | \(map(select(.verifyExitCode == 0)) | length) of \(length) | \(map(.seconds) | min)-\(map(.seconds) | max) |")
    ' "$results"
  done
} >reports/soak/soak.md
cat reports/soak/soak.md
for area in ${AREAS:-$(ls scenarios)}; do
  jq -e '(.runs | length) > 0 and all(.runs[]; .asExpected)' "reports/soak/$area.json" >/dev/null
done
