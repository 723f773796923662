package message

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
)

// maxText is the maximum size of a message in bytes.
const maxText = 100_000

// files stores the files of a message and returns references to them.
func (t messageTool) files(c tool.Call, names []string) ([]chela.Media, error) {
	var out []chela.Media
	for _, name := range names {
		m, err := t.file(c, name)
		if err != nil {
			return nil, fmt.Errorf("media: %w", err)
		}
		out = append(out, m)
	}
	return out, nil
}

func (t messageTool) file(c tool.Call, name string) (chela.Media, error) {
	if media.IsFile(name) {
		data, err := t.Paths.Read(c, name, media.MaxFile)
		if err != nil {
			return chela.Media{}, err
		}
		return t.Files.Store(chela.Media{Name: filepath.Base(name), Data: data})
	}
	ref, ok := media.ParseRef(name)
	if !ok {
		return chela.Media{}, fmt.Errorf("%s is an address, not a file; download it into the workspace first", name)
	}
	data, err := t.Files.Read(ref)
	if err != nil {
		return chela.Media{}, fmt.Errorf("%s: no such file, or it was removed", name)
	}
	kind, err := media.DetectType(data, "")
	return chela.Media{Type: kind, Ref: ref, Bytes: len(data)}, err
}

// sendLocal adds a message to a local chat.
func (t messageTool) sendLocal(ctx context.Context, to target, a args, files []chela.Media) (tool.Result, error) {
	text := to.String() + ": " + a.Text
	for _, f := range files {
		text += fmt.Sprintf("\n[%s %s%s]", f.Type, media.Scheme, f.Ref)
	}
	e := session.Entry{ID: uuid.NewString(), Kind: session.KindNotice, Time: time.Now(), Text: text, NanoUSD: -1}
	transcript := ""
	err := t.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		m, err := tx.Sessions().Get(to.session)
		if err != nil {
			return err
		}
		m.Updated, transcript = e.Time, m.ID
		return errors.Join(tx.Sessions().Append(m.ID, &e), tx.Sessions().Put(m))
	})
	if err != nil {
		return tool.Result{}, fmt.Errorf("message to %s: %w", to, err)
	}
	t.Publish(chela.Event{Session: to.session, Stream: chela.StreamMessage, Transcript: transcript, Data: e})
	return tool.Detailed("Shown in "+to.String()+".", outcome{Action: "send", Channel: to.name(), To: to.id(), Status: "sent", IDs: []string{e.ID}}), nil
}

// send puts a message into the outbox and waits briefly for its delivery. The
// message is stored under its keys before the channel is asked. After a crash
// it is delivered once, and the call is not repeated.
func (t messageTool) send(ctx context.Context, c tool.Call, to target, a args, files []chela.Media) (tool.Result, error) {
	if len(a.Text) > maxText {
		return tool.Result{}, fmt.Errorf("message: %d bytes is too long; the limit is %d", len(a.Text), maxText)
	}
	base := outbox.Row{
		Key: outbox.ExtraKey(c.Run, rand.Text()), Run: c.Run, Session: c.Session, Address: to.address, ReplyTo: a.ReplyTo, Created: time.Now(),
	}
	rows := outbox.Rows(base, a.Text, t.Chunks(to.address))
	if len(rows) == 0 {
		base.Key, base.State = base.Key+":0", outbox.Pending
		rows = []outbox.Row{base}
	}
	rows[0].Media = files
	err := t.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
		return tx.Outbox().Put(rows...)
	})
	if err != nil {
		return tool.Result{}, fmt.Errorf("message to %s: %w", to, err)
	}
	wait, cancel := context.WithTimeout(ctx, t.Wait)
	defer cancel()
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = r.Key
	}
	rows, err = t.Await(wait, keys...)
	if err != nil {
		return tool.Result{}, fmt.Errorf("message to %s is stored and will be sent, but its state is unknown: %w", to, err)
	}
	return deliveryResult(to, rows), nil
}

// deliveryResult reports what happened to a message.
func deliveryResult(to target, rows []outbox.Row) tool.Result {
	o := outcome{Action: "send", Channel: to.name(), To: to.id(), Status: "sent", Parts: len(rows)}
	text := fmt.Sprintf("Sent to %s.", to)
	for _, r := range rows {
		switch r.State {
		case outbox.Sent:
			if r.PlatformID != "" {
				o.IDs = append(o.IDs, r.PlatformID)
			}
			continue
		case outbox.Failed:
			o.Status, text = "failed", fmt.Sprintf("Not sent to %s: %s", to, r.Error)
		case outbox.Ambiguous:
			o.Status, text = "unknown", fmt.Sprintf("It is unknown whether the message reached %s (%s). It will not be sent again automatically; do not send it again.", to, r.Error)
		default:
			o.Status, text = "queued", fmt.Sprintf("The message is queued for %s and will be sent; do not send it again.", to)
			if r.Error != "" {
				text += " (" + r.Error + ")"
			}
		}
		break
	}
	if len(o.IDs) > 0 && o.Status == "sent" {
		text += " Message id " + strings.Join(o.IDs, ", ") + "."
	}
	res := tool.Detailed(text, o)
	res.IsError = o.Status == "failed" || o.Status == "unknown"
	return res
}
