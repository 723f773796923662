package external

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/channel/chatjson"
)

// Abilities returns the names of the abilities that a program can have. Each is also the
// method with which the gateway uses it.
func Abilities() []string {
	return []string{"edit", "delete", "react", "typing", "find", "fetch", "poll", "pin", "thread", "read",
		"search", "probe", "menu"}
}

const maxMediaBytes = 20 << 20 // of all attachments of a message

// remote has all abilities. A bridge shows those that its program has.
type remote struct{ *bridge }

var (
	_ channel.Editor    = remote{}
	_ channel.Deleter   = remote{}
	_ channel.Reactor   = remote{}
	_ channel.Typer     = remote{}
	_ channel.Finder    = remote{}
	_ channel.Fetcher   = remote{}
	_ channel.Poller    = remote{}
	_ channel.Pinner    = remote{}
	_ channel.Threader  = remote{}
	_ channel.Reader    = remote{}
	_ channel.Directory = remote{}
	_ channel.Prober    = remote{}
	_ channel.Menuer    = remote{}
)

// As implements channel.Varied.
func (b *bridge) As(target any) bool {
	r := remote{b}
	switch t := target.(type) {
	case *channel.Editor:
		return as(b, "edit", t, channel.Editor(r))
	case *channel.Deleter:
		return as(b, "delete", t, channel.Deleter(r))
	case *channel.Reactor:
		return as(b, "react", t, channel.Reactor(r))
	case *channel.Typer:
		return as(b, "typing", t, channel.Typer(r))
	case *channel.Finder:
		return as(b, "find", t, channel.Finder(r))
	case *channel.Fetcher:
		return as(b, "fetch", t, channel.Fetcher(r))
	case *channel.Poller:
		return as(b, "poll", t, channel.Poller(r))
	case *channel.Pinner:
		return as(b, "pin", t, channel.Pinner(r))
	case *channel.Threader:
		return as(b, "thread", t, channel.Threader(r))
	case *channel.Reader:
		return as(b, "read", t, channel.Reader(r))
	case *channel.Directory:
		return as(b, "search", t, channel.Directory(r))
	case *channel.Prober:
		return as(b, "probe", t, channel.Prober(r))
	case *channel.Menuer:
		return as(b, "menu", t, channel.Menuer(r))
	}
	return false
}

// as sets an ability if the program has it.
func as[T any](b *bridge, name string, target *T, ability T) bool {
	ok := slices.Contains(b.o.Abilities, name)
	if ok {
		*target = ability
	}
	return ok
}

// Send implements channel.Channel.
func (b *bridge) Send(ctx context.Context, p channel.Part) (channel.Receipt, error) {
	switch n := chatjson.MediaBytes(p); {
	case p.Text == "" && len(p.Media) == 0:
		return channel.Receipt{}, &channel.Error{Permanent: true, Err: errors.New("the message is empty")}
	case n > maxMediaBytes:
		return channel.Receipt{},
			&channel.Error{Permanent: true, Err: fmt.Errorf("the attachments have %d bytes; at most %d are sent at once", n,
				maxMediaBytes)}
	}
	return b.receipt(ctx, "send", chatjson.PartOf(p))
}

// receipt requests that a message is sent, and returns its receipt.
func (b *bridge) receipt(ctx context.Context, method string, params any) (channel.Receipt, error) {
	var sent chatjson.Receipt
	r := request{method: method, params: params, result: &sent, limit: sendTime}
	if err := b.call(ctx, r); err != nil {
		return channel.Receipt{}, err
	}
	receipt, err := sent.Receipt()
	if err != nil {
		return receipt, r.lost(fmt.Errorf("%s: %w", method, err))
	}
	return receipt, nil
}

// Edit implements channel.Editor.
func (r remote) Edit(ctx context.Context, a chela.Address, id, text string) error {
	return r.call(ctx, request{method: "edit", params: chatjson.Edit{Destination: chatjson.DestinationOf(a), ID: id,
		Text: text}, limit: callTime})
}

// Delete implements channel.Deleter.
func (r remote) Delete(ctx context.Context, a chela.Address, id string) error {
	return r.call(ctx, request{method: "delete", params: chatjson.Named{Destination: chatjson.DestinationOf(a), ID: id},
		limit: callTime})
}

// React implements channel.Reactor.
func (r remote) React(ctx context.Context, a chela.Address, id, emoji string) error {
	return r.call(ctx, request{method: "react", params: chatjson.Reaction{Destination: chatjson.DestinationOf(a), ID: id,
		Emoji: emoji}, limit: signalTime})
}

// Typing implements channel.Typer.
func (r remote) Typing(ctx context.Context, a chela.Address) error {
	return r.call(ctx, request{method: "typing", params: chatjson.DestinationOf(a), limit: signalTime, reads: true})
}

// Find implements channel.Finder.
func (r remote) Find(ctx context.Context, a chela.Address, key string) (channel.Receipt, bool, error) {
	var found struct {
		Found bool `json:"found"`
		chatjson.Receipt
	}
	params := struct {
		chatjson.Destination
		Key string `json:"key"`
	}{chatjson.DestinationOf(a), key}
	err := r.call(ctx, request{method: "find", params: params, result: &found, limit: callTime, reads: true})
	if err != nil || !found.Found {
		return channel.Receipt{}, false, err
	}
	receipt, err := found.Receipt.Receipt()
	return receipt, err == nil, err
}

