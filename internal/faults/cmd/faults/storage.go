package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
)

// storage is what the checks of stores have in common.
type storage struct {
	flags *flag.FlagSet
	seed  uint64
	dir   string
	out   io.Writer
}

func newStorage(name string, stdout io.Writer) *storage {
	s := &storage{flags: flag.NewFlagSet(name, flag.ContinueOnError), out: stdout}
	s.flags.Uint64Var(&s.seed, "seed", 1, "of all random choices")
	s.flags.StringVar(&s.dir, "dir", "", "folder of the files, which are removed in the end; empty: that of the system")
	return s
}

// in calls fn with a folder of its own, and removes it.
func (s *storage) in(fn func(dir string) error) (err error) {
	dir, err := os.MkdirTemp(s.dir, "fixpoint-"+s.flags.Name()+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return fn(dir)
}

// tell prints a line. A reader that went away is no reason to stop the check.
func (s *storage) tell(line any) { _, _ = fmt.Fprintln(s.out, line) }

// chosen returns the stores that a flag asks for: all, or one of them.
func chosen(flag string, stores ...string) ([]string, error) {
	if flag == "all" {
		return stores, nil
	}
	if !slices.Contains(stores, flag) {
		return nil, fmt.Errorf("-store %s; want all or one of %q", flag, stores)
	}
	return []string{flag}, nil
}
