//go:build tools

// Package tools names the upstream commands that this module pins, so that
// go.sum covers them and a build needs no network beyond the module proxy.
package tools

import (
	_ "go.etcd.io/etcd/etcdctl/v3"
	_ "go.etcd.io/etcd/etcdutl/v3"
	_ "go.etcd.io/etcd/server/v3"
)
