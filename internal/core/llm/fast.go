package llm

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Fast is when requests ask for the faster tier of a service.
type Fast string

// The values of Fast; "" is inherited, and in the end off.
const (
	FastOff  Fast = "off"
	FastOn   Fast = "on"
	FastAuto Fast = "auto" // in runs for whose answer a person waits
)

// FastModes lists the values of [Fast].
var FastModes = [...]string{string(FastOff), string(FastOn), string(FastAuto)}

// ParseFast returns the value for a decoded JSON value: a bool, one of FastModes, or nil for
// "".
func ParseFast(v any) (Fast, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case bool:
		if v {
			return FastOn, nil
		}
		return FastOff, nil
	case string:
		if v == "" || slices.Contains(FastModes[:], v) {
			return Fast(v), nil
		}
	}
	return "", fmt.Errorf("fast mode %v: want true, false or auto", v)
}

// UnmarshalJSON accepts the values of [ParseFast].
func (f *Fast) UnmarshalJSON(b []byte) error {
	var v any
	err := json.Unmarshal(b, &v)
	if err == nil {
		*f, err = ParseFast(v)
	}
	return err
}

// Wire returns the value as clients know it: true, false or auto; nil: inherited.
func (f Fast) Wire() any {
	switch f {
	case "":
		return nil
	case FastAuto:
		return string(f)
	}
	return f == FastOn
}
