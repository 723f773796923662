package message

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/untrusted"
)

// Options configure the tool. All fields are required unless stated
// otherwise.
type Options struct {
	// Do carries out an action.
	Do    func(context.Context, action.Request) (action.Result, error)
	Files *media.Files
	Paths pathpolicy.Rule // files that the tool may send

	// Actions are what the configured channels support; nil: there are no channels, and the
	// tool sends to local chats.
	Actions []action.Action

	CrossContext action.CrossContext
}

//go:embed message.md
var description string

// New returns the tool.
func New(o Options) tool.Tool {
	return o.Paths.Guard(messageTool{o, untrusted.New()}, pathpolicy.Sends, func(raw json.RawMessage) ([]string, error) {
		a, err := tool.Decode[args](raw)
		return slices.DeleteFunc(a.Media, func(name string) bool { return !media.IsFile(name) }), err
	})
}

type messageTool struct {
	Options
	label untrusted.Labeler
}

func (t messageTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "message",
		Label:       "Send message",
		Description: describe(t.Actions),
		Effect:      tool.Acts,
		Groups:      []string{"group:messaging"},
		Sandboxed:   tool.Outside,
		Subagents:   tool.NoSubagents,
		Roles:       []tool.Role{tool.SendsMessages},
		Aliases: map[string]string{
			"content":      "message",
			"mediaUrl":     "media",
			"mediaUrls":    "media",
			"target":       "to",
			"pollQuestion": "question",
			"pollOption":   "options",
			"pollMulti":    "multiple",
			"threadName":   "name",
		},
		Schema: schema(t.Actions),
	}
}

// Run carries out a call.
func (t messageTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := tool.Decode[args](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	r, err := t.request(c, a)
	if err != nil {
		return tool.Result{}, err
	}
	if err := r.Check(); err != nil { // before a file is stored
		return tool.Result{}, err
	}
	if !r.Dry {
		if r.Media, err = t.files(c, a.Media); err != nil {
			return tool.Result{}, err
		}
	}
	res, err := t.Do(ctx, r)
	if err != nil {
		return tool.Result{}, err
	}
	return t.result(res), nil
}
