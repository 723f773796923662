package settings

import (
	"encoding/json"
	"os"
)

// Environ returns a function that looks up environment variables: those of the
// process first, then those of the configuration, which are env.vars and the
// strings directly in env.
func Environ(s Sections) func(string) string {
	vars := map[string]string{}
	for _, path := range [...]string{"env", "env.vars"} {
		var section map[string]any
		_ = json.Unmarshal(s.Section(path), &section) // a section that is no object was reported when the file was loaded
		for name, v := range section {
			if text, ok := v.(string); ok {
				vars[name] = text
			}
		}
	}
	return func(name string) string {
		if v, ok := os.LookupEnv(name); ok {
			return v
		}
		return vars[name]
	}
}
