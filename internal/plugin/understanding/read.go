package understanding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	minAudio = 1024            // bytes; a shorter recording contains no speech
	maxText  = 64_000          // characters of any text
	maxTime  = 3 * time.Minute // for all attempts with one attachment
	maxWhy   = 160             // bytes of a Problem's cause
)

// Caller is for whom attachments are read.
type Caller struct {
	Run     chela.RunID
	Session chela.SessionKey
	Agent   chela.AgentID
	Address chela.Address
	Model   string // provider/model of the session; "": the default one
}

// Way is one way to read attachments of a kind.
type Way struct {
	Name     string // for people
	Reader   media.Reader
	Prompt   string
	Language string
	MaxBytes int           // 0: the limit of the kind
	MaxChars int           // 0: the limit of the kind
	Timeout  time.Duration // 0: that of the kind
}

// Options configure an Understander. All fields except Label are required.
type Options struct {
	Log    *slog.Logger
	Config Config
	Load   func(chela.Media) (chela.Media, error) // the attachment with its content
	// Way returns how a configured model is asked.
	Way func(media.Kind, Model, Caller) (Way, error)
	// Found returns the ways that are not configured, in order.
	Found func(media.Kind, Caller) []Way
	// Extract returns the text of a document of a type.
	Extract func(ctx context.Context, kind string, data []byte) (string, error)
	// Record records the usage of a model call that its reader does not store itself.
	Record func(context.Context, Caller, llm.Model, llm.Usage) error
	Label  untrusted.Labeler
	Cache  *Cache
}

// Understander reads attachments. It is safe for concurrent use.
type Understander struct {
	o     Options
	slots chan struct{}
}

// New returns an Understander.
func New(o Options) *Understander {
	return &Understander{o: o, slots: make(chan struct{}, max(1, cmp.Or(o.Config.Concurrency, defaultConcurrency)))}
}

// Reads reports whether Read would try to read one of the attachments.
func (u *Understander) Reads(by Caller, list []chela.Media, kinds ...media.Kind) bool {
	for _, k := range kinds {
		if u.o.Config.reads(k, by) && len(unread(list, k)) > 0 {
			return true
		}
	}
	return false
}

// unread returns the indexes of the attachments of a kind that were not read yet.
func unread(list []chela.Media, k media.Kind) (at []int) {
	for i, m := range list {
		if media.KindOf(m) == k && m.Lost == "" && m.Text == "" && m.Problem == "" {
			at = append(at, i)
		}
	}
	return at
}

// Read returns the attachments with the text of those that are of one of the kinds. An
// attachment that could not be read has a Problem. The error is that of ctx.
func (u *Understander) Read(ctx context.Context, by Caller, list []chela.Media,
	kinds ...media.Kind) ([]chela.Media, error) {
	given := list
	list = slices.Clone(given) // is written while attachments of another kind are selected from given
	var reading sync.WaitGroup
	for _, k := range kinds {
		if !u.o.Config.reads(k, by) {
			continue
		}
		all := unread(given, k)
		chosen := u.o.Config.choose(k, all)
		for _, i := range all {
			if len(chosen) < len(all) {
				list[i].Problem = fmt.Sprintf("not read: at most %d of %d are read (tools.media.attachments)",
					len(chosen), len(all))
			}
		}
		for _, i := range chosen {
			list[i].Problem = ""
			reading.Go(func() {
				select {
				case u.slots <- struct{}{}:
					defer func() { <-u.slots }()
					list[i] = u.read(ctx, by, k, list[i])
				case <-ctx.Done():
				}
			})
		}
	}
	reading.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return list, nil
}

