module github.com/ddd26017/fixpoint/contrib/model/openai

go 1.25.0

replace (
	github.com/ddd26017/fixpoint => ../../..
	github.com/ddd26017/fixpoint/contrib/model/modeltest => ../modeltest
)

require (
	github.com/ddd26017/fixpoint v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/contrib/model/modeltest v0.0.0-00010101000000-000000000000
	github.com/openai/openai-go/v3 v3.74.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/coder/websocket v1.8.15 // indirect
	github.com/tidwall/btree v1.8.2 // indirect
	github.com/tidwall/gjson v1.19.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.22.0 // indirect
)
