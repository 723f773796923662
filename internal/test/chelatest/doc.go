// Package chelatest runs the whole application in a test process: the engine on
// a temporary directory, a scripted model server, and a channel in memory. Its
// own tests cover behavior of the whole application: what survives a kill, what
// two terminals see, what happens on a full disk.
package chelatest

import (
	"encoding/json"
	"strings"
)

// Config is a configuration by section: "agents.defaults", "models", ….
type Config map[string]json.RawMessage

// Section returns the JSON at a path; nil: absent. A path below a section is
// looked up in that section.
func (c Config) Section(path string) json.RawMessage {
	if raw, ok := c[path]; ok {
		return raw
	}
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(c.Section(path[:i]), &members) != nil {
		return nil
	}
	return members[path[i+1:]]
}
