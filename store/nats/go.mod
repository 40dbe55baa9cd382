module github.com/ddd26017/fixpoint/store/nats

go 1.25.0

replace github.com/ddd26017/fixpoint => ../..

require (
	github.com/ddd26017/fixpoint v0.0.0-00010101000000-000000000000
	github.com/nats-io/nats.go v1.53.1
	github.com/nats-io/nuid v1.0.1
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/klauspost/compress v1.18.5 // indirect
	github.com/nats-io/nkeys v0.4.15 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.49.0 // indirect
	golang.org/x/sys v0.42.0 // indirect
)
