package humanize

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseBytes parses a size: a number of bytes, or a number with the unit kb, mb or gb,
// which are multiples of 1024.
func ParseBytes(s string) (int64, error) {
	t := strings.ToLower(strings.TrimSpace(s))
	unit := 1.0
	for suffix, bytes := range map[string]float64{"kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30} {
		if n, ok := strings.CutSuffix(t, suffix); ok {
			t, unit = strings.TrimSpace(n), bytes
		}
	}
	f, err := strconv.ParseFloat(t, 64)
	if err != nil || !(f >= 0) || f*unit > math.MaxInt64/2 {
		return 0, fmt.Errorf("size %q: want a number and a unit, for example 500mb", s)
	}
	return int64(f * unit), nil
}
