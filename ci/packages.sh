#!/usr/bin/env bash
# Installs the system packages whose commands are missing: as root, or with sudo.
# Where neither works it prints the line to run, and fails.
#   ci/packages.sh build     what building quakeproof needs
#   ci/packages.sh cluster   … and what embedded clusters need
#   ci/packages.sh test      … and what the test scripts need
#   ci/packages.sh bench     … and what the bench compares with
#   ci/packages.sh make      make alone
set -euo pipefail

case "${1:-test}" in
  make) commands="make" ;;
  build) commands="cc protoc" ;;
  cluster) commands="cc protoc ip tc nft" ;;
  bench) commands="cc protoc ip tc nft unshare jq curl openssl" ;;
  test) commands="cc protoc ip tc nft setpriv unshare jq" ;;
  *) echo "ci/packages.sh: no such set: $1" >&2; exit 3 ;;
esac

# An unprivileged user's PATH often lacks the directories of system tools.
PATH="$PATH:/usr/sbin:/sbin"
# protoc is of no use without the well-known types, which some distributions package apart. PROTOC and PROTOC_INCLUDE
# say where they are, to the build as well.
present() { # command
  [ "$1" = protoc ] || { command -v "$1" >/dev/null; return; }
  local include=${PROTOC_INCLUDE:+--proto_path=$PROTOC_INCLUDE}
  # shellcheck disable=SC2086 # one word or none
  "${PROTOC:-protoc}" $include --descriptor_set_out=/dev/null google/protobuf/descriptor.proto 2>/dev/null
}
look() {
  missing=""
  for command in $commands; do
    present "$command" || missing="$missing $command"
  done
}
look
[ -n "$missing" ] || exit 0

package() { # package manager, command
  case "$1:$2" in
    apt-get:cc) echo gcc libc6-dev ;;
    apk:cc) echo gcc musl-dev ;;
    *:cc) echo gcc ;;
    apk:protoc) echo protoc protobuf-dev ;;
    dnf:protoc) echo protobuf-compiler protobuf-devel ;;
    *:protoc) echo protobuf-compiler libprotobuf-dev ;;
    dnf:tc) echo iproute-tc ;;
    dnf:ip) echo iproute ;;
    *:ip | *:tc) echo iproute2 ;;
    *:nft) echo nftables ;;
    apk:setpriv) echo setpriv ;;
    *:setpriv | *:unshare) echo util-linux ;;
    *) echo "$2" ;;
  esac
}

for manager in apt-get dnf apk ""; do
  { [ -z "$manager" ] || command -v "$manager" >/dev/null; } && break
done
if [ -z "$manager" ]; then
  echo "missing:$missing. Install them with your package manager (none that is known here was found)." >&2
  exit 5
fi
packages="$(for command in $missing; do package "$manager" "$command"; done | tr ' ' '\n' | sort -u | tr '\n' ' ')"
case "$manager" in
  apt-get) line="apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages" ;;
  dnf) line="dnf install -y $packages" ;;
  apk) line="apk add $packages" ;;
esac

if [ "$(id -u)" = 0 ]; then
  sh -c "$line" >&2
elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
  echo "missing:$missing; installing with sudo: $line" >&2
  sudo sh -c "$line" >&2
else
  echo "missing:$missing. Run this as root, then try again:" >&2
  echo "  $line" >&2
  exit 5
fi

look
case "$missing" in
  "") ;;
  *protoc*)
    echo "$(command -v "${PROTOC:-protoc}" || echo protoc) lacks google/protobuf/descriptor.proto: remove it, so that the" \
      "one just installed is found, or set PROTOC and PROTOC_INCLUDE." >&2
    exit 5
    ;;
  *) echo "still missing:$missing" >&2; exit 5 ;;
esac
