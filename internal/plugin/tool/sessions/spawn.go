package sessions

import (
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
)

// Spawner starts children and controls them. Errors are for the model.
type Spawner interface {
	// Spawn starts a child. A second call with the same Request.ID changes nothing.
	Spawn(context.Context, subagent.Request) (subagent.Receipt, error)
	// List returns the children that a session may see.
	List(context.Context, chela.SessionKey) (subagent.List, error)
	// Kill stops the children that the target names, and all below them. It returns
	// those that were open.
	Kill(ctx context.Context, key chela.SessionKey, target string) ([]subagent.Child, error)
	// Waiting returns the number of results that a run waits for.
	Waiting(context.Context, chela.RunID) (int, error)
	// Steer sends a message to the open child that the target names.
	Steer(ctx context.Context, key chela.SessionKey, target, message string) (subagent.Child, error)
}

//go:embed spawn.md
var spawnDescription string

// SpawnOptions is tools.sessions_spawn.
type SpawnOptions struct {
	Attachments subagent.Attachments `json:"attachments"`
	Coders      []string             `json:"-"` // coding agents that tasks can be handed over to
}

// NewSpawn returns the tool sessions_spawn.
func NewSpawn(s Spawner, o SpawnOptions) tool.Tool { return spawnTool{s, o} }

type spawnTool struct {
	Spawner
	o SpawnOptions
}

// attachmentsSchema is the parameter attachments, if it is switched on.
const attachmentsSchema = `,
			"attachments":{"type":"array","description":"files for the subagent","items":{"type":"object","required":["name","content"],"properties":{
				"name":{"type":"string"},"content":{"type":"string"},"encoding":{"type":"string","enum":["utf8","base64"],"description":"of content (default: utf8)"},
				"mimeType":{"type":"string"}},"additionalProperties":false}}`

func (t spawnTool) Spec() tool.Spec {
	attachments := ""
	if t.o.Attachments.Enabled {
		attachments = attachmentsSchema
	}
	if len(t.o.Coders) > 0 {
		attachments += `,
			"runtime":{"type":"string","enum":["subagent","acp"],"description":"acp: a coding agent (agentId: ` +
			strings.Join(t.o.Coders, ", ") + `) works in cwd, with its own tools"}`
	}
	return tool.Spec{
		Name:        "sessions_spawn",
		Label:       "Start subagent",
		Description: strings.TrimSpace(spawnDescription),
		Effect:      tool.Writes,
		Groups:      []string{"group:sessions"},
		Profiles:    []string{"messaging"},
		Sandboxed:   tool.Inside,
		Subagents:   tool.Parents,
		InRuns:      true,
		Roles:       []tool.Role{tool.StartsSubagents},
		Keyed:       true,
		Aliases: map[string]string{
			"prompt":         "task",
			"message":        "task",
			"name":           "taskName",
			"timeoutSeconds": "runTimeoutSeconds",
			"agent_id":       "agentId",
		},
		Volatile: []string{"runId", "childSessionKey", "running"},
		Schema: json.RawMessage(`{"type":"object","required":["task"],"properties":{
			"task":{"type":"string"},
			"label":{"type":"string","description":"in lists"},
			"taskName":{"type":"string","description":"for targets: [a-z][a-z0-9_-]*"},
			"agentType":{"type":"string","description":"default: general"},
			"agentId":{"type":"string","description":"default: yours"},
			"model":{"type":"string","description":"provider/model"},
			"thinking":{"type":"string"},
			"runTimeoutSeconds":{"type":"number","minimum":0,"description":"0: no limit"},
			"cleanup":{"type":"string","enum":["keep","delete"]},
			"context":{"type":"string","enum":["isolated","fork"],"description":"fork: same agent and model"},
			"sandbox":{"type":"string","enum":["inherit","require"],"description":"require: only sandboxed"},
			"cwd":{"type":"string","description":"folder of its commands"},
			"thread":{"type":"boolean","description":"this thread, or a new one, goes to it until /unfocus"},
			"mode":{"type":"string","enum":["run","session"],"description":"session: goes on after its result (with thread)"}` +
			attachments + `},
			"additionalProperties":false}`),
	}
}

