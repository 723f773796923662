package invoke

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/policy"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
)

// DeskOptions is what a Desk works with. All fields but Direct are required.
type DeskOptions struct {
	Door    *Door
	Store   store.Store
	Default chela.AgentID
	Agent   func(chela.AgentID) bool // whether there is such an agent
	// Scope returns the tools of a session, and the rules that hold for who.
	Scope func(ctx context.Context, who chela.Principal, key chela.SessionKey) (Scope, error)
	// Direct returns gateway.tools as it is now; nil: nothing is said there.
	Direct func() (deny, allow []string)
}

// Desk carries out single calls for who asks from outside of any run. They go
// through the door as those of a model do. Nobody is asked to allow one: what
// would have to be is refused.
type Desk struct {
	o DeskOptions

	mu    sync.Mutex
	kept  map[string]*errand // by the id of the call, of those with a key
	order []string           // of kept, oldest first
}

// NewDesk returns a Desk.
func NewDesk(o DeskOptions) *Desk { return &Desk{o: o, kept: map[string]*errand{}} }

// Errand is a call that somebody asks for.
type Errand struct {
	Tool    string
	Action  string          // for the argument "action", when the tool has it and Args does not
	Args    json.RawMessage // an object; nil: {}
	Session string          // "": the agent's main session
	Agent   string          // "": the session's
	Key     string          // calls with the same one are one call; "": it is a call of its own
}

// Refusal says in which way a call came to nothing.
type Refusal string

// The refusals.
const (
	Invalid  Refusal = "invalid_request"   // it is not a call that there could be
	Missing  Refusal = "not_found"         // there is no such tool for the caller
	Blocked  Refusal = "tool_call_blocked" // it may not run
	Mistaken Refusal = "tool_input"        // the tool does not take the arguments
	Broken   Refusal = "tool_error"        // the tool failed
)

// Answer is what came of an errand.
type Answer struct {
	Tool     string // its name
	Result   tool.Result
	Refusal  Refusal // "": Result is the tool's
	Text     string  // of Refusal, for the caller
	Approval bool    // of Blocked: a person would have to allow it
}

// errand is a call with a key, and its answer once done is closed.
type errand struct {
	digest string // of what was asked for
	done   chan struct{}
	answer Answer
	err    error
}

// Do carries out what who asks for. The error is ctx's, or one of the store.
func (d *Desk) Do(ctx context.Context, who chela.Principal, e Errand) (Answer, error) {
	e.Tool = policy.Name(e.Tool)
	if e.Tool == "" {
		return Answer{Refusal: Invalid, Text: "the name of a tool is missing"}, nil
	}
	refused := func(err error) (Answer, error) {
		return Answer{Tool: e.Tool, Refusal: Invalid, Text: err.Error()}, nil
	}
	key, err := d.session(e)
	if err != nil {
		return refused(err)
	}
	if e.Args, err = object(e.Args); err != nil {
		return refused(err)
	}
	if e.Key == "" {
		return d.call(ctx, who, key, e, "direct:"+uuid.NewString())
	}
	id := "direct:" + digest(who.ID, e.Key)
	mine, first, err := d.share(id, digest(string(key), e.Tool, e.Action, canonical(e.Args)))
	if err != nil {
		return refused(err)
	}
	if first {
		mine.answer, mine.err = d.call(ctx, who, key, e, id)
		if mine.err != nil {
			d.forget(id)
		}
		close(mine.done)
	}
	select {
	case <-mine.done:
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	if mine.err != nil && !first && ctx.Err() == nil { // who made it has left
		return d.Do(ctx, who, e)
	}
	return mine.answer, mine.err
}

// session returns the session in which the call is made.
func (d *Desk) session(e Errand) (chela.SessionKey, error) {
	key, err := chela.ParseSessionKey(e.Session, cmp.Or(chela.AgentID(e.Agent), d.o.Default))
	switch {
	case err != nil:
		return "", err
	case e.Agent != "" && chela.AgentID(e.Agent) != key.Agent():
		return "", fmt.Errorf("agent id %q does not match session agent %q", e.Agent, key.Agent())
	case !d.o.Agent(key.Agent()):
		return "", fmt.Errorf("unknown agent id %q", key.Agent())
	}
	return key, nil
}

// object returns arguments as what they must be.
func object(args json.RawMessage) (json.RawMessage, error) {
	args = bytes.TrimSpace(args)
	switch {
	case len(args) == 0 || string(args) == "null":
		return json.RawMessage("{}"), nil
	case args[0] != '{' || !json.Valid(args):
		return nil, errors.New("args must be an object")
	}
	return args, nil
}

// maxKept bounds the answers that are kept for calls with a key.
const maxKept = 64

// share returns the call with the id, and whether it is to be made now.
func (d *Desk) share(id, digest string) (*errand, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.kept[id]; x != nil {
		if x.digest != digest {
			return nil, false, errors.New("the idempotency key was used for another call")
		}
		return x, false, nil
	}
	if len(d.order) >= maxKept {
		delete(d.kept, d.order[0])
		d.order = d.order[1:]
	}
	x := &errand{digest: digest, done: make(chan struct{})}
	d.kept[id], d.order = x, append(d.order, id)
	return x, true, nil
}

// forget lets a call that did not come to an end be made again. What had begun
// is on disk, and is not.
func (d *Desk) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.kept, id)
	d.order = slices.DeleteFunc(d.order, func(o string) bool { return o == id })
}

