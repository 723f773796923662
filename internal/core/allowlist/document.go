package allowlist

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Limits of a document.
const (
	MaxDocument = 1 << 20 // bytes
	maxEntries  = 2048    // of all agents together
	maxAgents   = 256
	maxPattern  = 1 << 10 // bytes of a pattern
)

// AllAgents is the key of the rules that apply to every agent.
const AllAgents = "*"

// Document is a person's rules for commands. The zero Document has no rules.
// Unknown fields are preserved.
type Document struct {
	Defaults Settings
	Agents   map[string]Agent // by id; AllAgents for all

	extra map[string]json.RawMessage
}

// Settings are the policy settings of a document. Empty settings are
// inherited.
type Settings struct {
	Security Security
	Ask      Ask
	Fallback Security

	extra map[string]json.RawMessage
}

// Agent holds the rules for one agent.
type Agent struct {
	Settings
	Allowlist []Entry
}

// Entry allows a program to run.
type Entry struct {
	ID      string
	Pattern string // matches the file's path, with *, ** and ?; a pattern without a slash matches names looked up in PATH
	Args    string // regular expression for the whole list of arguments; "": any
	Source  string // creator of the entry; "": the person
	Host    bool   // it runs outside of the sandbox

	LastUsed int64  // milliseconds since 1970; 0: never
	Command  string // command that it last allowed
	Path     string // program of that command

	extra map[string]json.RawMessage
}

// Parse reads a document. A document with any content that could be
// misunderstood is rejected as a whole.
func Parse(b []byte) (*Document, error) {
	if len(b) > MaxDocument {
		return nil, fmt.Errorf("more than %d bytes", MaxDocument)
	}
	m, err := object(b)
	if err != nil {
		return nil, err
	}
	var version json.Number
	if err := take(m, "version", &version); err != nil {
		return nil, err
	}
	if version != "1" {
		return nil, fmt.Errorf("unsupported version %q, want 1", version)
	}
	d := &Document{Agents: map[string]Agent{}}
	var defaults, agents map[string]json.RawMessage
	if err := errors.Join(take(m, "defaults", &defaults), take(m, "agents", &agents)); err != nil {
		return nil, err
	}
	d.extra = m
	if d.Defaults, err = settings(defaults); err != nil {
		return nil, fmt.Errorf("defaults: %w", err)
	}
	if len(agents) > maxAgents {
		return nil, fmt.Errorf("more than %d agents", maxAgents)
	}
	entries := 0
	for _, id := range slices.Sorted(maps.Keys(agents)) {
		a, err := agent(agents[id])
		if err != nil {
			return nil, fmt.Errorf("agents.%s: %w", id, err)
		}
		if entries += len(a.Allowlist); entries > maxEntries {
			return nil, fmt.Errorf("more than %d entries", maxEntries)
		}
		d.Agents[id] = a
	}
	d.migrateDefaultAgent()
	return d, nil
}

// migrateDefaultAgent moves the rules of the agent formerly called default to
// main.
func (d *Document) migrateDefaultAgent() {
	old, ok := d.Agents["default"]
	if !ok {
		return
	}
	delete(d.Agents, "default")
	id := string(chela.DefaultAgent)
	a := d.Agents[id]
	a.Security, a.Ask, a.Fallback = cmp.Or(a.Security, old.Security), cmp.Or(a.Ask, old.Ask),
		cmp.Or(a.Fallback, old.Fallback)
	for _, e := range old.Allowlist {
		a.add(e)
	}
	if a.extra == nil {
		a.extra = old.extra
	}
	d.Agents[id] = a
}

// add adds an entry unless an equal one exists.
func (a *Agent) add(e Entry) {
	same := func(o Entry) bool { return o.Pattern == e.Pattern && o.Args == e.Args }
	if !slices.ContainsFunc(a.Allowlist, same) {
		a.Allowlist = append(slices.Clip(a.Allowlist), e)
	}
}

func agent(raw json.RawMessage) (Agent, error) {
	m, err := object(raw)
	if err != nil {
		return Agent{}, err
	}
	var list []json.RawMessage
	if err := take(m, "allowlist", &list); err != nil {
		return Agent{}, err
	}
	a := Agent{}
	if a.Settings, err = settings(m); err != nil {
		return Agent{}, err
	}
	for i, raw := range list {
		e, err := entry(raw)
		if err != nil {
			return Agent{}, fmt.Errorf("allowlist[%d]: %w", i, err)
		}
		a.Allowlist = append(a.Allowlist, e)
	}
	return a, nil
}

