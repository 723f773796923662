package message

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/tool"
)

type args struct {
	Action  string   `json:"action"`
	To      string   `json:"to"`
	Targets []string `json:"targets"`
	Channel string   `json:"channel"`
	Account string   `json:"accountId"`
	Text    string   `json:"message"`
	Media   []string `json:"media"`
	ReplyTo string   `json:"replyTo"`
	Thread  string   `json:"threadId"`
	Dry     bool     `json:"dryRun"`

	Message  string           `json:"messageId"`
	Emoji    string           `json:"emoji"`
	Remove   bool             `json:"remove"`
	Question string           `json:"question"`
	Options  []string         `json:"options"`
	Multiple bool             `json:"multiple"`
	Hours    float64          `json:"pollDurationHours"`
	Name     string           `json:"name"`
	Query    string           `json:"query"`
	Limit    int              `json:"limit"`
	Buttons  [][]chela.Button `json:"buttons"`
}

// request returns what a call asks for. Its files have names only.
func (t messageTool) request(c tool.Call, a args) (action.Request, error) {
	act, ok := action.Parse(a.Action)
	if !ok || !slices.Contains(t.actions(), act) {
		return action.Request{}, fmt.Errorf("action %q is not supported; use %s", a.Action, names(t.actions()))
	}
	r := action.Request{
		Action:  act,
		To:      a.To,
		Targets: a.Targets,
		Channel: a.Channel,
		Account: a.Account,
		Thread:  a.Thread,
		Text:    a.Text,
		Buttons: a.Buttons,
		ReplyTo: a.ReplyTo,
		Poll: outbox.Poll{Question: a.Question, Options: a.Options, Multiple: a.Multiple,
			Open: time.Duration(a.Hours * float64(time.Hour))},
		Message: a.Message,
		Emoji:   a.Emoji,
		Name:    a.Name,
		Query:   a.Query,
		Limit:   a.Limit,
		Dry:     a.Dry,
		From:    action.Origin{Run: c.Run, Session: c.Session, Agent: c.Agent, Cross: t.CrossContext},
	}
	if a.Remove {
		r.Emoji = ""
	}
	for _, name := range a.Media {
		r.Media = append(r.Media, chela.Media{Name: name})
	}
	return r, nil
}

// actions returns the actions that can be called.
func (t messageTool) actions() []action.Action {
	if len(t.Actions) == 0 {
		return []action.Action{action.Send}
	}
	return t.Actions
}

func names(actions []action.Action) string {
	var out []string
	for _, a := range actions {
		out = append(out, string(a))
	}
	return strings.Join(out, ", ")
}

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
	m, ok, err := t.Files.Stored(name)
	if !ok {
		return m, fmt.Errorf("%s is an address, not a file; download it into the workspace first", name)
	}
	return m, err
}
