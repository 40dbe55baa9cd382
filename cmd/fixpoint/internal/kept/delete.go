package kept

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
)

// Delete drops a thread with its effects and secrets. Its id, if NewThreadID made it, is
// not made again.
func (s *Store) Delete(ctx context.Context, id string) error {
	last, err := s.lastDeleted()
	if err != nil {
		return err
	}
	if n := number(id); n > last {
		if err := os.WriteFile(filepath.Join(s.Folder, deletedName), []byte(strconv.Itoa(n)+"\n"), 0o666); err != nil {
			return err
		}
	}
	// The secrets before the thread: nobody would know of them afterwards.
	return errors.Join(s.Vault.ForgetThread(ctx, id), s.Journal.Delete(ctx, id))
}
