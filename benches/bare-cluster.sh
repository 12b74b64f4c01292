#!/usr/bin/env bash
# The yardstick of `make bench`: starts 3 etcd members, 2 API servers, a controller manager and a scheduler
# by hand, with TLS everywhere, and prints the seconds from the first process to: every readyz ok, first write
# acknowledged, both controllers leading. Keys and configuration are made before the clock starts.
# Same topology as the embedded cluster: a network namespace per host, joined by one bridge. Runs in network,
# mount and pid namespaces of its own; all processes end with it.
#   benches/bare-cluster.sh KUBERNETES_DIR ETCD_DIR
set -euo pipefail
if [ "${3:-}" != inside ]; then
  user=""
  [ "$(id -u)" = 0 ] || user="--user --map-root-user"
  # shellcheck disable=SC2086 # a list of words
  exec unshare $user --net --mount --pid --fork --kill-child --mount-proc "$0" "$1" "$2" inside
fi
kubernetes="$1" etcd="$2"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"
# Named namespaces need a writable /run.
mount -t tmpfs none /run

openssl_quiet() { openssl "$@" 2>>openssl.log; }
key() { openssl_quiet ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
authority() {
  key "$1"
  openssl_quiet req -x509 -new -key "$1.key" -subj "/CN=$1" -days 30 -out "$1.crt"
}
certificate() { # authority, name, subject
  key "$2"
  openssl_quiet req -new -key "$2.key" -subj "$3" -out "$2.csr"
  openssl_quiet x509 -req -in "$2.csr" -CA "$1.crt" -CAkey "$1.key" -CAcreateserial -days 30 -out "$2.crt" -extfile <(
    echo "extendedKeyUsage=serverAuth,clientAuth"
    echo "subjectAltName=IP:10.217.0.11,IP:10.217.0.12,IP:10.217.0.13,IP:10.217.0.21,IP:10.217.0.22,IP:10.96.0.1"
  )
}
authority ca
authority etcd-ca
certificate etcd-ca etcd "/CN=etcd"
certificate ca apiserver "/CN=kube-apiserver"
certificate ca kube-controller-manager "/CN=system:kube-controller-manager"
certificate ca kube-scheduler "/CN=system:kube-scheduler"
certificate ca admin "/O=system:masters/CN=admin"
key sa
openssl_quiet ec -in sa.key -pubout -out sa.pub
for name in kube-controller-manager kube-scheduler; do
  cat >"$name.conf" <<CONFIG
apiVersion: v1
kind: Config
current-context: main
clusters: [{name: main, cluster: {server: "https://10.217.0.21:6443", certificate-authority: $work/ca.crt}}]
users: [{name: main, user: {client-certificate: $work/$name.crt, client-key: $work/$name.key}}]
contexts: [{name: main, context: {cluster: main, user: main}}]
CONFIG
done

api() { # server, path, curl options…
  local server="$1" path="$2"
  shift 2
  curl -sf --max-time 2 --cacert ca.crt --cert admin.crt --key admin.key "$@" "https://10.217.0.$server:6443$path"
}
until_ok() {
  for _ in $(seq 1200); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.05
  done
  echo "gave up: $*" >&2
  tail -n 5 ./*.log >&2
  return 1
}
leads() { api 21 "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/$1" | grep -q '"holderIdentity": *"[^"]'; }
write() {
  api 21 /api/v1/namespaces/default/configmaps -H 'content-type: application/json' \
    -d '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"first"}}'
}

on() { # host, command…
  local host="$1"
  shift
  exec nsenter --net="/run/netns/h$host" "$@"
}

start="$(date +%s%N)"
ip link set lo up
ip link add br0 type bridge
ip address add 10.217.0.1/24 dev br0
ip link set br0 up
for host in 11 12 13 21 22 31 41; do
  ip netns add "h$host"
  ip link add "v$host" type veth peer name eth0 netns "h$host"
  ip link set "v$host" master br0 up
  ip -n "h$host" -batch - <<BATCH
link set lo up
address add 10.217.0.$host/24 dev eth0
link set eth0 up
BATCH
done
for member in 11 12 13; do
  on "$member" "$etcd/etcd" --name="etcd-$member" --data-dir="data-$member" \
    --listen-client-urls="https://10.217.0.$member:2379" --advertise-client-urls="https://10.217.0.$member:2379" \
    --listen-peer-urls="https://10.217.0.$member:2380" --initial-advertise-peer-urls="https://10.217.0.$member:2380" \
    --initial-cluster=etcd-11=https://10.217.0.11:2380,etcd-12=https://10.217.0.12:2380,etcd-13=https://10.217.0.13:2380 \
    --initial-cluster-state=new --client-cert-auth --trusted-ca-file=etcd-ca.crt --cert-file=etcd.crt --key-file=etcd.key \
    --peer-client-cert-auth --peer-trusted-ca-file=etcd-ca.crt --peer-cert-file=etcd.crt --peer-key-file=etcd.key \
    >"etcd-$member.log" 2>&1 &
done
for server in 21 22; do
  on "$server" "$kubernetes/kube-apiserver" --secure-port=6443 --bind-address="10.217.0.$server" --advertise-address="10.217.0.$server" \
    --etcd-servers=https://10.217.0.11:2379,https://10.217.0.12:2379,https://10.217.0.13:2379 \
    --etcd-cafile=etcd-ca.crt --etcd-certfile=etcd.crt --etcd-keyfile=etcd.key \
    --tls-cert-file=apiserver.crt --tls-private-key-file=apiserver.key --client-ca-file=ca.crt \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local --service-account-key-file=sa.pub \
    --service-account-signing-key-file=sa.key --authorization-mode=Node,RBAC --service-cluster-ip-range=10.96.0.0/16 \
    >"apiserver-$server.log" 2>&1 &
done
controller() { # host, name, arguments…
  local host="$1" name="$2"
  shift 2
  on "$host" "$kubernetes/$name" --kubeconfig="$name.conf" --authentication-kubeconfig="$name.conf" --authorization-kubeconfig="$name.conf" \
    --authentication-skip-lookup=true --client-ca-file=ca.crt --leader-elect=true "$@" >"$name.log" 2>&1 &
}
controller 31 kube-controller-manager --use-service-account-credentials=true \
  --service-account-private-key-file=sa.key --root-ca-file=ca.crt
controller 41 kube-scheduler

until_ok api 21 /readyz
until_ok api 22 /readyz
until_ok write
until_ok leads kube-controller-manager
until_ok leads kube-scheduler
end="$(date +%s%N)"
awk -v ns="$((end - start))" 'BEGIN { printf "%.2f\n", ns / 1e9 }'
# Nothing of this is kept: the pid namespace ends with this shell, and every process with it.
kill -9 $(jobs -p) 2>/dev/null || true
wait 2>/dev/null || true
