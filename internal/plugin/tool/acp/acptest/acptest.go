// Package acptest has a small coding agent for tests. It does what the words of a prompt
// say, and records what it gets. It is strict: a client that breaks the protocol is
// recorded as a violation.
//
// A test binary becomes the agent by calling [Main] first in its TestMain; [Env] returns
// the variables of such a program.
package acptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// Variables of the agent.
const (
	folder = "ACPTEST_FOLDER" // set: the program is the agent, and its files are here
	flags  = "ACPTEST_FLAGS"  // words: load, login, old
)

// Env returns the variables that make a test binary the agent. Its records are in dir. The
// flags are load (it can load conversations), login (it has no account) and old (it speaks
// another version of the protocol).
func Env(dir string, words ...string) map[string]string {
	return map[string]string{folder: dir, flags: strings.Join(words, " ")}
}

// Log is the name of the file with what the agent got: a line for each event.
const Log = "log"

// Go is the name of the file that the word wait waits for.
const Go = "go"

// Lines returns the lines of the log that begin with a word, without it.
func Lines(dir, word string) (out []string) {
	b, _ := os.ReadFile(filepath.Join(dir, Log)) // there may be none yet
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), word+" "); ok {
			out = append(out, rest)
		}
	}
	return out
}

// Main is the agent, if the environment says so. Then it returns with the exit status at
// the end of the input.
func Main() (status int, is bool) {
	dir := os.Getenv(folder)
	if dir == "" {
		return 0, false
	}
	a := &agent{dir: dir, flags: os.Getenv(flags), die: make(chan int), cancels: map[sdk.SessionId]chan struct{}{}}
	a.log("start", fmt.Sprint(os.Getpid()))
	fmt.Fprintln(os.Stderr, "the agent has begun")
	a.conn = sdk.NewAgentSideConnection(a, os.Stdout, os.Stdin)
	select {
	case <-a.conn.Done():
	case status = <-a.die:
	}
	a.log("end", fmt.Sprint(os.Getpid()))
	return status, true
}

// agent implements sdk.Agent.
type agent struct {
	dir   string
	flags string
	conn  *sdk.AgentSideConnection
	busy  atomic.Int32
	die   chan int // receives the exit status

	mu      sync.Mutex
	cancels map[sdk.SessionId]chan struct{} // of known conversations; closed: the prompt in progress is cancelled
}

var (
	_ sdk.Agent       = (*agent)(nil)
	_ sdk.AgentLoader = (*agent)(nil)
)

func (a *agent) has(flag string) bool { return strings.Contains(a.flags, flag) }

func (a *agent) log(word, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f, err := os.OpenFile(filepath.Join(a.dir, Log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "%s %s\n", word, strings.ReplaceAll(text, "\n", "⏎"))
}

// Initialize implements sdk.Agent.
func (a *agent) Initialize(_ context.Context, r sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	if c := r.ClientCapabilities; c.Terminal || c.Fs.ReadTextFile || c.Fs.WriteTextFile {
		a.log("violation", "it offers what it does not have")
	}
	v := sdk.ProtocolVersion(sdk.ProtocolVersionNumber)
	if a.has("old") {
		v = 99
	}
	return sdk.InitializeResponse{
		ProtocolVersion: v, AgentInfo: &sdk.Implementation{Name: "acptest", Version: "1"},
		AgentCapabilities: sdk.AgentCapabilities{LoadSession: a.has("load")},
		AuthMethods: []sdk.AuthMethod{
			{Agent: &sdk.AuthMethodAgent{Id: "browser", Name: "Sign in", Description: sdk.Ptr("run acptest login")}}},
	}, nil
}

// NewSession implements sdk.Agent.
func (a *agent) NewSession(_ context.Context, r sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	if a.has("login") {
		return sdk.NewSessionResponse{}, &sdk.RequestError{Code: -32000, Message: "Authentication required"}
	}
	if r.McpServers == nil || !filepath.IsAbs(r.Cwd) {
		a.log("violation", "session/new has no mcpServers, or a folder that is not absolute")
	}
	id := sdk.SessionId(fmt.Sprintf("s%d", time.Now().UnixNano()))
	a.log("new", r.Cwd)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancels[id] = nil
	return sdk.NewSessionResponse{SessionId: id, Modes: &sdk.SessionModeState{
		CurrentModeId: "ask", AvailableModes: []sdk.SessionMode{{Id: "ask", Name: "Ask"}, {Id: "code", Name: "Code"}},
	}}, nil
}

// LoadSession implements sdk.AgentLoader: it tells the conversation again.
func (a *agent) LoadSession(ctx context.Context, r sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	if !a.has("load") {
		a.log("violation", "session/load is not offered")
	}
	a.log("load", string(r.SessionId))
	a.mu.Lock()
	a.cancels[r.SessionId] = nil
	a.mu.Unlock()
	for _, p := range Lines(a.dir, "prompt") {
		a.say(ctx, r.SessionId, "replayed: "+p)
	}
	return sdk.LoadSessionResponse{}, nil
}

// Authenticate implements sdk.Agent.
func (a *agent) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	a.log("violation", "authenticate")
	return sdk.AuthenticateResponse{}, nil
}

