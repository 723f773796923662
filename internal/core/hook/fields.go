package hook

import (
	"reflect"
	"strings"
)

// fields returns the names of the members that an answer may have.
func fields(v any) []string {
	t := reflect.TypeOf(v).Elem()
	var names []string
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	if t == reflect.TypeFor[Verdict]() {
		names = append(names, "requireApproval")
	}
	return names
}
