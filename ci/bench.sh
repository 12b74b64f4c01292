#!/usr/bin/env bash
# `make bench`, four comparisons. Start-up of an embedded cluster (3 etcd members, 2 API servers, controller manager,
# scheduler) to every readyz ok, first write, both controllers leading, beside a bare script that starts the same
# binaries in the same topology, taken in turns, so that both see the same machine: the ratio of the medians. The
# snapshot reader beside etcdutl (benches/snapshot.sh). Loads beside oha, and what recording costs (benches/load.sh).
# Hashing of evidence beside `openssl dgst -sha256`.
#   ROUNDS=5  KUBERNETES=v1.37.2
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:/usr/sbin:/sbin"
rounds="${ROUNDS:-5}"
ci/packages.sh bench
cargo build --release --locked --bins --example recording
exe="$PWD/target/release/quakeproof"
kubernetes="${KUBERNETES:-$("$exe" toolchain list --json | jq -r '.releases[0].forKubernetes')}"
"$exe" toolchain provide "$kubernetes" >&2
{ read -r dir_kubernetes && read -r dir_etcd; } < <("$exe" toolchain path "$kubernetes")

QUAKEPROOF_STATE="$(mktemp -d)"
export QUAKEPROOF_STATE
trap '"$exe" cluster down bench >/dev/null 2>&1 || true; rm -rf "$QUAKEPROOF_STATE"' EXIT
embedded() {
  local start
  start="$(date +%s%N)"
  "$exe" cluster up bench --kubernetes "$kubernetes" --etcd 3 --api-servers 2 --controller-managers 1 --schedulers 1 >&2
  awk -v ns="$(($(date +%s%N) - start))" 'BEGIN { printf "%.2f\n", ns / 1e9 }'
  "$exe" cluster down bench >&2
}
median() { sort -n | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

bare=() own=()
for round in $(seq "$rounds"); do
  bare+=("$(benches/bare-cluster.sh "$dir_kubernetes" "$dir_etcd")")
  own+=("$(embedded)")
  echo "round $round: bare script ${bare[-1]} s, quakeproof ${own[-1]} s" >&2
done
bare_median="$(printf '%s\n' "${bare[@]}" | median)"
own_median="$(printf '%s\n' "${own[@]}" | median)"
slow=0
echo "kubernetes $kubernetes, 3 etcd, 2 API servers, $(date -u +%Y-%m-%d), $(uname -sr) $(uname -m), $(nproc) CPUs"
awk -v own="$own_median" -v bare="$bare_median" -v n="$rounds" 'BEGIN {
  ratio = own / bare
  printf "start-up ratio %.2f (at most 1.30): quakeproof %.2f s, bare script %.2f s, medians of %d\n", ratio, own, bare, n
  exit ratio > 1.3
}' || slow=1
benches/snapshot.sh "$exe" "$dir_etcd" || slow=1
benches/load.sh "$exe" "$PWD/target/release/examples/recording" || slow=1
# Large files that everybody who runs this has.
benches/hashing.sh "$dir_kubernetes/kube-apiserver" "$dir_kubernetes/kube-controller-manager" "$dir_etcd/etcd" || slow=1
exit "$slow"
