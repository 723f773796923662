package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Config is the section hooks of the configuration.
type Config struct {
	Enabled         bool       `json:"enabled"`
	Token           secret.Ref `json:"token"`
	Path            string     `json:"path"`              // "": DefaultPath
	Session         string     `json:"defaultSessionKey"` // "": a new one for each request
	RequestSession  bool       `json:"allowRequestSessionKey"`
	SessionPrefixes []string   `json:"allowedSessionKeyPrefixes"` // none: hook:
	Agents          []string   `json:"allowedAgentIds"`           // nil, or with "*": all
	Presets         []string   `json:"presets"`
	TransformsDir   string     `json:"transformsDir"` // "": hooks/transforms of the state directory
	Mappings        []Mapping  `json:"mappings"`
	MaxBody         int64      `json:"maxBodyBytes"` // 0: DefaultMaxBody
	Gmail           struct {
		Model    string `json:"model"`
		Thinking string `json:"thinking"`
		Unsafe   bool   `json:"allowUnsafeExternalContent"`
	} `json:"gmail"`
}

// Defaults and limits of a [Config].
const (
	DefaultPath    = "/hooks"
	DefaultMaxBody = 256 << 10
	maxMaxBody     = 4 << 20
	maxMappings    = 200
)

// Mapping is an element of hooks.mappings: what a request to /hooks/NAME does.
type Mapping struct {
	ID    string `json:"id"`
	Match struct {
		Path   string `json:"path"`   // NAME; "": any
		Source string `json:"source"` // the member source of the payload; "": any
	} `json:"match"`
	Action      Action      `json:"action"` // "": agent
	AgentID     string      `json:"agentId"`
	WakeMode    string      `json:"wakeMode"` // "": now
	Name        string      `json:"name"`
	SessionKey  string      `json:"sessionKey"`
	SessionMode string      `json:"sessionMode"` // "": isolated
	Message     string      `json:"messageTemplate"`
	Text        string      `json:"textTemplate"`
	Key         string      `json:"idempotencyKey"`
	Deliver     *bool       `json:"deliver"`
	Channel     string      `json:"channel"`
	To          text        `json:"to"`
	AccountID   text        `json:"accountId"`
	Model       string      `json:"model"`
	Thinking    string      `json:"thinking"`
	Timeout     json.Number `json:"timeoutSeconds"`
	Unsafe      bool        `json:"allowUnsafeExternalContent"`
	Transform   *Transform  `json:"transform"`
	Secret      secret.Ref  `json:"secret"`             // of signatures; none: the token is used
	Signature   Scheme      `json:"signature"`          // "": Generic
	Tolerance   json.Number `json:"signatureTolerance"` // seconds; "": 300
}

// Transform is a program that rewrites what a mapping does.
type Transform struct {
	Module string `json:"module"` // its file in hooks.transformsDir
	Export string `json:"export"` // its first argument; "": none
}

// Action is what a request does.
type Action string

// The actions.
const (
	Wake  Action = "wake"  // puts a text into the queue of the main session
	Agent Action = "agent" // starts a run
)

// text is a string that may be written as a number.
type text string

// UnmarshalJSON accepts strings and numbers.
func (t *text) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*string)(t)) == nil {
		return nil
	}
	var n json.Number
	if json.Unmarshal(b, &n) != nil {
		return errors.New("want a string")
	}
	*t = text(n)
	return nil
}

// Hooks is the webhooks of a configuration. It does not change. The zero Hooks accepts
// nothing.
type Hooks struct {
	c        Config
	token    secret.Value
	mappings []*mapping
}

// mapping is a [Mapping] that is ready for use.
type mapping struct {
	Mapping
	name, session, message, to, key Template
	secret                          secret.Value
	tolerance                       time.Duration
}

// Parse returns the webhooks of the section hooks. state is the state directory.
func Parse(raw json.RawMessage, env func(string) string, state string) (*Hooks, error) {
	h := new(Hooks)
	if raw == nil {
		return h, nil
	}
	if err := json.Unmarshal(raw, &h.c); err != nil {
		return nil, fmt.Errorf("configuration, hooks: %w", err)
	}
	if p := h.Path(); p == "/" || p == "/tools" || strings.ContainsAny(p, " {}?#%") || path.Clean(p) != p {
		return nil, invalid("path", "chela config set hooks.path /hooks",
			"%q cannot be used: want a path such as /hooks, and not / or /tools", h.c.Path)
	}
	if !h.c.Enabled {
		return &Hooks{c: Config{Path: h.c.Path}}, nil
	}
	return h, h.complete(env, state)
}

// invalid returns an error about a key of the section.
func invalid(key, hint, format string, args ...any) error {
	return &chela.Error{Code: chela.CodeInvalid, Message: "configuration, hooks." + key, Hint: hint,
		Err: fmt.Errorf(format, args...)}
}

