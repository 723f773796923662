package exec

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/sandbox"
	"github.com/chela-ai/chela/internal/tool"
)

// report is how a job ended.
type report struct {
	sandbox.Exit
	duration time.Duration
	timedOut bool
	timeout  time.Duration
	out      *output
}

// details are the report for surfaces.
type details struct {
	ExitCode   int    `json:"exitCode"`
	Signal     string `json:"signal,omitempty"`
	DurationMS int64  `json:"durationMs"`
	TimedOut   bool   `json:"timedOut,omitempty"`
	Truncated  bool   `json:"truncated,omitempty"`
	Left       int    `json:"left,omitempty"` // processes that outlived the command and were ended
}

func (r *report) result() tool.Result {
	text, cut := r.out.text()
	text = strings.TrimRight(text, "\n")
	var notes []string
	switch {
	case r.timedOut:
		notes = append(notes, fmt.Sprintf("timed out after %v; the command and its processes were ended (timeoutSeconds gives it more time)", r.timeout))
	case r.Signal != "":
		notes = append(notes, "ended by "+r.Signal)
	case r.Code != 0:
		notes = append(notes, fmt.Sprintf("exit code %d", r.Code))
	case text == "":
		notes = append(notes, "succeeded, no output")
	}
	if text == "" && len(notes) > 0 && (r.timedOut || r.Signal != "" || r.Code != 0) {
		notes = append(notes, "no output")
	}
	if r.Left > 0 && !r.timedOut {
		notes = append(notes, fmt.Sprintf("%d background processes were still running and were ended", r.Left))
	}
	if len(notes) > 0 {
		if text != "" {
			text += "\n\n"
		}
		text += "[" + strings.Join(notes, "; ") + "]"
	}
	res := tool.Text(text)
	d := details{r.Code, r.Signal, r.duration.Milliseconds(), r.timedOut, cut, r.Left}
	res.Details, _ = json.Marshal(d) // a struct of numbers and strings
	return res
}
