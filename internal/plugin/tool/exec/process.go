package exec

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	defaultLogLines = 200               // lines of a log without limit and offset
	maxLog          = 50_000            // characters of a log
	maxPoll         = 30 * time.Second  // maximum time that a poll waits
	maxInput        = 1 << 20           // bytes of one write
	removeTimeout   = 100 * time.Second // maximum time to end a command
)

//go:embed process.md
var processText string

// processTool implements the tool process.
type processTool struct {
	c    *Commands
	spec tool.Spec
}

var (
	_ tool.Tool    = processTool{}
	_ tool.Planner = processTool{}
)

// Tool returns the process tool, with which a model monitors and controls the
// commands of its session.
func (s *Commands) Tool() tool.Tool { return processTool{s, processSpec()} }

// processArgs are the arguments of process.
type processArgs struct {
	Action    string   `json:"action"`
	ID        string   `json:"sessionId"`
	Timeout   float64  `json:"timeout"`
	Offset    *int     `json:"offset"`
	Limit     int      `json:"limit"`
	Stream    stream   `json:"stream"`
	Data      string   `json:"data"`
	EOF       bool     `json:"eof"`
	Keys      []string `json:"keys"`
	Hex       []string `json:"hex"`
	Literal   string   `json:"literal"`
	Text      string   `json:"text"`
	Bracketed *bool    `json:"bracketed"`
}

func (t processTool) Spec() tool.Spec { return t.spec }