// complete checks the configuration and prepares its mappings.
func (h *Hooks) complete(env func(string) string, state string) error {
	c := &h.c
	if c.Token.IsZero() {
		return invalid("token", "chela webhooks enable", "is required when hooks.enabled is true")
	}
	var err error
	if h.token, err = c.Token.Resolve(env); err != nil {
		return invalid("token", "", "%w", err)
	}
	if h.token.IsZero() {
		return invalid("token", "chela webhooks enable", "is empty")
	}
	if c.MaxBody < 0 || c.MaxBody > maxMaxBody {
		return invalid("maxBodyBytes", "", "%d: want 1 to %d", c.MaxBody, maxMaxBody)
	}
	if c.TransformsDir == "" {
		c.TransformsDir = filepath.Join(state, "hooks", "transforms")
	}
	if c.TransformsDir, err = filepath.Abs(c.TransformsDir); err != nil {
		return invalid("transformsDir", "", "%w", err)
	}
	if c.Session != "" {
		if _, err := chela.ParseSessionKey(c.Session, chela.DefaultAgent); err != nil {
			return invalid("defaultSessionKey", "", "%w", err)
		}
	}
	all := slices.Clone(c.Mappings)
	for _, name := range c.Presets {
		m, ok := h.preset(name)
		if !ok {
			return invalid("presets", "", "there is no preset %q; there is gmail", name)
		}
		all = append(all, m)
	}
	if len(all) > maxMappings {
		return invalid("mappings", "", "%d mappings, at most %d", len(all), maxMappings)
	}
	for i, m := range all {
		ready, err := m.prepare(env)
		if err != nil {
			return invalid(fmt.Sprintf("mappings[%d]", i), "", "%w", err)
		}
		h.mappings = append(h.mappings, ready)
	}
	return nil
}

// preset returns a mapping that is known by name.
func (h *Hooks) preset(name string) (m Mapping, ok bool) {
	if name != "gmail" {
		return m, false
	}
	m.ID, m.Match.Path, m.Name, m.SessionKey = "gmail", "gmail", "Gmail", "hook:gmail:{{messages[0].id}}"
	m.Message = "New email from {{messages[0].from}}\nSubject: {{messages[0].subject}}\n{{messages[0].snippet}}\n{{messages[0].body}}"
	m.Model, m.Thinking, m.Unsafe = h.c.Gmail.Model, h.c.Gmail.Thinking, h.c.Gmail.Unsafe
	return m, true
}

// prepare checks a mapping.
func (m Mapping) prepare(env func(string) string) (*mapping, error) {
	out := &mapping{Mapping: m}
	var errs []error
	out.Match.Path = strings.Trim(m.Match.Path, "/")
	if out.Action == "" {
		out.Action = Agent
	}
	if out.Action != Wake && out.Action != Agent {
		errs = append(errs, fmt.Errorf("action %q: want wake or agent", m.Action))
	}
	body := m.Message
	if out.Action == Wake {
		body = m.Text
	}
	if body == "" && m.Transform == nil {
		errs = append(errs, fmt.Errorf("action %s needs %s", out.Action, map[Action]string{
			Wake:  "textTemplate",
			Agent: "messageTemplate",
		}[out.Action]))
	}
	for _, t := range [...]struct {
		text string
		into *Template
	}{{m.Name, &out.name}, {m.SessionKey, &out.session}, {body, &out.message},
		{string(m.To), &out.to}, {m.Key, &out.key}} {
		var err error
		if *t.into, err = ParseTemplate(t.text); err != nil {
			errs = append(errs, err)
		}
	}
	_, err := mode(m.WakeMode)
	errs = append(errs, err)
	_, err = persistent(m.SessionMode)
	errs = append(errs, err, thinking(m.Thinking))
	_, err = timeout(m.Timeout)
	errs = append(errs, err)
	if m.AgentID != "" && !chela.ValidAgentID(m.AgentID) {
		errs = append(errs, fmt.Errorf("agentId %q is no id of an agent", m.AgentID))
	}
	if m.Channel != "last" && (m.Channel == "") != (m.To == "") || m.Channel == "last" && m.To != "" {
		errs = append(errs, errHalf)
	}
	if t := m.Transform; t != nil && (t.Module == "" || !filepath.IsLocal(filepath.FromSlash(t.Module))) {
		errs = append(errs, fmt.Errorf("transform.module %q: want the name of a file in hooks.transformsDir", t.Module))
	}
	errs = append(errs, out.sign(env))
	return out, errors.Join(errs...)
}

// sign prepares the check of signatures.
func (m *mapping) sign(env func(string) string) error {
	if m.Secret.IsZero() {
		if m.Signature != "" {
			return errors.New("signature needs secret")
		}
		return nil
	}
	var err error
	if m.secret, err = m.Secret.Resolve(env); err != nil {
		return err
	}
	if m.secret.IsZero() {
		return errors.New("secret is empty")
	}
	switch m.Signature {
	case "":
		m.Signature = Generic
	case Generic, GitHub, Stripe:
	default:
		return fmt.Errorf("signature %q: want generic, github or stripe", m.Signature)
	}
	m.tolerance = defaultTolerance
	if m.Tolerance != "" {
		n, err := m.Tolerance.Int64()
		if m.tolerance = time.Duration(n) * time.Second; err != nil || n < 1 || m.tolerance > maxTolerance {
			return fmt.Errorf("signatureTolerance %s: want 1 to %d seconds", m.Tolerance, int(maxTolerance.Seconds()))
		}
	}
	return nil
}

