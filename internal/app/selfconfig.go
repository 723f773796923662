package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/app/chatconfig"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/tool/gateway"
	"github.com/chela-ai/chela/wire"
)

// selfConfig is the configuration as the assistant reads and changes it.
type selfConfig struct{ e *Engine }

// assistantGateway returns what the tool gateway uses; nil: the configuration is in no
// files.
func (e *Engine) assistantGateway() gateway.Gateway {
	if _, ok := e.o.Config.(*config.Tree); !ok {
		return nil
	}
	return selfConfig{e}
}

func (s selfConfig) Get(path string) (string, string, error) {
	text, err := chatconfig.Config{Tree: s.e.tree}.Get(path)
	return text, s.e.view().Sum(s.e.tree().Now().Hash()), err
}

func (s selfConfig) Lookup(path string) (wire.ConfigKey, bool) { return config.Lookup(path) }

func (s selfConfig) Closed(path string) string { return config.Closed(path) }

func (s selfConfig) Write(ctx context.Context, c tool.Call, change gateway.Change) (wire.ConfigWritten, error) {
	base := change.Base
	if base == "" {
		base = anyBase
	}
	out, err := s.e.change(ctx, base, func(now *config.Tree) (*config.Draft, error) {
		if now.Broken() != nil {
			return nil, fmt.Errorf("the configuration is invalid, and the person must repair it: %w", now.Broken())
		}
		if err := config.RefuseIncludes([]byte(change.Text)); err != nil {
			return nil, err
		}
		edit := now.Rewrite
		if change.Merge {
			edit = func(text []byte) (*config.Draft, error) { return now.Merge(text, change.Replace) }
		}
		d, err := edit([]byte(change.Text))
		if err != nil {
			return nil, err
		}
		return d, refusal(d.Closed())
	}, func(o outcome) bool {
		if !s.e.mustRestart(o) {
			return false
		}
		reason := change.Reason
		if strings.TrimSpace(reason) == "" {
			reason = "changed " + strings.Join(o.cold, ", ")
		}
		// Before the restart: the next process reads from it which session to answer.
		if _, err := s.e.restarts.Record(ctx, c, reason); err != nil {
			s.e.o.Log.Error("the gateway does not restart", "err", err)
			return false
		}
		s.e.restartAfter(s.e.untilRestart(restartDelay))
		return true
	})
	if err != nil {
		return wire.ConfigWritten{}, err
	}
	s.e.o.Log.Info("configuration written by the assistant", "session", c.Session, "reason", change.Reason)
	return s.e.written(out), nil
}

// refusal returns the error about keys that an assistant may not change; nil: there are
// none.
func refusal(closed []config.Problem) error {
	if len(closed) == 0 {
		return nil
	}
	const most = 10
	var keys []string
	for _, p := range closed[:min(most, len(closed))] {
		keys = append(keys, p.Path+" ("+p.Message+")")
	}
	if n := len(closed) - len(keys); n > 0 {
		keys = append(keys, fmt.Sprintf("and %d more", n))
	}
	return chela.Errorf(chela.CodeForbidden,
		"refused, nothing was written: you cannot change %s. The person can, for example with: chela config set %s VALUE",
		strings.Join(keys, ", "), closed[0].Path)
}

// restartCooldown is the shortest time between two restarts that the assistant asks for.
const restartCooldown = 30 * time.Second

// untilRestart returns when the assistant may restart the gateway, not before d has
// passed.
func (e *Engine) untilRestart(d time.Duration) time.Duration {
	if e.asked {
		d = max(d, time.Until(e.started.Add(restartCooldown)))
	}
	return max(d, restartDelay)
}

func (s selfConfig) Restart(ctx context.Context, c tool.Call, reason string,
	delay time.Duration) (time.Duration, error) {
	switch {
	case s.e.port == nil:
		return 0, chela.Errorf(chela.CodeUnavailable, "this process cannot restart itself; the person must start it again")
	case !s.e.now().Settings.Slash.Allowed().Restart:
		return 0, chela.Errorf(chela.CodeForbidden,
			"restarts are disabled; the person can enable them with: chela config set commands.restart true")
	}
	if _, err := s.e.restarts.Record(ctx, c, reason); err != nil {
		return 0, err
	}
	d := s.e.untilRestart(delay)
	s.e.restartAfter(d)
	return d, nil
}

// answerRestarts tells the sessions that asked for this start of the gateway.
func (e *Engine) answerRestarts() error {
	failure := ""
	if t := e.tree(); t != nil && t.Broken() != nil {
		failure = e.o.Secrets.Redact(secret.RedactCredentials(t.Broken().Error()))
	}
	n, err := e.restarts.Answer(context.Background(), failure)
	e.asked = n > 0
	return err
}
