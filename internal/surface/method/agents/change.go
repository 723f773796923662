package agents

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Value is a value to set in the configuration; a nil To deletes the key.
type Value struct {
	Path string
	To   any
}

// Roster edits the agents in the configuration.
type Roster interface {
	// At returns the configuration path of an agent, existing or not, and
	// whether it is an array element, which contains its id.
	At(id chela.AgentID) (path string, listed bool)
	// Set writes values and applies them, all or none. Deleting an absent
	// key is not an error.
	Set(ctx context.Context, values ...Value) error
	// Forget deletes what other parts store about a deleted agent, such as
	// its command rules, and returns the number of bindings removed.
	Forget(ctx context.Context, id chela.AgentID) (bindings int, err error)
}

// identityOf is the identity of an agent in the configuration.
type identityOf struct {
	Emoji  string `json:"emoji,omitempty"`
	Avatar string `json:"avatar,omitempty"`
}

// described is a new agent in the configuration.
type described struct {
	ID        string      `json:"id,omitempty"` // array elements only
	Name      string      `json:"name,omitempty"`
	Workspace string      `json:"workspace,omitempty"`
	Model     string      `json:"model,omitempty"`
	Identity  *identityOf `json:"identity,omitempty"`
}

// letters are those of Latin alphabets that are not a letter a-z with a mark.
var letters = strings.NewReplacer("ß", "ss", "ẞ", "ss", "æ", "ae", "Æ", "ae", "œ", "oe", "Œ", "oe", "ø", "o", "Ø", "o",
	"ł", "l", "Ł", "l", "đ", "d", "Đ", "d",
	"ð", "d", "Ð", "d", "þ", "th", "Þ", "th", "ı", "i")

// latin returns a name with its letters of Latin alphabets as a-z: an id made of "Größe"
// is to be "grosse" instead of "gr-e".
func latin(name string) string {
	plain, _, err := transform.String(transform.Chain(norm.NFKD, runes.Remove(runes.In(unicode.Mn))),
		letters.Replace(name))
	if err != nil {
		return name
	}
	return plain
}

func (m methods) create(ctx context.Context, _ rpc.Peer, in wire.AgentCreate) (wire.AgentCreated, error) {
	name := prompt.Name(strings.TrimSpace(in.Name))
	id := chela.AgentIDOf(latin(name))
	switch {
	case name == "":
		return wire.AgentCreated{}, wire.Errorf(wire.InvalidRequest, "agent name is required")
	case id == "":
		return wire.AgentCreated{},
			wire.Errorf(wire.InvalidRequest, "agent name %q contains no letter a-z and no digit", name)
	case m.has(id):
		return wire.AgentCreated{}, wire.Errorf(wire.InvalidRequest, "agent %q already exists", id)
	}
	d := described{Name: name, Workspace: strings.TrimSpace(in.Workspace), Model: strings.TrimSpace(in.Model)}
	if in.Emoji != "" || in.Avatar != "" {
		d.Identity = &identityOf{prompt.Name(in.Emoji), in.Avatar}
	}
	at, listed := m.o.Roster.At(id)
	if listed {
		d.ID = string(id)
	}
	if err := m.o.Roster.Set(ctx, Value{at, d}); err != nil {
		return wire.AgentCreated{}, err
	}
	a, err := m.find(string(id), "")
	if err != nil {
		return wire.AgentCreated{}, err
	}
	if err := a.Files.SetIdentity(name, prompt.Name(in.Emoji)); err != nil {
		return wire.AgentCreated{}, err
	}
	return wire.AgentCreated{OK: true, AgentID: string(id), Name: name, Workspace: a.Files.Dir(), Model: d.Model}, nil
}