// thinking returns an error if a level does not exist.
func thinking(level string) error {
	if level == "" || slices.Contains(llm.Levels[:], llm.Level(level)) {
		return nil
	}
	return fmt.Errorf("thinking %q: want off, minimal, low, medium, high, xhigh, adaptive or max", level)
}

// mode parses a wake mode. It reports whether it is now.
func mode(s string) (now bool, err error) {
	switch s {
	case "", "now":
		return true, nil
	case "next-heartbeat":
		return false, nil
	}
	return false, fmt.Errorf("mode %q: want now or next-heartbeat", clip(s, 40))
}

// persistent parses a session mode. It reports whether it is persistent.
func persistent(s string) (bool, error) {
	switch s {
	case "", "isolated":
		return false, nil
	case "persistent":
		return true, nil
	}
	return false, fmt.Errorf("sessionMode %q: want isolated or persistent", clip(s, 40))
}

// maxTimeout is the longest time limit of a run.
const maxTimeout = 48 * time.Hour

// timeout parses a number of seconds; "" and 0: the agent's.
func timeout(s json.Number) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	n, err := s.Float64()
	if err != nil || n < 0 || n > maxTimeout.Seconds() {
		return 0, fmt.Errorf("timeoutSeconds %s: want 0 to %d", clip(s.String(), 40), int(maxTimeout.Seconds()))
	}
	return time.Duration(n * float64(time.Second)), nil
}

// Enabled reports whether requests are accepted.
func (h *Hooks) Enabled() bool { return h.c.Enabled }

// Path returns the path of the webhooks, without a slash at its end.
func (h *Hooks) Path() string {
	if h.c.Path == "" {
		return DefaultPath
	}
	return "/" + strings.Trim(h.c.Path, "/")
}

// MaxBody returns the largest body of a request in bytes.
func (h *Hooks) MaxBody() int64 {
	if h.c.MaxBody == 0 {
		return DefaultMaxBody
	}
	return h.c.MaxBody
}

// Opens reports whether token is the token of the webhooks.
func (h *Hooks) Opens(token string) bool {
	return h.c.Enabled && !h.token.IsZero() && h.token.Equal(secret.New(token))
}

// Signed reports whether requests to a name may be authenticated by a signature.
func (h *Hooks) Signed(name string) bool {
	return slices.ContainsFunc(h.mappings, func(m *mapping) bool { return m.onPath(name) && !m.secret.IsZero() })
}

// Known reports whether a request to a name may do something.
func (h *Hooks) Known(name string) bool {
	return name == string(Wake) || name == string(Agent) ||
		slices.ContainsFunc(h.mappings, func(m *mapping) bool { return m.onPath(name) })
}

// Token returns the token of the webhooks.
func (h *Hooks) Token() secret.Value { return h.token }

// Mappings returns the mappings, with those of the presets.
func (h *Hooks) Mappings() []Mapping {
	var out []Mapping
	for _, m := range h.mappings {
		out = append(out, m.Mapping)
	}
	return out
}

// Authenticate returns the headers with which a request to a name is accepted: the token,
// or the signature for the mapping that matches.
func (h *Hooks) Authenticate(name string, body []byte, now time.Time) map[string]string {
	var payload struct{ Source string }
	_ = json.Unmarshal(body, &payload) // the gateway refuses it
	if name != string(Wake) && name != string(Agent) {
		if m := h.find(name, payload.Source); m != nil && !m.secret.IsZero() {
			return Sign(m.Signature, m.secret, body, now)
		}
	}
	return map[string]string{"Authorization": "Bearer " + h.token.Reveal()}
}

// Secrets returns the secrets of the webhooks.
func (h *Hooks) Secrets() []secret.Value {
	out := []secret.Value{h.token}
	for _, m := range h.mappings {
		out = append(out, m.secret)
	}
	return out
}

func (m *mapping) onPath(name string) bool { return m.Match.Path == "" || m.Match.Path == name }

// find returns the first mapping for a request; nil: there is none.
func (h *Hooks) find(name, source string) *mapping {
	for _, m := range h.mappings {
		if m.onPath(name) && (m.Match.Source == "" || m.Match.Source == source) {
			return m
		}
	}
	return nil
}

// label returns the name of a mapping in logs and in the origin of its runs.
func (m *mapping) label() string {
	for _, s := range [...]string{m.ID, m.Match.Path, m.Match.Source} {
		if s != "" {
			return s
		}
	}
	return "mapping"
}