func processSpec() tool.Spec {
	return tool.Spec{
		Name:        "process",
		Label:       "Background commands",
		Description: strings.TrimSpace(processText),
		Effect:      tool.Acts,
		Groups:      []string{"group:runtime"},
		Sandboxed:   tool.Inside,
		InRuns:      true,
		Roles:       []tool.Role{tool.FollowsCommands},
		Title:       processTitle,
		Aliases:     map[string]string{"id": "sessionId", "timeoutMs": "timeout", "input": "data"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"action":{"type":"string","enum":["list","poll","log","write","send-keys","submit","paste","kill","clear","remove"]},
			"sessionId":{"type":"string"},
			"timeout":{"type":"number","minimum":0},
			"offset":{"type":"integer","minimum":0,"description":"first line, from 0"},
			"limit":{"type":"integer","minimum":1},
			"stream":{"type":"string","enum":["stdout","stderr"]},
			"data":{"type":"string","description":"end a line with \n"},
			"eof":{"type":"boolean"},
			"keys":{"type":"array","items":{"type":"string"},"description":"Enter, C-c, Up, F5, …, or text"},
			"hex":{"type":"array","items":{"type":"string"}},
			"literal":{"type":"string"},
			"text":{"type":"string"},
			"bracketed":{"type":"boolean","deprecated":true,"description":"paste: bracketed (default: if the program enabled it)"}},
			"required":["action"],"additionalProperties":false}`),
	}
}

// processTitle returns the title of a call.
func processTitle(args json.RawMessage) string {
	var a processArgs
	_ = json.Unmarshal(args, &a) // a model sent it: a field may have another type
	return a.Action + " " + a.ID
}

// Plan determines whether a call only reads.
func (t processTool) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	a, err := tool.Decode[processArgs](c.Args)
	if err != nil {
		return tool.Plan{}, err
	}
	h := sha256.Sum256(c.Args)
	p := tool.Plan{Effect: tool.Acts, Text: strings.TrimSpace(a.Action + " " + a.ID), Hash: hex.EncodeToString(h[:])}
	switch a.Action {
	case "list", "poll", "log":
		p.Effect = tool.Reads
	}
	return p, nil
}

func (t processTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	a, err := tool.Decode[processArgs](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	if a.Action == "list" {
		return t.list(ctx, c), nil
	}
	if a.ID == "" {
		return tool.Result{}, fmt.Errorf("%s: sessionId is missing; see the action list", a.Action)
	}
	k, err := t.c.get(ctx, c.Session, a.ID)
	if err != nil {
		return tool.Result{}, err
	}
	switch a.Action {
	case "poll":
		return k.poll(ctx, a)
	case "log":
		return k.log(a)
	case "write", "send-keys", "submit", "paste":
		return k.sendInput(a)
	}
	return t.remove(ctx, a.Action, k)
}

// commandInfo describes a command in the details of a result.
type commandInfo struct {
	ID      string     `json:"sessionId"`
	Name    string     `json:"name"`
	Status  string     `json:"status"`
	PID     int        `json:"pid"`
	Command string     `json:"command"`
	Dir     string     `json:"cwd"`
	Began   time.Time  `json:"startedAt"`
	Ended   *time.Time `json:"endedAt,omitempty"`
	Code    *int       `json:"exitCode,omitempty"`
	Signal  string     `json:"exitSignal,omitempty"`
	Waits   bool       `json:"waitingForInput"`
}

func (k *command) info() commandInfo {
	l := commandInfo{
		ID:      k.id,
		Name:    k.name(),
		Status:  "running",
		PID:     k.process.PID(),
		Command: k.text,
		Dir:     k.dir,
		Began:   k.began,
		Waits:   k.waitsForInput(),
	}
	if !k.running() {
		l.Status, l.Ended, l.Code, l.Signal = "completed", &k.ended, &k.exit.Code, k.exit.Signal
		if k.exit.Code != 0 || k.timedOut || k.err != nil {
			l.Status = "failed"
		}
	}
	return l
}

func (t processTool) list(ctx context.Context, c tool.Call) tool.Result {
	var lines []string
	all := []commandInfo{}
	for _, k := range t.c.list(c.Session) {
		if !k.visibleTo(chela.PrincipalFrom(ctx)) {
			continue
		}
		l := k.info()
		all = append(all, l)
		line := fmt.Sprintf("%s  %s  %s", k.id, k.status(), l.Name)
		if l.Status == "running" {
			line = fmt.Sprintf("%s  running for %s, pid %d  %s", k.id, humanize.Span(time.Since(k.began)), l.PID, l.Name)
		}
		if l.Waits {
			line += "  (waits for input)"
		}
		lines = append(lines, line)
	}
	text := "This session has no background commands."
	if len(lines) > 0 {
		text = strings.Join(lines, "\n")
	}
	return tool.Detailed(text, map[string]any{"sessions": all})
}

// poll returns new output.
func (k *command) poll(ctx context.Context, a processArgs) (tool.Result, error) {
	if a.Timeout > 0 && k.running() {
		k.mu.Lock()
		k.waiters++
		k.mu.Unlock()
		timer := time.NewTimer(time.Duration(min(a.Timeout, float64(maxPoll.Milliseconds())) * float64(time.Millisecond)))
		defer timer.Stop()
		select {
		case <-k.done:
		case <-timer.C:
		case <-ctx.Done():
		}
		k.mu.Lock()
		k.waiters--
		k.notified = k.notified || !k.running()
		k.mu.Unlock()
	}
	if err := ctx.Err(); err != nil && k.running() {
		return tool.Result{}, err
	}
	ended := !k.running()
	if ended {
		k.setNotified()
	}
	text, dropped, err := k.record.unread(ended)
	if err != nil {
		return tool.Result{}, err
	}
	l := k.info()
	text = strings.TrimRight(text, "\n")
	if dropped > 0 {
		text = fmt.Sprintf("[%d earlier characters were omitted; see log]\n", dropped) + text
	}
	if text == "" {
		text = "(no new output)"
	}
	note := k.status()
	if l.Waits {
		note += "; it seems to wait for input"
	}
	return tool.Detailed(text+"\n\n["+note+"]", struct {
		commandInfo
		Dropped int64 `json:"dropped,omitempty"`
	}{l, dropped}), nil
}

// log returns lines of output.
func (k *command) log(a processArgs) (tool.Result, error) {
	offset, limit := -defaultLogLines, a.Limit
	switch {
	case a.Offset != nil:
		offset = *a.Offset
	case a.Limit > 0:
		offset = -a.Limit
	}
	p, err := k.record.lines(a.Stream, offset, limit)
	if err != nil {
		return tool.Result{}, err
	}
	p.truncate(a.Offset == nil)
	text := strings.Join(p.lines, "\n")
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	var notes []string
	if n := len(p.lines); n < p.total {
		notes = append(notes, fmt.Sprintf("%d lines from %d of %d; use offset and limit for other lines", n, p.from, p.total))
	}
	if p.lost {
		notes = append(notes, "older output was dropped")
	}
	notes = append(notes, k.status())
	return tool.Detailed(text+"\n\n["+strings.Join(notes, "; ")+"]", struct {
		commandInfo
		Total int `json:"totalLines"`
	}{k.info(), p.total}), nil
}

// sendInput sends input to the command.
func (k *command) sendInput(a processArgs) (tool.Result, error) {
	k.record.mu.Lock()
	modes := k.record.modes
	k.record.mu.Unlock()
	var b []byte
	switch a.Action {
	case "write":
		b = []byte(a.Data)
		if len(b) == 0 && !a.EOF {
			return tool.Result{}, errors.New("write: data is missing")
		}
	case "submit":
		b = []byte("\n")
		if k.tty {
			b = []byte("\r")
		}
	case "paste":
		if a.Text == "" {
			return tool.Result{}, errors.New("paste: text is missing")
		}
		brackets := k.tty && modes.paste
		if a.Bracketed != nil {
			brackets = *a.Bracketed
		}
		b = pasteInput(a.Text, brackets)
	default:
		if !k.tty {
			return tool.Result{}, fmt.Errorf("%s has no terminal to send keys to; use write, or start it with pty", k.id)
		}
		var err error
		if b, err = keyInput(a.Keys, a.Hex, a.Literal, modes.arrows); err != nil {
			return tool.Result{}, err
		}
	}
	if len(b) > maxInput {
		return tool.Result{}, fmt.Errorf("%s: %d bytes is too much for one call", a.Action, len(b))
	}
	if err := k.send(b, a.Action == "write" && a.EOF); err != nil {
		return tool.Result{}, err
	}
	text := fmt.Sprintf("Sent %d bytes to %s.", len(b), k.id)
	if a.EOF && a.Action == "write" {
		text += " Its input is closed."
	}
	return tool.Text(text + " Use poll to see the response."), nil
}

// remove ends or forgets a command.
func (t processTool) remove(ctx context.Context, action string, k *command) (tool.Result, error) {
	runs := k.running()
	if action == "clear" && runs {
		return tool.Result{}, fmt.Errorf("%s is still running; kill or remove it", k.id)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if action == "kill" {
			k.end()
			return
		}
		t.c.remove(k)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	case <-time.After(removeTimeout):
		return tool.Result{}, fmt.Errorf("%s does not end", k.id)
	}
	switch {
	case action == "kill" && !runs:
		return tool.Text(k.id + " had already ended: " + k.status() + "."), nil
	case action == "kill":
		return tool.Detailed("Ended "+k.id+": "+k.status()+".", k.info()), nil
	case runs:
		return tool.Text("Ended and removed " + k.id + "."), nil
	}
	return tool.Text("Removed " + k.id + "."), nil
}