// settings removes the settings from m and returns them. The rest of m is
// preserved as unknown fields.
func settings(m map[string]json.RawMessage) (Settings, error) {
	var s Settings
	var security, ask, fallback string
	err := errors.Join(take(m, "security", &security), take(m, "ask", &ask), take(m, "askFallback", &fallback))
	if err != nil {
		return s, err
	}
	var p Policy
	for _, set := range [...]func() error{
		func() (err error) { p, err = p.WithFallback(fallback); return },
		func() (err error) {
			if !slices.Contains([]string{"", string(Deny), string(Listed), string(Full)}, security) {
				return fmt.Errorf("security %q: want deny, allowlist or full", security)
			}
			p.Security = Security(security)
			return nil
		},
		func() (err error) { p, err = p.WithAsk(ask); return },
	} {
		if err := set(); err != nil {
			return s, err
		}
	}
	return Settings{Security: p.Security, Ask: p.Ask, Fallback: p.Fallback, extra: m}, nil
}

// entry reads an entry. In the legacy form an entry is only a pattern.
func entry(raw json.RawMessage) (Entry, error) {
	var e Entry
	if json.Unmarshal(raw, &e.Pattern) != nil {
		m, err := object(raw)
		if err != nil {
			return e, err
		}
		var used float64
		err = errors.Join(take(m, "id", &e.ID), take(m, "pattern", &e.Pattern), take(m, "argPattern", &e.Args),
			take(m, "source", &e.Source), take(m, "host", &e.Host),
			take(m, "lastUsedAt", &used), take(m, "lastUsedCommand", &e.Command), take(m, "lastResolvedPath", &e.Path))
		if err != nil {
			return e, err
		}
		e.LastUsed, e.extra = int64(min(max(used, 0), 1<<53)), m
	}
	return e, e.check()
}

// check returns an error for an invalid entry, and gives an entry without an
// id a generated one.
func (e *Entry) check() error {
	e.Pattern = strings.TrimSpace(e.Pattern)
	switch {
	case e.Pattern == "":
		return errors.New("the pattern is empty")
	case len(e.Pattern) > maxPattern || len(e.Args) > maxPattern:
		return fmt.Errorf("a pattern has more than %d bytes", maxPattern)
	case len(e.ID) > 128:
		return errors.New("the id has more than 128 bytes")
	}
	if e.ID == "" { // deterministic, so that it is the same after each read
		sum := sha256.Sum256([]byte(e.Pattern + "\x00" + e.Args))
		e.ID = hex.EncodeToString(sum[:8])
	}
	return nil
}

// object reads exactly one JSON object.
func object(b []byte) (map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, errors.New("it is empty")
	}
	var m map[string]json.RawMessage
	err := json.Unmarshal(b, &m)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok || err == nil && m == nil {
		return nil, errors.New("want a JSON object")
	}
	return m, err
}

// take decodes a member of m and removes it.
func take(m map[string]json.RawMessage, key string, into any) error {
	raw, ok := m[key]
	delete(m, key)
	if !ok || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// put adds a member to m unless the value is zero.
func put[T comparable](m map[string]any, key string, v T) {
	var zero T
	if v != zero {
		m[key] = v
	}
}

func copyFields(extra map[string]json.RawMessage) map[string]any {
	m := make(map[string]any, len(extra)+4)
	for k, v := range extra {
		m[k] = v
	}
	return m
}

func (s Settings) members() map[string]any {
	m := copyFields(s.extra)
	put(m, "security", s.Security)
	put(m, "ask", s.Ask)
	put(m, "askFallback", s.Fallback)
	return m
}

func (e Entry) members(used bool) map[string]any {
	m := copyFields(e.extra)
	m["id"], m["pattern"] = e.ID, e.Pattern
	put(m, "argPattern", e.Args)
	put(m, "source", e.Source)
	put(m, "host", e.Host)
	if used {
		put(m, "lastUsedAt", e.LastUsed)
		put(m, "lastUsedCommand", e.Command)
		put(m, "lastResolvedPath", e.Path)
	}
	return m
}

// encode returns the document as JSON. If used is set, it includes when its
// entries were last used.
func (d *Document) encode(used bool) []byte {
	m := copyFields(d.extra)
	m["version"] = 1
	if s := d.Defaults.members(); len(s) > 0 {
		m["defaults"] = s
	}
	agents := map[string]any{}
	for id, a := range d.Agents {
		one := a.members()
		list := make([]any, len(a.Allowlist))
		for i, e := range a.Allowlist {
			list[i] = e.members(used)
		}
		if len(list) > 0 {
			one["allowlist"] = list
		}
		agents[id] = one
	}
	m["agents"] = agents
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		panic(err) // raw members were read from JSON
	}
	return append(b, '\n')
}

