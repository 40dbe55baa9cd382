package vault

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

var (
	// ErrHandle is returned for a text that this vault never gave out as a handle.
	ErrHandle = errors.New("vault: that is no handle of a secret")
	// ErrUnknown is returned for the handle of a secret that is not there (any more).
	ErrUnknown = errors.New("vault: there is no such secret (any more); ask for it again")
	// ErrDamaged is returned for a file that does not hold what was kept under its name.
	ErrDamaged = errors.New("vault: the file of a secret is damaged; ask for the secret again")
)

const (
	maxThread = 1 << 10
	maxSecret = 1 << 16 // bytes
)

// Vault is an engine.Vault of files. It is safe for concurrent use, also by several
// processes.
type Vault struct{ folder string }

// New returns the vault in a folder, which is made with the first secret.
func New(folder string) *Vault { return &Vault{folder: folder} }

// kept is what a file holds. Bytes, since a secret need not be text.
type kept struct {
	Thread string `json:"thread"`
	Secret []byte `json:"secret"`
}

// Keep writes a secret of a thread and returns its handle, which tells nothing of it.
// It is on the disk then. Errors never hold the secret.
func (v *Vault) Keep(ctx context.Context, thread, secret string) (handle string, err error) {
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case len(thread) > maxThread:
		return "", fmt.Errorf("vault: the id of a thread has %d bytes; the limit is %d", len(thread), maxThread)
	case len(secret) > maxSecret:
		return "", fmt.Errorf("vault: the secret is longer than %d bytes", maxSecret)
	}
	text, err := json.Marshal(kept{thread, []byte(secret)})
	if err != nil {
		return "", err
	}
	root, err := v.prepare()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return "", err
	}
	handle = tag(thread) + hex.EncodeToString(id[:])
	if err := write(root, handle, text); err != nil {
		return "", errors.Join(fmt.Errorf("vault: the secret could not be kept: %w", err), remove(root, handle))
	}
	return handle, nil
}

// write makes a file and sees to it that it is on the disk.
func write(root *os.Root, name string, text []byte) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // which cannot sync a folder
		return nil
	}
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Reveal returns the secret of a handle.
func (v *Vault) Reveal(ctx context.Context, handle string) (secret string, err error) {
	if err := check(ctx, handle); err != nil {
		return "", err
	}
	root, err := v.open()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	info, err := root.Lstat(handle)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", ErrUnknown
	case err != nil:
		return "", fmt.Errorf("vault: a secret could not be read: %w", err)
	case !info.Mode().IsRegular(): // a link would reveal something else
		return "", ErrDamaged
	}
	f, err := root.Open(handle)
	if err != nil {
		return "", fmt.Errorf("vault: a secret could not be read: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, 2*maxSecret+6*maxThread))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("vault: a secret could not be read: %w", err)
	}
	var k kept
	// The error of a decoder may quote what it read.
	if json.Unmarshal(text, &k) != nil || tag(k.Thread) != handle[:len(tag(k.Thread))] {
		return "", ErrDamaged
	}
	return string(k.Secret), nil
}

// Forget deletes a secret. One that is not there is none the less forgotten.
func (v *Vault) Forget(ctx context.Context, handle string) error {
	if err := check(ctx, handle); err != nil {
		return err
	}
	return v.forget(func(name string) bool { return name == handle })
}

// ForgetThread deletes all secrets of a thread.
func (v *Vault) ForgetThread(_ context.Context, thread string) error {
	return v.forget(func(name string) bool { return form.MatchString(name) && strings.HasPrefix(name, tag(thread)) })
}

func (v *Vault) forget(which func(name string) bool) (err error) {
	root, err := v.open()
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return fmt.Errorf("vault: the folder could not be read: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if which(e.Name()) {
			errs = append(errs, remove(root, e.Name()))
		}
	}
	return errors.Join(errs...)
}

func remove(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("vault: a secret could not be deleted: %w", err)
	}
	return nil
}

// form is what a handle looks like: something that tells the thread, and chance.
var form = regexp.MustCompile(`^secret-[0-9a-f]{16}-[0-9a-f]{32}$`)

// tag is the part of a handle that is the same for all secrets of a thread. Ids of
// threads can be longer than the name of a file.
func tag(thread string) string {
	sum := sha256.Sum256([]byte(thread))
	return "secret-" + hex.EncodeToString(sum[:8]) + "-"
}

func check(ctx context.Context, handle string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !form.MatchString(handle) {
		return ErrHandle // not quoted: it may be a secret in the wrong place
	}
	return nil
}

// prepare opens the folder and makes it if it is not there.
func (v *Vault) prepare() (*os.Root, error) {
	if err := os.MkdirAll(filepath.Dir(v.folder), 0o777); err != nil {
		return nil, fmt.Errorf("vault: the folder could not be made: %w", err)
	}
	if err := os.Mkdir(v.folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("vault: the folder could not be made: %w", err)
	}
	return v.open()
}

// open opens the folder, for whose looks nobody else may be to blame.
func (v *Vault) open() (*os.Root, error) {
	info, err := os.Lstat(v.folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrUnknown
	case err != nil:
		return nil, fmt.Errorf("vault: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("vault: %s is not a folder", v.folder)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("vault: others may look into %s; take that right from them: chmod 700", v.folder)
	}
	return os.OpenRoot(v.folder)
}
