package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/engine/history"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Undo takes back what was changed; see package history.
type Undo interface {
	Preview(ctx context.Context, place chela.SessionKey, r history.Request) (history.Plan, error)
	Apply(ctx context.Context, place chela.SessionKey, hash string) (history.Plan, []history.Outcome, error)
	LastUndo(ctx context.Context, key chela.SessionKey) (time.Time, int, error)
}

func undoCommands() []Command {
	return []Command{{
		Name: "undo", Group: "session", Args: "[number | since <time> | undo | yes]", Scope: chela.ScopeAdmin,
		Help:   "take back what the last turns changed: files, settings and jobs; shows a plan first, which /undo yes carries out",
		before: undo,
	}}
}

const undoUsage = "Usage: /undo [number of turns], /undo since <time>, /undo undo, and then /undo yes. A time is 14:00, 2h or 2026-11-24 09:30."

// undo is /undo. It changes files, so that it precedes the command's commit; what it does is
// recorded for itself.
func undo(ctx context.Context, k *call) (string, error) {
	u := k.g.o.Undo
	if u == nil {
		return "", refuse{"/undo is not available here."}
	}
	zone, private := k.g.o.Zone(), k.in.Address.Private()
	word, rest := cut(k.args)
	r := history.Request{Session: k.key, Units: 1}
	switch n, err := strconv.Atoi(word); {
	case strings.EqualFold(word, "yes") && rest == "":
		return k.undoYes(ctx, zone, private)
	case word == "":
	case strings.EqualFold(word, "undo") && rest == "":
		r.Undo = true
	case strings.EqualFold(word, "since"):
		if r.Since, err = history.ParseTime(rest, time.Now().In(zone)); err != nil {
			return "", chela.Errorf(chela.CodeInvalid, "%w", err)
		}
		r.Units = 0
	case err == nil && n > 0 && rest == "":
		r.Units = n
	default:
		return "", refuse{undoUsage}
	}
	p, err := u.Preview(ctx, k.key, r)
	if err != nil {
		return "", err
	}
	return p.Text(zone, private, "/undo yes"), nil
}

// undoYes carries out the plan that was shown last.
func (k *call) undoYes(ctx context.Context, zone *time.Location, private bool) (string, error) {
	u := k.g.o.Undo
	p, out, err := u.Apply(ctx, k.key, "")
	switch {
	case errors.Is(err, history.ErrNothing):
		text := "No undo waits for a yes. Use /undo to see what can be undone."
		at, n, err := u.LastUndo(ctx, k.key)
		if err == nil && n > 0 {
			text += fmt.Sprintf(" The last undo, %s, took back %s; /undo undo restores them.",
				at.In(zone).Format("2006-01-02 15:04"), humanize.Many(n, "change"))
		}
		return "", cmp.Or(err, error(refuse{text}))
	case errors.Is(err, history.ErrChanged):
		if p, err = u.Preview(ctx, k.key, p.Request); err != nil {
			return "", err
		}
		return "Nothing was undone, because something has changed since the plan was shown. This is the new one.\n\n" +
			p.Text(zone, private, "/undo yes"), nil
	case err != nil:
		return "", err
	}
	return history.Report(out) + "\n\n/undo undo takes this back.", nil
}

// sourced returns a context in which the changes of a command are recorded as those of the
// command.
func (k *call) sourced(ctx context.Context, c Command) context.Context {
	return journal.WithSource(ctx, journal.Source{Agent: k.key.Agent(), Session: k.key, Tool: "/" + c.Name, By: k.who.ID})
}
