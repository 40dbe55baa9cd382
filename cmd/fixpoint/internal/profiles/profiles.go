package profiles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ddd26017/fixpoint/state"
)

// Store is a state.ProfileStore of files. Each version of a value is a file of its own,
// which comes into being with all of its content or not at all, so that several
// processes can write. It is safe for concurrent use.
type Store struct{ folder string }

// New returns the store in a folder, which is made with the first value.
func New(folder string) *Store { return &Store{folder: folder} }

// prefix is what the names of all files with a value begin with.
func prefix(owner, name string) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(len(owner)) + owner + name))
	return hex.EncodeToString(sum[:16]) + "."
}

// versions returns the versions of a value that are there, oldest first.
func (s *Store) versions(owner, name string) ([]uint64, error) {
	entries, err := os.ReadDir(s.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []uint64
	for _, e := range entries {
		if text, ours := strings.CutPrefix(e.Name(), prefix(owner, name)); ours {
			if v, err := strconv.ParseUint(text, 10, 64); err == nil {
				all = append(all, v)
			}
		}
	}
	slices.Sort(all)
	return all, err
}

func (s *Store) file(owner, name string, version uint64) string {
	return filepath.Join(s.folder, prefix(owner, name)+strconv.FormatUint(version, 10))
}

// LoadProfile returns the newest version.
func (s *Store) LoadProfile(ctx context.Context, owner, name string) ([]byte, uint64, error) {
	for {
		all, err := s.versions(owner, name)
		if err != nil || len(all) == 0 {
			return nil, 0, err
		}
		newest := all[len(all)-1]
		raw, err := os.ReadFile(s.file(owner, name, newest))
		if errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
			continue // there is a newer one by now
		}
		return raw, newest, err
	}
}

// SaveProfile makes the next version, unless somebody else did. Older ones go.
func (s *Store) SaveProfile(_ context.Context, owner, name string, raw []byte, base uint64) (uint64, error) {
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return 0, err
	}
	draft, err := os.CreateTemp(s.folder, ".draft-*")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(draft.Name()) }() // what is left of it is in no one's way
	_, err = draft.Write(raw)
	if err := errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return 0, err
	}
	stale := fmt.Errorf("%w: version %d of %s is not the newest one", state.ErrStale, base, name)
	next := base + 1
	if err := os.Link(draft.Name(), s.file(owner, name, next)); errors.Is(err, fs.ErrExist) {
		return 0, stale
	} else if err != nil {
		return 0, err
	}
	// The file was perhaps free only since a newer version had it removed already.
	all, err := s.versions(owner, name)
	if err != nil {
		return 0, err
	}
	if all[len(all)-1] > next {
		return 0, errors.Join(stale, remove(s.file(owner, name, next)))
	}
	for _, old := range all {
		if old < next {
			err = errors.Join(err, remove(s.file(owner, name, old)))
		}
	}
	return next, err
}

// remove removes a file that somebody else may have removed.
func remove(file string) error {
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
