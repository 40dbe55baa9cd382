package cost_test

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/cost"
)

func TestAmounts(t *testing.T) {
	for text, want := range map[string]cost.Amount{
		"0": 0, "3": 3 * cost.Unit, "0.15": 150_000_000, "00.1": 100_000_000, "0.000000001": 1,
		"9223372036.854775807": math.MaxInt64,
	} {
		got, err := cost.ParseAmount(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", ".", "1.", ".5", "-1", "+1", "1e3", " 1", "1 ", "0x1", "1_0", "1.0.0", "NaN", "٣",
		"0.0000000001", "9223372036.854775808", "99999999999999999999"} {
		_, err := cost.ParseAmount(text)
		require.ErrorIs(t, err, cost.ErrAmount, "%q", text)
	}
	require.Equal(t, "-1.5", (-cost.Unit - cost.Unit/2).String())

	var a cost.Amount
	require.NoError(t, json.Unmarshal([]byte(`0.1`), &a))
	require.Equal(t, cost.Unit/10, a)
	require.NoError(t, json.Unmarshal([]byte(`"0.2"`), &a))
	require.Equal(t, cost.Unit/5, a)
	for _, text := range []string{`1e2`, `true`, `{}`, `"x"`, `-1`, `[1]`} {
		require.Error(t, json.Unmarshal([]byte(text), &a), text)
	}
}

// What is written is read back, and what is read is written as the same number.
func FuzzParseAmount(f *testing.F) {
	for _, s := range []string{"0", "1.5", "0.000000001", "9223372036.854775807", "1e9", "-1", "007.10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := cost.ParseAmount(text)
		if err != nil {
			require.ErrorIs(t, err, cost.ErrAmount)
			require.Zero(t, a)
			return
		}
		want, ok := new(big.Rat).SetString(text)
		require.True(t, ok, text)
		require.Zero(t, want.Cmp(new(big.Rat).SetFrac64(int64(a), int64(cost.Unit))), text)
		again, err := cost.ParseAmount(a.String())
		require.NoError(t, err)
		require.Equal(t, a, again)
		raw, err := json.Marshal(a)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &again))
		require.Equal(t, a, again)
	})
}

// The price of a usage is the exact one, rounded half up, for any numbers.
func TestPriceIsExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	size := func() int64 { return rnd.Int64() >> rnd.IntN(63) }
	for range 20_000 {
		u := inference.Usage{InputTokens: size(), OutputTokens: size(), CachedTokens: size()}
		p := cost.Price{Input: cost.Amount(size()), Output: cost.Amount(size())}
		cachedAt := p.Input
		if rnd.IntN(2) == 0 {
			cachedAt = cost.Amount(size())
			p.Cached = inference.Some(cachedAt)
		}
		cached := min(u.CachedTokens, u.InputTokens)
		exact := big.NewInt(500_000)
		for _, part := range [][2]int64{{u.InputTokens - cached, int64(p.Input)}, {cached, int64(cachedAt)}, {u.OutputTokens, int64(p.Output)}} {
			exact.Add(exact, new(big.Int).Mul(big.NewInt(part[0]), big.NewInt(part[1])))
		}
		exact.Div(exact, big.NewInt(1_000_000))
		want := cost.Amount(math.MaxInt64)
		if exact.IsInt64() {
			want = cost.Amount(exact.Int64())
		}
		require.Equal(t, want, p.Of(u), "%+v at %+v", u, p)
	}
	require.Zero(t, cost.Price{Input: cost.Unit, Output: cost.Unit}.Of(inference.Usage{InputTokens: -5, OutputTokens: -1, CachedTokens: -7}))
}

// Ten times a tenth is one: nothing drifts.
func TestNoDrift(t *testing.T) {
	var total cost.Total
	p := cost.Price{Input: cost.Unit / 10}
	for range 10 {
		total = total.Add(cost.Total{Amount: p.Of(inference.Usage{InputTokens: 1_000_000}), Calls: 1})
	}
	require.Equal(t, "1", total.Amount.String())
	full := cost.Total{Amount: math.MaxInt64, Calls: math.MaxInt64}
	require.Equal(t, full, full.Add(full), "sums stop instead of wrapping")
}
