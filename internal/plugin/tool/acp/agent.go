package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/chela-ai/chela/internal/core/acp"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/plugin/sandbox/stdio"
)

const (
	startTime  = 90 * time.Second       // until a program has a conversation
	stopTime   = time.Second            // until a program that was told to end gets TERM
	grace      = 2 * time.Second        // between TERM and KILL
	exitTime   = 250 * time.Millisecond // for a program to end, after its output has ended
	maxMessage = 9 << 20                // bytes of a line; the library allows 10 MiB
	maxLine    = 300                    // bytes of a line in an error
)

// cancelRequest is the notification that withdraws a request.
const cancelRequest = "$/cancel_request"

// authRequired is the code of an error that says that the agent has no account.
const authRequired = -32000

// cancelTime is how long an agent may take to stop an answer; then its program is ended.
var cancelTime = 5 * time.Second

var errLost = errors.New("the connection broke")

// agent is the program of a session.
type agent struct {
	p    *Pool
	key  chela.SessionKey
	name string
	dir  string
	prog acp.Program

	conn    *sdk.ClientSideConnection
	in      *stdio.Input
	printed stdio.Tail
	process sandbox.Process
	ctx     context.Context // ends when the program has to end
	cancel  context.CancelCauseFunc
	exited  chan struct{} // closed when the program has ended
	exit    string        // how it ended; valid then
	stopped sync.Once

	remote sdk.SessionId
	info   sdk.InitializeResponse

	mu    sync.Mutex
	turn  *turn // nil: none
	used  time.Time
	timer *time.Timer
	modes sdk.SessionModeState
}

func (a *agent) turnNow() *turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.turn
}

func (a *agent) lastUse() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

func (a *agent) setTimer(t *time.Timer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
	}
	a.timer = t
}

// alive reports whether the program runs.
func (a *agent) alive() bool {
	select {
	case <-a.exited:
		return false
	default:
		return a.ctx.Err() == nil
	}
}

// same reports whether the program is what a session needs.
func (a *agent) same(x session.External, prog acp.Program) bool {
	return a.name == x.Agent && a.dir == x.Dir && equal(a.prog, prog) && (x.Remote == "" || x.Remote == string(a.remote))
}

func (a *agent) state() acp.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := acp.State{Running: a.alive(), Name: a.name, Mode: string(a.modes.CurrentModeId)}
	if i := a.info.AgentInfo; i != nil {
		s.Version = strings.TrimSpace(i.Name + " " + i.Version)
	}
	for _, m := range a.modes.AvailableModes {
		s.Modes = append(s.Modes, string(m.Id))
	}
	return s
}

// waits reports whether a question for permission has no answer.
func (t *turn) waits() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.calls {
		if c.ask != nil {
			return true
		}
	}
	return false
}

// pathOf returns the path of a program.
func pathOf(env []string, prog acp.Program) (string, error) {
	path := prog.Command
	if filepath.IsAbs(path) {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("the program %s does not exist", path)
		}
		return path, nil
	}
	if path = sandbox.Look(env)(path); path == "" {
		return "", fmt.Errorf("the program %s is not installed on the machine of the gateway", prog.Command)
	}
	return path, nil
}

