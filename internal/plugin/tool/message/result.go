package message

import (
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// outcome holds the details of a result.
type outcome struct {
	Action  string    `json:"action"`
	Channel string    `json:"channel,omitempty"`
	To      string    `json:"to,omitempty"`
	Dry     bool      `json:"dryRun,omitempty"`
	Status  string    `json:"status"`
	IDs     []string  `json:"messageIds,omitempty"`
	Parts   int       `json:"parts,omitempty"`
	Thread  string    `json:"threadId,omitempty"`
	Targets []outcome `json:"targets,omitempty"`
}

func outcomeOf(r action.Result) outcome {
	o := outcome{
		Action:  string(r.Action),
		Channel: r.Channel,
		To:      r.To,
		Dry:     r.Status == action.Planned,
		Status:  string(r.Status),
		IDs:     r.IDs,
		Parts:   r.Parts,
		Thread:  r.Thread,
	}
	for _, t := range r.Targets {
		o.Targets = append(o.Targets, outcomeOf(t))
	}
	return o
}

// maxMessage is the number of characters of each message that is read.
const maxMessage = 2000

// result returns what became of a call. What others wrote is marked as such.
func (t messageTool) result(r action.Result) tool.Result {
	text := r.Text
	var lines []string
	for _, m := range r.Messages {
		who := m.Sender.Name
		switch {
		case m.Own:
			who = "you"
		case who == "":
			who = m.Sender.ID
		}
		lines = append(lines, fmt.Sprintf("[%s] %s, %s: %s", m.ID, who, m.Time.UTC().Format(time.RFC3339),
			humanize.Truncate(m.Text, maxMessage)))
	}
	for _, e := range r.Entries {
		lines = append(lines, target(e.Peer)+" "+strings.TrimSpace(e.Name+" "+handle(e.Handle)))
	}
	if len(lines) > 0 {
		text += "\n" + t.label.Wrap("message", "Messages and names from a chat: "+untrusted.Data, strings.Join(lines, "\n"))
	}
	res := tool.Detailed(text, outcomeOf(r))
	res.IsError = r.Bad()
	return res
}

// target returns a chat as the parameter to.
func target(p chela.Peer) string {
	switch p.Kind {
	case chela.Direct:
		return "user:" + p.ID
	case chela.Group, chela.Room:
		return string(p.Kind) + ":" + p.ID
	}
	return p.ID
}

func handle(name string) string {
	if name == "" {
		return ""
	}
	return "(@" + name + ")"
}
