#!/usr/bin/env bash
# Runs some scenarios on every pinned Kubernetes version (ci/expected.sh says which), as root and as an unprivileged
# user, and each of the others once, on the newest version, by one of the two in turns. With its `fast` profile where a
# scenario declares one. A run passes when it reaches the verdict that its file expects and
# its evidence verifies. One line per run to stdout: `ok|FAILED <name>`.
#   ci/scenarios.sh OUT
# QUAKEPROOF_EXE  the binary (default: target/debug/quakeproof)
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/expected.sh
out="$(mkdir -p "$1" && cd "$1" && pwd)"
exe="$(realpath "${QUAKEPROOF_EXE:-target/debug/quakeproof}")"
export QUAKEPROOF_EXE="$exe" QUAKEPROOF_OFFLINE=1
export PATH="$PATH:/usr/sbin:/sbin"

QUAKEPROOF_ROOTLESS_DIR="$(mktemp -d /var/tmp/quakeproof-rootless.XXXXXX)"
QUAKEPROOF_STATE="$(mktemp -d)"
export QUAKEPROOF_ROOTLESS_DIR QUAKEPROOF_STATE
trap 'rm -rf "$QUAKEPROOF_ROOTLESS_DIR" "$QUAKEPROOF_STATE"' EXIT

as_user() { ci/rootless.sh quakeproof "$@"; }
as_root() { "$exe" "$@"; }

users="as_user"
[ "$(id -u)" != 0 ] || users="as_root as_user"
versions="$(pinned_versions "$exe")"
[ -n "$versions" ] || { echo "no pinned versions" >&2; exit 1; }

failed=0
one() { # user, version, file
  local user="$1" version="$2" file="$3" name dir log code=0 expected arguments
  name="scenario $file $version ${user#as_}"
  dir="$(basename "$file" .yaml)-$version-${user#as_}"
  log="$out/$dir.log"
  expected="$(expected_verdict "$file")"
  arguments=(run "$file" --kubernetes "$version")
  ! has_fast_profile "$file" || arguments+=(--profile fast)
  local results="$out/$dir"
  # The unprivileged user can write in its own directory only.
  [ "$user$(id -u)" != as_user0 ] || results="$QUAKEPROOF_ROOTLESS_DIR/home/$dir"
  rm -rf "$results" "${out:?}/$dir"
  local start=$SECONDS
  "$user" "${arguments[@]}" --out "$results" </dev/null >"$log" 2>&1 || code=$?
  if [ "$code" = "$(expected_code "$expected")" ] && "$user" verify "$results" </dev/null >>"$log" 2>&1 &&
    [ -s "$results/report.html" ] && [ -s "$results/report.json" ]; then
    echo "ok $name: $expected, $((SECONDS - start)) s"
  else
    failed=$((failed + 1))
    echo "FAILED $name: expected ${expected:-no verdict in its file}, got exit code $code"
    tail -n 60 "$log" | sed 's/^/    /' >&2
  fi
  [ "$results" = "$out/$dir" ] || [ ! -d "$results" ] || cp -r "$results" "$out/$dir"
}

newest="$(tail -n 1 <<<"$versions")"
count=0 turn=0
while IFS= read -r file; do
  if is_everywhere "$file"; then
    for version in $versions; do
      for user in $users; do
        one "$user" "$version" "$file"
        count=$((count + 1))
      done
    done
  else
    # shellcheck disable=SC2206 # a list of words
    list=($users)
    one "${list[turn % ${#list[@]}]}" "$newest" "$file"
    turn=$((turn + 1)) count=$((count + 1))
  fi
done < <(find scenarios -name '*.yaml' | sort)
[ "$count" -gt 0 ] || { echo "no scenarios found" >&2; exit 1; }
[ "$failed" = 0 ]
