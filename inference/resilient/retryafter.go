package resilient

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// dateLayouts are the forms of a date in HTTP, newest first.
var dateLayouts = []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}

// ParseRetryAfter reads the value of a Retry-After header: a number of seconds, which may have a fraction as some
// services write it, or an HTTP date, which is compared with now. It returns how long to wait, never less than 0, and
// whether the value could be read; an empty one cannot. A wait too long for a Duration is the longest there is.
func ParseRetryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	value = strings.TrimSpace(value)
	if value != "" && strings.Trim(value, "0123456789.") == "" {
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil && !math.IsInf(seconds, 1) {
			return 0, false
		}
		if seconds >= float64(math.MaxInt64)/float64(time.Second) {
			return math.MaxInt64, true
		}
		return time.Duration(seconds * float64(time.Second)), true
	}
	for _, layout := range dateLayouts {
		if date, err := time.Parse(layout, value); err == nil {
			return max(0, date.Sub(now)), true
		}
	}
	return 0, false
}
