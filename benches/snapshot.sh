#!/usr/bin/env bash
# Times `quakeproof snapshot inspect` and `verify` beside `etcdutl snapshot status` on one file of more than 1 GiB that
# a real etcd made, in turns, from the page cache. Prints the ratios of the medians, and the anonymous memory.
#   benches/snapshot.sh <quakeproof> <directory with etcd, etcdctl, etcdutl>
#   ROUNDS=5  KEYS=1000000  QUAKEPROOF_BENCH_CACHE=~/.cache/quakeproof/bench
set -euo pipefail
exe="$1" bin="$2" rounds="${ROUNDS:-5}"
cache="${QUAKEPROOF_BENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quakeproof/bench}"
file="$("$(dirname "$0")/snapshot-file.sh" "$bin" "$cache" "${KEYS:-1000000}")"
limit=$((200 << 20))

timed() {
  local start
  start="$(date +%s%N)"
  "$@" >/dev/null 2>&1
  awk -v ns="$(($(date +%s%N) - start))" 'BEGIN { printf "%.3f\n", ns / 1e9 }'
}
median() { sort -n | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
# Peak of a line of /proc/<pid>/status while the command runs, in MiB, by looking all the time.
peak() { # line, command…
  local line="$1" pid top=0 now
  shift
  "$@" >/dev/null 2>&1 &
  pid=$!
  while now="$(sed -n "s/^$line:[[:space:]]*\([0-9]*\) kB/\1/p" "/proc/$pid/status" 2>/dev/null)" && [ -n "$now" ]; do
    [ "$now" -le "$top" ] || top="$now"
  done
  wait "$pid"
  echo $((top / 1024))
}

cat "$file" >/dev/null
status=() inspect=() verify=()
for round in $(seq "$rounds"); do
  status+=("$(timed "$bin/etcdutl" snapshot status -w json "$file")")
  inspect+=("$(timed "$exe" snapshot inspect --json "$file")")
  verify+=("$(timed "$exe" snapshot verify --json "$file")")
  echo "round $round: etcdutl status ${status[-1]} s, inspect ${inspect[-1]} s, verify ${verify[-1]} s" >&2
done
s="$(printf '%s\n' "${status[@]}" | median)"
i="$(printf '%s\n' "${inspect[@]}" | median)"
v="$(printf '%s\n' "${verify[@]}" | median)"
cpu="$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
sha=without
! grep -qw sha_ni /proc/cpuinfo || sha=with
echo "snapshot of $(stat -c %s "$file") bytes, ${KEYS:-1000000} keys written, $("$bin/etcd" --version | head -n 1)"
echo "CPU: $cpu, $(nproc) of them, $sha SHA extensions"
failed=0
ratio() { # name, least, own seconds
  awk -v name="$1" -v least="$2" -v own="$3" -v status="$s" -v n="$rounds" 'BEGIN {
    ratio = status / own
    printf "snapshot %s: %.1f times as fast (at least %.0f): %.2f s, etcdutl snapshot status %.2f s, medians of %d\n", name, ratio, least, own, status, n
    exit ratio < least
  }'
}
ratio inspect 5 "$i" || failed=1
# Without the extensions a digest alone takes longer than etcdutl, which makes none.
ratio verify 2 "$v" || [ "$sha" = without ] || failed=1
# The limit counts every private page that could be written to, so it is above what RssAnon can reach.
for command in inspect verify; do
  if (ulimit -d $((limit >> 10)) && "$exe" snapshot "$command" --json "$file" >/dev/null 2>&1); then
    kept="ran within a limit of 200 MiB (RLIMIT_DATA)"
  else
    kept="did NOT run within a limit of 200 MiB (RLIMIT_DATA)" failed=1
  fi
  echo "snapshot $command: anonymous memory $(peak RssAnon "$exe" snapshot "$command" "$file") MiB at most as sampled;" \
    "$kept; resident with the mapped file $(peak VmHWM "$exe" snapshot "$command" "$file") MiB"
done
exit "$failed"
