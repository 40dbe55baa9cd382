module github.com/ddd26017/fixpoint/cmd/fixpoint

go 1.25.0

replace github.com/ddd26017/fixpoint => ../..

require github.com/ddd26017/fixpoint v0.0.0-00010101000000-000000000000
