package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/engine"
)

// copyTries is how often a store is copied that changes meanwhile.
const copyTries = 10

// withCopy opens a copy of a store for as long as do runs. The store itself is for one
// process, which may have a run under way, and nobody is to wait for who only looks. A
// copy that a commit ran into is found by its checksums, and made again.
func withCopy(ctx context.Context, folder string, do func(*kept.Store) error) error {
	if err := kept.Check(folder); err != nil {
		return err
	}
	var err error
	for try := range copyTries {
		if err = onCopy(folder, do); !errors.Is(err, engine.ErrCorrupt) {
			return err
		}
		select {
		case <-time.After(time.Duration(try+1) * 20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("%w; \"fixpoint verify --store %s\" says whether it is damaged, or it changes too fast to be read", err, folder)
}

// copyPrefix begins the names of folders with copies.
const copyPrefix = "fixpoint-inspect-"

func onCopy(folder string, do func(*kept.Store) error) (err error) {
	temp, err := os.MkdirTemp("", copyPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := copyFile(kept.File(temp), kept.File(folder)); err != nil {
		return err
	}
	store, err := kept.Open(temp)
	if err != nil {
		return err
	}
	// Where a file that is open can be removed it is, so that nothing is left of it when
	// the process is killed.
	_ = os.Remove(kept.File(temp))
	return errors.Join(do(store), store.Close())
}

// staleAfter is how old a copy is that nobody reads any more: one is made and read within
// seconds.
const staleAfter = time.Hour

// sweep removes the copies of processes that were killed while they made or read them. What
// cannot be removed is somebody else's, or in use.
func sweep() {
	folders, err := filepath.Glob(filepath.Join(os.TempDir(), copyPrefix+"*"))
	if err != nil {
		return
	}
	for _, folder := range folders {
		if info, err := os.Lstat(folder); err == nil && info.IsDir() && time.Since(info.ModTime()) > staleAfter {
			_ = os.Remove(kept.File(folder))
			_ = os.Remove(folder) // if there is nothing else in it
		}
	}
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
