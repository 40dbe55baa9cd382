module github.com/ddd26017/fixpoint/contrib/model/modeltest

go 1.25.0

replace github.com/ddd26017/fixpoint => ../../..

require (
	github.com/ddd26017/fixpoint v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
