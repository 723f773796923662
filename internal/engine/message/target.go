package message

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// target is where an action is carried out: a chat of an account, or a local session.
type target struct {
	account channel.Account
	address chela.Address
	session chela.SessionKey // set for a local session
	index   int              // among the targets of the request
}

func (p target) local() bool { return p.session != "" }

func (p target) name() string {
	if p.local() {
		return chela.LocalChannel
	}
	return p.address.Channel
}

func (p target) id() string {
	if p.local() {
		return string(p.session)
	}
	id := p.address.Peer.ID
	if p.address.Thread != "" {
		id += channel.TopicPart + p.address.Thread
	}
	return id
}

// String returns channel:chat.
func (p target) String() string { return p.name() + ":" + p.id() }

// result returns a result at the place.
func (p target) result(a action.Action, s action.Status, text string) action.Result {
	return action.Result{Action: a, Channel: p.name(), Account: p.address.Account, To: p.id(), Status: s, Text: text}
}

// localNames are the channel names for chats that clients read.
var localNames = []string{chela.LocalChannel, "repl", "web", "webchat", "tui", "terminal"}

// target determines where a request is carried out. to is the target of the request, or one
// of several.
func (a *Actor) target(ctx context.Context, c caller, r action.Request, to string) (target, error) {
	w := channel.ParseTarget(to)
	w.Thread = cmp.Or(r.Thread, w.Thread)
	accounts := a.o.Accounts()
	named, inTarget := canonical(accounts, r.Channel), canonical(accounts, w.Channel)
	if named != "" && inTarget != "" && named != inTarget {
		return target{}, chela.Errorf(chela.CodeInvalid, "the target %q is on %s, but the channel is %s; omit one of them",
			to, inTarget, named)
	}
	name := cmp.Or(named, inTarget)
	if strings.HasPrefix(w.ID, "agent:") && name == "" || slices.Contains(localNames, name) ||
		name == "" && w.ID == "" && c.here.Local() && !c.person() {
		return a.session(ctx, c, r, w.ID)
	}
	if name == "" {
		var err error
		if name, err = defaultChannel(accounts, c); err != nil {
			return target{}, err
		}
	}
	p, err := a.chat(ctx, c, r, name, w)
	if err != nil {
		return target{}, err
	}
	return p, cmp.Or(checkCross(c, p), checkForeign(c, r.Action, p), a.checkSends(ctx, c, r.Action, p))
}

// canonical returns the name of a channel from its name in any case or an alias.
func canonical(accounts []channel.Account, name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, acc := range accounts {
		if slices.Contains(acc.Aliases, name) &&
			!slices.ContainsFunc(accounts, func(o channel.Account) bool { return o.Channel == name }) {
			return acc.Channel
		}
	}
	return name
}

// names returns the names of the channels with accounts.
func names(accounts []channel.Account) []string {
	var out []string
	for _, acc := range accounts {
		if !slices.Contains(out, acc.Channel) {
			out = append(out, acc.Channel)
		}
	}
	return out
}

// defaultChannel returns the channel to use if none is named: that of the caller's chat, or
// the only one configured.
func defaultChannel(accounts []channel.Account, c caller) (string, error) {
	if !c.here.Local() {
		return c.here.Channel, nil
	}
	switch list := names(accounts); {
	case len(list) == 1:
		return list[0], nil
	case len(list) > 1:
		return "", chela.Errorf(chela.CodeInvalid, "channel is missing: choose one of %s", strings.Join(list, ", "))
	case c.person():
		return "", chela.Errorf(chela.CodeInvalid, "no channel is configured")
	}
	return "", chela.Errorf(chela.CodeInvalid,
		"no channel is configured; there is only this local chat, which receives your answer (channel local)")
}

