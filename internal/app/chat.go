package app

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/app/trigger"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/invoke"
)

// chatAdmin answers a slash command about the gateway.
func (e *Engine) chatAdmin(ctx context.Context, name, args string, key chela.SessionKey) (string, error) {
	if name != "restart" {
		return e.gateway.Chat(ctx, name, args, key)
	}
	if e.port == nil {
		return "This process cannot restart itself. Start it again.", nil
	}
	e.restartAfter(restartDelay) // the person gets the answer first
	return "Restarting. Work in progress resumes.", nil
}

// shell runs the commands that people type in chats. They pass the same rules as the
// commands of models; one that needs an approval is refused.
type shell struct {
	direct *invoke.Direct
	tools  func(chela.AgentID) tool.Set
	yield  func() time.Duration // after which a command continues in the background

	mu   sync.Mutex
	last map[chela.SessionKey]string // ids of the last commands that went on; lost with the process
}

// maxShells is the number of sessions whose last command is remembered.
const maxShells = 256

// shell makes what runs the commands of /bash.
func (e *Engine) shell() *shell {
	return &shell{
		direct: invoke.NewDirect(invoke.DirectOptions{
			Executor: e.executor, Store: e.store, Default: chela.DefaultAgent, Agent: e.current.HasAgent, Scope: e.current.Scope,
			Direct: func() (deny, allow []string) { return nil, []string{policy.Commands} },
		}),
		tools: e.tools,
		yield: func() time.Duration { return e.now().Settings.Slash.Foreground() }, last: map[chela.SessionKey]string{},
	}
}

// run runs a command, or, for "poll" and "stop", asks about the last one that went on in
// the background.
func (s *shell) run(ctx context.Context, who chela.Principal, key chela.SessionKey, command string) (string, error) {
	tools := s.tools(key.Agent())
	call := invoke.DirectCall{Tool: tools.Role(tool.RunsCommands), Session: string(key), Agent: string(key.Agent())}
	args := map[string]any{"command": command, "yieldMs": s.yield().Milliseconds()}
	if verb := strings.ToLower(command); verb == "poll" || verb == "stop" {
		id := s.lastOf(key)
		if id == "" {
			return "No command is in the background.", nil
		}
		call.Tool, args = tools.Role(tool.FollowsCommands),
			map[string]any{"action": map[string]string{"poll": "poll", "stop": "kill"}[verb], "sessionId": id}
	}
	var err error
	if call.Args, err = json.Marshal(args); err != nil {
		return "", err
	}
	a, err := s.direct.Do(ctx, who, call)
	switch {
	case err != nil:
		return "", err
	case a.Approval:
		return "", chela.Errorf(chela.CodeInvalid, "the command needs an approval, which cannot be asked for here: %s",
			a.Text)
	case a.Refusal != "" && len(a.Result.Content) == 0:
		return "", chela.Errorf(chela.CodeInvalid, "%s", a.Text)
	}
	var d struct {
		ID string `json:"sessionId"`
	}
	if call.Tool == tools.Role(tool.RunsCommands) && json.Unmarshal(a.Result.Details, &d) == nil && d.ID != "" {
		s.remember(key, d.ID)
	}
	return trigger.Text(a.Result), nil
}

func (s *shell) lastOf(key chela.SessionKey) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[key]
}

func (s *shell) remember(key chela.SessionKey, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) >= maxShells {
		clear(s.last)
	}
	s.last[key] = id
}
