package kept

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ddd26017/fixpoint/engine/worker"
)

// Delete drops a thread with its inbox, effects and secrets. Its id, if NewThreadID made it,
// is not made again.
func (s *Store) Delete(ctx context.Context, id string) error {
	last, err := s.lastDeleted()
	if err != nil {
		return err
	}
	if n := number(id); s.Folder != "" && n > last {
		if err := os.WriteFile(filepath.Join(s.Folder, deletedName), []byte(strconv.Itoa(n)+"\n"), 0o666); err != nil {
			return err
		}
	}
	// The secrets before the thread: nobody would know of them afterwards.
	if s.vault != nil {
		err = s.vault.ForgetThread(ctx, id)
	}
	// The inbox before the thread, which would otherwise be begun anew.
	return errors.Join(err, s.Journal.Delete(ctx, worker.InboxPrefix+id), s.Journal.Delete(ctx, id))
}
