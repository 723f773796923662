package message

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/spelling"
)

const (
	maxShown   = 10  // candidates that an error lists
	maxName    = 40  // characters of a name in an error
	maxNearest = 5   // names that an error suggests
	maxScanned = 500 // entries that are compared with a misspelled name
)

// find returns the chat with an id, or with a name in the directory of the account. A name
// that fits several entries is an error that lists them.
func (a *Actor) find(ctx context.Context, acc channel.Account, w channel.Target) (chela.Peer, error) {
	as := chela.Peer{Kind: cmp.Or(w.Kind, chela.Direct), ID: w.ID}
	if _, ok := channel.As[channel.Directory](acc.Can); !ok || isID(w.ID) || listed(acc.Section, w.ID) {
		return as, nil
	}
	found, err := a.search(ctx, acc, w.Kind, strings.TrimLeft(w.ID, "@#"), action.MaxList)
	if err != nil {
		return as, chela.Errorf(chela.CodeUnavailable, "look up %q on %s: %w", w.ID, acc, err)
	}
	name := bare(w.ID)
	exact := slices.DeleteFunc(slices.Clone(found), func(e channel.Entry) bool {
		return bare(e.Name) != name && bare(e.Handle) != name && e.Peer.ID != w.ID
	})
	if len(exact) > 0 {
		found = exact
	}
	switch len(found) {
	case 0:
		return a.unnamed(ctx, acc, w)
	case 1:
		return found[0].Peer, nil
	}
	return as, chela.Errorf(chela.CodeInvalid, "%q fits %s on %s; nothing was done. Use one of: %s", w.ID,
		humanize.Many(len(found), "entry"), acc.Channel, list(found, maxShown))
}

// listed reports whether the section of an account names a person or a group by an id.
func listed(section json.RawMessage, id string) bool {
	var s struct {
		Allow  []any          `json:"allowFrom"`
		Group  []any          `json:"groupAllowFrom"`
		Groups map[string]any `json:"groups"`
	}
	if json.Unmarshal(section, &s) != nil {
		return false
	}
	_, group := s.Groups[id]
	return group || slices.Contains(s.Allow, any(id)) || slices.Contains(s.Group, any(id))
}

// bare returns a name in lower case without the sign of a user or room.
func bare(name string) string { return strings.ToLower(strings.TrimLeft(name, "@#")) }

// isID reports whether a text looks like the id of a chat and not like its name. It is not
// looked up.
func isID(s string) bool {
	digits := strings.Trim(s, "0123456789") == "" ||
		strings.Trim(s[1:], "0123456789") == "" && (s[0] == '-' || s[0] == '+')
	switch {
	case digits:
		return true
	case strings.Contains(s, " "):
		return false
	case strings.ContainsAny(s[1:], ":@"), strings.Count(s, "-") == 4 && len(s) == 36: // an address, a UUID
		return true
	}
	return len(s) >= 8 && strings.ContainsAny(s, "0123456789") && s == strings.ToUpper(s)
}

// unnamed returns the entry of the directory with an id, or an error that suggests the
// nearest names.
func (a *Actor) unnamed(ctx context.Context, acc channel.Account, w channel.Target) (chela.Peer, error) {
	all, err := a.search(ctx, acc, w.Kind, "", maxScanned)
	if i := slices.IndexFunc(all, func(e channel.Entry) bool { return e.Peer.ID == w.ID }); i >= 0 {
		return all[i].Peer, nil
	}
	if err != nil || len(all) == 0 {
		return chela.Peer{}, chela.Errorf(chela.CodeNotFound, "nobody and no chat on %s is named %q", acc.Channel, w.ID)
	}
	name := bare(w.ID)
	far := func(e channel.Entry) int {
		d := spelling.Distance(name, bare(e.Name))
		if e.Handle != "" {
			d = min(d, spelling.Distance(name, bare(e.Handle)))
		}
		return d
	}
	slices.SortStableFunc(all, func(a, b channel.Entry) int { return cmp.Compare(far(a), far(b)) })
	return chela.Peer{}, chela.Errorf(chela.CodeNotFound, "nobody and no chat on %s is named %q; the nearest are %s",
		acc.Channel, w.ID, list(all, maxNearest))
}

// list lists entries as targets with their names.
func list(entries []channel.Entry, most int) string {
	var out []string
	for _, e := range entries[:min(len(entries), most)] {
		out = append(out, show(e))
	}
	if len(entries) > most {
		out = append(out, "…")
	}
	return strings.Join(out, ", ")
}

// show returns an entry as a target, with its name. People choose their names.
func show(e channel.Entry) string {
	word := map[chela.PeerKind]string{chela.Direct: "user:", chela.Group: "group:", chela.Room: "channel:"}[e.Peer.Kind]
	named := func(s string) string { return humanize.Truncate(strings.Join(strings.Fields(s), " "), maxName) }
	s := word + e.Peer.ID + " (" + named(e.Name)
	if e.Handle != "" {
		s += ", @" + named(e.Handle)
	}
	return s + ")"
}

// search looks into the directory of an account.
func (a *Actor) search(ctx context.Context, acc channel.Account, kind chela.PeerKind, query string,
	n int) (found []channel.Entry, err error) {
	err = a.call(ctx, acc, func(ctx context.Context, ch channel.Channel) error {
		d, ok := channel.As[channel.Directory](ch)
		if !ok {
			return unsupported(action.Search, acc)
		}
		found, err = d.Search(ctx, kind, query, n)
		return err
	})
	return found, err
}

// lookUp carries out [action.Search].
func (a *Actor) lookUp(ctx context.Context, c caller, r action.Request) (action.Result, error) {
	accounts := a.o.Accounts()
	name := canonical(accounts, r.Channel)
	if name == "" {
		var err error
		if name, err = defaultChannel(accounts, c); err != nil {
			return action.Result{}, err
		}
	}
	acc, err := a.account(c, name, r.Account)
	if err == nil {
		err = supports(acc, r.Action)
	}
	if err != nil {
		return action.Result{}, err
	}
	res := action.Result{Action: r.Action, Channel: acc.Channel, Account: acc.ID, Status: action.Done}
	if r.Dry {
		res.Status, res.Text = action.Planned,
			fmt.Sprintf("Nothing was done. It would search the directory of %s for %q.", acc, r.Query)
		return res, nil
	}
	if res.Entries, err = a.search(ctx, acc, r.Kind, r.Query, r.Limit); err != nil {
		return res, chela.Errorf(chela.CodeUnavailable, "directory of %s: %w", acc, err)
	}
	res.Text = fmt.Sprintf("%s on %s.", humanize.Many(len(res.Entries), "entry"), acc)
	return res, nil
}
