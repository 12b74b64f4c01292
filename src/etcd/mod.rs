//! What the harness knows of etcd: its client, revisions, restore.