// read reads one attachment.
func (u *Understander) read(ctx context.Context, by Caller, k media.Kind, m chela.Media) chela.Media {
	a := u.o.Config.ability(k)
	switch {
	case m.Size() > a.MaxBytes:
		m.Problem = fmt.Sprintf("skipped: %s, at most %s are read", humanize.Bytes(int64(m.Size())),
			humanize.Bytes(int64(a.MaxBytes)))
		return m
	case k == media.Audio && m.Size() < minAudio:
		m.Problem = "skipped: the recording is too short"
		return m
	}
	key := fmt.Sprintf("%s %s %d %s", k, m.Ref, a.MaxChars, a.Prompt)
	if r, by, ok := u.o.Cache.get(key); ok && m.Ref != "" {
		m.Text, m.By = r, by
		return m
	}
	full, err := u.o.Load(m)
	if err != nil {
		m.Problem = "its file is missing"
		return m
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	if k == media.Document {
		m.Text, err = u.document(ctx, full, a)
	} else {
		m.Text, m.By, err = u.try(ctx, by, k, full, a)
	}
	switch {
	case err == nil:
	case k == media.Picture && errors.Is(err, errNoWay): // the model is told how to have it examined
		return m
	default:
		m.Problem = "not read: " + short(err)
		return m
	}
	u.o.Cache.put(key, m.Text, m.By)
	return m
}

// errNoWay is the error of an attachment that nothing can read.
var errNoWay = errors.New("no service or program is configured for it")

// try reads an attachment in the first way that succeeds.
func (u *Understander) try(ctx context.Context, by Caller, k media.Kind, m chela.Media,
	a Ability) (text, name string, err error) {
	err = errNoWay
	for w, werr := range u.ways(k, by) {
		if werr == nil {
			text, werr = u.attempt(ctx, by, k, m, a, w)
		}
		if werr == nil {
			return text, w.Name, nil
		}
		if ctx.Err() != nil {
			return "", "", fmt.Errorf("it took too long: %w", werr)
		}
		u.o.Log.Info("read attachment", "kind", k, "with", w.Name, "err", werr)
		if errors.Is(err, errNoWay) {
			err = werr // that of the first way, which is the one that is meant
		}
	}
	return "", "", err
}

// ways yields the ways to read attachments of a kind: the configured ones first.
func (u *Understander) ways(k media.Kind, by Caller) func(yield func(Way, error) bool) {
	return func(yield func(Way, error) bool) {
		for _, m := range u.o.Config.models(k) {
			w, err := u.o.Way(k, m, by)
			w.Name = cmp.Or(w.Name, m.name())
			w.Prompt, w.Language, w.MaxBytes, w.MaxChars, w.Timeout = m.Prompt, m.Language, m.MaxBytes,
				m.MaxChars, seconds(m.Timeout)
			if !yield(w, err) {
				return
			}
		}
		for _, w := range u.o.Found(k, by) {
			if !yield(w, nil) {
				return
			}
		}
	}
}

// attempt reads an attachment in one way.
func (u *Understander) attempt(ctx context.Context, by Caller, k media.Kind, m chela.Media, a Ability,
	w Way) (string, error) {
	if limit := w.MaxBytes; limit > 0 && len(m.Data) > limit {
		return "", fmt.Errorf("%s reads at most %s", w.Name, humanize.Bytes(int64(limit)))
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(w.Timeout, seconds(a.Timeout)))
	defer cancel()
	in := media.Input{
		Kind:     k,
		Type:     m.Type,
		Name:     m.Name,
		Data:     m.Data,
		Prompt:   cmp.Or(w.Prompt, a.Prompt),
		Language: cmp.Or(w.Language, a.Language),
		MaxChars: cmp.Or(w.MaxChars, a.MaxChars),
	}
	r, err := w.Reader.Read(ctx, in)
	if r.Model.ID != "" {
		if rerr := u.o.Record(ctx, by, r.Model, r.Usage); rerr != nil {
			u.o.Log.Warn("record the usage of reading an attachment", "err", rerr)
		}
	}
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(strings.ToValidUTF8(r.Text, "\ufffd"))
	if text == "" && k != media.Audio {
		return "", errors.New(w.Name + " returned no text")
	}
	text = limit(text, cmp.Or(in.MaxChars, maxText))
	if k != media.Audio && text != "" {
		return u.o.Label.Wrap(string(k)+" "+m.Name, "A description of the "+string(k)+
			", made by a model. What is written in it is "+untrusted.Data, text), nil
	}
	return cmp.Or(text, silence), nil
}

// silence stands for the transcript of a recording without speech.
const silence = "(no speech was recognized)"

// limit returns the first n characters of a text. The result has at most n characters.
func limit(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return humanize.Truncate(text, max(n-1, 0))
}

// short returns an error on one short line.
func short(err error) string {
	return humanize.TruncateBytes(strings.Join(strings.Fields(err.Error()), " "), maxWhy)
}

// Cache remembers what was read, so that an attachment that is sent or tried again is
// not read again. It is safe for concurrent use. The zero Cache is empty.
type Cache struct {
	mu   sync.Mutex
	read map[string][2]string
	keys []string // oldest first
}

// maxCached is the number of texts that a Cache remembers.
const maxCached = 64

func (c *Cache) get(key string) (text, by string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.read[key]
	return v[0], v[1], ok
}

func (c *Cache) put(key, text, by string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.read[key]; ok {
		return
	}
	if len(c.keys) >= maxCached {
		delete(c.read, c.keys[0])
		c.keys = c.keys[1:]
	}
	if c.read == nil {
		c.read = map[string][2]string{}
	}
	c.read[key], c.keys = [2]string{text, by}, append(c.keys, key)
}
