package message

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/chunk"
	"github.com/chela-ai/chela/internal/media"
	"github.com/chela-ai/chela/internal/outbox"
	"github.com/chela-ai/chela/internal/reach"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
)

const defaultWait = 10 * time.Second

// Options are what the tool works with. Those without a word about nil are
// required.
type Options struct {
	Store   store.Store
	Files   *media.Files
	Reach   reach.Rule // which files it may send
	Publish func(chela.Event)

	// Channels returns the channels that are configured, with why one is not
	// running ("": it is).
	Channels func() map[string]string
	// Chunks says how a text is divided for an address.
	Chunks func(chela.Address) chunk.Options
	// Await returns rows of the outbox when all of them are final, or as they
	// are when ctx ends.
	Await func(ctx context.Context, keys ...string) ([]outbox.Row, error)

	Cross Cross
	Wait  time.Duration // for what becomes of a message; 0: 10 s
}

// Cross is tools.message.crossContext: whether a chat on a channel may have
// others written to.
type Cross struct {
	Within *bool `json:"allowWithinProvider"` // on the same channel; nil: yes
	Across bool  `json:"allowAcrossProviders"`
}

//go:embed message.md
var description string

// New returns the tool.
func New(o Options) tool.Tool {
	if o.Wait == 0 {
		o.Wait = defaultWait
	}
	return o.Reach.Guard(messageTool{o}, reach.Sends, func(raw json.RawMessage) ([]string, error) {
		var a args
		err := json.Unmarshal(raw, &a)
		return slices.DeleteFunc(a.Media, func(name string) bool { return !media.IsFile(name) }), err
	})
}

type messageTool struct{ Options }

func (t messageTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "message",
		Label:       "Send a message",
		Description: description,
		Effect:      tool.Acts,
		Aliases: map[string]string{
			"content": "message", "mediaUrl": "media", "mediaUrls": "media",
		},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"action":{"type":"string","description":"send"},
			"to":{"type":"string","description":"whom; left out: this chat"},
			"channel":{"type":"string","description":"on which channel"},
			"accountId":{"type":"string","description":"as which account of ours"},
			"message":{"type":"string","description":"the text"},
			"media":{"type":"array","items":{"type":"string"},"maxItems":10,"description":"files of the workspace, or media:…"},
			"replyTo":{"type":"string","description":"id of the message that this one answers"},
			"threadId":{"type":"string","description":"the topic"},
			"dryRun":{"type":"boolean","description":"send nothing"}},
			"additionalProperties":false}`),
	}
}

type args struct {
	Action  string   `json:"action"`
	To      string   `json:"to"`
	Channel string   `json:"channel"`
	Account string   `json:"accountId"`
	Text    string   `json:"message"`
	Media   []string `json:"media"`
	ReplyTo string   `json:"replyTo"`
	Thread  string   `json:"threadId"`
	Dry     bool     `json:"dryRun"`
}

// outcome is the details of a result.
type outcome struct {
	Action  string   `json:"action"`
	Channel string   `json:"channel"`
	To      string   `json:"to,omitempty"`
	Dry     bool     `json:"dryRun,omitempty"`
	Status  string   `json:"status"` // sent, queued, failed, unknown, planned
	IDs     []string `json:"messageIds,omitempty"`
	Parts   int      `json:"parts,omitempty"`
}

func (t messageTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	var a args
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return tool.Result{}, fmt.Errorf("arguments: %w", err)
	}
	if a.Action != "" && !strings.EqualFold(a.Action, "send") {
		return tool.Result{}, fmt.Errorf("action %q is not supported here; there is: send", a.Action)
	}
	if strings.TrimSpace(a.Text) == "" && len(a.Media) == 0 {
		return tool.Result{}, errors.New("message: there is neither a text nor a file to send")
	}
	to, err := t.target(ctx, c, a)
	if err != nil {
		return tool.Result{}, err
	}
	if a.Dry {
		text := fmt.Sprintf("Nothing was sent. It would go to %s: %s", to, quoted(a))
		return result(text, outcome{Action: "send", Channel: to.name(), To: to.id(), Dry: true, Status: "planned"})
	}
	files, err := t.files(c.Dir, a.Media)
	if err != nil {
		return tool.Result{}, err
	}
	if to.local() {
		return t.note(ctx, to, a, files)
	}
	return t.send(ctx, c, to, a, files)
}

// quoted is what would be sent, in a line.
func quoted(a args) string {
	what := fmt.Sprintf("%q", a.Text)
	if len(a.Media) > 0 {
		what += " with " + strings.Join(a.Media, ", ")
	}
	return what
}

func result(text string, o outcome) (tool.Result, error) {
	details, err := json.Marshal(o)
	if err != nil {
		return tool.Result{}, fmt.Errorf("details: %w", err)
	}
	r := tool.Text(text)
	r.Details = details
	return r, nil
}

// here returns where the run's answer goes.
func (t messageTool) here(ctx context.Context, c tool.Call) (chela.Address, error) {
	var r run.Run
	err := t.Store.View(ctx, func(rd store.Reader) error {
		var err error
		r, err = rd.Runs().Get(c.Run)
		return err
	})
	if errors.Is(err, chela.ErrNotFound) { // a call that no run made
		return chela.Address{}, nil
	}
	return r.Address, err
}
