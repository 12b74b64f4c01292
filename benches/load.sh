#!/usr/bin/env bash
# How many GETs of one ConfigMap a load has answered, with its recorder on, beside `oha` with as many connections, in
# turns against the same API server from the same host; then how late requests are sent at a third of that rate.
#   benches/load.sh <quakeproof>
#   ROUNDS=3  CONNECTIONS=32  KUBERNETES=v1.37.2
# oha comes from crates.io, once, into the cache of the benches.
set -euo pipefail
cd "$(dirname "$0")/.."
exe="$1" rounds="${ROUNDS:-3}" connections="${CONNECTIONS:-32}"
cache="${QUAKEPROOF_BENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quakeproof/bench}"
oha="$cache/oha/bin/oha"
[ -x "$oha" ] || cargo install oha --version 1.16.0 --locked --root "$cache/oha" >&2
work="$(mktemp -d)"
export QUAKEPROOF_STATE="$work/state"
trap '"$exe" cluster down bench >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
kubernetes="${KUBERNETES:-$("$exe" toolchain list --json | jq -r '.releases[0].forKubernetes')}"
"$exe" cluster up bench --kubernetes "$kubernetes" --etcd 1 --api-servers 1 --controller-managers 0 --schedulers 0 >&2
pki="$QUAKEPROOF_STATE/clusters/bench/pki"
median() { sort -n | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
field() { jq -s "$1" "$2"; }

own() { # round; prints the requests per second of `flat-out`
  "$exe" run benches/load.yaml --set "connections=$connections" --set "third=$third" --out "$work/run-$1" >&2 || true
  jq -s '[.[] | .op? // empty | select(.exchange.class == "ok")] | (map(.returnNs) | max) as $e | (map(.exchange.sentNs) | min) as $b | length / (($e - $b) / 1e9)' \
    "$work/run-$1/histories/flat-out.jsonl"
}

# An own load is begun after one that warms the server up, as oha's is by its first connections.
third=300/s
own warm-up >/dev/null
namespace_path=/api/v1/namespaces/default/configmaps/load
kubectl="$("$exe" toolchain path "$kubernetes" | head -n 1)/kubectl"
KUBECONFIG="$QUAKEPROOF_STATE/clusters/bench/kubeconfig" "$kubectl" create configmap load -n default --from-literal=value=x >&2
address="$("$exe" cluster list --json | jq -r '.[0].hosts[] | select(.host == "kube-apiserver-1").address')"
theirs() {
  "$exe" cluster exec bench client -- "$oha" --no-tui --output-format json -z 10s -c "$connections" --cacert "$pki/ca.crt" \
    --cert "$pki/admin.crt" --key "$pki/admin.key" "https://$address:6443$namespace_path" | jq '.summary.requestsPerSec'
}
oha_rates=() own_rates=()
for round in $(seq "$rounds"); do
  oha_rates+=("$(theirs)")
  own_rates+=("$(own "$round")")
  echo "round $round: oha ${oha_rates[-1]}/s, quakeproof ${own_rates[-1]}/s" >&2
done
oha_rate="$(printf '%s\n' "${oha_rates[@]}" | median)" own_rate="$(printf '%s\n' "${own_rates[@]}" | median)"
third="$(awk -v r="$own_rate" 'BEGIN { printf "%d/s", r / 3 }')"
own third >/dev/null
late="$(jq -s '[.[] | .op? // empty | select(.exchange.sentNs) | .exchange.sentNs - .dueNs] | sort | .[(length * 99 / 100 | floor)] / 1e6' \
  "$work/run-third/histories/on-schedule.jsonl")"
echo "load, $connections connections, HTTP/1.1, kubernetes $kubernetes, $(nproc) CPUs shared with the API server"
failed=0
awk -v own="$own_rate" -v oha="$oha_rate" -v n="$rounds" 'BEGIN {
  printf "load: %.2f of the rate of oha (at least 1): %d/s against %d/s, medians of %d\n", own / oha, own, oha, n
  exit own < oha
}' || failed=1
awk -v late="$late" -v third="$third" 'BEGIN {
  printf "load: 99 of 100 requests at %s sent within %.1f ms of when they were due (at most 5)\n", third, late
  exit late > 5
}' || failed=1
exit "$failed"
