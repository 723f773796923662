// Package chelatest runs the whole application in one test process: the engine
// on a directory of the test's, a scripted model server, and a channel in
// memory. Its own tests hold what only the whole can show: what survives a
// kill, what two terminals see, what a full disk does.
package chelatest

import "encoding/json"

// Config is a configuration by sections: "agents.defaults", "models", ….
type Config map[string]json.RawMessage

// Section returns the JSON of a section; nil: absent.
func (c Config) Section(path string) json.RawMessage { return c[path] }
