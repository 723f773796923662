package exec

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/sandbox"
	"github.com/chela-ai/chela/internal/tool"
)

// report is how a job ended.
type report struct {
	sandbox.Exit
	duration time.Duration
	timedOut bool
	timeout  time.Duration
	text     string // the output
	cut      bool   // not all of it
	id       string // by which all of it can be had; "": it cannot
	note     string
}

// details are the report for surfaces.
type details struct {
	ExitCode   int    `json:"exitCode"`
	Signal     string `json:"signal,omitempty"`
	DurationMS int64  `json:"durationMs"`
	TimedOut   bool   `json:"timedOut,omitempty"`
	Truncated  bool   `json:"truncated,omitempty"`
	Left       int    `json:"left,omitempty"`      // processes that outlived the command and were ended
	ID         string `json:"sessionId,omitempty"` // of the output
}

func (r *report) result() tool.Result {
	text := strings.TrimRight(r.text, "\n")
	var notes []string
	if r.note != "" {
		notes = append(notes, r.note)
	}
	switch {
	case r.timedOut:
		notes = append(notes, fmt.Sprintf("timed out after %s; the command and its processes were ended (timeoutSeconds gives it more time)", figure.Span(r.timeout)))
	case r.Signal != "":
		notes = append(notes, "ended by "+r.Signal)
	case r.Code != 0:
		notes = append(notes, fmt.Sprintf("exit code %d", r.Code))
	case strings.TrimSpace(text) == "":
		notes = append(notes, "succeeded, no output")
	}
	if text == "" && len(notes) > 0 && (r.timedOut || r.Signal != "" || r.Code != 0) {
		notes = append(notes, "no output")
	}
	if r.Left > 0 && !r.timedOut {
		notes = append(notes, fmt.Sprintf("%d background processes were still running and were ended", r.Left))
	}
	if r.id != "" {
		notes = append(notes, fmt.Sprintf("all of the output: process log, sessionId %s", r.id))
	}
	if len(notes) > 0 {
		if text != "" {
			text += "\n\n"
		}
		text += "[" + strings.Join(notes, "; ") + "]"
	}
	res := tool.Text(text)
	d := details{r.Code, r.Signal, r.duration.Milliseconds(), r.timedOut, r.cut, r.Left, r.id}
	res.Details, _ = json.Marshal(d) // a struct of numbers and strings
	return res
}

// left is the result of a call whose command goes on in the background.
func (k *command) left(text string) tool.Result {
	tail := strings.TrimRight(text, "\n")
	if text = tail; text != "" {
		text += "\n\n"
	}
	note := fmt.Sprintf("still running in the background as sessionId %s, pid %d; process polls, writes to and ends it", k.id, k.process.PID())
	if k.note != "" {
		note += "; " + k.note
	}
	return detailed(text+"["+note+"]", struct {
		Status string    `json:"status"`
		ID     string    `json:"sessionId"`
		PID    int       `json:"pid"`
		Began  time.Time `json:"startedAt"`
		Dir    string    `json:"cwd"`
		Tail   string    `json:"tail"`
	}{"running", k.id, k.process.PID(), k.began, k.dir, tail})
}
