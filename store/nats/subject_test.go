package nats

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
)

// Any text becomes one token of a subject, and comes back; nothing else is read.
func FuzzToken(f *testing.F) {
	for _, text := range []string{"", "a", "a.b", "*", ">", "a b", "=", "=2E", "\x00", "ü", "\xff", "=3D", "==", "=2e"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		one := token(text)
		require.NotEmpty(t, one)
		require.Empty(t, strings.Trim(one, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_="))
		back, ok := parseToken(one)
		require.True(t, ok)
		require.Equal(t, text, back)
		if read, ok := parseToken(text); ok {
			require.Equal(t, text, token(read), "one spelling only")
		}
	})
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	j := &Journal{prefix: "fix.point"}
	ref := store.EffectRef{Thread: "a.b c", Revision: 1<<64 - 1, Index: 1<<32 - 1}
	require.Equal(t, "fix.point.e.a=2Eb=20c.18446744073709551615.4294967295.s", j.effectSubject(ref))
	kind, thread, rest, ok := j.parseSubject(j.effectSubject(ref))
	require.True(t, ok)
	require.Equal(t, kindEffect, kind)
	back, ok := parseEffect(thread, rest)
	require.True(t, ok)
	require.Equal(t, ref, back)
	for _, subject := range []string{"", "fix.point", "fix.point.j", "other.j.a", "fix.point.j.a b", "fix.point.j."} {
		_, _, _, ok := j.parseSubject(subject)
		require.False(t, ok, subject)
	}
	for _, rest := range [][]string{nil, {"d"}, {"1", "2"}, {"1", "2", "0"}, {"x", "2", "s"}, {"1", "4294967296", "s"}, {"1", "2", "s", "s"}} {
		_, ok := parseEffect("t", rest)
		require.False(t, ok, rest)
	}
	require.NoError(t, checkName("thread id", strings.Repeat("x", MaxName)))
	require.ErrorIs(t, checkName("thread id", strings.Repeat(".", MaxName/3+1)), store.ErrTooLarge)
}
