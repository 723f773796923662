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

	"github.com/chela-ai/chela/internal/chela"
)

// Bounds of a document.
const (
	MaxDocument = 1 << 20 // bytes
	maxEntries  = 2048    // of all agents together
	maxAgents   = 256
	maxPattern  = 1 << 10 // bytes of a pattern
)

// AllAgents is the name under which a document has rules for every agent.
const AllAgents = "*"

// Document is a person's rules about commands. The zero Document says nothing.
// Fields that are not known here are kept.
type Document struct {
	Defaults Settings
	Agents   map[string]Agent // by id; AllAgents for all

	extra map[string]json.RawMessage
}

// Settings is what a document says of the policy; what is empty it leaves to
// others.
type Settings struct {
	Security Security
	Ask      Ask
	Fallback Security

	extra map[string]json.RawMessage
}

// Agent is the rules for one agent.
type Agent struct {
	Settings
	Allowlist []Entry
}

// Entry lets a program run.
type Entry struct {
	ID      string
	Pattern string // of the file's path, with * ** and ?; without a slash, of a name that is looked up in PATH
	Args    string // regular expression of all of the arguments; "": any
	Source  string // who made it; "": the person

	LastUsed int64  // milliseconds since 1970; 0: never
	Command  string // that it last let run
	Path     string // which that was

	extra map[string]json.RawMessage
}

// Parse reads a document. A document with anything in it that would be
// misunderstood is an error: there is no half of it.
func Parse(b []byte) (*Document, error) {
	if len(b) > MaxDocument {
		return nil, fmt.Errorf("it has more than %d bytes", MaxDocument)
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
		return nil, fmt.Errorf("version %q is not known, only 1", version)
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
		return nil, fmt.Errorf("it has more than %d agents", maxAgents)
	}
	entries := 0
	for _, id := range slices.Sorted(maps.Keys(agents)) {
		a, err := agent(agents[id])
		if err != nil {
			return nil, fmt.Errorf("agents.%s: %w", id, err)
		}
		if entries += len(a.Allowlist); entries > maxEntries {
			return nil, fmt.Errorf("it has more than %d entries", maxEntries)
		}
		d.Agents[id] = a
	}
	d.legacy()
	return d, nil
}

// legacy moves the rules of the agent that was once called default to main.
func (d *Document) legacy() {
	old, ok := d.Agents["default"]
	if !ok {
		return
	}
	delete(d.Agents, "default")
	id := string(chela.DefaultAgent)
	a := d.Agents[id]
	a.Security, a.Ask, a.Fallback = cmp.Or(a.Security, old.Security), cmp.Or(a.Ask, old.Ask), cmp.Or(a.Fallback, old.Fallback)
	for _, e := range old.Allowlist {
		a.add(e)
	}
	if a.extra == nil {
		a.extra = old.extra
	}
	d.Agents[id] = a
}

// add adds an entry unless there is one that says the same.
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

// settings takes the settings out of m; the rest of it is kept.
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
				return fmt.Errorf("security %q is none of deny, allowlist, full", security)
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

// entry reads an entry, also one that is only a pattern, as they once were.
func entry(raw json.RawMessage) (Entry, error) {
	var e Entry
	if json.Unmarshal(raw, &e.Pattern) != nil {
		m, err := object(raw)
		if err != nil {
			return e, err
		}
		var used float64
		err = errors.Join(take(m, "id", &e.ID), take(m, "pattern", &e.Pattern), take(m, "argPattern", &e.Args), take(m, "source", &e.Source),
			take(m, "lastUsedAt", &used), take(m, "lastUsedCommand", &e.Command), take(m, "lastResolvedPath", &e.Path))
		if err != nil {
			return e, err
		}
		e.LastUsed, e.extra = int64(min(max(used, 0), 1<<53)), m
	}
	return e, e.check()
}

// check refuses an entry that is none, and gives one without an id its own.
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
	if e.ID == "" { // the same each time that it is read
		sum := sha256.Sum256([]byte(e.Pattern + "\x00" + e.Args))
		e.ID = hex.EncodeToString(sum[:8])
	}
	return nil
}

