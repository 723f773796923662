package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/tool"
)

// audit logs what became of a call: who called what, what decided, and how it
// ended. Arguments are short, and secrets in them are masked.
func (k *call) audit(ctx context.Context, res tool.Result, err error) {
	if !k.v.d.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	outcome := "ok"
	switch {
	case err != nil && ctx.Err() != nil:
		outcome = "aborted"
	case errors.Is(err, tool.ErrSuspended):
		outcome = "suspended"
	case err != nil:
		outcome = "stopped"
	case res.IsError:
		outcome = "error"
	}
	s := &k.v.s
	k.v.d.log.LogAttrs(ctx, slog.LevelInfo, "tool call",
		slog.String("principal", s.Principal.ID), slog.String("agent", string(s.Agent)),
		slog.String("session", string(s.Session)), slog.String("run", string(s.Run)),
		slog.String("tool", k.name()), slog.String("args", masked(k.args)),
		slog.String("decision", k.decision), slog.String("rule", k.rule),
		slog.String("outcome", outcome), slog.Duration("took", time.Since(k.begun)))
}

// secretWords mark an argument whose value is not logged.
var secretWords = [...]string{"key", "token", "secret", "password", "passwd", "auth", "credential", "cookie"}

const maxArgText = 80 // bytes of one text in a log line

// masked returns arguments for a log line.
func masked(args json.RawMessage) string {
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