// Encode returns the document as JSON.
func (d *Document) Encode() []byte { return d.encode(true) }

// Hash identifies the rules of a document. It does not change when an entry
// is used.
func (d *Document) Hash() string {
	sum := sha256.Sum256(d.encode(false))
	return hex.EncodeToString(sum[:])
}

// Settings returns the policy settings of the document for an agent.
func (d *Document) Settings(id chela.AgentID) Settings {
	own, all := d.Agents[string(id)], d.Agents[AllAgents]
	return Settings{
		Security: cmp.Or(own.Security, all.Security, d.Defaults.Security),
		Ask:      cmp.Or(own.Ask, all.Ask, d.Defaults.Ask),
		Fallback: cmp.Or(own.Fallback, all.Fallback, d.Defaults.Fallback),
	}
}

// Effective returns the policy for an agent, given the policy p of the
// configuration: the stricter of both.
func (d *Document) Effective(p Policy, id chela.AgentID) Policy {
	s := d.Settings(id)
	own := Policy{
		Security: cmp.Or(s.Security, p.Security),
		Ask:      cmp.Or(s.Ask, p.Ask),
		Fallback: cmp.Or(s.Fallback, p.Fallback),
		Reads:    s.Security != Listed,
		Work:     s.Security != Listed && (s.Ask == "" || s.Ask == Off),
	}
	out := p.Stricter(own)
	if s.Fallback != "" { // the configuration has no such setting
		out.Fallback = s.Fallback
	}
	return out
}

// PreserveUnknown copies the unknown fields of old, the document that this
// one replaces.
func (d *Document) PreserveUnknown(old *Document) {
	d.extra = mergeFields(d.extra, old.extra)
	d.preserveSocketToken(old)
	d.Defaults.extra = mergeFields(d.Defaults.extra, old.Defaults.extra)
	for id, a := range d.Agents {
		was, ok := old.Agents[id]
		if !ok {
			continue
		}
		a.extra = mergeFields(a.extra, was.extra)
		for i, e := range a.Allowlist {
			if at := slices.IndexFunc(was.Allowlist, func(o Entry) bool { return o.ID == e.ID }); at >= 0 {
				a.Allowlist[i].extra = mergeFields(e.extra, was.Allowlist[at].extra)
			}
		}
		d.Agents[id] = a
	}
}

// preserveSocketToken keeps the token of the socket, which is never sent to
// clients.
func (d *Document) preserveSocketToken(old *Document) {
	var own, was map[string]json.RawMessage
	if json.Unmarshal(d.extra["socket"], &own) != nil || json.Unmarshal(old.extra["socket"], &was) != nil {
		return
	}
	if b, err := json.Marshal(mergeFields(own, was)); err == nil {
		d.extra["socket"] = b
	}
}

// mergeFields returns the fields of both maps. Fields of own take precedence.
func mergeFields(own, old map[string]json.RawMessage) map[string]json.RawMessage {
	all := maps.Clone(old)
	if all == nil {
		return own
	}
	maps.Copy(all, own)
	return all
}

// RecordUse records that entries allowed a command.
func (d *Document) RecordUse(uses []Use, command string, at int64) {
	if len(command) > maxCommand {
		command = ""
	}
	for _, u := range uses {
		list := d.Agents[u.Agent].Allowlist
		for i := range list {
			if list[i].ID == u.ID {
				list[i].LastUsed, list[i].Command, list[i].Path = at, command, u.Path
			}
		}
	}
}

// maxCommand is the length of a command that is recorded.
const maxCommand = 1 << 10
