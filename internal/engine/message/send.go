package message

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// summary describes a message on one line.
func summary(r action.Request) string {
	what := fmt.Sprintf("%q", r.Text)
	var with []string
	for _, m := range r.Media {
		with = append(with, cmp.Or(m.Name, "a file"))
	}
	for _, row := range r.Buttons {
		for _, b := range row {
			with = append(with, "["+b.Label+"]")
		}
	}
	if len(with) > 0 {
		what += " with " + strings.Join(with, ", ")
	}
	return what
}

// message is what is sent to a place.
type message struct {
	to   target
	key  string // of its rows, before the number of the part
	rows []outbox.Row
}

// post sends a message or a poll to places. It is stored under its keys before a channel is
// called. After a crash it is delivered once, and the request is not repeated.
func (a *Actor) post(ctx context.Context, c caller, r action.Request, places []target) ([]action.Result, error) {
	out := make([]action.Result, len(places))
	var list []*message
	var at []int // the places of list
	for i, p := range places {
		if p.local() {
			res, err := a.sendLocal(ctx, p, r)
			if err != nil {
				res = p.result(r.Action, action.Failed, err.Error())
			}
			out[i] = res
			continue
		}
		key := "send:" + rand.Text()
		switch {
		case c.Run != "":
			key = outbox.ExtraKey(c.Run, rand.Text())
		case r.Key != "":
			key = strings.Join([]string{"send", chela.PrincipalFrom(ctx).ID, r.Key, strconv.Itoa(p.index)}, "\x1f")
		}
		list, at = append(list, &message{to: p, key: key}), append(at, i)
	}
	if len(list) == 0 {
		return out, nil
	}
	if err := a.put(ctx, c, r, list); err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, a.o.Wait)
	defer cancel()
	for i, m := range list {
		keys := make([]string, len(m.rows))
		for i, row := range m.rows {
			keys[i] = row.Key
		}
		rows, err := a.o.Await(wait, keys...)
		if err != nil {
			out[at[i]] = m.to.result(r.Action, action.Unknown,
				fmt.Sprintf("The message to %s is stored and will be sent, but its state is unknown: %v. Do not send it again.",
					m.to, err))
			continue
		}
		out[at[i]] = delivered(r.Action, m.to, rows)
	}
	return out, nil
}

