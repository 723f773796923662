package plugindir

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/mcp"
)

// Channel is a chat channel that a program of a plug-in implements.
type Channel struct {
	Name      string     `json:"name"`    // in addresses, and in the configuration at channels.<Name>; empty: the id
	Process   mcp.Server `json:"process"` // the program; see [Plugin.ChannelProgram]
	Abilities []string   `json:"abilities"`
	Hints     []string   `json:"hints"` // for the model
	Text      int        `json:"-"`     // limits.text: maximum length of a message; 0: 4000
	EditMS    int        `json:"-"`     // limits.editMs: between edits of one message; 0: 1000
}

const (
	maxHints     = 10
	maxHint      = 500 // characters
	maxText      = 1 << 20
	maxEditMS    = 3_600_000
	maxAbilities = 50
)

// complete completes the channel of a plug-in with an id, and returns what is wrong with it.
func (c *Channel) complete(id string) error {
	c.Name = cmp.Or(c.Name, id)
	switch {
	case !validChannel(c.Name):
		return fmt.Errorf(
			"name %.100q: want a letter, then lower-case letters, digits, - and _, and no word that addresses use otherwise",
			c.Name)
	case c.Process.Command == "":
		return errors.New("process.command is missing")
	case c.Text < 0 || c.Text > maxText:
		return fmt.Errorf("limits.text is %d: want 1 to %d", c.Text, maxText)
	case c.EditMS < 0 || c.EditMS > maxEditMS:
		return fmt.Errorf("limits.editMs is %d: want at most %d", c.EditMS, maxEditMS)
	case len(c.Hints) > maxHints:
		return fmt.Errorf("more than %d hints", maxHints)
	case len(c.Abilities) > maxAbilities:
		return fmt.Errorf("more than %d abilities", maxAbilities)
	}
	for i, h := range c.Hints {
		c.Hints[i] = plainText(h, maxHint)
	}
	return nil
}

// validChannel reports whether a word can be the name of a channel.
func validChannel(s string) bool {
	switch s {
	case "", chela.LocalChannel, "agent", "default", "defaults", "last", "main", "none", "accounts", "webhook":
		return false
	}
	return len(s) <= maxID && s[0] >= 'a' && s[0] <= 'z' && chela.PeerKindOf(s) == "" &&
		!strings.ContainsFunc(s, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_')
		})
}

// ChannelProgram returns the program of the channel of a plug-in that is used, with
// absolute paths, and with its variables and rights. data is the data folder, which must
// exist when it starts. It reports false if there is none.
func (p *Plugin) ChannelProgram(data string) (mcp.Server, bool, error) {
	if p.Channel == nil || !p.Loadable() {
		return mcp.Server{}, false, nil
	}
	s, err := p.resolve(p.Channel.Process, data)
	if err != nil {
		return s, false, fmt.Errorf("plug-in %s: channel: %w", p.ID, err)
	}
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	maps.Copy(s.Env, p.Environ(data))
	s.Plugin, s.Rights, s.Check = p.ID, p.Rights(data), p.Check
	return s, true, nil
}
