package cron

import (
	"cmp"
	"fmt"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// target is where something goes.
type target struct {
	none    bool             // nowhere
	url     string           // of a webhook
	address chela.Address    // of a chat on a channel
	session chela.SessionKey // a session that clients read, without a channel
	err     error            // why the wanted target cannot be used; the session is told instead
}

// destination returns the target as it is recorded.
func (t target) destination() job.Destination {
	switch {
	case t.none:
		return job.Destination{Mode: job.None}
	case t.url != "":
		return job.Destination{Mode: job.Webhook, To: t.url}
	case t.session != "":
		return job.Destination{Mode: job.Announce, Channel: chela.LocalChannel, To: string(t.session)}
	}
	return job.Destination{Mode: job.Announce, Channel: t.address.Channel, To: t.address.Peer.ID,
		Account: string(t.address.Account)}
}

// WebhookChannel is the channel of webhooks in the outbox. The id of a peer is a URL.
const WebhookChannel = "webhook"

func webhook(url string) target {
	return target{url: url, address: chela.Address{Channel: WebhookChannel, Peer: chela.Peer{Kind: chela.Direct, ID: url}}}
}

// target returns where the answer of a job goes, as things are now.
func (s *Scheduler) target(r store.Tx, j job.Job) target {
	d := j.Delivery
	switch {
	case j.Payload.Kind == job.SystemEvent && (d == nil || d.Mode != job.Webhook), d == nil, d.Mode == job.None:
		return target{none: true}
	case d.Mode == job.Webhook:
		return webhook(d.To)
	}
	return s.chat(r.Sessions(), j, d.Channel, d.To, d.Account, string(d.Thread))
}

// notified returns where a notice about a job goes: to one of the destinations, or to
// where its answer goes, or to the session that asked for it.
func (s *Scheduler) notified(r store.Tx, j job.Job, to ...*job.Destination) target {
	for _, d := range to {
		switch {
		case d == nil || *d == (job.Destination{}):
		case d.Mode == job.Webhook:
			return webhook(d.To)
		default:
			return s.chat(r.Sessions(), j, d.Channel, d.To, d.Account, "")
		}
	}
	if t := s.target(r, j); !t.none && t.url == "" {
		return t
	}
	return s.chat(r.Sessions(), j, job.Last, "", "", "")
}

// chat returns the chat with the id on a channel, or the one that the session which asked
// for the job used last.
func (s *Scheduler) chat(sessions session.Reader, j job.Job, name, to, account, thread string) target {
	m, err := session.Lookup(sessions, home(j))
	if err != nil {
		return target{session: home(j), err: err}
	}
	last := m.Address
	if last == (chela.Address{}) && m.ID == "" { // the session is gone; so is what it used last
		last = j.Address
	}
	if name == "" || name == job.Last {
		switch {
		case last.Local():
			return target{session: home(j)}
		case !s.o.Has(last.Channel, last.Account):
			return target{session: home(j), err: missing(last.Channel, last.Account)}
		}
		return target{address: last}
	}
	if name == chela.LocalChannel {
		return target{session: home(j)}
	}
	if !s.o.Has(name, chela.AccountID(account)) {
		return target{session: home(j), err: missing(name, chela.AccountID(account))}
	}
	if to == "" {
		if last.Channel != name {
			return target{session: home(j), err: fmt.Errorf("the job names the channel %s but no chat", name)}
		}
		return target{address: last}
	}
	w := channel.ParseTarget(to)
	if w.Channel != "" && w.Channel != name {
		w = channel.Target{ID: to}
	}
	a := chela.Address{
		Channel: name, Account: chela.AccountID(account), Peer: chela.Peer{Kind: cmp.Or(w.Kind, chela.Direct), ID: w.ID},
		Thread: cmp.Or(thread, w.Thread),
	}
	for _, known := range [...]chela.Address{j.Address, last} { // the kind of a chat that is known
		if w.Kind == "" && known.Channel == name && known.Peer.ID == w.ID {
			a.Peer.Kind = known.Peer.Kind
			a.Account = cmp.Or(a.Account, known.Account)
		}
	}
	return target{address: a}
}

func missing(name string, account chela.AccountID) error {
	if account != "" {
		return fmt.Errorf("there is no account %q of the channel %s any more", account, name)
	}
	return fmt.Errorf("there is no channel %s any more", name)
}

// Preview returns a short description of where the answer of a job goes, and a longer
// one.
func (s *Scheduler) Preview(j job.Job) (label, detail string) {
	d := j.Delivery
	switch {
	case j.Payload.Kind == job.SystemEvent:
		return "main session", "the event is answered where the session was used last"
	case d == nil || d.Mode == job.None:
		return "not delivered", "the answer is only kept in the history of the job"
	case d.Mode == job.Webhook:
		return "webhook", d.To
	case d.Channel == "" || d.Channel == job.Last:
		return "last chat", "where the session " + string(home(j)) + " was used last"
	}
	return d.Channel, cmp.Or(d.To, "the last chat on "+d.Channel)
}
