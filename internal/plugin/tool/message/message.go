package message

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

// Options configure the tool. All fields are required unless stated
// otherwise.
type Options struct {
	Store   store.Store
	Files   *media.Files
	Paths   pathpolicy.Rule // files that the tool may send
	Publish func(chela.Event)

	// Channels returns the configured channels, each with the reason why it is
	// not running, or "" if it is running.
	Channels func() map[string]string
	// Chunks returns how a text is split for an address.
	Chunks func(chela.Address) chunk.Options
	// Await returns rows of the outbox once all of them are final, or in their
	// current state when ctx ends.
	Await func(ctx context.Context, keys ...string) ([]outbox.Row, error)

	CrossContext CrossContext
	Wait         time.Duration // how long to wait for the result of a delivery; 0: 10 s
}

// CrossContext is tools.message.crossContext: whether a chat on a channel may send
// to other chats.
type CrossContext struct {
	Within *bool `json:"allowWithinProvider"` // on the same channel; nil: yes
	Across bool  `json:"allowAcrossProviders"`
}

//go:embed message.md
var description string

// New returns the tool.
func New(o Options) tool.Tool {
	o.Wait = cmp.Or(o.Wait, 10*time.Second)
	return o.Paths.Guard(messageTool{o}, pathpolicy.Sends, func(raw json.RawMessage) ([]string, error) {
		a, err := tool.Decode[args](raw)
		return slices.DeleteFunc(a.Media, func(name string) bool { return !media.IsFile(name) }), err
	})
}

type messageTool struct{ Options }

func (t messageTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "message",
		Label:       "Send message",
		Description: description,
		Effect:      tool.Acts,
		Aliases: map[string]string{
			"content": "message", "mediaUrl": "media", "mediaUrls": "media",
		},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"action":{"type":"string","description":"send"},
			"to":{"type":"string","description":"recipient (default: this chat)"},
			"channel":{"type":"string","description":"channel"},
			"accountId":{"type":"string","description":"account to send from"},
			"message":{"type":"string","description":"text"},
			"media":{"type":"array","items":{"type":"string"},"maxItems":10,"description":"files in the workspace, or media:…"},
			"replyTo":{"type":"string","description":"id of the message to reply to"},
			"threadId":{"type":"string","description":"topic"},
			"dryRun":{"type":"boolean","description":"only report what would be sent"}},
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

// outcome holds the details of a result.
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
	a, err := tool.Decode[args](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	if a.Action != "" && !strings.EqualFold(a.Action, "send") {
		return tool.Result{}, fmt.Errorf("action %q is not supported; use send", a.Action)
	}
	if strings.TrimSpace(a.Text) == "" && len(a.Media) == 0 {
		return tool.Result{}, errors.New("message: there is neither text nor a file to send")
	}
	to, err := t.target(ctx, c, a)
	if err != nil {
		return tool.Result{}, err
	}
	if a.Dry {
		text := fmt.Sprintf("Nothing was sent. It would go to %s: %s", to, summary(a))
		return tool.Detailed(text, outcome{Action: "send", Channel: to.name(), To: to.id(), Dry: true, Status: "planned"}), nil
	}
	files, err := t.files(c, a.Media)
	if err != nil {
		return tool.Result{}, err
	}
	if to.local() {
		return t.sendLocal(ctx, to, a, files)
	}
	return t.send(ctx, c, to, a, files)
}

// summary describes the message on one line.
func summary(a args) string {
	what := fmt.Sprintf("%q", a.Text)
	if len(a.Media) > 0 {
		what += " with " + strings.Join(a.Media, ", ")
	}
	return what
}

// replyAddress returns the address that the run's answer goes to.
func (t messageTool) replyAddress(ctx context.Context, c tool.Call) (chela.Address, error) {
	r, err := store.Get(ctx, t.Store, func(r store.Reader) (run.Run, error) { return r.Runs().Get(c.Run) })
	if errors.Is(err, chela.ErrNotFound) { // the call was not made by a run
		return chela.Address{}, nil
	}
	return r.Address, err
}
