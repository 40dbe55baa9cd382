package state_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/state"
)

func TestProfileValues(t *testing.T) {
	ctx, ps := t.Context(), enginetest.NewProfiles()
	k := state.NewProfileKey("theme", state.Options[[]string]{Initial: func() []string { return []string{"light"} }})
	require.Equal(t, "theme", k.Name())
	v, err := k.Get(ctx, ps, "ann")
	require.NoError(t, err)
	require.Equal(t, []string{"light"}, v)
	v, err = k.Update(ctx, ps, "ann", func(v []string) []string { return append(v, "dark") })
	require.NoError(t, err)
	v[0] = "spoiled"
	v, err = k.Get(ctx, ps, "ann")
	require.NoError(t, err)
	require.Equal(t, []string{"light", "dark"}, v)
	v, err = k.Get(ctx, ps, "bob")
	require.NoError(t, err)
	require.Equal(t, []string{"light"}, v)
	var _ state.AnyProfileKey = k
}

func TestProfileUpdatesAreNotLost(t *testing.T) {
	ctx, ps := t.Context(), enginetest.NewProfiles()
	k := state.NewProfileKey("n", state.Options[int]{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				for {
					_, err := k.Update(ctx, ps, "ann", func(v int) int { return v + 1 })
					if err == nil {
						break
					}
					if !errors.Is(err, state.ErrStale) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	v, err := k.Get(ctx, ps, "ann")
	require.NoError(t, err)
	require.Equal(t, 40, v)
}

// brokenProfiles wraps a store with faults.
type brokenProfiles struct {
	state.ProfileStore
	load, save error
}

func (b brokenProfiles) LoadProfile(ctx context.Context, owner, name string) ([]byte, uint64, error) {
	if b.load != nil {
		return nil, 0, b.load
	}
	return b.ProfileStore.LoadProfile(ctx, owner, name)
}

func (b brokenProfiles) SaveProfile(ctx context.Context, owner, name string, raw []byte, base uint64) (uint64, error) {
	if b.save != nil {
		return 0, b.save
	}
	return b.ProfileStore.SaveProfile(ctx, owner, name, raw, base)
}

func TestProfileFaults(t *testing.T) {
	ctx, ps := t.Context(), enginetest.NewProfiles()
	refused, down := errors.New("refused"), errors.New("down")
	k := state.NewProfileKey("n", state.Options[[]int]{Check: func(old, next []int) error {
		if len(next) < len(old) {
			return refused
		}
		return nil
	}})
	add := func(v []int) []int { return append(v, 1) }
	_, err := k.Update(ctx, ps, "ann", add)
	require.NoError(t, err)

	_, err = k.Update(ctx, ps, "ann", func(v []int) []int { return v[:0] })
	require.ErrorIs(t, err, refused)
	_, err = k.Update(ctx, ps, "ann", func([]int) []int { panic(down) })
	var ae *state.ApplyError
	require.ErrorAs(t, err, &ae)
	require.ErrorIs(t, err, down)
	_, err = k.Get(ctx, brokenProfiles{ps, down, nil}, "ann")
	require.ErrorIs(t, err, down)
	_, err = k.Update(ctx, brokenProfiles{ps, nil, down}, "ann", add)
	require.ErrorIs(t, err, down)
	_, err = k.Update(ctx, brokenProfiles{ps, nil, state.ErrStale}, "ann", add)
	require.ErrorIs(t, err, state.ErrStale)
	_, err = state.ProfileKey[int]{}.Get(ctx, ps, "ann")
	require.ErrorIs(t, err, state.ErrInvalidKey)
	gone, cancel := context.WithCancelCause(ctx)
	cancel(down)
	_, err = k.Update(gone, ps, "ann", add)
	require.ErrorIs(t, err, down)
	v, err := k.Get(ctx, ps, "ann")
	require.NoError(t, err)
	require.Equal(t, []int{1}, v)
	unencodable := state.NewProfileKey("f", state.Options[func()]{})
	_, err = unencodable.Update(ctx, ps, "ann", func(func()) func() { return func() {} })
	require.ErrorContains(t, err, "cannot encode")
}

// Fault B35.
func TestProfileVersions(t *testing.T) {
	ctx, ps := t.Context(), enginetest.NewProfiles()
	v0 := state.NewProfileKey("n", state.Options[string]{})
	_, err := v0.Update(ctx, ps, "ann", func(string) string { return "abc" })
	require.NoError(t, err)
	v1 := state.NewProfileKey("n", state.Options[int]{Version: 1, Migrate: func(_ int, raw []byte) (int, error) { return len(raw) - 2, nil }})
	n, err := v1.Update(ctx, ps, "ann", func(n int) int { return n + 1 })
	require.NoError(t, err)
	require.Equal(t, 4, n)
	_, err = v0.Get(ctx, ps, "ann")
	require.ErrorIs(t, err, state.ErrNewerVersion)
	n, err = v1.Get(ctx, ps, "ann")
	require.NoError(t, err)
	require.Equal(t, 4, n)
	_, err = ps.SaveProfile(ctx, "bob", "n", []byte("garbage"), 0)
	require.NoError(t, err)
	_, err = v1.Get(ctx, ps, "bob")
	var de *state.DecodeError
	require.ErrorAs(t, err, &de)
	_, err = ps.SaveProfile(ctx, "bob", "n", nil, 0)
	require.ErrorIs(t, err, state.ErrStale)
}
