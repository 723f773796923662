package understanding

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
)

// Config is tools.media.
type Config struct {
	Concurrency int         `json:"concurrency"` // attachments that are read at once; 0: 2
	Models      []Model     `json:"models"`      // tried for all kinds that they can read
	Image       Ability     `json:"image"`
	Audio       Ability     `json:"audio"`
	Video       Ability     `json:"video"`
	Document    Ability     `json:"document"`
	Attachments Attachments `json:"attachments"`
	Scope       *Scope      `json:"scope"`
}

// Ability is how attachments of a kind are read.
type Ability struct {
	Enabled     *bool        `json:"enabled"`        // nil: true
	Preferred   string       `json:"preferredModel"` // provider/model that is tried first
	MaxBytes    int          `json:"maxBytes"`
	MaxChars    int          `json:"maxChars"`
	Timeout     int          `json:"timeoutSeconds"`
	Prompt      string       `json:"prompt"`
	Language    string       `json:"language"`
	Models      []Model      `json:"models"` // tried before Config.Models
	Attachments *Attachments `json:"attachments"`
	Scope       *Scope       `json:"scope"`
	Echo        bool         `json:"echoTranscript"` // of Audio: send the transcript to the chat
	EchoFormat  string       `json:"echoFormat"`     // with {transcript}
}

// Model is a service or a program that reads attachments.
type Model struct {
	Type         string            `json:"type"` // provider or cli; "": provider
	Provider     string            `json:"provider"`
	Model        string            `json:"model"`
	Capabilities []string          `json:"capabilities"` // image, audio, video; none: those of the list that it is in
	Command      string            `json:"command"`      // of cli
	Args         []string          `json:"args"`         // of cli, with templates
	BaseURL      string            `json:"baseUrl"`      // "": that of the provider
	Headers      map[string]string `json:"headers"`
	Prompt       string            `json:"prompt"`
	Language     string            `json:"language"`
	MaxBytes     int               `json:"maxBytes"`
	MaxChars     int               `json:"maxChars"`
	Timeout      int               `json:"timeoutSeconds"`
}

// Attachments is which attachments of a message are read.
type Attachments struct {
	Mode   string `json:"mode"`           // first or all; "": first, and all documents
	Max    int    `json:"maxAttachments"` // of mode all; 0: 10
	Prefer string `json:"prefer"`         // first or last; "": first
}

// Scope is where attachments are read.
type Scope struct {
	Default string `json:"default"` // allow or deny; "": allow
	Rules   []struct {
		Action string `json:"action"`
		Match  struct {
			Channel   string `json:"channel"`
			ChatType  string `json:"chatType"` // direct, group or channel
			KeyPrefix string `json:"keyPrefix"`
		} `json:"match"`
	} `json:"rules"`
}

// Program reports whether m is a program.
func (m Model) Program() bool { return m.Type == "cli" || m.Type == "" && m.Command != "" }

// name names m in texts for people.
func (m Model) name() string {
	if m.Program() {
		return m.Command
	}
	return m.Provider + "/" + m.Model
}

// ParseConfig decodes and checks tools.media.
func ParseConfig(raw json.RawMessage) (Config, error) {
	var c Config
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &c); err != nil {
			return c, err
		}
	}
	for _, list := range [...]struct {
		at     string
		models []Model
	}{{"models", c.Models}, {"image.models", c.Image.Models}, {"audio.models", c.Audio.Models},
		{"video.models", c.Video.Models}} {
		for i, m := range list.models {
			if err := m.check(); err != nil {
				return c, fmt.Errorf("%s[%d]: %w", list.at, i, err)
			}
		}
	}
	return c, nil
}

func (m Model) check() error {
	switch {
	case !slices.Contains([]string{"", "provider", "cli"}, m.Type):
		return fmt.Errorf("type: %q is not one of provider, cli", m.Type)
	case m.Program() && m.Command == "":
		return fmt.Errorf("command is missing: give the program, for example whisper-cli")
	case !m.Program() && m.Provider == "":
		return fmt.Errorf("provider is missing")
	}
	return nil
}

