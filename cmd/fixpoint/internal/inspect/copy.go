package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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

func onCopy(folder string, do func(*kept.Store) error) (err error) {
	temp, err := os.MkdirTemp("", "fixpoint-inspect-")
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
	return errors.Join(do(store), store.Close())
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
