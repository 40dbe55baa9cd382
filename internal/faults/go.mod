module github.com/ddd26017/fixpoint/internal/faults

go 1.25.0

replace (
	github.com/ddd26017/fixpoint => ../..
	github.com/ddd26017/fixpoint/store/bolt => ../../store/bolt
)

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/ddd26017/fixpoint v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/store/bolt v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
	golang.org/x/sys v0.45.0
)

require (
	github.com/tidwall/btree v1.8.2 // indirect
	go.etcd.io/bbolt v1.5.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.22.0 // indirect
)