// The limits of attachments without configured ones.
const (
	defaultConcurrency = 2
	maxAttachments     = 10
	maxDocuments       = 8
	documentChars      = 40_000
)

// URLs returns the URLs of the services.
func (c Config) URLs() (out []string) {
	for _, list := range [...][]Model{c.Models, c.Image.Models, c.Audio.Models, c.Video.Models} {
		for _, m := range list {
			if m.BaseURL != "" {
				out = append(out, m.BaseURL)
			}
		}
	}
	return out
}

// ability returns how attachments of a kind are read, with defaults.
func (c Config) ability(k media.Kind) Ability {
	var a Ability
	switch k {
	case media.Picture:
		a = c.Image
		a.MaxBytes, a.MaxChars, a.Timeout = cmp.Or(a.MaxBytes, 10<<20), cmp.Or(a.MaxChars, 500), cmp.Or(a.Timeout, 60)
	case media.Audio:
		a = c.Audio
		a.MaxBytes, a.Timeout = cmp.Or(a.MaxBytes, 20<<20), cmp.Or(a.Timeout, 60)
	case media.Video:
		a = c.Video
		a.MaxBytes, a.MaxChars, a.Timeout = cmp.Or(a.MaxBytes, 50<<20), cmp.Or(a.MaxChars, 500), cmp.Or(a.Timeout, 120)
	case media.Document:
		a = c.Document
		a.MaxBytes, a.MaxChars, a.Timeout = cmp.Or(a.MaxBytes, 20<<20),
			cmp.Or(a.MaxChars, documentChars), cmp.Or(a.Timeout, 30)
	}
	return a
}

// models returns the configured services and programs for a kind, in order.
func (c Config) models(k media.Kind) (out []Model) {
	a := c.ability(k)
	if provider, model, ok := strings.Cut(a.Preferred, "/"); ok {
		out = append(out, Model{Provider: provider, Model: model})
	}
	for _, m := range a.Models {
		if len(m.Capabilities) == 0 || slices.Contains(m.Capabilities, string(k)) {
			out = append(out, m)
		}
	}
	for _, m := range c.Models {
		if slices.Contains(m.Capabilities, string(k)) ||
			len(m.Capabilities) == 0 && (k == media.Picture && !m.Program() || k == media.Audio && m.Program()) {
			out = append(out, m)
		}
	}
	return out
}

// reads reports whether attachments of a kind are read for a caller.
func (c Config) reads(k media.Kind, by Caller) bool {
	a := c.ability(k)
	if k == media.Other || a.Enabled != nil && !*a.Enabled {
		return false
	}
	return c.Scope.allows(by) && a.Scope.allows(by)
}

// allows reports whether attachments of a caller are read.
func (s *Scope) allows(by Caller) bool {
	if s == nil {
		return true
	}
	chat := by.Address.Peer.Kind
	if chat == "" {
		chat = chela.Direct
	}
	for _, r := range s.Rules {
		m := r.Match
		if (m.Channel == "" || m.Channel == by.Address.Channel) && (m.ChatType == "" || m.ChatType == string(chat)) &&
			strings.HasPrefix(string(by.Session), m.KeyPrefix) {
			return r.Action != "deny"
		}
	}
	return s.Default != "deny"
}

// choose returns the indexes of those attachments of a kind that are read.
func (c Config) choose(k media.Kind, all []int) []int {
	p := c.Attachments
	if own := c.ability(k).Attachments; own != nil {
		p = *own
	}
	n := 1
	switch {
	case k == media.Document && p.Mode == "":
		n = maxDocuments
	case p.Mode == "all":
		n = cmp.Or(max(p.Max, 0), maxAttachments)
	}
	if n >= len(all) {
		return all
	}
	if p.Prefer == "last" {
		return all[len(all)-n:]
	}
	return all[:n]
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// Echo returns the format in which transcripts are shown in the chat, with {transcript};
// "": they are not.
func (c Config) Echo() string {
	if !c.Audio.Echo {
		return ""
	}
	return cmp.Or(c.Audio.EchoFormat, `📝 "{transcript}"`)
}
