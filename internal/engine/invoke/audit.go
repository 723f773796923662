package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// record passes the outcome of a call to the ledger and the log: the principal,
// the tool, what decided, and how it ended. Arguments are shortened and secrets
// in them are masked.
func (k *call) record(ctx context.Context, res tool.Result, err error) {
	x, s := k.v.x, &k.v.s
	suspended := errors.Is(err, tool.ErrSuspended)
	logs := x.log.Enabled(ctx, slog.LevelInfo)
	if !logs && (s.Ledger == nil || suspended) {
		return
	}
	o := session.Outcome{
		Who: s.Principal.ID, Decision: k.decision, Rule: k.rule, Result: session.ResultOK, Took: time.Since(k.started),
	}
	switch {
	case err != nil && ctx.Err() != nil:
		o.Result = session.ResultAborted
	case suspended:
		o.Result = session.ResultSuspended
	case k.decision == session.DecisionStopped, err != nil && !errors.Is(err, tool.ErrStop):
		o.Result = session.ResultStopped
	case res.IsError:
		o.Result = session.ResultError
	}
	if s.Ledger != nil && !suspended {
		o.Ran = x.shortArgs(k.args, secret.Mask)
		s.Ledger.Ended(k.wire, o)
	}
	if !logs {
		return
	}
	attrs := []slog.Attr{
		slog.String("principal", o.Who), slog.String("agent", string(s.Agent)),
		slog.String("session", string(s.Session)), slog.String("run", string(s.Run)),
		slog.String("tool", k.name()), slog.String("args", x.shortArgs(k.args, logged)),
		slog.String("decision", string(o.Decision)), slog.String("rule", o.Rule),
		slog.String("outcome", string(o.Result)), slog.Duration("took", o.Took),
	}
	if res.IsError {
		attrs = append(attrs, slog.String("error", humanize.TruncateBytes(errorText(res), maxErrorText)))
	}
	x.log.LogAttrs(ctx, slog.LevelInfo, "tool call", attrs...)
}

// shortArgs returns arguments for the record or the log. Known secrets, credentials in
// addresses, and what hide hides are removed before anything is truncated, because a
// truncated one would not be recognized.
func (x *Executor) shortArgs(args json.RawMessage, hide func(string) string) string {
	return masked(json.RawMessage(secret.RedactAddresses(x.redact(string(args)))), hide)
}

// logged leaves to the log what it hides, which is configured.
func logged(text string) string { return text }

// secretWords are parts of the names of arguments whose values are not logged.
var secretWords = [...]string{"key", "token", "secret", "password", "passwd", "auth", "credential", "cookie"}

// Limits of a log line, in bytes.
const (
	maxArgText   = 80 // of one string in the arguments
	maxErrorText = 200
)

// masked returns arguments in a line, without values of secrets.
func masked(args json.RawMessage, hide func(string) string) string {
	// no part of it is too long
	if text := string(args); len(text) <= maxArgText && !isSecret(text) && hide(text) == text {
		var b bytes.Buffer
		if json.Compact(&b, args) != nil {
			return "(invalid JSON)"
		}
		return b.String()
	}
	v, err := decode(args)
	if err != nil {
		return "(invalid JSON)"
	}
	b, err := json.Marshal(mask(v, hide))
	if err != nil {
		return "(invalid JSON)"
	}
	return humanize.TruncateBytes(string(b), 400)
}

func mask(v any, hide func(string) string) any {
	switch v := v.(type) {
	case map[string]any:
		for name, val := range v {
			if isSecret(name) {
				v[name] = "[redacted]"
			} else {
				v[name] = mask(val, hide)
			}
		}
	case []any:
		for i := range v {
			v[i] = mask(v[i], hide)
		}
	case string:
		return humanize.TruncateBytes(hide(v), maxArgText)
	}
	return v
}

func isSecret(name string) bool {
	name = strings.ToLower(name)
	for _, w := range secretWords {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}
