package sessions

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/secret"
)

//go:embed list.md
var listDescription string

//go:embed history.md
var historyDescription string

//go:embed agents.md
var agentsDescription string

// ReadOptions configures the tools that read other sessions. All fields are required.
type ReadOptions struct {
	Store   store.Store
	Sharing func(session.Meta) session.Sharing // what a session may see
	Agents  func() []chela.Agent
	Allowed func(from, to chela.AgentID) bool // reports whether a subagent of to may be started
	Redact  func(string) string               // removes known secrets
}

// NewRead returns the tools sessions_list, sessions_history, sessions_search and
// agents_list.
func NewRead(o ReadOptions) []tool.Tool {
	return []tool.Tool{listTool{o}, historyTool{o}, searchTool{o}, agentsTool{o}}
}

// redact removes known secrets, and what looks like one.
func (o ReadOptions) redact(s string) string { return secret.RedactCredentials(o.Redact(s)) }

type listTool struct{ ReadOptions }

func (t listTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "sessions_list",
		Label:       "List sessions",
		Description: strings.TrimSpace(listDescription),
		Effect:      tool.Reads,
		Parallel:    true,
		Groups:      []string{"group:sessions"},
		Profiles:    []string{"messaging"},
		Sandboxed:   tool.Inside,
		Subagents:   tool.Parents,
		Schema: json.RawMessage(`{"type":"object","properties":{
			"kinds":{"type":"array","items":{"type":"string","enum":["main","group","cron","hook","subagent","other"]}},
			"activeMinutes":{"type":"number","minimum":1},
			"limit":{"type":"integer","minimum":1,"maximum":200,"description":"default 50"},
			"messageLimit":{"type":"integer","minimum":0,"maximum":20},
			"search":{"type":"string"},"label":{"type":"string"},"agentId":{"type":"string"}},
			"additionalProperties":false}`),
	}
}

type listArgs struct {
	Kinds    []string `json:"kinds"`
	Active   float64  `json:"activeMinutes"`
	Limit    int      `json:"limit"`
	Messages int      `json:"messageLimit"`
	Search   string   `json:"search"`
	Label    string   `json:"label"`
	Agent    string   `json:"agentId"`
}

// listed is a session in a list.
type listed struct {
	Key      chela.SessionKey `json:"key"`
	Kind     string           `json:"kind"`
	Agent    chela.AgentID    `json:"agentId"`
	Label    string           `json:"label,omitempty"`
	Title    string           `json:"title,omitempty"`
	Updated  time.Time        `json:"updatedAt"`
	Messages []message        `json:"messages,omitempty"`
}

const (
	defaultList = 50
	maxScanned  = 2000 // sessions that are looked at for one list
)

func (t listTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := tool.Decode[listArgs](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	q := session.Query{Agent: chela.AgentID(a.Agent), Search: a.Search, Label: a.Label, Limit: maxScanned}
	if a.Active > 0 {
		q.Since = time.Now().Add(-time.Duration(a.Active * float64(time.Minute)))
	}
	out := struct {
		Count    int      `json:"count"`
		Sessions []listed `json:"sessions"`
	}{Sessions: []listed{}}
	err = t.Store.View(ctx, func(r store.Reader) error {
		viewer, err := session.Lookup(r.Sessions(), c.Session)
		if err != nil {
			return err
		}
		sharing := t.Sharing(viewer)
		all, _, err := r.Sessions().List(q)
		for _, m := range all {
			if len(out.Sessions) == cmp.Or(a.Limit, defaultList) {
				break
			}
			ok, err := sharing.Sees(r.Sessions(), viewer, m)
			if err != nil {
				return err
			}
			if kind := kindOf(m); ok && (len(a.Kinds) == 0 || slices.Contains(a.Kinds, kind)) {
				row := listed{
					Key:     m.Key,
					Kind:    kind,
					Agent:   m.Agent,
					Label:   t.redact(m.Label),
					Title:   t.redact(m.Title),
					Updated: m.Updated,
				}
				if a.Messages > 0 {
					if row.Messages, err = t.last(r.Sessions(), m.ID, a.Messages); err != nil {
						return err
					}
				}
				out.Sessions = append(out.Sessions, row)
			}
		}
		return err
	})
	if err != nil {
		return tool.Result{}, err
	}
	out.Count = len(out.Sessions)
	return encoded(out)
}

// last returns the last messages of a transcript, without the results of tools.
func (o ReadOptions) last(r session.Reader, id string, n int) ([]message, error) {
	entries, err := r.Last(id, 4*n)
	var out []message
	for _, e := range entries {
		if e.Kind == session.KindMessage && e.Message.Role != llm.RoleTool {
			if text := e.Message.PlainText(); text != "" {
				out = append(out, message{Role: string(e.Message.Role), Text: humanize.Truncate(o.redact(text), 500), Time: e.Time})
			}
		}
	}
	return out[max(0, len(out)-n):], err
}

// kindOf returns the kind of a session for lists.
func kindOf(m session.Meta) string {
	if m.IsChild() {
		return string(chela.KeySubagent)
	}
	return string(m.Key.Kind())
}

type historyTool struct{ ReadOptions }

func (t historyTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "sessions_history",
		Label:       "Read session",
		Description: strings.TrimSpace(historyDescription),
		Effect:      tool.Reads,
		Parallel:    true,
		Groups:      []string{"group:sessions"},
		Profiles:    []string{"messaging"},
		Sandboxed:   tool.Inside,
		Subagents:   tool.Parents,
		Schema: json.RawMessage(`{"type":"object","required":["sessionKey"],"properties":{
			"sessionKey":{"type":"string"},
			"limit":{"type":"integer","minimum":1,"maximum":200,"description":"default 50"},
			"offset":{"type":"integer","minimum":0,"description":"newest to skip"},
			"includeTools":{"type":"boolean"}},
			"additionalProperties":false}`),
	}
}