type spawnArgs struct {
	Task    string   `json:"task"`
	Label   string   `json:"label"`
	Name    string   `json:"taskName"`
	Type    string   `json:"agentType"`
	Agent   string   `json:"agentId"`
	Model   string   `json:"model"`
	Think   string   `json:"thinking"`
	Timeout *float64 `json:"runTimeoutSeconds"`
	Cleanup string   `json:"cleanup"`
	Context string   `json:"context"`
	Sandbox string   `json:"sandbox"`
	Folder  string   `json:"cwd"`
	Thread  bool     `json:"thread"`
	Mode    string   `json:"mode"`
	Runtime string   `json:"runtime"`

	Attachments []attachment `json:"attachments"`
}

// attachment is an element of the parameter attachments.
type attachment struct {
	Name     string `json:"name"`
	Content  string `json:"content"`
	Encoding string `json:"encoding"`
}

// files returns the decoded attachments.
func (a spawnArgs) files() ([]subagent.Attachment, error) {
	var out []subagent.Attachment
	for _, f := range a.Attachments {
		data := []byte(f.Content)
		if f.Encoding == "base64" {
			var err error
			if data, err = base64.StdEncoding.DecodeString(f.Content); err != nil {
				return nil, fmt.Errorf("attachment %q: %w", f.Name, err)
			}
		}
		out = append(out, subagent.Attachment{Name: f.Name, Data: data})
	}
	return out, nil
}

// accepted is the result of sessions_spawn.
type accepted struct {
	Status  string           `json:"status"`
	Run     chela.RunID      `json:"runId"`
	Session chela.SessionKey `json:"childSessionKey"`
	Label   string           `json:"label"`
	Model   string           `json:"model,omitempty"`
	Running int              `json:"running"`
	Warning string           `json:"warning,omitempty"`
}

func (t spawnTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := tool.Decode[spawnArgs](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	r := subagent.Request{
		ID:        subagent.IDOf(c.ID),
		Requester: c.Session,
		Run:       c.Run,
		Principal: chela.PrincipalFrom(ctx),
		Task:      a.Task,
		Label:     a.Label,
		Name:      a.Name,
		Type:      a.Type,
		Agent:     chela.AgentID(strings.TrimSpace(a.Agent)),
		Model:     a.Model,
		Think:     a.Think,
		Cleanup:   subagent.Cleanup(a.Cleanup),
		Context:   subagent.History(a.Context),
		Sandbox:   a.Sandbox,

		Folder: a.Folder,
		Thread: a.Thread,
	}
	if r.Runtime = a.Runtime; r.Runtime == subagent.RuntimeACP {
		r.Agent, r.Coder = "", strings.TrimSpace(a.Agent)
	}
	if a.Mode == "session" && !a.Thread {
		return tool.Result{}, chela.Errorf(chela.CodeInvalid, "mode session needs thread: true")
	}
	if a.Timeout != nil {
		limit := time.Duration(*a.Timeout * float64(time.Second))
		r.Timeout = &limit
	}
	if r.Files, err = a.files(); err != nil {
		return tool.Result{}, err
	}
	if err := t.o.Attachments.Check(r.Files); err != nil {
		return tool.Result{}, err
	}
	r.Retain = t.o.Attachments.Retain
	out, err := t.Spawn(ctx, r)
	if err != nil {
		return tool.Result{}, err
	}
	return encoded(accepted{
		Status:  "accepted",
		Run:     out.Child.ID,
		Session: out.Child.Session,
		Label:   out.Child.Label,
		Model:   out.Child.Model,
		Running: out.Running,
		Warning: out.Warning,
	})
}

// encoded returns a result whose text is v as JSON.
func encoded(v any) (tool.Result, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return tool.Result{}, fmt.Errorf("encode the result: %w", err)
	}
	r := tool.Text(string(raw))
	r.Details = raw
	return r, nil
}
