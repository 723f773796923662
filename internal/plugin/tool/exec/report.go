package exec

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// report describes how a job ended.
type report struct {
	sandbox.Exit
	duration time.Duration
	timedOut bool
	timeout  time.Duration
	text     string // the output
	cut      bool   // text is not the whole output
	id       string // id for reading the whole output; "": not retained
	note     string
	confined bool     // it ran in the sandbox
	temp     bool     // it names files in a folder for temporary ones there
	home     bool     // it changes settings in the home folder there
	refused  []string // rights that it lacked there
	private  bool     // it came across private files there
	held     []string // files that it could not change there, see protectedNames
	outside  string   // why Git found no repository there
	lost     []string // files that it changed without a way back
	edited   string   // a file of the approval that was changed while it ran
	plain    bool     // without notes
}

// details are the result's details for clients.
type details struct {
	ExitCode   int    `json:"exitCode"`
	Signal     string `json:"signal,omitempty"`
	DurationMS int64  `json:"durationMs"`
	TimedOut   bool   `json:"timedOut,omitempty"`
	Truncated  bool   `json:"truncated,omitempty"`
	Left       int    `json:"left,omitempty"`      // processes that were ended after the command
	ID         string `json:"sessionId,omitempty"` // of the output
}

// tempNote is the note about a command that names temporary files.
const tempNote = "files in /tmp are those of this command only and gone with it: the sandbox has a /tmp of its own"

// homeNote is the note about a command that changes settings in the home folder.
const homeNote = "the settings that it changed are not kept: the sandbox has a home folder of its own, which is gone with the command; host gateway asks the person to change the real ones"

// setsHome reports whether a command changes settings in the home folder, which programs keep
// there without being given its path.
func setsHome(sp shell.Plan) bool {
	return slices.ContainsFunc(sp.Segments, func(s shell.Segment) bool {
		words := map[string]bool{}
		for _, a := range s.Argv {
			words[a.Text] = true
		}
		if len(s.Argv) < 3 {
			return false
		}
		switch sub := s.Argv[1].Text; filepath.Base(s.Argv[0].Text) {
		case "git":
			reads := words["--get"] || words["--get-all"] || words["--get-regexp"] || words["--list"] || words["-l"] ||
				words["get"] || words["list"]
			return words["config"] && (words["--global"] || words["--system"]) && !reads && len(s.Argv) > 4
		case "go":
			return sub == "env" && (words["-w"] || words["-u"])
		case "pip", "pip3", "yarn", "poetry", "composer":
			return sub == "config" && (words["set"] || words["unset"])
		case "npm", "pnpm":
			return sub == "set" || (sub == "config" || sub == "c") && (words["set"] || words["delete"]) &&
				!words["--location=project"]
		}
		return false
	})
}

var tempForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[\s=<>'"(])(/(?:var/)?tmp/[^\s'";|&<>)]+)`)
})

// namesTemp reports whether a command in the sandbox names a file in the folders for
// temporary ones that it has to itself.
func namesTemp(command string, r *sandbox.Rights) bool {
	if r == nil {
		return false
	}
	shared := append(slices.Concat(r.Read, r.Change), r.Workspace)
	return slices.ContainsFunc(tempForm().FindAllStringSubmatch(command, -1), func(m []string) bool {
		return !slices.ContainsFunc(shared,
			func(dir string) bool { return dir != "" && pathpolicy.Inside(filepath.Clean(m[1]), dir) })
	})
}

// maxBlocked limits the names of each note of a result.
const maxBlocked = 10