// account returns the account of a channel that is used for a chat: the named one, or that of
// the chat, or the usual one. It must be running.
func (a *Actor) account(c caller, name string, ids ...string) (channel.Account, error) {
	var all []channel.Account
	list := a.o.Accounts()
	for _, acc := range list {
		if acc.Channel == name {
			all = append(all, acc)
		}
	}
	if len(all) == 0 {
		return channel.Account{}, unknownChannel(list, c, name)
	}
	for i, id := range ids { // the first one was named
		for _, acc := range all {
			if id != "" && (string(acc.ID) == id || acc.ID == "") {
				if acc.ID == "" { // the instance serves every account
					acc.ID = chela.AccountID(id)
				}
				return running(acc)
			}
		}
		if i == 0 && id != "" {
			return channel.Account{}, chela.Errorf(chela.CodeInvalid, "%s has no account %q; there is %s", name, id,
				accountIDs(all))
		}
	}
	for _, acc := range all {
		if acc.Usual {
			return running(acc)
		}
	}
	return channel.Account{}, chela.Errorf(chela.CodeInvalid, "accountId is missing: choose one of the accounts of %s: %s",
		name, accountIDs(all))
}

func running(acc channel.Account) (channel.Account, error) {
	if acc.Err != nil {
		return acc, chela.Errorf(chela.CodeUnavailable, "channel %s is not running: %w", acc, acc.Err)
	}
	return acc, nil
}

func accountIDs(all []channel.Account) string {
	var out []string
	for _, acc := range all {
		out = append(out, cmp.Or(string(acc.ID), "only the usual one"))
	}
	return strings.Join(out, ", ")
}

func unknownChannel(accounts []channel.Account, c caller, name string) error {
	list := names(accounts)
	switch {
	case len(list) == 0 && c.person():
		return chela.Errorf(chela.CodeInvalid, "there is no channel %q; no channels are configured", name)
	case len(list) == 0:
		return chela.Errorf(chela.CodeInvalid,
			"there is no channel %q; no channels are configured, only local sessions (channel local)", name)
	case !c.person():
		list = append(list, chela.LocalChannel)
	}
	return chela.Errorf(chela.CodeInvalid, "there is no channel %q; available: %s", name, strings.Join(list, ", "))
}

// chat returns a chat of a channel. For a chat that has written before, the account and the
// kind are known.
func (a *Actor) chat(ctx context.Context, c caller, r action.Request, name string, w channel.Target) (target, error) {
	if c.here.Channel == name && (w.ID == "" || w.ID == c.here.Peer.ID) && (w.Kind == "" || w.Kind == c.here.Peer.Kind) {
		to := c.here
		to.Thread = cmp.Or(w.Thread, to.Thread)
		acc, err := a.account(c, name, r.Account, string(to.Account))
		if err == nil {
			err = supports(acc, r.Action)
		}
		to.Account = acc.ID
		return target{account: acc, address: to}, err
	}
	known, err := a.known(ctx, c, name, w)
	if err != nil {
		return target{}, err
	}
	of := ""
	if c.here.Channel == name {
		of = string(c.here.Account)
	}
	acc, err := a.account(c, name, r.Account, string(known.Account), of)
	if err != nil {
		return target{}, err
	}
	if err := supports(acc, r.Action); err != nil {
		return target{}, err
	}
	if w.ID == "" {
		return target{}, chela.Errorf(chela.CodeInvalid, "to is missing: give a chat on %s", name)
	}
	to := chela.Address{Channel: name, Account: acc.ID, Peer: known.Peer, Thread: w.Thread}
	if known.Peer.ID == "" {
		if to.Peer, err = a.find(ctx, acc, w); err != nil {
			return target{}, err
		}
	}
	return target{account: acc, address: to}, nil
}

// known returns the latest address with an id from which messages were received; the zero
// Address: there is none.
func (a *Actor) known(ctx context.Context, c caller, name string, w channel.Target) (chela.Address, error) {
	if w.ID == "" {
		return chela.Address{}, nil
	}
	return store.Get(ctx, a.o.Store, func(r store.Reader) (chela.Address, error) {
		list, _, err := r.Sessions().List(session.Query{Agent: c.Agent, Archived: session.ArchivedToo, Limit: 1000})
		for _, m := range list {
			if k := m.Address; k.Channel == name && k.Peer.ID == w.ID && (w.Kind == "" || w.Kind == k.Peer.Kind) {
				return k, nil
			}
		}
		return chela.Address{}, err
	})
}

