package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/tool"
)

// record gives what became of a call to the ledger and the log: who called
// what, what decided, and how it ended. Arguments are short, and secrets in
// them are masked.
func (k *call) record(ctx context.Context, res tool.Result, err error) {
	d, s := k.v.d, &k.v.s
	waits := errors.Is(err, tool.ErrSuspended)
	logs := d.log.Enabled(ctx, slog.LevelInfo)
	if !logs && (s.Ledger == nil || waits) {
		return
	}
	o := session.Outcome{
		Who: s.Principal.ID, Ran: d.short(k.args), Decision: k.decision, Rule: k.rule, Result: "ok", Took: time.Since(k.begun),
	}
	switch {
	case err != nil && ctx.Err() != nil:
		o.Result = "aborted"
	case waits:
		o.Result = "suspended"
	case k.decision == "stopped", err != nil && !errors.Is(err, tool.ErrStop):
		o.Result = "stopped"
	case res.IsError:
		o.Result = "error"
	}
	if s.Ledger != nil && !waits {
		s.Ledger.Ended(k.wire, o)
	}
	attrs := []slog.Attr{
		slog.String("principal", o.Who), slog.String("agent", string(s.Agent)),
		slog.String("session", string(s.Session)), slog.String("run", string(s.Run)),
		slog.String("tool", k.name()), slog.String("args", o.Ran),
		slog.String("decision", o.Decision), slog.String("rule", o.Rule),
		slog.String("outcome", o.Result), slog.Duration("took", o.Took),
	}
	if res.IsError {
		attrs = append(attrs, slog.String("error", clip(said(res), maxErrorText)))
	}
	d.log.LogAttrs(ctx, slog.LevelInfo, "tool call", attrs...)
}

// short returns arguments for the record. Known secrets go before anything is
// cut: half of one would not be known.
func (d *Door) short(args json.RawMessage) string {
	return masked(json.RawMessage(d.redact(string(args))))
}

// secretWords mark an argument whose value is not logged.
var secretWords = [...]string{"key", "token", "secret", "password", "passwd", "auth", "credential", "cookie"}

// Bounds of a log line, in bytes.
const (
	maxArgText   = 80 // of one text among the arguments
	maxErrorText = 200
)

// masked returns arguments for a log line.
func masked(args json.RawMessage) string {
	if len(args) <= maxArgText && !isSecret(string(args)) { // nothing in it can be too long
		var b bytes.Buffer
		if json.Compact(&b, args) != nil {
			return "(not readable)"
		}
		return b.String()
	}
	v, err := decode(args)
	if err != nil {
		return "(not readable)"
	}
	b, err := json.Marshal(mask(v))
	if err != nil {
		return "(not readable)"
	}
	return clip(string(b), 400)
}

func mask(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, val := range v {
			if isSecret(name) {
				v[name] = "[redacted]"
			} else {
				v[name] = mask(val)
			}
		}
	case []any:
		for i := range v {
			v[i] = mask(v[i])
		}
	case string:
		return clip(v, maxArgText)
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
