all:
	cargo build