type historyArgs struct {
	Key    string `json:"sessionKey"`
	Limit  int    `json:"limit"`
	Offset int    `json:"offset"`
	Tools  bool   `json:"includeTools"`
}

// message is a message of another session.
type message struct {
	Role  string    `json:"role"`
	Tool  string    `json:"tool,omitempty"`
	Calls []string  `json:"calls,omitempty"`
	Text  string    `json:"text,omitempty"`
	Time  time.Time `json:"time"`
}

const (
	defaultHistory = 50
	maxBlock       = 4000     // characters of one message
	maxHistory     = 80 << 10 // bytes of all
	maxEntries     = 10_000   // of a transcript that are read
)

func (t historyTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := tool.Decode[historyArgs](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	key, err := chela.ParseSessionKey(a.Key, c.Session.Agent())
	if err != nil {
		return tool.Result{}, err
	}
	var entries []session.Entry
	err = t.Store.View(ctx, func(r store.Reader) error {
		viewer, err := session.Lookup(r.Sessions(), c.Session)
		if err != nil {
			return err
		}
		m, err := t.Sharing(viewer).Find(r.Sessions(), viewer, key)
		if err != nil {
			return err
		}
		entries, err = r.Sessions().Last(m.ID, maxEntries)
		return err
	})
	if err != nil {
		return tool.Result{}, err
	}
	return t.history(key, a, entries)
}

// history returns the requested messages of a transcript.
func (t historyTool) history(key chela.SessionKey, a historyArgs, entries []session.Entry) (tool.Result, error) {
	out := struct {
		Key       chela.SessionKey `json:"sessionKey"`
		Messages  []message        `json:"messages"`
		Truncated bool             `json:"truncated,omitempty"` // older messages were left out
	}{Key: key, Messages: []message{}}
	size, skip := 0, a.Offset
	for _, e := range slices.Backward(entries) {
		if e.Kind != session.KindMessage || e.Message.Role == llm.RoleTool && !a.Tools {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		m := message{Role: string(e.Message.Role), Tool: e.Message.ToolName, Time: e.Time}
		full := t.redact(e.Message.PlainText())
		if m.Text = humanize.Truncate(full, maxBlock); m.Text != full {
			m.Text += fmt.Sprintf(" [truncated: the message has %s]", humanize.Bytes(int64(len(full))))
		}
		for _, p := range e.Message.Parts {
			if p.Kind == llm.PartCall && a.Tools {
				m.Calls = append(m.Calls, t.redact(p.Call.Label()))
			}
		}
		raw, err := json.Marshal(m)
		if err != nil {
			return tool.Result{}, err
		}
		if size += len(raw); size > maxHistory || len(out.Messages) == cmp.Or(a.Limit, defaultHistory) {
			out.Truncated = true
			break
		}
		out.Messages = append(out.Messages, m)
	}
	slices.Reverse(out.Messages)
	return encoded(out)
}

type agentsTool struct{ ReadOptions }

func (t agentsTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "agents_list",
		Label:       "List agents",
		Description: strings.TrimSpace(agentsDescription),
		Effect:      tool.Reads,
		Parallel:    true,
		Groups:      []string{"group:agents"},
		Subagents:   tool.NoSubagents,
		Schema:      json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
	}
}

func (t agentsTool) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	type row struct {
		ID    chela.AgentID `json:"id"`
		Name  string        `json:"name,omitempty"`
		Model string        `json:"model"`
	}
	out := struct {
		Requester chela.AgentID `json:"requester"`
		Agents    []row         `json:"agents"`
	}{c.Session.Agent(), []row{}}
	for _, a := range t.Agents() {
		if t.Allowed(out.Requester, a.ID) {
			out.Agents = append(out.Agents, row(a))
		}
	}
	return encoded(out)
}
