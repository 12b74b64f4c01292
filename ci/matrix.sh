#!/usr/bin/env bash
# `make matrix`: the outcomes of restore procedures as predicted and as seen, client by client, on every pinned version.
# Runs the drills and writes the table into docs/track-record.md.
#   REPORTS=DIR   directories of evidence DIR/<scenario>-<version>, used as they are where they exist
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/expected.sh
export PATH="$PATH:/usr/sbin:/sbin"
procedures="restore-api-restarted restore-without-bump restore-bump-and-mark restore-official-procedure restore-bump-too-small"

cargo build --release --locked
exe="$PWD/target/release/quakeproof"
versions="$(pinned_versions "$exe")"
# shellcheck disable=SC2086 # a list of words
"$exe" toolchain provide $versions >&2
reports="${REPORTS:-target/matrix}"
mkdir -p "$reports"

table() { # scenario
  local name="$1" version files=()
  for version in $versions; do
    local out="$reports/$name-$version"
    [ -s "$out/report.json" ] || "$exe" run "scenarios/etcd/$name.yaml" --kubernetes "$version" --out "$out" </dev/null >"$out.log" 2>&1 || true
    [ -s "$out/report.json" ] || { tail -n 30 "$out.log" >&2; return 1; }
    files+=("$out/report.json")
  done
  printf '\n### %s\n\n' "$(sed -n 's/^  title: *//p' "scenarios/etcd/$name.yaml")"
  for version in $versions; do
    printf '* `quakeproof run scenarios/etcd/%s.yaml --kubernetes %s`: %s\n' "$name" "$version" \
      "$(jq -r '.verdict' "$reports/$name-$version/report.json")"
  done
  jq -rs --arg versions "$versions" '
    def cell:
      if . == null then "–"
      elif .agrees == true and .predicted == .observed then "✓ \(.observed)"
      else "\(if .agrees == true then "✓" elif .agrees == false then "**≠**" else "**?**" end) predicted: \(.predicted); seen: \(.observed)"
      end;
    map(.predictions) as $all
    | ($versions | split("\n")) as $names
    | ([$all[][] | "\(.subject)\u0000\(.what)"] | reduce .[] as $k ([]; if index([$k]) then . else . + [$k] end)) as $order
    | "\n| client | what | \($names | join(" | ")) |\n|---|---|\($names | map("---") | join("|"))|",
      ($order[] | split("\u0000") as [$s, $w]
        | [$all[] | map(select(.subject == $s and .what == $w))[0]] as $cells
        | select(any($cells[]; . != null and (.predicted != "does not occur" or .observed != "does not occur")))
        | "| \($s) | \($w) | \($cells | map(cell) | join(" | ")) |")
  ' "${files[@]}"
}

block="$(mktemp)"
trap 'rm -f "$block"' EXIT
for name in $procedures; do table "$name"; done >"$block"
awk -v block="$block" '
  /<!-- matrix -->/ { print; while ((getline line < block) > 0) print line; print ""; skip = 1; next }
  /<!-- end of matrix -->/ { skip = 0 }
  !skip
' docs/track-record.md >"$block.md"
mv "$block.md" docs/track-record.md
