module github.com/ddd26017/fixpoint/contrib/http

go 1.25.0

replace github.com/ddd26017/fixpoint => ../..

require (
	github.com/ddd26017/fixpoint v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/tidwall/btree v1.8.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.22.0 // indirect
)
