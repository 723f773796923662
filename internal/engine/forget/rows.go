package forget

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/forget"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/store"
)

// maxBatch is about the size in bytes of the texts that one commit replaces.
const maxBatch = 4 << 20

// rows searches the store.
func (p *pass) rows(ctx context.Context) error {
	for {
		batch, more, err := p.batch(ctx)
		if err != nil {
			return err
		}
		if p.remove && len(batch) > 0 {
			if _, err := p.o.Texts.Replace(ctx, batch); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

var errFull = errors.New("the batch is full")

// batch searches the store until the replacements are maxBatch bytes, and reports
// whether there may be more.
func (p *pass) batch(ctx context.Context) (batch []store.Replacement, more bool, err error) {
	size := 0
	row := rowState{}
	var jobs []string
	err = p.o.Texts.Texts(ctx, func(x store.Text) error {
		if x.Table == "setting" && (x.Value == p.topic.String() || x.Value == pending) {
			return nil // the record of the removal
		}
		if x.Table != row.table || x.Row != row.row {
			row = rowState{table: x.Table, row: x.Row}
		}
		value := p.follow(x.Value)
		rest, removed, kept := p.topic.CutText(value, forget.Removed)
		switch {
		case x.Fixed:
			if len(removed) > 0 {
				p.add(Names, x.Table+" "+x.Column, "it identifies a "+x.Table, removed)
			}
			return nil
		case len(kept) > 0:
			p.add(Names, "in a "+x.Table, "it identifies something", kept)
		}
		if len(removed) > 0 {
			if x.Table == "job" {
				if !slices.Contains(jobs, x.ID) {
					jobs = append(jobs, x.ID)
				}
				p.add(Jobs, x.ID, "", removed)
				return nil
			}
			row.about = true
			p.add(locationOf(x.Table), string(x.Session), "", removed)
		}
		if row.about && carriesMedia(x) {
			p.refs = media.Refs(p.refs, x.Value)
		}
		if rest == x.Value || !p.remove {
			return nil
		}
		batch = append(batch, store.Replacement{Text: x, New: rest})
		if size += len(rest) + len(x.Value); size > maxBatch {
			return errFull
		}
		return nil
	})
	if errors.Is(err, errFull) {
		more, err = true, nil
	}
	if err == nil && p.remove {
		for _, id := range jobs {
			if err := p.o.RemoveJob(ctx, id); err != nil {
				return nil, false, err
			}
		}
	}
	return batch, more, err
}

// rowState is the row whose texts are searched.
type rowState struct {
	table string
	row   int64
	about bool // something in it is removed
}

// carriesMedia reports whether a column has the attachments of a message.
func carriesMedia(x store.Text) bool {
	return x.Table == "entry" && x.Column == "parts" || x.Table == "item" && x.Column == "inbound" ||
		x.Table == "outbox" && x.Column == "media"
}

// follow returns a text that refers to what outputs stored again.
func (p *pass) follow(text string) string {
	for _, m := range p.moved {
		text = strings.ReplaceAll(strings.ReplaceAll(text, m.hash, m.hashAgain), m.ref, m.again)
	}
	return text
}

// locationOf returns the place that a table belongs to.
func locationOf(table string) Location {
	switch table {
	case "entry", "session", "past", "item":
		return Messages
	}
	return Records
}
