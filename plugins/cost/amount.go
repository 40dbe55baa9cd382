package cost

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Amount is money: a number of nano-units, billionths of the currency's unit. It is
// never negative here. In JSON it is a decimal in a string, such as "0.0125"; a JSON
// number without an exponent is read too.
type Amount int64

// Unit is one unit of the currency.
const Unit Amount = 1_000_000_000

const decimals = 9

// ErrAmount is the kind of every text that is no amount.
var ErrAmount = errors.New("cost: not an amount")

// ParseAmount reads a decimal such as 3, 0.15 or 0.000000001: digits, and behind a
// point at most nine more. It accepts no sign, exponent or white space.
func ParseAmount(text string) (Amount, error) {
	whole, part, point := strings.Cut(text, ".")
	if !digits(whole) || point && !digits(part) {
		return 0, fmt.Errorf("%w: %q; write a decimal such as 0.15, without sign or exponent", ErrAmount, text)
	}
	if len(part) > decimals {
		return 0, fmt.Errorf("%w: %q has more than %d digits behind the point", ErrAmount, text, decimals)
	}
	n, err := strconv.ParseInt(whole+part+strings.Repeat("0", decimals-len(part)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is more than %s", ErrAmount, text, Amount(math.MaxInt64))
	}
	return Amount(n), nil
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// String returns the amount as a decimal without needless zeros.
func (a Amount) String() string {
	sign := ""
	n := uint64(a)
	if a < 0 {
		sign, n = "-", -n
	}
	part := strings.TrimRight(fmt.Sprintf("%09d", n%uint64(Unit)), "0")
	if part != "" {
		part = "." + part
	}
	return sign + strconv.FormatUint(n/uint64(Unit), 10) + part
}

// MarshalJSON writes the amount as a decimal in a string.
func (a Amount) MarshalJSON() ([]byte, error) { return json.Marshal(a.String()) }

// UnmarshalJSON reads a decimal in a string, or a JSON number as it is written.
func (a *Amount) UnmarshalJSON(text []byte) (err error) {
	s := string(text)
	if strings.HasPrefix(s, `"`) {
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
	}
	*a, err = ParseAmount(s)
	return err
}

// plus adds, up to the largest amount.
func (a Amount) plus(b Amount) Amount {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// charge is what tokens cost, each number of them with its price for a million.
type charge struct {
	tokens int64
	price  Amount
}

// sum returns what the charges come to: exact, rounded once, and at most the largest
// amount.
func sum(charges ...charge) Amount {
	const million = 1_000_000
	lo, hi := uint64(million/2), uint64(0) // so that cutting rounds half up
	for _, c := range charges {
		h, l := bits.Mul64(uint64(max(c.tokens, 0)), uint64(max(c.price, 0)))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi, _ = bits.Add64(hi, h, carry) // a few products of 63 bits each fit into 128
	}
	if hi >= million {
		return math.MaxInt64
	}
	n, _ := bits.Div64(hi, lo, million)
	return Amount(min(n, math.MaxInt64))
}