// call makes the call, and stores what became of it.
func (d *Desk) call(ctx context.Context, who chela.Principal, key chela.SessionKey, e Errand, id string) (Answer, error) {
	s, err := d.o.Scope(ctx, who, key)
	if err != nil {
		return Answer{}, err
	}
	var deny, allow []string
	if d.o.Direct != nil {
		deny, allow = d.o.Direct()
	}
	s.Policy = append(slices.Clip(s.Policy), policy.Direct(deny, allow, who.IsOwner()))
	book := &book{store: d.o.Store, call: session.Call{
		ID: id, Session: key, State: session.Planned, Updated: time.Now(),
		Wire: llm.ToolCall{ID: id, Name: e.Tool, Args: e.withAction(s.Tools)},
	}}
	s.Session, s.Principal, s.Ledger, s.Alone, s.Started = key, who, book, true, time.Now()
	res, err := d.o.Door.For(s).Invoke(ctx, book.call.Wire, nil)
	if kept := book.close(context.WithoutCancel(ctx)); kept != nil {
		return Answer{}, kept
	}
	if err != nil && !errors.Is(err, tool.ErrStop) {
		return Answer{}, err
	}
	return book.answer(res), nil
}

// withAction returns the arguments with the action, when the tool has that
// argument.
func (e Errand) withAction(set tool.Set) json.RawMessage {
	t, ok := set.Get(e.Tool)
	if !ok || e.Action == "" {
		return e.Args
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(t.Spec().Schema, &schema) != nil || json.Unmarshal(e.Args, &args) != nil || schema.Properties["action"] == nil || args["action"] != nil {
		return e.Args
	}
	action, err1 := json.Marshal(e.Action)
	all := maps.Clone(args)
	all["action"] = action
	b, err2 := json.Marshal(all)
	if err1 != nil || err2 != nil {
		return e.Args
	}
	return b
}

// answer is what the caller is told of a call that has ended.
func (b *book) answer(res tool.Result) Answer {
	a := Answer{Tool: b.call.Wire.Name, Result: res}
	o := b.outcome
	if o.Result == "ok" {
		return a
	}
	switch {
	case o.Rule == "unknown-tool", o.Rule == "owner-only", strings.HasPrefix(o.Rule, "policy "):
		a.Refusal, a.Text = Missing, "Tool not available: "+a.Tool
	case o.Decision == "allowed":
		a.Refusal, a.Text = Broken, "tool execution failed"
	case o.Decision == "refused" && o.Rule == "ledger":
		a.Refusal, a.Text = Invalid, "this call was made before, and what it gave is not known any more"
	case o.Decision == "refused":
		a.Refusal, a.Text = Mistaken, said(res)
	default:
		a.Refusal, a.Text, a.Approval = Blocked, said(res), o.Rule == "approval"
	}
	return a
}

// said is the text of a failure.
func said(res tool.Result) string {
	if len(res.Content) == 0 {
		return "refused"
	}
	var f struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(res.Content[0].Text), &f) != nil || f.Error == "" {
		return res.Content[0].Text
	}
	return f.Error
}
