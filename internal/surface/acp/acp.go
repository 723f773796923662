// Package acp lets editors talk to the assistant: it is an agent of the Agent Client
// Protocol on standard input and output, and a client of the gateway.
//
// A session of an editor is a session of the gateway, whose key is its id. An editor's
// prompt is a message like any other; what the gateway tells about its run becomes updates
// of the editor's session, and its approvals become permission requests there.
package acp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/google/uuid"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/surface/tui/attach"
	"github.com/chela-ai/chela/internal/surface/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// Options configure an agent. All but Session and Agent are required.
type Options struct {
	Client  *client.Client
	In      io.Reader // from the editor
	Out     io.Writer // to the editor; nothing else may write there
	Log     *slog.Logger
	Version string
	Session string // key of the session of all editor sessions; empty: each has its own
	Agent   string // id of the agent; empty: the one whose workspace the editor's folder is in, or the default one
}

// agent implements sdk.Agent.
type agent struct {
	o    Options
	conn *sdk.AgentSideConnection
	out  *output

	mu       sync.Mutex              // guards the following, and the sessions
	kinds    map[string]sdk.ToolKind // of tools, by name
	sessions map[sdk.SessionId]*session
}

// session is a session of an editor.
type session struct {
	id    sdk.SessionId // the key of the session of the gateway
	feed  *feed.Feed
	turns map[string]*turn  // by run
	calls []feed.Tool       // in progress, in order
	asked map[string]func() // by approval: takes back the question that the editor shows
	text  string            // shown of the message in progress
	think string            // shown of the thinking in progress
}

// turn is a prompt that is not answered yet.
type turn struct {
	last string        // the last complete message that was shown
	done chan feed.End // receives the end once
}

// Serve answers an editor until it disconnects or ctx ends.
func Serve(ctx context.Context, o Options) error {
	a := &agent{o: o, out: &output{Writer: o.Out, later: map[string]func(){}}, sessions: map[sdk.SessionId]*session{},
		kinds: map[string]sdk.ToolKind{}}
	a.conn = sdk.NewAgentSideConnection(a, a.out, o.In)
	a.conn.SetLogger(o.Log)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- a.follow(ctx) }()
	select {
	case <-a.conn.Done():
		return nil
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Initialize implements sdk.Agent.
func (a *agent) Initialize(_ context.Context, r sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	out := sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber, AuthMethods: []sdk.AuthMethod{},
		AgentInfo: &sdk.Implementation{Name: "chela", Title: sdk.Ptr("Chela"), Version: a.o.Version},
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession: true, PromptCapabilities: sdk.PromptCapabilities{Image: true, EmbeddedContext: true},
			SessionCapabilities: sdk.SessionCapabilities{List: &sdk.SessionListCapabilities{},
				Resume: &sdk.SessionResumeCapabilities{}, Close: &sdk.SessionCloseCapabilities{}},
		},
	}
	if r.ProtocolVersion < 1 {
		return out, invalid("protocol version %d is not supported; this agent has version %d", r.ProtocolVersion,
			sdk.ProtocolVersionNumber)
	}
	return out, nil
}

// invalid returns an error about the parameters of a request.
func invalid(format string, args ...any) error {
	return &sdk.RequestError{Code: -32602, Message: fmt.Sprintf(format, args...)}
}

// failure returns an error of the gateway for the editor.
func failure(err error) error {
	text := err.Error()
	if e, ok := errors.AsType[*wire.Error](err); ok {
		text = e.Message
	}
	return &sdk.RequestError{Code: -32603, Message: text}
}

// Authenticate implements sdk.Agent. Who can start this program may use it.
func (a *agent) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, nil
}

var errServers = invalid(
	"MCP servers of a session are not supported; add them to the assistant: chela mcp add NAME -- COMMAND")

// NewSession implements sdk.Agent.
func (a *agent) NewSession(ctx context.Context, r sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	if len(r.McpServers) > 0 {
		return sdk.NewSessionResponse{}, errServers
	}
	agents, err := a.agents(ctx)
	if err != nil {
		return sdk.NewSessionResponse{}, failure(err)
	}
	id, works := a.choose(agents, r.Cwd)
	key := cmp.Or(a.o.Session, "agent:"+id+":acp-bridge:"+uuid.NewString())
	h, err := a.o.Client.History(ctx, key, 1)
	if err != nil {
		return sdk.NewSessionResponse{}, failure(err)
	}
	a.learnTools(ctx, id)
	s := a.open(sdk.SessionId(key))
	a.out.after(key, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		a.announceCommands(ctx, s)
		if works != "" {
			a.update(ctx, s, sdk.UpdateAgentThoughtText(works))
		}
	})
	return sdk.NewSessionResponse{SessionId: s.id, ConfigOptions: a.options(ctx, h)}, nil
}

func (a *agent) agents(ctx context.Context) (wire.AgentsList, error) {
	var list wire.AgentsList
	err := a.o.Client.Repeat(ctx, wire.MethodAgentsList, wire.None{}, &list)
	return list, err
}

// choose returns the agent for a folder, and a text for the person if it works elsewhere.
func (a *agent) choose(list wire.AgentsList, cwd string) (id, works string) {
	id = cmp.Or(a.o.Agent, list.DefaultID)
	workspace := ""
	for _, g := range list.Agents {
		inside := g.Workspace != "" && pathpolicy.Inside(cwd, g.Workspace)
		if inside && a.o.Agent == "" {
			return g.ID, ""
		}
		if g.ID == id {
			if workspace = g.Workspace; inside {
				return id, ""
			}
		}
	}
	return id, fmt.Sprintf(
		"The agent %s works in %s, not in %s. chela agents add NAME --workspace %s makes one that works here.",
		id, workspace, cwd, cwd)
}