// object reads a JSON object and nothing after it.
func object(b []byte) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errors.New("it is no object")
	}
	return m, nil
}

// take moves a member of m into a variable.
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

// put moves a variable into m, unless it is the zero value.
func put[T comparable](m map[string]any, key string, v T) {
	var zero T
	if v != zero {
		m[key] = v
	}
}

func rest(extra map[string]json.RawMessage) map[string]any {
	m := make(map[string]any, len(extra)+4)
	for k, v := range extra {
		m[k] = v
	}
	return m
}

func (s Settings) members() map[string]any {
	m := rest(s.extra)
	put(m, "security", s.Security)
	put(m, "ask", s.Ask)
	put(m, "askFallback", s.Fallback)
	return m
}

func (e Entry) members(used bool) map[string]any {
	m := rest(e.extra)
	m["id"], m["pattern"] = e.ID, e.Pattern
	put(m, "argPattern", e.Args)
	put(m, "source", e.Source)
	if used {
		put(m, "lastUsedAt", e.LastUsed)
		put(m, "lastUsedCommand", e.Command)
		put(m, "lastResolvedPath", e.Path)
	}
	return m
}

// encode writes the document; with used, also when its entries were last used.
func (d *Document) encode(used bool) []byte {
	m := rest(d.extra)
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

// Encode writes the document.
func (d *Document) Encode() []byte { return d.encode(true) }

// Hash identifies the rules of a document. It does not change when an entry is
// used.
func (d *Document) Hash() string {
	sum := sha256.Sum256(d.encode(false))
	return hex.EncodeToString(sum[:])
}

// Settings returns what the document says of the policy for an agent.
func (d *Document) Settings(id chela.AgentID) Settings {
	own, all := d.Agents[string(id)], d.Agents[AllAgents]
	return Settings{
		Security: cmp.Or(own.Security, all.Security, d.Defaults.Security),
		Ask:      cmp.Or(own.Ask, all.Ask, d.Defaults.Ask),
		Fallback: cmp.Or(own.Fallback, all.Fallback, d.Defaults.Fallback),
	}
}

// Over returns the policy that holds for an agent when the configuration says
// p: the stricter of both.
func (d *Document) Over(p Policy, id chela.AgentID) Policy {
	s := d.Settings(id)
	own := Policy{Security: cmp.Or(s.Security, p.Security), Ask: cmp.Or(s.Ask, p.Ask), Fallback: cmp.Or(s.Fallback, p.Fallback), Reads: s.Security != Listed}
	out := p.Stricter(own)
	if s.Fallback != "" { // the configuration has no word for it
		out.Fallback = s.Fallback
	}
	return out
}

// Keep takes from the document that this one replaces what is not known here.
func (d *Document) Keep(old *Document) {
	d.extra = kept(d.extra, old.extra)
	d.socket(old)
	d.Defaults.extra = kept(d.Defaults.extra, old.Defaults.extra)
	for id, a := range d.Agents {
		was, ok := old.Agents[id]
		if !ok {
			continue
		}
		a.extra = kept(a.extra, was.extra)
		for i, e := range a.Allowlist {
			if at := slices.IndexFunc(was.Allowlist, func(o Entry) bool { return o.ID == e.ID }); at >= 0 {
				a.Allowlist[i].extra = kept(e.extra, was.Allowlist[at].extra)
			}
		}
		d.Agents[id] = a
	}
}

// socket keeps the token of a socket, which nobody is told.
func (d *Document) socket(old *Document) {
	var own, was map[string]json.RawMessage
	if json.Unmarshal(d.extra["socket"], &own) != nil || json.Unmarshal(old.extra["socket"], &was) != nil {
		return
	}
	if b, err := json.Marshal(kept(own, was)); err == nil {
		d.extra["socket"] = b
	}
}

// kept returns what is in either; own goes before.
func kept(own, old map[string]json.RawMessage) map[string]json.RawMessage {
	all := maps.Clone(old)
	if all == nil {
		return own
	}
	maps.Copy(all, own)
	return all
}

// Used notes that entries let a command run.
func (d *Document) Used(uses []Use, command string, at int64) {
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

// maxCommand bounds a command that is noted.
const maxCommand = 1 << 10
