package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/surface/tui/repl"
	"github.com/chela-ai/chela/wire"
)

// TestArguments passes every command as many arguments as its usage line names, and
// others.
func TestArguments(t *testing.T) {
	t.Parallel()
	optional := regexp.MustCompile(`\s\[([^]]*)\](\.\.\.)?`)
	option := regexp.MustCompile(`--?[\w-]+ [A-Z]+`)
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		use := option.ReplaceAllString(strings.TrimPrefix(cmd.Use, cmd.Name()), "")
		lo := len(strings.Fields(optional.ReplaceAllString(use, "")))
		hi := lo
		for _, m := range optional.FindAllStringSubmatch(use, -1) {
			if hi += len(strings.Fields(m[1])); m[2] != "" {
				hi = 100
			}
		}
		switch {
		case cmd.Name() == "help":
			return
		case cmd.CommandPath() == "chela approvals set": // FILE can also be an option
			lo = 0
		case cmd.Short == "" || cmd.Args == nil:
			t.Errorf("%s has no description, or accepts any arguments", cmd.CommandPath())
			return
		}
		for n := range min(hi+2, 101) {
			err := cmd.Args(cmd, strings.Fields(strings.Repeat("x ", n)))
			if ok := n >= lo && n <= hi; ok != (err == nil) || err != nil && !errors.As(err, new(usageError)) {
				t.Errorf("%s with %d arguments: %v", cmd.UseLine(), n, err)
			}
		}
	}
	visit(new(commands).root())
}

// TestExamples checks that the commands in the help texts exist, with their options.
func TestExamples(t *testing.T) {
	t.Parallel()
	n := 0
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for line := range strings.Lines(strings.ReplaceAll(cmd.Example, "\\\n", "")) {
			n++
			_, command, _ := strings.Cut("| "+strings.TrimSpace(line), "| chela ")
			command, _, _ = strings.Cut(command, " < ")
			found, rest, err := cmd.Root().Find(strings.Fields(command))
			if err == nil {
				err = found.ParseFlags(rest)
			}
			if err != nil || command == "" || found == cmd.Root() {
				t.Errorf("help of %s: %s: %v", cmd.CommandPath(), line, err)
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(new(commands).root())
	if n < 5 {
		t.Errorf("%d examples", n)
	}
}

// TestPrintResult prints an answer and what went wrong, and returns what decides
// the exit code.
func TestPrintResult(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, tt := range []struct {
		json bool
		err  error
		want error
		text string
	}{
		{false, nil, nil, "hello\n"}, {false, broken, broken, ""}, {false, errInterrupted, errInterrupted, ""},
		{true, nil, nil, "hello "}, {true, broken, errReported, "hello broken"},
		{true, fmt.Errorf("run: %w", errInterrupted), errInterrupted, "hello run: " + errInterrupted.Error()},
	} {
		var out bytes.Buffer
		c := &commands{json: tt.json, console: console{stdout: &out}}
		err := c.printResult(repl.Answer{Text: "hello"}, tt.err)
		text := out.String()
		if tt.json {
			var a repl.Answer
			if err := json.Unmarshal(out.Bytes(), &a); err != nil {
				t.Fatal(err)
			}
			text = a.Text + " " + a.Error
		}
		if !errors.Is(err, tt.want) || errors.Is(err, errReported) != errors.Is(tt.want, errReported) || text != tt.text {
			t.Errorf("%v, json %v: returned %v, want %v; printed %q, want %q", tt.err, tt.json, err, tt.want, text, tt.text)
		}
	}
}

// TestKeyLines describes keys, with the models for which they are on cooldown.
func TestKeyLines(t *testing.T) {
	t.Parallel()
	until := wire.At(time.Now().Add(90*time.Minute + 20*time.Second))
	p := wire.ProviderStatus{ID: "groq", Keys: []wire.KeyStatus{
		{ID: "groq:work"}, {ID: "groq:GROQ_API_KEY", Cooldowns: []wire.KeyCooldown{{Until: until, Reason: "rate_limit"},
			{Model: "m", Until: until, Reason: "billing"}}},
	}}
	want := []string{"work", "GROQ_API_KEY (on cooldown for 1h30m: rate_limit) (on cooldown with m for 1h30m: billing)"}
	if diff := cmp.Diff(want, keyLines(p)); diff != "" {
		t.Error(diff)
	}
}

func TestCallOutcome(t *testing.T) {
	t.Parallel()
	for want, k := range map[string]wire.ToolCalled{
		"error":   {Outcome: "error", State: wire.CallClosed},
		"not run": {State: wire.CallClosed},
		"unknown": {State: wire.CallClosed, Effect: "acts"},
		"started": {State: "started", Effect: "acts"},
		"planned": {State: "planned"},
	} {
		if got := callOutcome(k); got != want {
			t.Errorf("%+v: %q, want %q", k, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"NAME", "WHAT IT DOES"}, {"天气", "says what the weather will be tomorrow"}, {"b", ""}}
	three := [][]string{{"NAME", "WHERE", "ID"}, {"every day", "the chat with the family", "0123456789abcdefghij"}}
	for _, tc := range []struct {
		rows  [][]string
		width int
		want  string
	}{
		{rows, 0, "NAME  WHAT IT DOES\n天气  says what the weather will be tomorrow\nb"},
		{rows, 24, "NAME  WHAT IT DOES\n天气  says what the\n      weather will be\n      tomorrow\nb"},
		{rows, 12, "NAME  WHAT IT DOES\n天气  says what the weather will be tomorrow\nb"}, // too narrow to wrap
		{three, 48, "NAME       WHERE            ID\nevery day  the chat with    0123456789abcdefghij\n           the family"},
		// a word is broken
		{three, 31, "NAME   WHERE   ID\nevery  the     0123456789abcdef\nday    chat    ghij\n       with\n       the\n       family"},
	} {
		if diff := cmp.Diff(tc.want, strings.Join(slices.Concat(table(tc.rows, tc.width)...), "\n")); diff != "" {
			t.Errorf("width %d: -want +got\n%s", tc.width, diff)
		}
	}
}