func (m methods) update(ctx context.Context, _ rpc.Peer, in wire.AgentUpdate) (wire.AgentUpdated, error) {
	id := chela.AgentIDOf(in.AgentID)
	if !m.has(id) {
		return wire.AgentUpdated{}, notFound(in.AgentID)
	}
	at, listed := m.o.Roster.At(id)
	var values []Value
	if listed {
		values = append(values, Value{at + ".id", string(id)})
	}
	set := func(key, to string) {
		if to = strings.TrimSpace(to); to != "" {
			values = append(values, Value{at + "." + key, to})
		}
	}
	name, emoji := prompt.Name(strings.TrimSpace(in.Name)), prompt.Name(strings.TrimSpace(in.Emoji))
	set("name", name)
	set("workspace", in.Workspace)
	set("identity.emoji", emoji)
	set("identity.avatar", in.Avatar)
	if name != "" {
		values = append(values, Value{at + ".identity.name", nil}) // it would take precedence over the new name
	}
	if in.Model.Set {
		if in.Model.Value != "" {
			set("model", in.Model.Value)
		} else {
			values = append(values, Value{at + ".model", nil})
		}
	}
	if err := m.o.Roster.Set(ctx, values...); err != nil {
		return wire.AgentUpdated{}, err
	}
	if name != "" || emoji != "" {
		a, err := m.find(string(id), "")
		if err == nil {
			err = a.Files.SetIdentity(name, emoji)
		}
		if err != nil {
			return wire.AgentUpdated{}, err
		}
	}
	return wire.AgentUpdated{OK: true, AgentID: string(id)}, nil
}

func (m methods) delete(ctx context.Context, _ rpc.Peer, in wire.AgentDelete) (wire.AgentDeleted, error) {
	id := chela.AgentIDOf(in.AgentID)
	if !m.has(id) {
		return wire.AgentDeleted{}, notFound(in.AgentID)
	}
	if id == m.o.Default {
		return wire.AgentDeleted{},
			wire.Errorf(wire.InvalidRequest, "agent %q is the default agent and cannot be deleted", id)
	}
	a, err := m.find(string(id), "")
	if err != nil {
		return wire.AgentDeleted{}, err
	}
	out := wire.AgentDeleted{OK: true, AgentID: string(id), Removed: []wire.RemovedPath{}, Failed: []wire.FailedPath{}}
	if out.Bindings, err = m.o.Roster.Forget(ctx, id); err != nil {
		return wire.AgentDeleted{}, err
	}
	for m.has(id) { // it may be configured twice
		at, _ := m.o.Roster.At(id)
		if err := m.o.Roster.Set(ctx, Value{at, nil}); err != nil {
			return wire.AgentDeleted{}, err
		}
	}
	if in.Files == nil || *in.Files {
		m.trash(a, &out)
	}
	return out, nil
}

// trash moves the workspace of a deleted agent to the trash. A folder that
// other agents use, or that is outside of the state directory, is left in
// place.
func (m methods) trash(a Agent, out *wire.AgentDeleted) {
	dir := a.Files.Dir()
	fail := func(why string) { out.Failed = append(out.Failed, wire.FailedPath{Path: dir, Reason: why}) }
	if !pathpolicy.Inside(dir, m.o.State) || dir == filepath.Clean(m.o.State) {
		fail("not below the state directory")
		return
	}
	if slices.ContainsFunc(m.o.Agents(), func(o Agent) bool {
		return pathpolicy.Inside(dir, o.Files.Dir()) || pathpolicy.Inside(o.Files.Dir(), dir)
	}) {
		fail("used by another agent")
		return
	}
	trash := filepath.Join(m.o.State, "trash")
	err := os.MkdirAll(trash, 0o700)
	if err == nil {
		err = os.Rename(dir, filepath.Join(trash, string(a.ID)+time.Now().Format("-20060102-150405.000")))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out.Removed = append(out.Removed, wire.RemovedPath{Path: dir, Method: "missing"})
	case err != nil:
		fail(err.Error())
	default:
		out.Removed = append(out.Removed, wire.RemovedPath{Path: dir, Method: "trash"})
	}
}

// has reports whether the agent exists.
func (m methods) has(id chela.AgentID) bool {
	return slices.ContainsFunc(m.o.Agents(), func(a Agent) bool { return a.ID == id })
}

func notFound(id string) error { return wire.Errorf(wire.InvalidRequest, "agent %q not found", id) }
