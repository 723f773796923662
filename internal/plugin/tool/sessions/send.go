package sessions

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/exchange"
	"github.com/chela-ai/chela/internal/core/tool"
)

// Sender sends messages to other sessions. Errors are for the model.
type Sender interface {
	// Send sends a message, and waits for the reply if the request says so. A second
	// call with the same Request.ID sends nothing.
	Send(context.Context, exchange.Request) (exchange.Receipt, error)
}

//go:embed send.md
var sendDescription string

// NewSend returns the tool sessions_send.
func NewSend(s Sender) tool.Tool { return sendTool{s} }

type sendTool struct{ Sender }

func (t sendTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "sessions_send",
		Label:       "Message session",
		Description: strings.TrimSpace(sendDescription),
		Effect:      tool.Writes,
		Groups:      []string{"group:sessions"},
		Profiles:    []string{"messaging"},
		Sandboxed:   tool.Inside,
		Subagents:   tool.NoSubagents,
		InRuns:      true,
		Roles:       []tool.Role{tool.WritesSessions, tool.SendsMessages},
		Keyed:       true,
		Parallel:    true,
		Aliases: map[string]string{
			"text":    "message",
			"session": "sessionKey",
			"key":     "sessionKey",
			"agent":   "agentId",
			"timeout": "timeoutSeconds",
		},
		Volatile: []string{"runId"},
		Schema: json.RawMessage(`{"type":"object","required":["message"],"properties":{
			"sessionKey":{"type":"string"},
			"label":{"type":"string"},
			"agentId":{"type":"string"},
			"message":{"type":"string"},
			"timeoutSeconds":{"type":"number","minimum":0,"maximum":600,"description":"default 30"}},
			"additionalProperties":false}`),
	}
}

type sendArgs struct {
	Key     string   `json:"sessionKey"`
	Label   string   `json:"label"`
	Agent   string   `json:"agentId"`
	Message string   `json:"message"`
	Timeout *float64 `json:"timeoutSeconds"`
}

// defaultWait is how long a call waits for the reply.
const defaultWait = 30 * time.Second

// sent is the result of sessions_send.
type sent struct {
	exchange.Result
	Run     chela.RunID      `json:"runId"`
	Session chela.SessionKey `json:"sessionKey"`
}

func (t sendTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := tool.Decode[sendArgs](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	q := exchange.Request{
		ID: exchange.IDOf(c.ID), From: c.Session, Run: c.Run, Principal: chela.PrincipalFrom(ctx),
		Key: a.Key, Label: a.Label, Agent: chela.AgentID(strings.TrimSpace(a.Agent)), Text: a.Message, Wait: defaultWait,
	}
	if a.Timeout != nil {
		q.Wait = time.Duration(*a.Timeout * float64(time.Second))
	}
	out, err := t.Send(ctx, q)
	if err != nil {
		return tool.Result{}, err
	}
	r, err := encoded(sent{out.Result, out.Run, out.Session})
	r.IsError = out.Status == exchange.Failed
	return r, err
}
