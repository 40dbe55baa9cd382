package kept

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/stores"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/vault"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/store/bolt"
)

// fileName is the file of a store, in its folder.
const fileName = "fixpoint.db"

// deletedName is the file with the highest number of a deleted thread: with its id used
// again, the id of an old ticket could be that of a new one.
const deletedName = "deleted"

var (
	// ErrNoStore is returned for a folder without a store.
	ErrNoStore = errors.New("there is no store")
	// ErrInUse is returned while another process has the store open.
	ErrInUse = errors.New("the store is in use by another process, which has a run, a chat or a worker under way; try again once that has ended or waits")
	// ErrThreadID is returned for a thread id that cannot be used.
	ErrThreadID = errors.New("a thread id is made of letters, digits, dots, dashes and underscores, at most 100 of them")
)

// Store is an open store. Close it.
type Store struct {
	// Name is what --store has to say to find it, without what is secret.
	Name string
	// Folder is the absolute path of the folder; "" for a store that processes share.
	Folder string
	// Owner names this process among those that share the store; "" if nobody does.
	Owner string
	// Journal is for the engine that runs a thread.
	Journal stores.Journal
	// Vault has the secrets that runs were given; nil if there is no place for them.
	Vault engine.Vault

	vault  *vault.Vault
	reader *engine.Engine // knows no more than what this package looks at
}

// File returns the path of a store's file.
func File(folder string) string { return filepath.Join(folder, fileName) }

// VaultFolder returns the path of a store's folder for secrets.
func VaultFolder(folder string) string { return filepath.Join(folder, "secrets") }

// LinesFile returns the path of the file with the lines that were typed in chats.
func LinesFile(folder string) string { return filepath.Join(folder, "lines") }

// Files returns the paths of all that is in a store's folder.
func Files(folder string) []string {
	return []string{File(folder), VaultFolder(folder), LinesFile(folder), filepath.Join(folder, deletedName)}
}

// Create opens the store of a folder and makes both if they are not there. A new folder
// says to git that there is nothing in it to be committed.
func Create(folder string) (*Store, error) {
	_, err := os.Stat(folder)
	made := errors.Is(err, os.ErrNotExist)
	if err = os.MkdirAll(folder, 0o777); err == nil && made {
		err = os.WriteFile(filepath.Join(folder, ".gitignore"), []byte("*\n"), 0o666)
	}
	if err != nil {
		return nil, fmt.Errorf("the store cannot be made: %w", err)
	}
	return open(folder)
}

// Open opens the store of a folder.
func Open(folder string) (*Store, error) {
	if err := Check(folder); err != nil {
		return nil, err
	}
	return open(folder)
}

// Check returns ErrNoStore unless the folder has the file of a store.
func Check(folder string) error {
	_, err := os.Stat(File(folder))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w in %s", ErrNoStore, folder)
	}
	return err
}

func open(folder string) (*Store, error) {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	j, err := bolt.Open(File(abs), bolt.Options{})
	if errors.Is(err, bolt.ErrLocked) {
		return nil, fmt.Errorf("%w: %s", ErrInUse, folder)
	}
	if err != nil {
		return nil, err
	}
	return (&Store{Name: abs, Folder: abs, Journal: j}).with(VaultFolder(abs))
}

// Share returns the store of a journal that other processes use too. Secrets are kept in
// a folder that all of them see; "" keeps none.
func Share(name string, j stores.Journal, secrets string) (*Store, error) {
	return (&Store{Name: name, Owner: stores.Owner(), Journal: j}).with(secrets)
}

// with completes a store, or closes its journal.
func (s *Store) with(secrets string) (*Store, error) {
	if secrets != "" {
		s.vault = vault.New(secrets)
		s.Vault = s.vault
	}
	var err error
	s.reader, err = engine.New(engine.Config{Plugins: []engine.Plugin{Plugin(), worker.Plugin()}, Journal: s.Journal})
	if err != nil {
		return nil, errors.Join(err, s.Journal.Close())
	}
	return s, nil
}

// Close releases the store.
func (s *Store) Close() error {
	return errors.Join(s.reader.Close(context.Background()), s.Journal.Close())
}

// page is how many ids are asked for at once.
const page = 256

// ids returns the ids of all threads, sorted, and which of them have an inbox. One that no
// worker came to yet has nothing else.
func (s *Store) ids(ctx context.Context) (all []string, inboxes map[string]bool, err error) {
	inboxes = map[string]bool{}
	for after := ""; ; {
		ids, err := s.Journal.Threads(ctx, after, page)
		if err != nil {
			return nil, nil, err
		}
		if len(ids) == 0 {
			break
		}
		for _, id := range ids {
			if of, is := strings.CutPrefix(id, worker.InboxPrefix); is {
				inboxes[of] = true
				id = of
			}
			all = append(all, id)
		}
		after = ids[len(ids)-1]
	}
	slices.Sort(all)
	return slices.Compact(all), inboxes, nil
}

// idPrefix starts the ids that NewThreadID makes.
const idPrefix = "thread-"

// NewThreadID returns an id that no thread has or had: one more than the highest number
// in use. It is free until the store is closed or the thread is written. In a store that
// processes share it is a random one.
func (s *Store) NewThreadID(ctx context.Context) (string, error) {
	if s.Folder == "" {
		return idPrefix + strings.ToLower(rand.Text()[:12]), nil
	}
	highest, err := s.lastDeleted()
	if err != nil {
		return "", err
	}
	ids, _, err := s.ids(ctx)
	for _, id := range ids {
		highest = max(highest, number(id))
	}
	return idPrefix + strconv.Itoa(highest+1), err
}

// number returns the number in an id that NewThreadID made, or 0.
func number(id string) int {
	text, ok := strings.CutPrefix(id, idPrefix)
	if n, err := strconv.Atoi(text); ok && err == nil {
		return n
	}
	return 0
}

// lastDeleted is the highest number of a deleted thread.
func (s *Store) lastDeleted() (int, error) {
	if s.Folder == "" {
		return 0, nil
	}
	text, err := os.ReadFile(filepath.Join(s.Folder, deletedName))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("the file %s of the store holds no number", deletedName)
	}
	return n, nil
}

// CheckThreadID returns ErrThreadID for an id that would be hard to type or to tell
// from others in the id of a ticket.
func CheckThreadID(id string) error {
	for _, r := range id {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			continue
		}
		return fmt.Errorf("%w, not %q", ErrThreadID, id)
	}
	if id == "" || len(id) > 100 || id[0] == '-' {
		return fmt.Errorf("%w, the first of them no dash, not %q", ErrThreadID, id)
	}
	return nil
}

// NewIDs returns a source of ids for a process that goes on with a thread. They are
// unique in the store: no two processes find a thread at the same revision and
// commit to it.
func (s *Store) NewIDs(ctx context.Context, thread string) (func() string, error) {
	image, err := s.Journal.Load(ctx, thread, 0)
	if err != nil {
		return nil, err
	}
	var n atomic.Int64
	return func() string { return fmt.Sprintf("%s.%d-%d", thread, image.Revision, n.Add(1)) }, nil
}

// runInfix is between the id of a thread and the number of its run.
const runInfix = ".run-"

// RunID is the id of the nth run of a thread.
func RunID(thread string, n int) string { return thread + runInfix + strconv.Itoa(n) }