// put stores the rows of messages in one commit. Those whose keys exist are left as they
// are.
func (a *Actor) put(ctx context.Context, c caller, r action.Request, list []*message) error {
	now := time.Now()
	err := a.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
		for _, m := range list {
			var err error
			if m.rows, err = stored(tx.Outbox(), m.key); err != nil {
				return err
			}
			if len(m.rows) > 0 {
				continue
			}
			m.rows = a.rows(outbox.Row{
				Key: m.key, Run: c.Run, Session: c.Session, Address: m.to.address, ReplyTo: r.ReplyTo, Created: now,
			}, r, m.to)
			if err := tx.Outbox().Put(m.rows...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("message to %s: %w", list[0].to, err)
	}
	return nil
}

// stored returns the rows of a message by its key.
func stored(r outbox.Reader, key string) (rows []outbox.Row, err error) {
	for {
		row, err := r.Get(fmt.Sprintf("%s:%d", key, len(rows)))
		if errors.Is(err, chela.ErrNotFound) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
}

// rows returns the rows of a message or a poll. On a platform without buttons, their labels
// are part of the text.
func (a *Actor) rows(base outbox.Row, r action.Request, p target) []outbox.Row {
	first := base
	first.Key, first.State = base.Key+":0", outbox.Pending
	if r.Action == action.Poll {
		first.Poll, first.Text = &r.Poll, r.Poll.String()
		return []outbox.Row{first}
	}
	text := r.Text
	base.Media, base.Buttons = r.Media, plain(r.Buttons)
	if !p.account.Limits.Buttons {
		text, base.Buttons = outbox.Labels(text, r.Buttons), nil
	}
	if rows := outbox.Rows(base, text, a.o.Chunks(p.address)); len(rows) > 0 {
		return rows
	}
	first.Media, first.Buttons = base.Media, base.Buttons
	return []outbox.Row{first}
}

// plain returns buttons with the styles that channels know. OpenClaw calls the usual one
// secondary.
func plain(rows [][]chela.Button) [][]chela.Button {
	var out [][]chela.Button
	for _, row := range rows {
		var line []chela.Button
		for _, b := range row {
			if b.Style == "secondary" {
				b.Style = ""
			}
			line = append(line, b)
		}
		if len(line) > 0 {
			out = append(out, line)
		}
	}
	return out
}

// delivered returns what became of the rows of a message.
func delivered(act action.Action, to target, rows []outbox.Row) action.Result {
	o := to.result(act, action.Sent, fmt.Sprintf("Sent to %s.", to))
	o.Parts = len(rows)
	for _, r := range rows {
		switch r.State {
		case outbox.Sent:
			if r.PlatformID != "" {
				o.IDs = append(o.IDs, r.PlatformID)
			}
			continue
		case outbox.Failed, outbox.Dismissed:
			o.Status, o.Text = action.Failed, fmt.Sprintf("Not sent to %s: %s", to, cmp.Or(r.Error, "it was dismissed"))
		case outbox.Ambiguous:
			o.Status, o.Text = action.Unknown, fmt.Sprintf(
				"It is unknown whether the message reached %s (%s). It will not be sent again automatically; do not send it again.",
				to, r.Error)
		default:
			o.Status, o.Text = action.Queued,
				fmt.Sprintf("The message is queued for %s and will be sent; do not send it again.", to)
			if r.Error != "" {
				o.Text += " (" + r.Error + ")"
			}
		}
		break
	}
	if len(o.IDs) > 0 && o.Status == action.Sent {
		o.Text += " Message id " + strings.Join(o.IDs, ", ") + "."
	}
	return o
}

// sendLocal adds a message to a local chat, which clients read.
func (a *Actor) sendLocal(ctx context.Context, to target, r action.Request) (action.Result, error) {
	text := outbox.Labels(r.Text, r.Buttons)
	shown := pictures(r.Media)
	for _, f := range r.Media {
		if !isPicture(f) {
			text += fmt.Sprintf("\n[%s %s%s]", f.Type, media.Scheme, f.Ref)
		}
	}
	if text != "" || shown == nil {
		text = to.String() + ": " + text
	}
	e := session.Entry{
		ID:      uuid.NewString(),
		Kind:    session.KindNotice,
		Time:    time.Now(),
		Text:    text,
		Message: shown,
		NanoUSD: -1,
	}
	transcript := ""
	err := a.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		m, err := tx.Sessions().Get(to.session)
		if err != nil {
			return err
		}
		m.Updated, transcript = e.Time, m.ID
		return errors.Join(tx.Sessions().Append(m.ID, &e), tx.Sessions().Put(m))
	})
	if err != nil {
		return action.Result{}, fmt.Errorf("message to %s: %w", to, err)
	}
	a.o.Publish(chela.Event{Session: to.session, Stream: chela.StreamMessage, Transcript: transcript, Data: e})
	res := to.result(r.Action, action.Sent, "Shown in "+to.String()+".")
	res.IDs = []string{e.ID}
	return res, nil
}

// pictures returns the pictures among files that are stored, as a message without a role,
// or nil.
func pictures(files []chela.Media) *llm.Message {
	var m llm.Message
	for _, f := range files {
		if isPicture(f) {
			m.Parts = append(m.Parts, media.Part(f))
		}
	}
	if len(m.Parts) == 0 {
		return nil
	}
	return &m
}

// isPicture reports whether a file is a stored picture.
func isPicture(f chela.Media) bool { return f.Ref != "" && strings.HasPrefix(f.Type, "image/") }

// broadcast sends a message to several chats. A chat that cannot be found does not prevent
// the others.
func (a *Actor) broadcast(ctx context.Context, c caller, r action.Request) (action.Result, error) {
	results := make([]action.Result, len(r.Targets))
	var places []target
	for i, to := range r.Targets {
		p, err := a.target(ctx, c, r, to)
		p.index = i // a repeated request has the same one, whatever became of the others
		switch {
		case err != nil:
			results[i] = action.Result{Action: r.Action, To: to, Status: action.Failed,
				Text: fmt.Sprintf("Not sent to %s: %v", to, err)}
		case r.Dry:
			results[i] = p.result(r.Action, action.Planned, p.String())
		default:
			places = append(places, p)
		}
	}
	if len(places) > 0 {
		list, err := a.post(ctx, c, r, places)
		if err != nil {
			return action.Result{}, err
		}
		for i, res := range list {
			results[places[i].index] = res
		}
	}
	return joined(r, results), nil
}

// joined returns the result of a broadcast.
func joined(r action.Request, results []action.Result) action.Result {
	out := action.Result{Action: r.Action, Targets: results, Status: results[0].Status}
	var text []string
	for _, t := range results {
		text = append(text, t.Text)
		out.IDs = append(out.IDs, t.IDs...)
		if t.Status != out.Status {
			out.Status = action.Partial
		}
	}
	out.Text = strings.Join(text, "\n")
	if r.Dry {
		out.Text = "Nothing was sent. It would send " + summary(r) + " to:\n" + out.Text
	}
	return out
}
