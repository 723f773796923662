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

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
)

// DirectOptions configures a Direct. All fields except Direct are required.
type DirectOptions struct {
	Executor *Executor
	Store    store.Store
	Default  chela.AgentID            // for calls that name no agent
	Agent    func(chela.AgentID) bool // reports whether the agent exists
	// Scope returns the tools of a session and the rules for the principal.
	Scope func(ctx context.Context, who chela.Principal, key chela.SessionKey) (Scope, error)
	// Direct returns the present lists of gateway.tools; nil: both are empty.
	Direct func() (deny, allow []string)
}

// Direct executes single calls outside of runs. They pass the same steps as the
// calls of a model. A call that needs an approval is refused.
type Direct struct {
	o DirectOptions

	mu    sync.Mutex
	calls map[string]*keyedCall // recent calls with a key, by call id
	order []string              // keys of calls, oldest first
}

// NewDirect returns a Direct.
func NewDirect(o DirectOptions) *Direct { return &Direct{o: o, calls: map[string]*keyedCall{}} }

// DirectCall is a call of a client.
type DirectCall struct {
	Tool    string
	Action  string          // sets the argument "action" if the tool has it and Args does not
	Args    json.RawMessage // an object; nil: {}
	Session string          // "": the agent's main session
	Agent   string          // "": the session's
	Key     string          // idempotency key; "": none
}

// Refusal classifies why a call has no result.
type Refusal string

// The refusals.
const (
	Invalid  Refusal = "invalid_request"   // the request is invalid
	Missing  Refusal = "not_found"         // the caller has no such tool
	Blocked  Refusal = "tool_call_blocked" // the call is not allowed
	BadInput Refusal = "tool_input"        // the arguments are invalid
	Failed   Refusal = "tool_error"        // the tool failed
)

// Answer is the outcome of a DirectCall.
type Answer struct {
	Tool     string // its name
	Result   tool.Result
	Refusal  Refusal // "": Result is the result of the tool
	Text     string  // explains Refusal to the caller
	Approval bool    // Refusal is Blocked because the call needs an approval
}

// keyedCall is a call with an idempotency key. Its answer is set when done is
// closed.
type keyedCall struct {
	digest string // of the request
	done   chan struct{}
	answer Answer
	err    error
}

// Do executes a call for the principal. Calls of a principal with the same key are
// executed once; a repetition with other scopes is refused, because it might not get
// the answer by itself. The error is that of ctx or of the store.
func (d *Direct) Do(ctx context.Context, who chela.Principal, e DirectCall) (Answer, error) {
	e.Tool = strings.ToLower(strings.TrimSpace(e.Tool))
	if e.Tool == "" {
		return Answer{Refusal: Invalid, Text: "the name of the tool is missing"}, nil
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
	request := []string{string(key), e.Tool, e.Action, canonical(e.Args)}
	for _, scope := range slices.Sorted(slices.Values(who.Scopes)) {
		request = append(request, string(scope))
	}
	shared, first, err := d.share(id, digest(request...))
	if err != nil {
		return refused(err)
	}
	if first {
		shared.answer, shared.err = d.call(ctx, who, key, e, id)
		if shared.err != nil {
			d.forget(id)
		}
		close(shared.done)
	}
	select {
	case <-shared.done:
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	if shared.err != nil && !first && ctx.Err() == nil { // the first caller cancelled it
		return d.Do(ctx, who, e)
	}
	return shared.answer, shared.err
}

// session returns the session of the call.
func (d *Direct) session(e DirectCall) (chela.SessionKey, error) {
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

// object checks that the arguments are a JSON object; empty ones become {}.
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

// maxKeyed is the number of calls with a key whose answers are retained in memory.
const maxKeyed = 64

// share returns the call with the id. first reports whether the caller must
// execute it.
func (d *Direct) share(id, digest string) (k *keyedCall, first bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.calls[id]; x != nil {
		if x.digest != digest {
			return nil, false, errors.New("the idempotency key was used for another call, or with other scopes")
		}
		return x, false, nil
	}
	if len(d.order) >= maxKeyed {
		delete(d.calls, d.order[0])
		d.order = d.order[1:]
	}
	x := &keyedCall{digest: digest, done: make(chan struct{})}
	d.calls[id], d.order = x, append(d.order, id)
	return x, true, nil
}

// forget allows another attempt of a call that was cancelled. If the call had
// started, its record on disk prevents that.
func (d *Direct) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.calls, id)
	d.order = slices.DeleteFunc(d.order, func(o string) bool { return o == id })
}

// call executes the call and stores its outcome.
func (d *Direct) call(ctx context.Context, who chela.Principal, key chela.SessionKey, e DirectCall,
	id string) (Answer, error) {
	s, err := d.o.Scope(ctx, who, key)
	if err != nil {
		return Answer{}, err
	}
	if t, ok := s.Tools.Find(e.Tool); ok { // by another name
		e.Tool = t.Spec().Name
	}
	var deny, allow []string
	if d.o.Direct != nil {
		deny, allow = d.o.Direct()
	}
	s.Policy = append(slices.Clip(s.Policy), policy.NewCatalog(s.Tools).Direct(deny, allow, who.IsOwner()))
	ledger := &directLedger{store: d.o.Store, call: session.Call{
		ID: id, Session: key, State: session.Planned, Updated: time.Now(),
		Wire: llm.ToolCall{ID: id, Name: e.Tool, Args: e.withAction(s.Tools)},
	}}
	s.Session, s.Principal, s.Ledger, s.Unattended, s.Started = key, who, ledger, true, time.Now()
	view := d.o.Executor.For(s)
	if _, ok := view.lookup(e.Tool); !ok {
		ledger.missing = true
	}
	res, err := view.Invoke(ctx, ledger.call.Wire, nil)
	if err := ledger.close(context.WithoutCancel(ctx)); err != nil {
		return Answer{}, err
	}
	if err != nil && !errors.Is(err, tool.ErrStop) {
		return Answer{}, err
	}
	return ledger.answer(res), nil
}

// withAction returns the arguments with the action, if the tool has that argument.
func (e DirectCall) withAction(set tool.Set) json.RawMessage {
	t, ok := set.Get(e.Tool)
	if !ok || e.Action == "" {
		return e.Args
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(t.Spec().Schema, &schema) != nil || json.Unmarshal(e.Args, &args) != nil ||
		schema.Properties["action"] == nil || args["action"] != nil {
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

// answer returns the answer of a call that has ended.
func (l *directLedger) answer(res tool.Result) Answer {
	a := Answer{Tool: l.call.Wire.Name, Result: res}
	o := l.outcome
	switch {
	case o.Result == session.ResultOK:
	case l.missing:
		a.Refusal, a.Text = Missing, "Tool not available: "+a.Tool
	case o.Decision == session.DecisionAllowed:
		a.Refusal, a.Text = Failed, "tool execution failed"
	case l.repeated:
		a.Refusal, a.Text = Invalid, "this call was made before, and its result is no longer known"
	case o.Decision == session.DecisionRefused:
		a.Refusal, a.Text = BadInput, errorText(res)
	default:
		a.Refusal, a.Text, a.Approval = Blocked, errorText(res), o.Rule == "approval"
	}
	return a
}

// errorText returns the error text of a failed result.
func errorText(res tool.Result) string {
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
