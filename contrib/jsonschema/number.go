package jsonschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Numbers are calculated with as they are written, exactly. Beyond these bounds one of
// them keeps a check busy, and the library takes some for others or panics.
const (
	maxExponent = 400 // no float64 goes that far
	maxDigits   = 4000
)

// beyond returns the first number in a value, in the order of names, that is too large or
// too small to be calculated with.
func beyond(v any) *Fault {
	switch v := v.(type) {
	case json.Number:
		if reason := unwieldy(v.String()); reason != "" {
			return &Fault{Reason: reason}
		}
	case []any:
		for i, item := range v {
			if f := beyond(item); f != nil {
				return &Fault{pointer([]string{strconv.Itoa(i)}) + f.Pointer, f.Reason}
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if f := beyond(v[name]); f != nil {
				return &Fault{pointer([]string{name}) + f.Pointer, f.Reason}
			}
		}
	}
	return nil
}

// unwieldy says what is wrong with a number, if it cannot be calculated with.
func unwieldy(number string) string {
	digits, exponent := number, ""
	if at := strings.IndexAny(number, "eE"); at >= 0 {
		digits, exponent = number[:at], number[at+1:]
	}
	if len(strings.Trim(digits, "-")) > maxDigits {
		return fmt.Sprintf("has more than %d digits", maxDigits)
	}
	if exponent != "" {
		if e, err := strconv.Atoi(exponent); err != nil || max(e, -e) > maxExponent {
			return fmt.Sprintf("has an exponent beyond %d", maxExponent)
		}
	}
	return ""
}
