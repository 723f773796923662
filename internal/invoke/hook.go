package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/tool"
)

// HookCall is a call as hooks see it.
type HookCall struct {
	Agent   chela.AgentID
	Session chela.SessionKey
	Run     chela.RunID
	ID      string
	Tool    string
	Args    json.RawMessage
}

// Verdict is what a Before hook says. The zero Verdict has no opinion.
type Verdict struct {
	Block  bool
	Reason string          // of Block
	Args   json.RawMessage // to be used instead; nil: as they are
}

// Before is asked before a call is judged. Hooks run by descending Priority,
// those of the same in their order; each sees the arguments that the one
// before it left. The first that blocks decides. One that fails is logged and
// passed over.
type Before struct {
	Name       string
	Priority   int
	Timeout    time.Duration // 0: none
	FailClosed bool          // taking longer than Timeout blocks the call
	Func       func(context.Context, HookCall) (Verdict, error)
}

// After is told of a call whose tool has run: its result, the tool's error if
// it had one, and how long it took. What it does changes nothing.
type After func(ctx context.Context, c HookCall, r tool.Result, err error, took time.Duration)

var errHookTimeout = errors.New("the hook took too long")

func (k *call) hookCall() HookCall {
	s := &k.v.s
	return HookCall{Agent: s.Agent, Session: s.Session, Run: s.Run, ID: k.wire.ID, Tool: k.spec.Name, Args: k.args}
}

// hook asks the Before hooks.
func (k *call) hook(ctx context.Context) *verdict {
	log := k.v.d.log
	for _, b := range k.v.d.before {
		v, err := b.ask(ctx, k.hookCall())
		switch {
		case ctx.Err() != nil:
			return &verdict{err: ctx.Err()}
		case errors.Is(err, errHookTimeout) && b.FailClosed:
			return k.refuse("blocked", "hook:"+b.Name, fmt.Sprintf("blocked: the hook %s did not answer within %v", b.Name, b.Timeout))
		case err != nil:
			log.Warn("hook before a tool call failed; going on without it", "hook", b.Name, "tool", k.spec.Name, "err", err)
			continue
		case v.Block:
			return k.refuse("blocked", "hook:"+b.Name, "blocked: "+v.Reason)
		}
		if v.Args == nil {
			continue
		}
		if err := k.rewrite(v.Args); err != nil {
			return k.refuse("refused", "hook:"+b.Name, fmt.Sprintf("the hook %s gave arguments that the tool does not take: %v", b.Name, err))
		}
		log.Info("hook rewrote tool arguments", "hook", b.Name, "tool", k.spec.Name, "was", masked(k.wire.Args), "args", masked(k.args))
	}
	return nil
}

// rewrite takes a hook's arguments for the call's.
func (k *call) rewrite(args json.RawMessage) error {
	s, err := k.v.d.schemas.of(k.spec)
	if err == nil {
		err = s.validate(args)
	}
	if err == nil {
		k.args = args
	}
	return err
}

// ask runs the hook within its time. One that ignores that its context ended
// is left behind.
func (b *Before) ask(ctx context.Context, c HookCall) (Verdict, error) {
	if b.Timeout <= 0 {
		return b.safely(ctx, c)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.Timeout, errHookTimeout)
	defer cancel()
	type answer struct {
		v   Verdict
		err error
	}
	done := make(chan answer, 1)
	go func() {
		v, err := b.safely(ctx, c)
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		if a.err != nil && ctx.Err() != nil {
			return a.v, context.Cause(ctx)
		}
		return a.v, a.err
	case <-ctx.Done():
		return Verdict{}, context.Cause(ctx)
	}
}

func (b *Before) safely(ctx context.Context, c HookCall) (v Verdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return b.Func(ctx, c)
}

// told tells the After hooks.
func (k *call) told(ctx context.Context, res tool.Result, err error, took time.Duration) {
	for _, f := range k.v.d.after {
		func() {
			defer func() {
				if p := recover(); p != nil {
					k.v.d.log.Warn("hook after a tool call failed", "tool", k.spec.Name, "err", fmt.Sprint(p))
				}
			}()
			f(ctx, k.hookCall(), res, err, took)
		}()
	}
}
