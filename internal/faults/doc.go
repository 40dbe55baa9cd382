// Package faults holds the reliability checks of the project: what its stores and its
// engine keep when processes are killed, the power goes, disks are full or lie, and
// calls are lost on their way. It is a module of its own, never published, so that
// nobody else gets its dependencies.
//
// Each folder is one check. Its tests are a version of a few seconds, which needs no
// rights and no tools; the long version is a command that prints one line per figure
// and exits with 1 when a bound is not met:
//
//	go run ./internal/faults/cmd/faults
//
// docs/reliability.md has the figures.
package faults
