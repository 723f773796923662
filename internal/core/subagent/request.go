package subagent

import (
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Request is what a child is started with.
type Request struct {
	ID        chela.RunID // of the child; a second spawn with the same id changes nothing
	Requester chela.SessionKey
	Session   chela.SessionKey // of the child; empty: a new one
	Run       chela.RunID      // the run that spawns; empty: none
	Principal chela.Principal  // without a run: whose rights the child gets
	Address   chela.Address    // without a run: where the requester's answers go

	Task    string
	Label   string // empty: "Task N"
	Name    string // of the task, for targets
	Type    string
	Agent   chela.AgentID // empty: the requester's
	Model   string        // provider/model; empty: the configured one
	Think   string
	Timeout *time.Duration // 0: none; nil: the configured one
	Cleanup Cleanup
	Context History
	Sandbox string // "require": only if the child is sandboxed
	Folder  string // where commands of the child start: in the workspace, or absolute; empty: the workspace
	Files   []Attachment
	Retain  bool // the files stay when the session is archived
	Thread  bool // the thread in which the child is started is focused on it
	// Runtime is what works on the task: "" and "subagent" are a model, and RuntimeACP is
	// the coding agent with the name Coder; empty: the default one.
	Runtime string
	Coder   string
}

// RuntimeACP is the runtime of a coding agent.
const RuntimeACP = "acp"

// History is what a child knows of the conversation of its requester.
type History string

// The values of [History].
const (
	Isolated History = "isolated" // nothing
	Fork     History = "fork"     // what the model of the requester was sent
)

// Receipt is what the requester is told about a spawn.
type Receipt struct {
	Child   Child
	Running int    // open children of the requester, with this one
	Warning string // about something that was not done as requested; empty: none
}

// Limits of a request.
const (
	maxTask  = 64 << 10 // bytes
	MaxLabel = 120      // characters of a label
	MaxTree  = 200      // children of one tree of runs, at all depths, that are not archived
)

// Check returns what is wrong with the request, and cleans it.
func (r *Request) Check() error {
	r.Task = strings.TrimSpace(r.Task)
	switch {
	case r.Task == "":
		return chela.Errorf(chela.CodeInvalid, "task is required: say what the subagent is to do")
	case len(r.Task) > maxTask:
		return chela.Errorf(chela.CodeInvalid, "task has %s, at most %s are allowed", humanize.Bytes(int64(len(r.Task))),
			humanize.Bytes(maxTask))
	case r.Timeout != nil && *r.Timeout < 0:
		return chela.Errorf(chela.CodeInvalid, "runTimeoutSeconds must not be negative")
	}
	switch r.Cleanup {
	case Keep, Delete:
	case "":
		r.Cleanup = Keep
	default:
		return chela.Errorf(chela.CodeInvalid, "cleanup %q: want keep or delete", r.Cleanup)
	}
	switch {
	case r.Context == "":
		r.Context = Isolated
	case r.Context != Isolated && r.Context != Fork:
		return chela.Errorf(chela.CodeInvalid, "context %q: want isolated or fork", r.Context)
	case r.Context == Fork && r.Run == "":
		return chela.Errorf(chela.CodeInvalid, "context fork: there is no turn to fork from; leave context out")
	case r.Context == Fork && r.Type != "" && !strings.EqualFold(r.Type, "general"):
		return chela.Errorf(chela.CodeInvalid,
			"context fork: a fork has the prompt and the tools of its requester; leave agentType out, or use context isolated")
	case r.Context == Fork && r.Think != "":
		return chela.Errorf(chela.CodeInvalid,
			"context fork: a fork has the thinking level of its requester; leave thinking out, or use context isolated")
	}
	switch r.Runtime {
	case "", "subagent":
		r.Runtime = ""
	case RuntimeACP:
		if r.Type != "" || r.Model != "" || r.Think != "" || r.Context == Fork || len(r.Files) > 0 || r.Sandbox == "require" {
			return chela.Errorf(chela.CodeInvalid, "runtime acp: a coding agent has its own model, prompt and rights, and knows only the task; leave agentType, model, thinking, context, sandbox and attachments out")
		}
	default:
		return chela.Errorf(chela.CodeInvalid, "runtime %q: want subagent or acp", r.Runtime)
	}
	if r.Name != "" && !validName(r.Name) {
		return chela.Errorf(chela.CodeInvalid,
			"taskName %q: want a lower-case letter, then up to 63 letters, digits, - and _", r.Name)
	}
	r.Label = humanize.Truncate(strings.Join(strings.Fields(r.Label), " "), MaxLabel)
	return nil
}

// validName reports whether s matches [a-z][a-z0-9_-]{0,63}.
func validName(s string) bool {
	return chela.ValidAgentID(s) && (s[0] < '0' || s[0] > '9')
}