// listed lists paths in the workspace, those at the top of it first.
func listed(paths []string) string {
	paths = slices.Clone(paths)
	slices.SortStableFunc(paths, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	return shell.Names(paths, maxBlocked)
}

func (r *report) result() tool.Result {
	d := details{r.Code, r.Signal, r.duration.Milliseconds(), r.timedOut, r.cut, r.Left, r.id}
	if r.plain {
		return tool.Detailed(r.text, d)
	}
	text := strings.TrimRight(r.text, "\n")
	var notes []string
	if r.note != "" {
		notes = append(notes, r.note)
	}
	switch {
	case r.timedOut:
		notes = append(notes,
			fmt.Sprintf("timed out after %s; the command and its processes were ended (set timeoutSeconds for more time)",
				humanize.Span(r.timeout)))
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
		what := "1 background process was still running and was ended"
		if r.Left > 1 {
			what = fmt.Sprintf("%d background processes were still running and were ended", r.Left)
		}
		notes = append(notes, what)
	}
	if len(r.refused) > 0 {
		notes = append(notes, "the sandbox refused "+strings.Join(r.refused, ", "))
	}
	if len(r.Blocked) > 0 {
		notes = append(notes, fmt.Sprintf("renamed to NAME.blocked, because other programs run what has such a name: %s; host gateway asks the person to make it outside of the sandbox", listed(r.Blocked)))
	}
	if len(r.Opened) > 0 {
		notes = append(notes, "opened to their owner again, because what is in them has to be checked: "+listed(r.Opened))
	}
	if len(r.Later) > 0 {
		notes = append(notes, "changed, and runs later: "+listed(r.Later))
	}
	if len(r.Committed) > 0 {
		notes = append(notes, "recorded in Git, and put in place by a later checkout or merge, where other programs run it: "+
			listed(r.Committed)+"; tell the person to look at it first")
	}
	if r.Unchecked != "" {
		notes = append(notes, "what it left could not be checked completely: "+r.Unchecked)
	}
	for _, note := range [...]string{lostNote(r.lost), editedNote(r.edited), protectedNote(r.held), r.outside} {
		if note != "" {
			notes = append(notes, note)
		}
	}
	if note := privateOfGit(r.text); note != "" && len(r.held) == 0 && r.confined && r.Code != 0 {
		notes = append(notes, note)
	}
	if r.private {
		notes = append(notes, "it left out private files, such as .env and keys; name one to ask the person for it")
	}
	if r.home && r.Code == 0 {
		notes = append(notes, homeNote)
	}
	if r.temp {
		notes = append(notes, tempNote)
	}
	if r.confined && r.Code != 0 && !r.timedOut && len(r.held) == 0 && r.outside == "" {
		notes = append(notes, "it ran in the sandbox; host gateway asks the person to run it outside")
	}
	if r.id != "" {
		notes = append(notes, fmt.Sprintf("for the whole output use process log with sessionId %s", r.id))
	}
	if len(notes) > 0 {
		if text != "" {
			text += "\n\n"
		}
		text += "[" + strings.Join(notes, "; ") + "]"
	}
	return tool.Detailed(text, d)
}

// lostNote is the note about files that were changed without a way back; "": there are none.
func lostNote(lost []string) string {
	if len(lost) == 0 {
		return ""
	}
	return "/undo cannot bring back what was in " + shell.Names(lost, maxBlocked) +
		": too large, too much to keep, or with a secret"
}

// editedNote is the note about a file that was approved and then changed.
func editedNote(name string) string {
	if name == "" {
		return ""
	}
	return shell.Escape(name) +
		" was changed while it ran, so that it may have run something else than was approved: tell the person"
}

// backgroundResult returns the result of a call whose command continues in
// the background.
func (k *command) backgroundResult(text string) tool.Result {
	tail := strings.TrimRight(text, "\n")
	if text = tail; text != "" {
		text += "\n\n"
	}
	note := fmt.Sprintf("still running in the background as sessionId %s, pid %d; use process to poll, write to or end it",
		k.id, k.process.PID())
	if k.note != "" {
		note += "; " + k.note
	}
	return tool.Detailed(text+"["+note+"]", struct {
		Status string    `json:"status"`
		ID     string    `json:"sessionId"`
		PID    int       `json:"pid"`
		Began  time.Time `json:"startedAt"`
		Dir    string    `json:"cwd"`
		Tail   string    `json:"tail"`
	}{"running", k.id, k.process.PID(), k.began, k.dir, tail})
}