// Cancel implements sdk.Agent.
func (a *agent) Cancel(_ context.Context, r sdk.CancelNotification) error {
	a.log("cancel", string(r.SessionId))
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.cancels[r.SessionId]; c != nil {
		close(c)
		a.cancels[r.SessionId] = nil
	}
	return nil
}

// CloseSession implements sdk.Agent. It is not offered.
func (a *agent) CloseSession(context.Context, sdk.CloseSessionRequest) (r sdk.CloseSessionResponse, err error) {
	a.log("violation", "session/close is not offered")
	return r, sdk.NewMethodNotFound("session/close")
}

// ListSessions implements sdk.Agent. It is not offered.
func (a *agent) ListSessions(context.Context, sdk.ListSessionsRequest) (r sdk.ListSessionsResponse, err error) {
	a.log("violation", "session/list is not offered")
	return r, sdk.NewMethodNotFound("session/list")
}

// ResumeSession implements sdk.Agent. It is not offered.
func (a *agent) ResumeSession(context.Context, sdk.ResumeSessionRequest) (r sdk.ResumeSessionResponse, err error) {
	a.log("violation", "session/resume is not offered")
	return r, sdk.NewMethodNotFound("session/resume")
}

// SetSessionConfigOption implements sdk.Agent. It is not offered.
func (a *agent) SetSessionConfigOption(context.Context,
	sdk.SetSessionConfigOptionRequest) (r sdk.SetSessionConfigOptionResponse, err error) {
	a.log("violation", "session/set_config_option is not offered")
	return r, sdk.NewMethodNotFound("session/set_config_option")
}

// SetSessionMode implements sdk.Agent.
func (a *agent) SetSessionMode(_ context.Context, r sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	a.log("mode", string(r.ModeId))
	return sdk.SetSessionModeResponse{}, nil
}

func (a *agent) update(ctx context.Context, id sdk.SessionId, u sdk.SessionUpdate) {
	_ = a.conn.SessionUpdate(ctx, sdk.SessionNotification{SessionId: id, Update: u}) // the client may be gone
}

func (a *agent) say(ctx context.Context, id sdk.SessionId, text string) {
	a.update(ctx, id, sdk.UpdateAgentMessageText(text))
}

// Prompt implements sdk.Agent.
func (a *agent) Prompt(ctx context.Context, r sdk.PromptRequest) (sdk.PromptResponse, error) {
	ctx = context.WithoutCancel(ctx) // the library ends it at session/cancel
	if a.busy.Add(1) > 1 {
		a.log("violation", "two prompts at once")
	}
	defer a.busy.Add(-1)
	a.mu.Lock()
	_, known := a.cancels[r.SessionId]
	cancelled := make(chan struct{})
	a.cancels[r.SessionId] = cancelled
	a.mu.Unlock()
	if !known {
		a.log("violation", "prompt of an unknown conversation")
	}
	var text string
	for _, b := range r.Prompt {
		if b.Text != nil {
			text += b.Text.Text
		}
	}
	a.log("prompt", text)
	stop := sdk.StopReasonEndTurn
	for i, word := range strings.Fields(text) {
		why, err := a.do(ctx, r.SessionId, word, fmt.Sprintf("call%d", i), cancelled)
		if err != nil {
			return sdk.PromptResponse{}, err
		}
		if why != "" {
			stop = why
			break
		}
	}
	a.log("done", string(stop))
	return sdk.PromptResponse{StopReason: stop}, nil
}