// open returns a session, which it makes at its first use.
func (a *agent) open(id sdk.SessionId) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[id]
	if s == nil {
		s = &session{id: id, feed: feed.New(string(id)), turns: map[string]*turn{}, asked: map[string]func(){}}
		a.sessions[id] = s
	}
	return s
}

// existing returns a session that the gateway knows, and its last messages.
func (a *agent) existing(ctx context.Context, id sdk.SessionId, messages int) (*session, wire.History, error) {
	h, err := a.o.Client.History(ctx, string(id), messages)
	if err != nil {
		return nil, h, failure(err)
	}
	if h.SessionID == "" && len(h.Messages) == 0 || h.SessionKey != string(id) {
		return nil, h, invalid("there is no session %s", id)
	}
	if h.Info != nil {
		a.learnTools(ctx, h.Info.AgentID)
	}
	return a.open(id), h, nil
}

// LoadSession implements sdk.AgentLoader: it tells the conversation so far.
func (a *agent) LoadSession(ctx context.Context, r sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	if len(r.McpServers) > 0 {
		return sdk.LoadSessionResponse{}, errServers
	}
	s, h, err := a.existing(ctx, r.SessionId, maxHistory)
	if err != nil {
		return sdk.LoadSessionResponse{}, err
	}
	for i := range h.Messages {
		m := &h.Messages[i]
		text := attach.Text(*m)
		switch {
		case strings.TrimSpace(text) == "":
		case m.Role == wire.RoleUser:
			a.update(ctx, s, sdk.UpdateUserMessageText(text))
		case m.Role == wire.RoleAssistant:
			a.update(ctx, s, sdk.UpdateAgentMessageText(text))
		}
	}
	a.announceCommands(ctx, s)
	return sdk.LoadSessionResponse{ConfigOptions: a.options(ctx, h)}, nil
}

// maxHistory is the number of messages that are told of a session that is loaded.
const maxHistory = 200

// announceCommands tells the editor the slash commands of the assistant.
func (a *agent) announceCommands(ctx context.Context, s *session) {
	var list wire.CommandsList
	if err := a.o.Client.Repeat(ctx, wire.MethodCommandsList, wire.CommandsGet{SessionKey: string(s.id), Scope: "text"},
		&list); err != nil {
		a.o.Log.Debug("commands for the editor", "err", err)
		return
	}
	all := make([]sdk.AvailableCommand, 0, len(list.Commands))
	for _, c := range list.Commands {
		one := sdk.AvailableCommand{Name: c.Name, Description: c.Description}
		if c.AcceptsArgs {
			one.Input = &sdk.AvailableCommandInput{Unstructured: &sdk.UnstructuredCommandInput{Hint: "arguments"}}
		}
		all = append(all, one)
	}
	a.update(ctx, s,
		sdk.SessionUpdate{AvailableCommandsUpdate: &sdk.SessionAvailableCommandsUpdate{AvailableCommands: all}})
}

// Prompt implements sdk.Agent: it sends the message and waits for the end of its run. The
// end of ctx is the person's: the run is stopped.
func (a *agent) Prompt(ctx context.Context, r sdk.PromptRequest) (sdk.PromptResponse, error) {
	text, files, err := message(r.Prompt)
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	a.mu.Lock()
	s := a.sessions[r.SessionId]
	a.mu.Unlock()
	switch {
	case s != nil:
	case string(r.SessionId) == a.o.Session: // which need not be opened, or is being opened
		s = a.open(r.SessionId)
	default: // of an earlier start of the editor
		if s, _, err = a.existing(ctx, r.SessionId, 1); err != nil {
			return sdk.PromptResponse{}, err
		}
	}
	run := rand.Text()
	t := &turn{done: make(chan feed.End, 1)}
	a.mu.Lock()
	s.turns[run] = t
	s.feed.Own(run)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(s.turns, run)
	}()
	in := wire.ChatSend{SessionKey: string(s.id), Message: text, Attachments: files, IdempotencyKey: run}
	_, err = a.o.Client.Chat(ctx, in)
	for errors.Is(err, client.ErrLost) && ctx.Err() == nil { // safe to repeat: the key makes it idempotent
		_, err = a.o.Client.Chat(ctx, in)
	}
	if err != nil && ctx.Err() == nil {
		return sdk.PromptResponse{}, failure(err)
	}
	select {
	case end := <-t.done:
		return response(end)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if _, err := a.o.Client.Abort(stop, string(s.id), ""); err == nil {
		select {
		case <-t.done: // what it said last is shown
		case <-stop.Done():
		}
	}
	return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
}

// stopTime is the time limit of stopping a run.
const stopTime = 15 * time.Second

// response returns the answer to a prompt whose run has ended.
func response(end feed.End) (sdk.PromptResponse, error) {
	switch {
	case end.State == wire.StateAborted:
		return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
	case end.State == wire.StateError:
		return sdk.PromptResponse{}, &sdk.RequestError{Code: -32603, Message: cmp.Or(end.Error, "the run failed")}
	case end.Stop == "length":
		return sdk.PromptResponse{StopReason: sdk.StopReasonMaxTokens}, nil
	case end.Stop == "refusal":
		return sdk.PromptResponse{StopReason: sdk.StopReasonRefusal}, nil
	case end.Stop == wire.StopLimit:
		return sdk.PromptResponse{StopReason: sdk.StopReasonMaxTurnRequests}, nil
	}
	return sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn}, nil
}

// Cancel implements sdk.Agent. The library ends the context of the prompt before.
func (a *agent) Cancel(context.Context, sdk.CancelNotification) error { return nil }

// SetSessionMode implements sdk.Agent. There are no modes: no answer offers any.
func (a *agent) SetSessionMode(context.Context, sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	return sdk.SetSessionModeResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionSetMode)
}
