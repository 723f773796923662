package history

import (
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// Stamp returns a change by a source without its target: where it is undone, and whether
// its content is trusted.
func Stamp(tx store.Tx, s journal.Source, now time.Time) (journal.Change, error) {
	c := journal.Change{ID: uuid.NewString(), Time: now, Source: s, Home: s.Session}
	c.Unit = c.ID
	if s.Run == "" {
		return c, nil
	}
	r, err := tx.Runs().Get(s.Run)
	if errors.Is(err, chela.ErrNotFound) {
		c.Unit = string(s.Run)
		return c, nil
	}
	if err != nil {
		return c, err
	}
	c.Unit, c.Origin, c.By = string(r.Tree()), r.Origin, r.Principal.ID
	if root := r.Tree(); root != r.ID {
		top, err := tx.Runs().Get(root)
		if err == nil {
			c.Home = top.Session
		} else if !errors.Is(err, chela.ErrNotFound) {
			return c, err
		}
	}
	c.Doubt, err = doubt(tx, r)
	return c, err
}

// maxCalls is the number of calls of a run that are searched for those that read pages.
const maxCalls = 200

// doubt returns why what a run writes is not trusted; empty: it is.
func doubt(tx store.Tx, r run.Run) (string, error) {
	switch {
	case r.Origin.Kind == chela.OriginWebhook, r.Origin.Kind == chela.OriginHook:
		return "the run was started by a " + string(r.Origin.Kind), nil
	case !r.Principal.IsOwner():
		return "the run was for " + r.Principal.ID + ", who is not the owner", nil
	}
	calls, err := tx.Calls().Recent(session.CallQuery{Run: r.ID, Limit: maxCalls})
	if err != nil {
		return "", err
	}
	for _, c := range calls {
		if foreign(c.Wire.Name) && c.State == session.Closed && c.Outcome.Result == session.ResultOK {
			return "the run had read pages or data of others (" + c.Wire.Name + ")", nil
		}
	}
	return "", nil
}

// foreign reports whether a tool returns texts of others.
func foreign(tool string) bool {
	return strings.HasPrefix(tool, "web_") || tool == "browser" || strings.Contains(tool, "__")
}
