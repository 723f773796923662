package export

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// Format is the format of an export.
type Format string

// The formats.
const (
	JSONL      Format = "jsonl"
	HTML       Format = "html"
	Trajectory Format = "trajectory"
)

// ParseFormat returns the format with a name; "" is JSONL.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case "":
		return JSONL, nil
	case JSONL, HTML, Trajectory:
		return f, nil
	}
	return "", chela.Errorf(chela.CodeInvalid, "no export format %q: use jsonl, html or trajectory", name)
}

// Extension returns the end of the names of files in the format.
func (f Format) Extension() string {
	if f == HTML {
		return ".html"
	}
	return ".jsonl"
}

// Options configures an Exporter. All fields but Redact are required.
type Options struct {
	Store   store.Store
	Version string
	// Preview is [runner.Runner.Preview].
	Preview func(context.Context, chela.Principal, chela.SessionKey, chela.Address) (llm.Model, llm.Request, error)
	// Fill returns a message with the content of its pictures. Scaled does so too, but
	// leaves pictures out that cannot be scaled down to a size in bytes.
	Fill   func(*llm.Message) *llm.Message
	Scaled func(m *llm.Message, maxBytes int) *llm.Message
	// Redact removes secrets from a text; nil: texts are not changed.
	Redact func(string) string
	// Files returns which files an agent may use, and its workspace.
	Files func(chela.AgentID) (pathpolicy.Rule, string)
}

// Exporter exports sessions. It is safe for concurrent use.
type Exporter struct {
	o  Options
	mu sync.Mutex // held while a file is written, so that two exports do not choose the same name
}

// New returns an Exporter.
func New(o Options) *Exporter {
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	return &Exporter{o: o}
}

// Target is what is exported, and for whom.
type Target struct {
	Key chela.SessionKey
	// Who and At are from whom and from where the message would come whose request HTML
	// and Trajectory show. The zero At is the last address of the session.
	Who chela.Principal
	At  chela.Address
}

// Write writes a session. The error for an unknown session wraps chela.ErrNotFound.
func (x *Exporter) Write(ctx context.Context, w io.Writer, f Format, t Target) error {
	s, err := x.open(ctx, t.Key)
	if err != nil {
		return err
	}
	return x.write(ctx, w, f, t, s)
}

func (x *Exporter) write(ctx context.Context, w io.Writer, f Format, t Target, s *source) error {
	if f == JSONL {
		return x.writeJSONL(ctx, w, s)
	}
	if t.At == (chela.Address{}) {
		t.At = s.meta.Address
	}
	p := preview{now: time.Now()}
	p.model, p.request, p.err = x.o.Preview(ctx, t.Who, t.Key, t.At)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f == HTML {
		return x.writeHTML(ctx, w, s, p)
	}
	return x.writeTrajectory(ctx, w, s, p)
}

// preview is what the next request of the session would begin with.
type preview struct {
	model   llm.Model
	request llm.Request
	err     error // why there is none
	now     time.Time
}

// writeJSONL writes a transcript with its pictures.
func (x *Exporter) writeJSONL(ctx context.Context, w io.Writer, s *source) error {
	refs, err := s.refs(ctx)
	if err != nil {
		return err
	}
	out, err := session.NewExporter(w, s.meta, refs)
	if err != nil {
		return err
	}
	err = s.each(ctx, func(e *session.Entry) error {
		if e.Message != nil {
			e.Message = x.o.Fill(e.Message)
		}
		return out.Entry(e)
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// source is a transcript as it was when the export began.
type source struct {
	store store.Store
	meta  session.Meta
	count int
	last  int64 // Seq of the last entry
}

// open finds a session.
func (x *Exporter) open(ctx context.Context, key chela.SessionKey) (*source, error) {
	s := &source{store: x.o.Store}
	err := x.o.Store.View(ctx, func(r store.Reader) error {
		var err error
		if s.meta, err = r.Sessions().Get(key); err != nil {
			return fmt.Errorf("session %s: %w", key, err)
		}
		if s.count, err = r.Sessions().Count(s.meta.ID); err != nil {
			return err
		}
		last, err := r.Sessions().Last(s.meta.ID, 1)
		if err == nil && len(last) > 0 {
			s.last = last[0].Seq
		}
		return err
	})
	return s, err
}

// pageSize is the number of entries that are read at once.
const pageSize = 50

// each calls f with all entries in order. It reads them page by page, because a
// transaction must not be open while something is written.
func (s *source) each(ctx context.Context, f func(*session.Entry) error) error {
	for after := int64(0); after < s.last; {
		page, err := store.Get(ctx, s.store, func(r store.Reader) ([]session.Entry, error) {
			return r.Sessions().Entries(s.meta.ID, after, pageSize)
		})
		if err != nil {
			return fmt.Errorf("session %s: %w", s.meta.Key, err)
		}
		if len(page) == 0 {
			return chela.Errorf(chela.CodeConflict, "session %s was deleted while it was exported", s.meta.Key)
		}
		for i := range page {
			if after = page[i].Seq; after > s.last {
				return nil
			}
			if err := f(&page[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// refs returns the names of all entries.
func (s *source) refs(ctx context.Context) ([]session.EntryRef, error) {
	refs := make([]session.EntryRef, 0, s.count)
	err := s.each(ctx, func(e *session.Entry) error {
		refs = append(refs, session.RefOf(e))
		return nil
	})
	return refs, err
}
