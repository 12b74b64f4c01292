#!/usr/bin/env bash
# Runs a command as an unprivileged user who has nothing but what a user would have:
# a home, quakeproof on PATH, the upstream binaries, and ./scenarios in the working directory.
#   ci/rootless.sh quakeproof run scenarios/etcd/restore-without-bump.yaml --out out
# QUAKEPROOF_EXE           the binary to hand over (default: target/debug/quakeproof)
# QUAKEPROOF_BIN_DIR       upstream binaries to hand over; absent: those of the cache
# QUAKEPROOF_ROOTLESS_DIR  where that user lives; kept. Absent: a directory that is removed afterwards.
# Called by someone who is no root, it just runs the command.
set -euo pipefail
repository="$(cd "$(dirname "$0")/.." && pwd)"
exe="$(realpath "${QUAKEPROOF_EXE:-$repository/target/debug/quakeproof}")"
uid=61234

if [ "$(id -u)" != 0 ]; then
  mkdir -p "${QUAKEPROOF_ROOTLESS_DIR:=$(mktemp -d)}/bin"
  ln -sf "$exe" "$QUAKEPROOF_ROOTLESS_DIR/bin/quakeproof"
  export PATH="$QUAKEPROOF_ROOTLESS_DIR/bin:$PATH"
  cd "$repository"
  exec "$@"
fi

if [ -n "${QUAKEPROOF_ROOTLESS_DIR:-}" ]; then
  dir="$QUAKEPROOF_ROOTLESS_DIR"
  mkdir -p "$dir"
else
  dir="$(mktemp -d /var/tmp/quakeproof-rootless.XXXXXX)"
  trap 'rm -rf "$dir"' EXIT
fi

# Root's home and the clone may be closed to others. Hard links cost nothing; across file systems: copies.
share() { # from, to
  cp -rlL "$1" "$2" 2>/dev/null || { rm -rf "$2" && cp -rL "$1" "$2"; }
}
chmod 755 "$dir"
if [ ! -e "$dir/toolchain" ]; then
  mkdir -p "$dir/toolchain"
  if [ -n "${QUAKEPROOF_BIN_DIR:-}" ]; then
    for one in "$QUAKEPROOF_BIN_DIR"/*; do
      share "$one" "$dir/toolchain/$(basename "$one")"
    done
  else
    "$exe" toolchain list --json |
      jq -r '.releases[] | select(.state == "ready") | "\(.product)-\(.version) \(.directory)"' |
      while read -r name from; do share "$from" "$dir/toolchain/$name"; done
  fi
fi
mkdir -p "$dir/bin" "$dir/home" "$dir/tmp"
cp -u "$exe" "$dir/bin/quakeproof"
rm -rf "$dir/scenarios"
[ ! -d "$repository/scenarios" ] || cp -r "$repository/scenarios" "$dir/scenarios"
chmod -R a+rX "$dir/bin" "$dir/scenarios"
chown "$uid:$uid" "$dir" "$dir/home" "$dir/tmp"

cd "$dir"
code=0
setpriv --reuid="$uid" --regid="$uid" --clear-groups --no-new-privs \
  env -i PATH="$dir/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" HOME="$dir/home" TMPDIR="$dir/tmp" USER=quakeproof \
  LANG=C.UTF-8 ${CI:+CI="$CI"} QUAKEPROOF_BIN_DIR="$dir/toolchain" QUAKEPROOF_OFFLINE=1 RUST_BACKTRACE=1 \
  "$@" || code=$?
exit "$code"
