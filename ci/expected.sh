# Sourced: what a drill file says about its own outcome, and on which versions it is run.

# The verdict in `metadata.expectedVerdict`: pass or fail.
expected_verdict() {
  sed -n 's/^  expectedVerdict: *\(pass\|fail\) *\(#.*\)\{0,1\}$/\1/p' "$1"
}

# Exit code of `quakeproof run` that goes with a verdict.
expected_code() {
  case "$1" in
    pass) echo 0 ;;
    fail) echo 1 ;;
    *) echo "no expectedVerdict" ;;
  esac
}

# Whether the drill declares the profile `fast`.
has_fast_profile() {
  sed -n '/^  profiles:/,/^  [a-z]/p' "$1" | grep -q '^    fast:'
}

# Whether a scenario is run on every pinned version; the others are run on the newest.
is_everywhere() {
  case "$1" in
    scenarios/etcd/restore-without-bump.yaml | scenarios/etcd/restore-bump-and-mark.yaml | \
      scenarios/apf/zero-seat-reject.yaml | scenarios/apf/seed-450.yaml) return 0 ;;
    *) return 1 ;;
  esac
}

# The same for `make soak`: what flow control does is a matter of the version.
is_soaked_everywhere() {
  case "$1" in
    scenarios/apf/*) return 0 ;;
    *) is_everywhere "$1" ;;
  esac
}

# Every pinned Kubernetes version, ascending, as the binary given knows them.
pinned_versions() {
  "$1" toolchain list --json 2>/dev/null | jq -r '[.releases[].forKubernetes] | unique | .[]' | sort -V
}