// Fetch implements channel.Fetcher.
func (r remote) Fetch(ctx context.Context, m chela.Media, most int) (chela.Media, error) {
	params := struct {
		Source string `json:"source"`
		Name   string `json:"name,omitempty"`
		Type   string `json:"type,omitempty"`
		Most   int    `json:"maxBytes"`
	}{m.Source, m.Name, m.Type, min(most, maxMediaBytes)}
	var got chatjson.Media
	if err := r.call(ctx, request{
		method: "fetch",
		params: params,
		result: &got,
		limit:  sendTime,
		reads:  true,
	}); err != nil {
		return m, err
	}
	if len(got.Data) > params.Most {
		return m, &channel.Error{Permanent: true, Err: fmt.Errorf("the attachment has %d bytes; at most %d are accepted",
			len(got.Data), params.Most)}
	}
	m.Data, m.Source, m.Bytes = got.Data, "", 0
	if got.Type != "" {
		m.Type = clean(got.Type)
	}
	return m, nil
}

// source returns the source of an attachment that a message announces.
func (b *bridge) source(m chatjson.Media) (string, error) {
	switch {
	case m.Source == "":
		return "", errors.New("neither data nor source")
	case !slices.Contains(b.o.Abilities, "fetch"):
		return "", errors.New("source without the ability fetch")
	}
	return m.Source, nil
}

// Poll implements channel.Poller.
func (r remote) Poll(ctx context.Context, p channel.Poll) (channel.Receipt, error) {
	return r.receipt(ctx, "poll", struct {
		Key string `json:"key"`
		chatjson.Destination
		Question string   `json:"question"`
		Options  []string `json:"options"`
		Multiple bool     `json:"multiple"`
		Public   bool     `json:"public"`
		OpenMS   int64    `json:"openMs,omitempty"`
	}{p.Key, chatjson.DestinationOf(p.Address), p.Question, p.Options, p.Multiple, p.Public, p.Open.Milliseconds()})
}

// Pin implements channel.Pinner.
func (r remote) Pin(ctx context.Context, a chela.Address, id string, pinned bool) error {
	params := struct {
		chatjson.Named
		Pinned bool `json:"pinned"`
	}{chatjson.Named{Destination: chatjson.DestinationOf(a), ID: id}, pinned}
	return r.call(ctx, request{method: "pin", params: params, limit: callTime})
}

// Thread implements channel.Threader.
func (r remote) Thread(ctx context.Context, a chela.Address, name string) (chela.Address, error) {
	params := struct {
		chatjson.Destination
		Name string `json:"name"`
	}{chatjson.DestinationOf(a), name}
	var made struct {
		Thread string `json:"thread"`
	}
	rq := request{method: "thread", params: params, result: &made, limit: callTime}
	if err := r.call(ctx, rq); err != nil {
		return a, err
	}
	if made.Thread == "" {
		return a, rq.lost(errors.New("thread: the result has no thread"))
	}
	a.Thread = made.Thread
	return a, nil
}

// Read implements channel.Reader.
func (r remote) Read(ctx context.Context, a chela.Address, n int) ([]channel.Message, error) {
	params := struct {
		chatjson.Destination
		Limit int `json:"limit"`
	}{chatjson.DestinationOf(a), n}
	var got struct {
		Messages []struct {
			ID     string          `json:"id"`
			Sender chatjson.Sender `json:"sender"`
			Own    bool            `json:"own"`
			Text   string          `json:"text"`
			Time   time.Time       `json:"time"`
		} `json:"messages"`
	}
	if err := r.call(ctx, request{
		method: "read",
		params: params,
		result: &got,
		limit:  callTime,
		reads:  true,
	}); err != nil {
		return nil, err
	}
	var out []channel.Message
	for _, m := range got.Messages[max(0, len(got.Messages)-max(0, n)):] {
		out = append(out, channel.Message{
			ID:     m.ID,
			Sender: chela.Sender{ID: m.Sender.ID, Name: clean(m.Sender.Name), Bot: m.Sender.Bot},
			Own:    m.Own,
			Text:   m.Text,
			Time:   m.Time,
		})
	}
	return out, nil
}

// Search implements channel.Directory.
func (r remote) Search(ctx context.Context, kind chela.PeerKind, query string, n int) ([]channel.Entry, error) {
	params := struct {
		Kind  chela.PeerKind `json:"kind"`
		Query string         `json:"query"`
		Limit int            `json:"limit"`
	}{kind, query, n}
	var got struct {
		Entries []struct {
			chatjson.Chat
			Handle string `json:"handle"`
		} `json:"entries"`
	}
	if err := r.call(ctx, request{
		method: "search",
		params: params,
		result: &got,
		limit:  callTime,
		reads:  true,
	}); err != nil {
		return nil, err
	}
	var out []channel.Entry
	for _, e := range got.Entries[:min(len(got.Entries), max(0, n))] {
		if e.Kind == "" {
			e.Kind = kind
		}
		out = append(out, channel.Entry{Peer: chela.Peer{Kind: e.Kind, ID: e.ID}, Name: clean(e.Name),
			Handle: clean(e.Handle)})
	}
	return out, nil
}

// Probe implements channel.Prober.
func (r remote) Probe(ctx context.Context) error {
	return r.call(ctx, request{method: "probe", params: struct{}{}, limit: callTime, reads: true})
}

// Menu implements channel.Menuer.
func (r remote) Menu(ctx context.Context, commands []channel.Command) error {
	type entry struct {
		Name string `json:"name"`
		Doc  string `json:"description"`
	}
	params := struct {
		Commands []entry `json:"commands"`
	}{}
	for _, c := range commands {
		params.Commands = append(params.Commands, entry{c.Name, c.Doc})
	}
	return r.call(ctx, request{method: "menu", params: params, limit: callTime})
}
