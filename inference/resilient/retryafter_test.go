package resilient_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference/resilient"
)

var noon = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

func TestParseRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"0":                              0,
		"7":                              7 * time.Second,
		" 120 ":                          2 * time.Minute,
		"0.25":                           250 * time.Millisecond,
		"1.5":                            1500 * time.Millisecond,
		"99999999999999999999":           math.MaxInt64,
		"Mon, 30 Nov 2026 12:00:09 GMT":  9 * time.Second,
		"Mon, 30 Nov 2026 11:59:00 GMT":  0,
		"Monday, 30-Nov-26 12:01:00 GMT": time.Minute,
		"Mon Nov 30 13:00:00 2026":       time.Hour,
	} {
		got, ok := resilient.ParseRetryAfter(value, noon)
		require.True(t, ok, value)
		require.Equal(t, want, got, value)
	}
	for _, value := range []string{"", " ", "soon", "-1", "+1", "1e3", "NaN", "Inf", "0x10", "1_000", ".", "1.2.3", "Mon, 30 Nov 2026 12:00:09 CET", "5, 6"} {
		got, ok := resilient.ParseRetryAfter(value, noon)
		require.False(t, ok, value)
		require.Zero(t, got, value)
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "3", "0.5", "99999999999999999999999", "Mon, 30 Nov 2026 12:00:09 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"} {
		f.Add(seed, int64(0))
	}
	f.Fuzz(func(t *testing.T, value string, offset int64) {
		now := noon.Add(time.Duration(offset))
		wait, ok := resilient.ParseRetryAfter(value, now)
		if wait < 0 || !ok && wait != 0 {
			t.Fatalf("ParseRetryAfter(%q) = %v, %v", value, wait, ok)
		}
		if n, err := strconv.ParseUint(value, 10, 32); err == nil && value[0] != '+' {
			if !ok || wait != time.Duration(n)*time.Second {
				t.Fatalf("ParseRetryAfter(%q) = %v, %v", value, wait, ok)
			}
		}
		if date := now.Add(time.Duration(offset) % time.Hour).UTC().Truncate(time.Second); date.Year() > 0 && date.Year() < 10000 {
			wait, ok := resilient.ParseRetryAfter(date.Format("Mon, 02 Jan 2006 15:04:05 GMT"), now)
			if !ok || wait != max(0, date.Sub(now)) {
				t.Fatalf("%v after %v: %v, %v", date, now, wait, ok)
			}
		}
	})
}
