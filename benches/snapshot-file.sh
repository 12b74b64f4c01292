#!/usr/bin/env bash
# Makes the file that the snapshot bench reads: 1,000,000 keys of 1.2 kB below /registry/, a tenth of them written
# twice and a hundredth deleted, saved from a real etcd of the version given. Prints the file's path; made once.
#   benches/snapshot-file.sh <directory with etcd, etcdctl> <cache directory> [keys]
set -euo pipefail
bin="$1" cache="$2" keys="${3:-1000000}"
version="$("$bin/etcd" --version | awk '/^etcd Version/ { print $3 }')"
file="$cache/bench-$version-$keys.db"
if [ -s "$file" ]; then
  echo "$file"
  exit
fi
mkdir -p "$cache"
work="$(mktemp -d "$cache/making.XXXXXX")"
etcd=
trap '[ -z "$etcd" ] || kill "$etcd" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
# A port that nobody answers on; etcd says so if somebody takes it first.
free_port() {
  local port
  while port=$((20000 + RANDOM % 10000)) && (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
  echo "$port"
}
client="http://127.0.0.1:$(free_port)" peer="http://127.0.0.1:$(free_port)"
"$bin/etcd" --name bench --data-dir "$work/data" --listen-client-urls "$client" --advertise-client-urls "$client" \
  --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "bench=$peer" \
  --quota-backend-bytes=$((8 << 30)) --max-txn-ops=4000 --max-request-bytes=$((8 << 20)) --unsafe-no-fsync \
  --log-level=error >"$work/etcd.log" 2>&1 &
etcd=$!
ctl() { "$bin/etcdctl" --endpoints "$client" --command-timeout=60s "$@"; }
until ctl endpoint health >/dev/null 2>&1; do
  kill -0 "$etcd" || { cat "$work/etcd.log" >&2; exit 1; }
  sleep 0.2
done
# One transaction: no comparison, the operations, nothing otherwise. A client sends 2 MiB at most.
transactions() { # first, last, word of the operation
  local from="$1" last="$2" what="$3" step=1400 to
  [ "$what" = put ] || step=4000
  while [ "$from" -le "$last" ]; do
    to=$((from + step - 1))
    [ "$to" -le "$last" ] || to="$last"
    awk -v from="$from" -v to="$to" -v what="$what" 'BEGIN {
      srand(from)
      for (body = ""; length(body) < 1200;) body = body sprintf("%08x", int(rand() * 4294967296))
      print ""
      for (i = from; i <= to; i++) {
        key = sprintf("/registry/configmaps/tenant-%03d/object-%07d", i % 200, i)
        if (what == "put") printf "put %s %08x%s\n", key, i, body
        else if (i % 10 == 0) print "del " key
      }
      print ""
      print ""
    }' | ctl txn >/dev/null
    from=$((to + 1))
  done
}
transactions 1 "$keys" put
transactions 1 $((keys / 10)) put
transactions 1 $((keys / 10)) del
ctl snapshot save "$work/snapshot.db" >/dev/null
mv "$work/snapshot.db" "$file"
echo "$file"
