// Package cli is the command line: it reads arguments, builds engines and maps
// outcomes to exit codes. Run is the whole command, free of global state, so that
// tests call it like any function.
package cli