// start starts a program and its conversation. The caller has reserved room.
func (p *Pool) start(ctx context.Context, key chela.SessionKey, x session.External,
	prog acp.Program) (*agent, string, error) {
	a := &agent{p: p, key: key, name: x.Agent, dir: x.Dir, prog: prog, exited: make(chan struct{}), used: time.Now()}
	if err := a.launch(); err != nil {
		p.release(nil)
		p.wg.Done()
		return nil, "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("it did not answer within %v", startTime))
	defer cancel()
	note, err := a.open(ctx, x)
	if err != nil {
		switch {
		case !a.alive():
			err = errLost
		case context.Cause(ctx) != nil:
			err = context.Cause(ctx)
		}
		err = a.explain(err)
		a.stop(errLost)
		return nil, "", err
	}
	return a, note, nil
}

// launch starts the program.
func (a *agent) launch() error {
	env := sandbox.Environment(a.p.o.Environ, a.prog.Env)
	path, err := pathOf(env, a.prog)
	if err != nil {
		return unavailable(a.name, a.prog, err)
	}
	if info, err := os.Stat(a.dir); err != nil || !info.IsDir() {
		return chela.Errorf(chela.CodeInvalid, "coding agent %s: the folder %s does not exist", a.name, a.dir)
	}
	a.ctx, a.cancel = context.WithCancelCause(a.p.ctx)
	a.in = stdio.NewInput()
	r, w := io.Pipe()
	if a.process, err = a.p.o.Broker.Start(a.ctx, sandbox.Plan{
		Path:   path,
		Argv:   append([]string{path}, a.prog.Args...),
		Dir:    a.dir,
		Env:    env,
		Stdin:  a.in,
		Stderr: &a.printed,
		Grace:  grace,
	}, &lines{a: a, messages: w}); err != nil {
		a.cancel(err)
		return chela.Errorf(chela.CodeUnavailable, "coding agent %s: %w", a.name, err)
	}
	a.conn = sdk.NewClientSideConnection(client{a}, a.in, r)
	a.conn.SetLogger(slog.New(slog.DiscardHandler))
	context.AfterFunc(a.ctx, func() { _ = r.Close() }) // the output is not read any more
	go func() {                                        // ends with the connection
		<-a.conn.Done()
		a.cancel(errLost)
	}()
	go func() { // p.running counts it
		defer a.p.wg.Done()
		exit, err := a.process.Wait()
		a.exit = describe(exit, err)
		_ = w.Close()
		_ = a.in.Close()
		close(a.exited)
		a.cancel(errLost)
		a.p.release(a)
		if t := a.turnNow(); t != nil {
			t.end("", a.explain(errLost))
		}
	}()
	return nil
}

// describe says how a program ended.
func describe(exit sandbox.Exit, err error) string {
	switch {
	case exit.Signal != "":
		return "the program was ended by " + exit.Signal
	case exit.Code == 0 && err != nil:
		return "the program ended: " + err.Error()
	}
	return "the program ended with exit status " + strconv.Itoa(exit.Code)
}

// open begins or loads the conversation of a session. note tells the person that the agent
// does not remember it.
func (a *agent) open(ctx context.Context, x session.External) (note string, err error) {
	a.info, err = a.conn.Initialize(ctx, sdk.InitializeRequest{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		ClientInfo:      &sdk.Implementation{Name: "chela", Version: a.p.o.Version},
	})
	if err != nil {
		return "", fmt.Errorf("initialize: %w", err)
	}
	if v := a.info.ProtocolVersion; v != sdk.ProtocolVersionNumber {
		return "", fmt.Errorf("it speaks version %d of the protocol, not %d", v, sdk.ProtocolVersionNumber)
	}
	if x.Remote != "" {
		if note = a.load(ctx, x.Remote); note == "" {
			return "", nil
		}
	}
	made, err := a.conn.NewSession(ctx, sdk.NewSessionRequest{Cwd: a.dir, McpServers: []sdk.McpServer{}})
	if err != nil {
		return "", fmt.Errorf("new conversation: %w", err)
	}
	if made.SessionId == "" {
		return "", errors.New("new conversation: it gave no id")
	}
	a.remote = made.SessionId
	a.setModes(made.Modes)
	if x.Mode != "" && x.Mode != a.state().Mode {
		if err := a.setMode(ctx, x.Mode); err != nil {
			return "", err
		}
	}
	return note, nil
}

// load loads the conversation with an id, and returns why it could not.
func (a *agent) load(ctx context.Context, id string) (note string) {
	const forgot = "%s was started again and does not remember the earlier conversation: %s."
	if !a.info.AgentCapabilities.LoadSession {
		return fmt.Sprintf(forgot, a.name, "it cannot load one")
	}
	res, err := a.conn.LoadSession(ctx,
		sdk.LoadSessionRequest{SessionId: sdk.SessionId(id), Cwd: a.dir, McpServers: []sdk.McpServer{}})
	if err != nil {
		return fmt.Sprintf(forgot, a.name, clean(a.p.o.Redact(messageOf(err)), maxLine))
	}
	a.remote = sdk.SessionId(id)
	a.setModes(res.Modes)
	return ""
}

func (a *agent) setModes(m *sdk.SessionModeState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m != nil {
		a.modes = *m
	}
}

// setMode sets the mode of the agent.
func (a *agent) setMode(ctx context.Context, mode string) error {
	if _, err := a.conn.SetSessionMode(ctx,
		sdk.SetSessionModeRequest{SessionId: a.remote, ModeId: sdk.SessionModeId(mode)}); err != nil {
		return fmt.Errorf("mode %s: %w", mode, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.modes.CurrentModeId = sdk.SessionModeId(mode)
	return nil
}

// prompt sends a prompt.
func (a *agent) prompt(run chela.RunID, blocks []sdk.ContentBlock) *turn {
	t := newTurn(run)
	a.mu.Lock()
	a.turn, a.used = t, time.Now()
	if a.timer != nil {
		a.timer.Stop()
	}
	a.mu.Unlock()
	a.p.wg.Go(func() {
		res, err := a.conn.Prompt(a.ctx, sdk.PromptRequest{SessionId: a.remote, Prompt: blocks})
		if err != nil {
			if a.ctx.Err() != nil || lost(err) {
				err = errLost
			}
			err = a.explain(err)
		}
		t.end(res.StopReason, err)
	})
	return t
}

// lost reports whether an error says that the connection broke.
func lost(err error) bool {
	return strings.Contains(err.Error(), "peer disconnected") || errors.Is(err, io.ErrClosedPipe)
}

// finish ends the use of a turn.
func (a *agent) finish(t *turn) {
	a.mu.Lock()
	if a.turn != t {
		a.mu.Unlock()
		return
	}
	a.turn, a.used = nil, time.Now()
	a.mu.Unlock()
	a.p.rest(a)
}

// cancelTurn has the agent stop what it does. If it does not, its program is ended.
func (a *agent) cancelTurn(t *turn) {
	ctx, cancel := context.WithTimeout(context.Background(), cancelTime)
	defer cancel()
	_ = a.conn.Cancel(ctx, sdk.CancelNotification{SessionId: a.remote}) // if it fails, the program is ended
	t.drop()
	if !t.wait(ctx.Done()) {
		a.stop(errors.New("it did not stop"))
	}
	a.finish(t)
}

// stop ends the program, which is told by the end of its input, and waits for its end.
func (a *agent) stop(why error) {
	a.stopped.Do(func() {
		a.setTimer(nil)
		if t := a.turnNow(); t != nil {
			t.drop() // the program must not wait to be read
		}
		_ = a.in.Close()
		select {
		case <-a.exited:
		case <-time.After(stopTime):
		}
		a.cancel(why)
	})
	<-a.exited
}

// explain returns an error of the agent for people, with the last line that the program
// printed.
func (a *agent) explain(err error) error {
	var msg string
	if request, ok := errors.AsType[*sdk.RequestError](err); ok && request.Code == authRequired {
		return a.unauthorized(request)
	}
	if errors.Is(err, errLost) {
		select { // the output ends shortly before the program
		case <-a.exited:
			msg = a.exit
		case <-time.After(exitTime):
			msg = errLost.Error()
		}
		if cause := context.Cause(a.ctx); cause != nil && !errors.Is(cause, errLost) {
			msg = cause.Error()
		}
	} else {
		msg = messageOf(err)
	}
	msg = clean(a.p.o.Redact(msg), 2*maxLine)
	if line := clean(a.p.o.Redact(a.printed.LastLine()), maxLine); line != "" && !strings.Contains(msg, line) {
		msg += fmt.Sprintf(". It printed last: %q", line)
	}
	return chela.Errorf(chela.CodeUnavailable, "coding agent %s: %s", a.name, msg)
}

// unauthorized returns the error of an agent that has no account, with what it says about
// how to get one.
func (a *agent) unauthorized(r *sdk.RequestError) error {
	var ways []string
	for _, m := range a.info.AuthMethods {
		raw, err := json.Marshal(m)
		var way struct{ Name, Description string }
		if err != nil || json.Unmarshal(raw, &way) != nil || way.Name == "" {
			continue
		}
		ways = append(ways, clean(strings.TrimSuffix(way.Name+" ("+way.Description, " (")+closing(way.Description), maxLine))
	}
	msg := fmt.Sprintf("coding agent %s: it is not logged in (%s)", a.name, clean(messageOf(r), maxLine))
	if len(ways) > 0 {
		msg += "; its ways to log in: " + strings.Join(ways, "; ")
	}
	msg += ". Log in with it in a terminal on the machine of the gateway, or set the variable of its key"
	return &chela.Error{Code: chela.CodeUnavailable, Message: msg,
		Hint: fmt.Sprintf("chela config set acp.agents.%s.env.NAME VALUE", a.name)}
}

func closing(description string) string {
	if description == "" {
		return ""
	}
	return ")"
}

// messageOf returns the text of an error of the agent.
func messageOf(err error) string {
	r, ok := errors.AsType[*sdk.RequestError](err)
	if !ok {
		return err.Error()
	}
	msg := r.Message
	if raw, err := json.Marshal(r.Data); err == nil && r.Data != nil && string(raw) != "{}" {
		var d struct{ Details, Message, Error string }
		detail := string(raw)
		if json.Unmarshal(raw, &d) == nil && d.Details+d.Message+d.Error != "" {
			detail = strings.TrimSpace(d.Details + " " + d.Message + " " + d.Error)
		} else if s, ok := r.Data.(string); ok {
			detail = s
		}
		msg += ": " + detail
	}
	return msg
}

// clean returns a text of an agent as one line without control characters.
func clean(s string, n int) string {
	return humanize.TruncateBytes(humanize.OneLine(strings.ToValidUTF8(s, "?")), n)
}

// lines is the standard output of a program. Updates of a session are handled here, in
// order, because the library ends a connection on which too many of them wait; other
// messages go to the library. Lines that are no messages are kept for errors.
type lines struct {
	a        *agent
	messages *io.PipeWriter
	line     []byte
}

// Write implements io.Writer. It waits while too much of an answer is not used.
func (l *lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		rest = after
		if len(l.line)+len(line) > maxMessage {
			l.a.cancel(fmt.Errorf("it sent a message of more than %s", humanize.Bytes(maxMessage)))
			return 0, io.ErrClosedPipe
		}
		l.line = append(l.line, line...)
		if !whole {
			break
		}
		full := l.line
		l.line = nil
		if err := l.handle(full); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// handle handles a line.
func (l *lines) handle(line []byte) error {
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}
	if json.Unmarshal(line, &m) != nil || m.Version != "2.0" {
		_, _ = l.a.printed.Write(append(line, '\n')) // never fails
		return nil
	}
	if m.Method == sdk.ClientMethodSessionUpdate {
		var n sdk.SessionNotification
		if json.Unmarshal(m.Params, &n) == nil { // there may be kinds of updates that the library does not know
			l.a.update(n)
		}
		return nil
	}
	if m.ID == nil && m.Method != "" && m.Method != cancelRequest { // of extensions
		return nil
	}
	_, err := l.messages.Write(append(line, '\n'))
	return err
}

// update handles an update of a session. Those of a conversation that is being loaded
// belong to no turn.
func (a *agent) update(n sdk.SessionNotification) {
	if m := n.Update.CurrentModeUpdate; m != nil {
		a.mu.Lock()
		a.modes.CurrentModeId = m.CurrentModeId
		a.mu.Unlock()
	}
	if t := a.turnNow(); t != nil && n.SessionId == a.remote {
		t.update(n.Update)
		t.room(a.ctx.Done())
	}
}

// client is what the agent asks for.
type client struct{ a *agent }

var _ sdk.Client = client{}

// RequestPermission implements sdk.Client. It waits for the decision.
func (c client) RequestPermission(ctx context.Context,
	r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	answer := make(chan sdk.RequestPermissionOutcome, 1)
	t := c.a.turnNow()
	if t == nil || r.SessionId != c.a.remote {
		return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, nil
	}
	t.request(r, answer)
	select {
	case o := <-answer:
		return sdk.RequestPermissionResponse{Outcome: o}, nil
	case <-ctx.Done():
		return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, nil
	}
}

// SessionUpdate implements sdk.Client. Updates do not get here, see lines.
func (client) SessionUpdate(context.Context, sdk.SessionNotification) error { return nil }

// unoffered returns the error of a method that Chela does not offer: agents use their own
// tools.
func unoffered(method string) error { return sdk.NewMethodNotFound(method) }

// ReadTextFile implements sdk.Client.
func (client) ReadTextFile(context.Context, sdk.ReadTextFileRequest) (r sdk.ReadTextFileResponse, err error) {
	return r, unoffered(sdk.ClientMethodFsReadTextFile)
}

// WriteTextFile implements sdk.Client.
func (client) WriteTextFile(context.Context, sdk.WriteTextFileRequest) (r sdk.WriteTextFileResponse, err error) {
	return r, unoffered(sdk.ClientMethodFsWriteTextFile)
}

// CreateTerminal implements sdk.Client.
func (client) CreateTerminal(context.Context, sdk.CreateTerminalRequest) (r sdk.CreateTerminalResponse, err error) {
	return r, unoffered(sdk.ClientMethodTerminalCreate)
}

// KillTerminal implements sdk.Client.
func (client) KillTerminal(context.Context, sdk.KillTerminalRequest) (r sdk.KillTerminalResponse, err error) {
	return r, unoffered(sdk.ClientMethodTerminalKill)
}

// TerminalOutput implements sdk.Client.
func (client) TerminalOutput(context.Context, sdk.TerminalOutputRequest) (r sdk.TerminalOutputResponse, err error) {
	return r, unoffered(sdk.ClientMethodTerminalOutput)
}

// ReleaseTerminal implements sdk.Client.
func (client) ReleaseTerminal(context.Context, sdk.ReleaseTerminalRequest) (r sdk.ReleaseTerminalResponse, err error) {
	return r, unoffered(sdk.ClientMethodTerminalRelease)
}

// WaitForTerminalExit implements sdk.Client.
func (client) WaitForTerminalExit(context.Context,
	sdk.WaitForTerminalExitRequest) (r sdk.WaitForTerminalExitResponse, err error) {
	return r, unoffered(sdk.ClientMethodTerminalWaitForExit)
}
