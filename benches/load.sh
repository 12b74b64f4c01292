#!/usr/bin/env bash
# How many GETs of one ConfigMap a load has answered, with its recorder on, beside `oha` with as many connections and as
# a user of the same rights, in turns against the same API server from the same host; how late requests are sent at a
# third of that rate; what recording costs, and how much memory a million records take.
#   benches/load.sh <quakeproof> <recording, see benches/recording.rs>
#   ROUNDS=5  CONNECTIONS=32  KUBERNETES=v1.37.2  RECORDS=1000000
# The server takes nine tenths of the machine in all of these, and how fast it is changes from minute to minute: what is
# compared is taken in turns, and the ratio is the median of those of the rounds. oha comes from crates.io, once, into
# the cache of the benches.
set -euo pipefail
cd "$(dirname "$0")/.."
exe="$1" recording="$2" rounds="${ROUNDS:-5}" connections="${CONNECTIONS:-32}" records="${RECORDS:-1000000}"
cache="${QUAKEPROOF_BENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quakeproof/bench}"
oha="$cache/oha/bin/oha"
[ -x "$oha" ] || cargo install oha --version 1.16.0 --locked --root "$cache/oha" >&2
work="$(mktemp -d)"
export QUAKEPROOF_STATE="$work/state"
trap '"$exe" cluster down bench >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
kubernetes="${KUBERNETES:-$("$exe" toolchain list --json | jq -r '.releases[0].forKubernetes')}"
"$exe" cluster up bench --kubernetes "$kubernetes" --etcd 1 --api-servers 1 --controller-managers 0 --schedulers 0 >&2
pki="$QUAKEPROOF_STATE/clusters/bench/pki"
# Of two lists of as many lines, the median of the quotients.
ratio() { paste "$1" "$2" | awk '{ print $1 / $2 }' | median; }
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

# Not the administrator, who is exempt from flow control and whom nobody asks for rights.
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$work/load.key" -subj /CN=load -out "$work/load.csr" 2>/dev/null
openssl x509 -req -in "$work/load.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 1 -out "$work/load.crt" \
  -extfile <(echo extendedKeyUsage=clientAuth) 2>/dev/null
kubectl() {
  KUBECONFIG="$QUAKEPROOF_STATE/clusters/bench/kubeconfig" "$("$exe" toolchain path "$kubernetes" | head -n 1)/kubectl" -n default "$@" >&2
}
kubectl create configmap quakeproof-load --from-literal=value=x
kubectl create role load --verb=get --resource=configmaps
kubectl create rolebinding load --role=load --user=load
address="$("$exe" cluster list --json | jq -r '.[0].hosts[] | select(.host == "kube-apiserver-1").address')"
theirs() {
  "$exe" cluster exec bench client -- "$oha" --no-tui --output-format json -z 10s -c "$connections" --cacert "$pki/ca.crt" \
    --cert "$work/load.crt" --key "$work/load.key" "https://$address:6443/api/v1/namespaces/default/configmaps/quakeproof-load" |
    jq 'if .statusCodeDistribution | keys == ["200"] then .summary.requestsPerSec else error("refused") end'
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
"$exe" cluster exec bench client -- "$recording" "$address:6443" "$address" "$pki/ca.crt" "$work/load.crt" "$work/load.key" \
  "$connections" 12000 "$rounds" "$records" >"$work/recording"
of() { awk -v key="$1" '$1 == key { print $2 }' "$work/recording"; }
with="$(of with | median)" without="$(of without | median)" memory="$(of memory)"
to_oha="$(ratio <(printf '%s\n' "${own_rates[@]}") <(printf '%s\n' "${oha_rates[@]}"))"
recorded="$(ratio <(of with) <(of without))"
echo "load, $connections connections, HTTP/1.1, kubernetes $kubernetes, $(nproc) CPUs shared with the API server"
failed=0
awk -v ratio="$to_oha" -v own="$own_rate" -v oha="$oha_rate" -v n="$rounds" 'BEGIN {
  printf "load: %.2f of the rate of oha (at least 1): %d/s against %d/s, %d rounds\n", ratio, own, oha, n
  exit ratio < 1
}' || failed=1
awk -v late="$late" -v third="$third" 'BEGIN {
  printf "load: 99 of 100 requests at %s sent within %.1f ms of when they were due (at most 5)\n", third, late
  exit late > 5
}' || failed=1
awk -v ratio="$recorded" -v with="$with" -v without="$without" -v n="$rounds" 'BEGIN {
  printf "recording: %.2f of the rate without (at least 0.90): %d/s against %d/s, %d rounds\n", ratio, with, without, n
  exit ratio < 0.9
}' || failed=1
awk -v memory="$memory" -v records="$records" 'BEGIN {
  printf "recording: %d MiB in all with %d records (at most 150)\n", memory / 1024, records
  exit memory > 150 * 1024
}' || failed=1
exit "$failed"