// session returns a local chat: that of the caller, or the one with a key.
func (a *Actor) session(ctx context.Context, c caller, r action.Request, key string) (target, error) {
	p := target{session: c.Session}
	if c.person() {
		return p, &chela.Error{Code: chela.CodeInvalid, Message: "clients read local sessions; name a chat on a channel",
			Hint: "chela agent --message TEXT"}
	}
	if r.Action != action.Send && r.Action != action.Broadcast {
		return p, chela.Errorf(chela.CodeInvalid, "%s is not supported in local chats; they support %s",
			r.Action, action.Send)
	}
	if key != "" && key != "default" {
		k, err := chela.ParseSessionKey(key, c.Agent)
		if err != nil {
			return p, err
		}
		p.session = k
	}
	if p.session.Agent() != c.Agent {
		return p, fmt.Errorf("session %s belongs to another agent", p.session)
	}
	_, err := store.Get(ctx, a.o.Store, func(r store.Reader) (session.Meta, error) { return r.Sessions().Get(p.session) })
	if errors.Is(err, chela.ErrNotFound) {
		return p, fmt.Errorf("there is no session %s", p.session)
	}
	if err == nil && p.session != c.Session {
		err = checkCross(c, p)
	}
	return p, err
}

// supports returns an error that names the actions of an account if it does not support one.
func supports(acc channel.Account, act action.Action) error {
	able := slices.Contains(action.Of(acc.Can), act)
	if acc.Can == nil || able && action.Allowed(acc.Section, act) {
		return nil
	}
	if able {
		return chela.Errorf(chela.CodeForbidden, "%s is switched off (channels.%s.actions); %s allows %s", act, acc.Channel,
			acc.Channel, supported(acc))
	}
	return unsupported(act, acc)
}

func unsupported(act action.Action, acc channel.Account) error {
	return chela.Errorf(chela.CodeInvalid, "%s is not supported on %s; it supports %s", act, acc.Channel, supported(acc))
}

// supported lists the actions of an account.
func supported(acc channel.Account) string {
	var out []string
	for _, x := range action.Of(acc.Can) {
		if action.Allowed(acc.Section, x) {
			out = append(out, string(x))
		}
	}
	return cmp.Or(strings.Join(out, ", "), "nothing")
}

// checkCross returns an error if a chat on a channel may not send to a place. Local chats
// belong to the owner and may send everywhere.
func checkCross(c caller, p target) error {
	if c.here.Local() {
		return nil
	}
	if p.name() != c.here.Channel {
		if c.Cross.Across {
			return nil
		}
		return chela.Errorf(chela.CodeForbidden,
			"chats on %s may not send to %s (tools.message.crossContext.allowAcrossProviders)", c.here.Channel, p.name())
	}
	if p.address.Peer != c.here.Peer && c.Cross.Within != nil && !*c.Cross.Within {
		return chela.Errorf(chela.CodeForbidden,
			"this chat may not send to other chats on %s (tools.message.crossContext.allowWithinProvider)", c.here.Channel)
	}
	return nil
}

// checkForeign returns an error if the run of a person who is not the owner would read or
// change what stands in another chat.
func checkForeign(c caller, act action.Action, p target) error {
	switch act {
	case action.Send, action.Broadcast, action.Poll, action.Search:
		return nil
	}
	if c.owner || c.here.Local() || p.address.Channel == c.here.Channel && p.address.Account == c.here.Account &&
		p.address.Peer == c.here.Peer {
		return nil
	}
	return chela.Errorf(chela.CodeForbidden, "only the owner may use %s in another chat than this one", act)
}

// checkSends returns an error if what the session of the caller says is not sent to a place.
func (a *Actor) checkSends(ctx context.Context, c caller, act action.Action, p target) error {
	if c.person() || act == action.Read {
		return nil
	}
	ok, err := store.Get(ctx, a.o.Store, func(r store.Reader) (bool, error) {
		return session.MaySend(r.Sessions(), c.Session, p.address, a.o.Sends)
	})
	if err == nil && !ok {
		err = chela.Errorf(chela.CodeForbidden, "sending to %s is off (/send of the session, or session.sendPolicy)", p)
	}
	return err
}
