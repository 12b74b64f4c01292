#!/usr/bin/env bash
# The speed at which evidence is hashed beside that of `openssl dgst -sha256`, on the same files in turns, read
# once before so that both find them in memory. Prints the ratio of the medians, and the CPU: with SHA
# extensions both are several times faster. Fails when quakeproof has less than 80 % of openssl's speed.
#   benches/hashing.sh FILE...     ROUNDS=7
set -euo pipefail
rounds="${ROUNDS:-7}"
[ $# -gt 0 ] || { echo "benches/hashing.sh: no files" >&2; exit 3; }
files=("$@")
root="$(cd "$(dirname "$0")/.." && pwd)"
(cd "$root" && cargo build --release --locked --example hashing >&2)
own="$root/target/release/examples/hashing"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
openssl dgst -sha256 -r "${files[@]}" | awk '{ print $1 }' >"$work/openssl"
"$own" "${files[@]}" | awk '{ print $1 }' >"$work/own"
cmp -s "$work/openssl" "$work/own" || { echo "benches/hashing.sh: the digests differ" >&2; exit 1; }

# Processor time and not time on the wall: what else the machine does is none of the comparison's business.
seconds() { # command…
  local TIMEFORMAT='%U %S'
  { time "$@" >/dev/null; } 2>&1 | awk '{ printf "%.3f\n", $1 + $2 }'
}
median() { sort -n | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
for _ in $(seq "$rounds"); do
  seconds openssl dgst -sha256 "${files[@]}" >>"$work/openssl.s"
  seconds "$own" "${files[@]}" >>"$work/own.s"
done
extensions=no
grep -qwE 'sha_ni|sha2' /proc/cpuinfo && extensions=yes
bytes="$(cat "${files[@]}" | wc -c)"
awk -v o="$(median <"$work/openssl.s")" -v q="$(median <"$work/own.s")" -v b="$bytes" -v n="$rounds" \
  -v cpu="$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" -v x="$extensions" \
  -v v="$(openssl version | cut -d' ' -f1,2)" 'BEGIN {
  ratio = o / q
  printf "hashing speed ratio %.2f (at least 0.80): quakeproof %.0f MB/s, %s %.0f MB/s, %.0f MB, medians of %d of processor time, %s, SHA extensions: %s\n",
    ratio, b / q / 1e6, v, b / o / 1e6, b / 1e6, n, cpu, x
  exit ratio < 0.8
}'
