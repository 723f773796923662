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

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/tool"
)

const (
	logLines = 200               // of a log without limit and offset
	maxLog   = 50_000            // characters of a log
	maxPoll  = 30 * time.Second  // that a poll waits
	maxType  = 1 << 20           // bytes of one write
	removing = 100 * time.Second // that the end of a command may take
)

//go:embed process.md
var processText string

// processTool is the tool process.
type processTool struct {
	c    *Commands
	spec tool.Spec
}

var (
	_ tool.Tool    = processTool{}
	_ tool.Planner = processTool{}
)

// Tool returns the tool by which a model watches and steers the commands of
// its session.
func (s *Commands) Tool() tool.Tool { return processTool{s, processSpec()} }

// processArgs are the arguments of a call.
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
		Aliases:     map[string]string{"id": "sessionId", "timeoutMs": "timeout", "input": "data"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"action":{"type":"string","enum":["list","poll","log","write","send-keys","submit","paste","kill","clear","remove"]},
			"sessionId":{"type":"string","description":"of the command; for all actions but list"},
			"timeout":{"type":"number","minimum":0,"description":"poll: milliseconds to wait for the end"},
			"offset":{"type":"integer","minimum":0,"description":"log: first line, from 0"},
			"limit":{"type":"integer","minimum":1,"description":"log: number of lines"},
			"stream":{"type":"string","enum":["stdout","stderr"],"description":"log: only this stream, of a command that was begun in the background"},
			"data":{"type":"string","description":"write: text for the input; end a line with \n"},
			"eof":{"type":"boolean","description":"write: close the input afterwards"},
			"keys":{"type":"array","items":{"type":"string"},"description":"send-keys: Enter, Tab, Escape, C-c, M-x, Up, F5, … or text"},
			"hex":{"type":"array","items":{"type":"string"},"description":"send-keys: bytes"},
			"literal":{"type":"string","description":"send-keys: text as it is"},
			"text":{"type":"string","description":"paste: the text"},
			"bracketed":{"type":"boolean","description":"paste: in brackets, as terminals do (default: when the program asks for it)"}},
			"required":["action"],"additionalProperties":false}`),
	}
}

// Plan says whether a call only looks.
func (t processTool) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	var a processArgs
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return tool.Plan{}, fmt.Errorf("arguments: %w", err)
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
	var a processArgs
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return tool.Result{}, fmt.Errorf("arguments: %w", err)
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
		return k.typeIn(a)
	}
	return t.drop(ctx, a.Action, k)
}

// listed is a command in the details of a list.
type listed struct {
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

func (k *command) listed() listed {
	l := listed{
		ID: k.id, Name: k.name(), Status: "running", PID: k.process.PID(), Command: k.text, Dir: k.dir, Began: k.began, Waits: k.waits(),
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
	all := []listed{}
	for _, k := range t.c.of(c.Session) {
		if !k.shownTo(chela.PrincipalFrom(ctx)) {
			continue
		}
		l := k.listed()
		all = append(all, l)
		line := fmt.Sprintf("%s  %s  %s", k.id, k.status(), l.Name)
		if l.Status == "running" {
			line = fmt.Sprintf("%s  running for %s, pid %d  %s", k.id, figure.Span(time.Since(k.began)), l.PID, l.Name)
		}
		if l.Waits {
			line += "  (waits for input)"
		}
		lines = append(lines, line)
	}
	text := "There are no background commands of this session."
	if len(lines) > 0 {
		text = strings.Join(lines, "\n")
	}
	return detailed(text, map[string]any{"sessions": all})
}

// detailed is a result with details that are plain data.
func detailed(text string, details any) tool.Result {
	r := tool.Text(text)
	r.Details, _ = json.Marshal(details)
	return r
}

// poll gives what is new.
func (k *command) poll(ctx context.Context, a processArgs) (tool.Result, error) {
	if a.Timeout > 0 && k.running() {
		k.mu.Lock()
		k.polls++
		k.mu.Unlock()
		timer := time.NewTimer(time.Duration(min(a.Timeout, float64(maxPoll.Milliseconds())) * float64(time.Millisecond)))
		defer timer.Stop()
		select {
		case <-k.done:
		case <-timer.C:
		case <-ctx.Done():
		}
		k.mu.Lock()
		k.polls--
		k.told = k.told || !k.running()
		k.mu.Unlock()
	}
	if err := ctx.Err(); err != nil && k.running() {
		return tool.Result{}, err
	}
	ended := !k.running()
	if ended {
		k.mu.Lock()
		k.told = true
		k.mu.Unlock()
	}
	text, dropped, err := k.record.news(ended)
	if err != nil {
		return tool.Result{}, err
	}
	l := k.listed()
	text = strings.TrimRight(text, "\n")
	if dropped > 0 {
		text = fmt.Sprintf("[%d characters before this were left out; see log]\n", dropped) + text
	}
	if text == "" {
		text = "(no new output)"
	}
	note := k.status()
	if l.Waits {
		note += "; it seems to wait for input"
	}
	return detailed(text+"\n\n["+note+"]", struct {
		listed
		Dropped int64 `json:"dropped,omitempty"`
	}{l, dropped}), nil
}

// log gives lines.
func (k *command) log(a processArgs) (tool.Result, error) {
	offset, limit := -logLines, a.Limit
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
	p.bound(a.Offset == nil)
	text := strings.Join(p.lines, "\n")
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	var notes []string
	if n := len(p.lines); n < p.total {
		notes = append(notes, fmt.Sprintf("%d lines from %d of %d; use offset and limit for the others", n, p.from, p.total))
	}
	if p.lost {
		notes = append(notes, "older output is not kept")
	}
	notes = append(notes, k.status())
	return detailed(text+"\n\n["+strings.Join(notes, "; ")+"]", struct {
		listed
		Total int `json:"totalLines"`
	}{k.listed(), p.total}), nil
}

// typeIn sends something to the command's input.
func (k *command) typeIn(a processArgs) (tool.Result, error) {
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
		b = pasted(a.Text, brackets)
	default:
		if !k.tty {
			return tool.Result{}, fmt.Errorf("%s has no terminal for keys; use write, or start it with pty", k.id)
		}
		var err error
		if b, err = typing(a.Keys, a.Hex, a.Literal, modes.arrows); err != nil {
			return tool.Result{}, err
		}
	}
	if len(b) > maxType {
		return tool.Result{}, fmt.Errorf("%s: %d bytes are too many at once", a.Action, len(b))
	}
	if err := k.send(b, a.Action == "write" && a.EOF); err != nil {
		return tool.Result{}, err
	}
	text := fmt.Sprintf("Sent %d bytes to %s.", len(b), k.id)
	if a.EOF && a.Action == "write" {
		text += " Its input is closed."
	}
	return tool.Text(text + " Use poll to see what it answers."), nil
}

// drop ends or forgets a command.
func (t processTool) drop(ctx context.Context, action string, k *command) (tool.Result, error) {
	runs := k.running()
	if action == "clear" && runs {
		return tool.Result{}, fmt.Errorf("%s still runs; kill it, or remove it", k.id)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if action == "kill" {
			k.end()
			return
		}
		t.c.remove(k)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	case <-time.After(removing):
		return tool.Result{}, fmt.Errorf("%s does not end", k.id)
	}
	switch {
	case action == "kill" && !runs:
		return tool.Text(k.id + " had ended before: " + k.status() + "."), nil
	case action == "kill":
		return detailed("Ended "+k.id+": "+k.status()+".", k.listed()), nil
	case runs:
		return tool.Text("Ended and removed " + k.id + "."), nil
	}
	return tool.Text("Removed " + k.id + "."), nil
}