// do does what a word of a prompt says.
func (a *agent) do(ctx context.Context, id sdk.SessionId, word, call string,
	cancelled <-chan struct{}) (sdk.StopReason, error) {
	callID := sdk.ToolCallId(call)
	switch word {
	case "tool":
		a.update(ctx, id, sdk.StartToolCall(callID, "List the folder", sdk.WithStartKind(sdk.ToolKindExecute),
			sdk.WithStartStatus(sdk.ToolCallStatusPending)))
		a.update(ctx, id, sdk.UpdateToolCall(callID, sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress)))
		a.update(ctx, id, sdk.UpdateToolCall(callID, sdk.WithUpdateStatus(sdk.ToolCallStatusCompleted),
			sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock("a.txt b.txt"))})))
		a.say(ctx, id, "There are two files. ")
	case "ask", "askunannounced":
		if word == "ask" {
			a.update(ctx, id, sdk.StartToolCall(callID, "Delete a.txt", sdk.WithStartKind(sdk.ToolKindDelete)))
		}
		res, err := a.conn.RequestPermission(ctx, sdk.RequestPermissionRequest{
			SessionId: id, ToolCall: sdk.ToolCallUpdate{ToolCallId: callID, Title: sdk.Ptr("Delete a.txt"),
				Kind: sdk.Ptr(sdk.ToolKindDelete), RawInput: map[string]any{"path": "a.txt"}},
			Options: []sdk.PermissionOption{
				{Kind: sdk.PermissionOptionKindAllowAlways, Name: "Always", OptionId: "always"},
				{Kind: sdk.PermissionOptionKindAllowOnce, Name: "Yes", OptionId: "yes"},
				{Kind: sdk.PermissionOptionKindRejectOnce, Name: "No", OptionId: "no"},
			},
		})
		switch {
		case err != nil:
			return "", err
		case res.Outcome.Selected != nil && res.Outcome.Selected.OptionId == "yes":
			a.log("decision", "yes")
			a.update(ctx, id, sdk.UpdateToolCall(callID, sdk.WithUpdateStatus(sdk.ToolCallStatusCompleted)))
			a.say(ctx, id, "It is deleted. ")
		case res.Outcome.Selected != nil:
			a.log("decision", string(res.Outcome.Selected.OptionId))
			a.update(ctx, id, sdk.UpdateToolCall(callID, sdk.WithUpdateStatus(sdk.ToolCallStatusFailed)))
			a.say(ctx, id, "It was not deleted. ")
		default:
			a.log("decision", "cancelled")
			return sdk.StopReasonCancelled, nil
		}
	case "hang":
		a.say(ctx, id, "Working. ")
		<-cancelled
		return sdk.StopReasonCancelled, nil
	case "deaf":
		a.say(ctx, id, "Working. ")
		select {}
	case "die":
		a.say(ctx, id, "Almost. ")
		time.Sleep(50 * time.Millisecond) // for the text to arrive
		fmt.Fprintln(os.Stderr, "out of cheese")
		a.die <- 3
		select {} // until the program ends
	case "flood":
		for i := range 5000 {
			a.say(ctx, id, fmt.Sprintf("%d ", i))
		}
	case "garbage":
		fmt.Println("welcome to the agent")
		fmt.Println(`{"level":"info","id":1,"msg":"log"}`)
		fmt.Println(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":1}}`)
		fmt.Println(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + string(id) +
			`","update":{"sessionUpdate":"of_the_future","x":1}}}`)
		a.say(ctx, id, "Clean. ")
	case "wait":
		for _, err := os.Stat(filepath.Join(a.dir, Go)); err != nil; _, err = os.Stat(filepath.Join(a.dir, Go)) {
			time.Sleep(5 * time.Millisecond)
		}
	case "noise":
		for range 3000 {
			fmt.Println(`{"jsonrpc":"2.0","method":"_status","params":{}}`)
		}
	case "huge":
		b, _ := json.Marshal(strings.Repeat("x", 10<<20))
		fmt.Println(`{"jsonrpc":"2.0","method":"session/update","params":` + string(b) + `}`)
	case "plan":
		a.update(ctx, id, sdk.UpdatePlan(
			sdk.PlanEntry{Content: "Read the code", Priority: sdk.PlanEntryPriorityHigh, Status: sdk.PlanEntryStatusCompleted},
			sdk.PlanEntry{Content: "Change it", Priority: sdk.PlanEntryPriorityHigh, Status: sdk.PlanEntryStatusInProgress}))
	case "fail":
		return "", errors.New("the service is overloaded")
	case "files":
		_, err := a.conn.ReadTextFile(ctx, sdk.ReadTextFileRequest{SessionId: id, Path: filepath.Join(a.dir, Log)})
		a.say(ctx, id, fmt.Sprintf("Reading: %v. ", err != nil))
	case "count":
		a.say(ctx, id, fmt.Sprintf("This is prompt %d. ", len(Lines(a.dir, "prompt"))))
	case "silent":
	default:
		a.say(ctx, id, word+" ")
	}
	return "", nil
}
