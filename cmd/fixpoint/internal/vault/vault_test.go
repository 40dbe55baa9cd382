package vault_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/vault"
	"github.com/ddd26017/fixpoint/engine"
)

var (
	_ engine.Vault     = (*vault.Vault)(nil)
	_ engine.Forgetter = (*vault.Vault)(nil)
)

// A secret is there for whoever has its handle, also in another process, until it is
// forgotten.
func TestKeepRevealForget(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "deep", "vault")
	v := vault.New(folder)
	require.NoDirExists(t, folder, "nothing is made before there is something to keep")
	seen := map[string]string{}
	for i, secret := range []string{"hunter2", "", "hunter2", "two\nlines", "\xff\x00bytes", strings.Repeat("x", 1<<16)} {
		h, err := v.Keep(t.Context(), fmt.Sprint("thread-", i%2), secret)
		require.NoError(t, err)
		require.NotContains(t, seen, h)
		require.NotContains(t, h, "hunter")
		seen[h] = secret
	}
	other := vault.New(folder)
	for h, secret := range seen {
		for range 2 {
			got, err := other.Reveal(t.Context(), h)
			require.NoError(t, err)
			require.Equal(t, secret, got)
		}
	}
	for h := range seen {
		require.NoError(t, v.Forget(t.Context(), h))
		require.NoError(t, v.Forget(t.Context(), h), "it is forgotten already")
		_, err := other.Reveal(t.Context(), h)
		require.ErrorIs(t, err, vault.ErrUnknown)
	}
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// A thread's secrets go with it, and no others.
func TestForgetThread(t *testing.T) {
	v := vault.New(filepath.Join(t.TempDir(), "v"))
	require.NoError(t, v.ForgetThread(t.Context(), "a"), "there are none yet")
	var handles []string
	for _, thread := range []string{"a", "b", "a", "aa"} {
		h, err := v.Keep(t.Context(), thread, thread)
		require.NoError(t, err)
		handles = append(handles, h)
	}
	require.NoError(t, v.ForgetThread(t.Context(), "a"))
	for i, want := range []string{"", "b", "", "aa"} {
		got, err := v.Reveal(t.Context(), handles[i])
		require.Equal(t, want, got)
		require.Equal(t, want != "", err == nil)
	}
}

// Nobody else can read it.
func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" { // which has no such modes
		return
	}
	folder := filepath.Join(t.TempDir(), "v")
	v := vault.New(folder)
	h, err := v.Keep(t.Context(), "t", "hunter2")
	require.NoError(t, err)
	for path, mode := range map[string]os.FileMode{folder: 0o700, filepath.Join(folder, h): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
	require.NoError(t, os.Chmod(folder, 0o755))
	_, err = v.Keep(t.Context(), "t", "hunter3")
	require.ErrorContains(t, err, "chmod 700")
	_, err = v.Reveal(t.Context(), h)
	require.ErrorContains(t, err, "chmod 700")
}

// What it did not give out it does not take, and it says nothing of what that was.
func TestForeignHandles(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "v")
	v := vault.New(folder)
	h, err := v.Keep(t.Context(), "t", "hunter2")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "outside"), []byte("outside"), 0o600))
	for _, bad := range []string{"", ".", "..", "../outside", "hunter2", h + "x", h[1:], h + "/../" + h, strings.ToUpper(h), "secret-", folder, h + "\x00", h + "\n"} {
		_, err := v.Reveal(t.Context(), bad)
		require.ErrorIs(t, err, vault.ErrHandle, "%q", bad)
		require.NotContains(t, err.Error(), "hunter2")
		require.ErrorIs(t, v.Forget(t.Context(), bad), vault.ErrHandle)
	}
	require.FileExists(t, filepath.Join(dir, "outside"))

	// The file of one thread is nothing to the handle of another.
	other, err := v.Keep(t.Context(), "u", "swordfish")
	require.NoError(t, err)
	require.NoError(t, os.Rename(filepath.Join(folder, other), filepath.Join(folder, h)))
	_, err = v.Reveal(t.Context(), h)
	require.ErrorIs(t, err, vault.ErrDamaged)
	_, err = v.Reveal(t.Context(), other)
	require.ErrorIs(t, err, vault.ErrUnknown)
}

// Files that are not as they were written are told, and their text is not.
func TestDamage(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "v")
	v := vault.New(folder)
	h, err := v.Keep(t.Context(), "t", "hunter2")
	require.NoError(t, err)
	file := filepath.Join(folder, h)
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	for n := range len(whole) {
		require.NoError(t, os.WriteFile(file, whole[:n], 0o600))
		_, err := v.Reveal(t.Context(), h)
		require.ErrorIs(t, err, vault.ErrDamaged, "%d bytes", n)
	}
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700))
	_, err = v.Reveal(t.Context(), h)
	require.ErrorIs(t, err, vault.ErrDamaged)
	if runtime.GOOS != "windows" {
		link := filepath.Join(t.TempDir(), "link")
		require.NoError(t, os.Symlink(folder, link))
		_, err = vault.New(link).Keep(t.Context(), "t", "x")
		require.ErrorContains(t, err, "is not a folder")
		require.NoError(t, os.Remove(file))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "real"), whole, 0o600))
		require.NoError(t, os.Symlink("real", file))
		_, err = v.Reveal(t.Context(), h)
		require.ErrorIs(t, err, vault.ErrDamaged)
	}
}

func TestRefusals(t *testing.T) {
	v := vault.New(filepath.Join(t.TempDir(), "v"))
	_, err := v.Keep(t.Context(), "t", strings.Repeat("hunter2", 1<<15))
	require.ErrorContains(t, err, "longer than 65536 bytes")
	require.NotContains(t, err.Error(), "hunter2")
	_, err = v.Keep(t.Context(), strings.Repeat("t", 2000), "x")
	require.ErrorContains(t, err, "the limit is 1024")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = v.Keep(ended, "t", "x")
	require.ErrorIs(t, err, context.Canceled)
	in := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(in, nil, 0o600))
	_, err = vault.New(in).Keep(t.Context(), "t", "x")
	require.ErrorContains(t, err, "is not a folder")
	_, err = vault.New(filepath.Join(in, "v")).Keep(t.Context(), "t", "x")
	require.ErrorContains(t, err, "could not be made")
}

func TestConcurrentUse(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "v")
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			v := vault.New(folder)
			for i := range 20 {
				secret := fmt.Sprint(n, i)
				h, err := v.Keep(t.Context(), "t", secret)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := v.Reveal(t.Context(), h); err != nil || got != secret {
					t.Errorf("%q, %v", got, err)
				}
				if err := v.Forget(t.Context(), h); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
