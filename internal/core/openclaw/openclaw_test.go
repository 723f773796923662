package openclaw_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chela-ai/chela/internal/core/openclaw"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite/foreign"
	"github.com/chela-ai/chela/internal/test/openclawtest"
)

func open(t *testing.T, dir string) *openclaw.Home {
	t.Helper()
	h, err := openclaw.Open(dir, foreign.Tables)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// told returns the transcripts of an agent as lines: the key, then what the messages say.
func told(t *testing.T, h *openclaw.Home, agent string) (out []string, deleted int) {
	t.Helper()
	all, deleted := h.Sessions(t.Context(), agent)
	for _, s := range all {
		line := s.Key
		for _, r := range s.Transcripts {
			parts, err := r.Parts(t.Context())
			if err != nil {
				line += " | " + err.Error()
			}
			for _, p := range parts {
				line += " | " + p.Reason
				imp, err := session.Import(bytes.NewReader(p.JSONL))
				if err != nil {
					line += " error"
				}
				for _, e := range imp.Entries {
					if e.Message != nil {
						line += fmt.Sprintf(" %.20s", e.Message.PlainText())
					}
				}
			}
		}
		out = append(out, line)
	}
	return out, deleted
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := openclawtest.Files(t)
	before := openclawtest.Snapshot(t, dir)
	h := open(t, dir)
	if got, want := h.Agents(), []string{"main", "work"}; !slices.Equal(got, want) {
		t.Errorf("agents %v", got)
	}
	conf := h.Config()
	if agents, _ := conf["agents"].(map[string]any); conf["gateway"] == nil || len(agents) != 2 ||
		agents["$include"] != nil {
		t.Errorf("configuration: %v", conf)
	}
	got, deleted := told(t, h, "main")
	want := []string{
		"agent:main:broken |  error",
		"agent:main:main | reset [Sat 2026-02-28 08:0 A claw. |  [Sun 2026-03-01 08:0  eggs Eggs 鸡蛋.",
		"agent:main:odd",
		"agent:main:recovered-11111111-aaaa-4aaa-8aaa-000000000004 |  nobody knows my key",
		"agent:main:telegram:group:-100 |  hello from the group",
	}
	if !slices.Equal(got, want) || deleted != 1 {
		t.Errorf("%d deleted, got\n%s\nwant\n%s", deleted, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var names []string
	for _, j := range h.Jobs(t.Context()) {
		names = append(names, j.Name)
	}
	if !slices.Equal(names, []string{"morning", "stretch", "martian"}) {
		t.Errorf("jobs %v", names)
	}
	people := h.People(t.Context(), []string{"telegram", "discord"})
	if !slices.Equal(people, []openclaw.Person{
		{"telegram", "default", "42"}, {"telegram", "default", "telegram:43"}, {"telegram", "default", "44"},
		{"telegram", "default", "*"}, {"telegram", "work", "45"},
	}) {
		t.Errorf("people %v", people)
	}
	checkDevice(t, h)
	if text, from := h.ExecApprovals(t.Context()); from != "exec-approvals.json" || !json.Valid(text) {
		t.Errorf("rules about commands from %q: %s", from, text)
	}
	var keys []string
	for _, k := range h.Keys(t.Context()) {
		keys = append(keys, fmt.Sprint(k.Agent, " ", k.ID, " ", k.Type, " ", !k.Secret.IsZero()))
	}
	if want := []string{"main anthropic:default api_key true", "main groq:old token true",
		"main mars:default api_key true", "main openai:login oauth false", "main openrouter:ref api_key false",
		"work anthropic:default api_key true", "work openai:work api_key true"}; !slices.Equal(keys, want) {
		t.Errorf("keys %q", keys)
	}
	if got := h.Skills("skills"); !slices.Equal(got, []string{"skills/greet"}) {
		t.Errorf("skills %v", got)
	}
	if got := fmt.Sprint(h.Problems()); !strings.Contains(got, "sessions.json") || !strings.Contains(got, "job 5") {
		t.Errorf("problems %s", got)
	}
	for _, s := range openclawtest.Secrets() {
		if strings.Contains(fmt.Sprint(h.Keys(t.Context()), h.Devices(t.Context()), h.Problems()), s) {
			t.Errorf("the secret %.6s… is printed", s)
		}
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if !reflect.DeepEqual(openclawtest.Snapshot(t, dir), before) {
		t.Error("the folder was changed")
	}
}

func checkDevice(t *testing.T, h *openclaw.Home) {
	t.Helper()
	all := h.Devices(t.Context())
	i := slices.IndexFunc(all, func(d openclaw.Device) bool { return d.ID == openclawtest.Device })
	if i < 0 || all[i].Tokens["operator"].Token.Reveal() != openclawtest.Token || all[i].DisplayName != "phone of ada" ||
		all[i].Created == 0 {
		t.Errorf("devices %+v", all)
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	dir := openclawtest.Tables(t)
	before := openclawtest.Snapshot(t, dir)
	h := open(t, dir)
	got, _ := told(t, h, "main")
	want := []string{
		"agent:main:main | new hello there Hi. |  after the reset long long long long ",
		"agent:main:telegram:direct:42 |  from the phone",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	all, _ := h.Sessions(t.Context(), "main")
	if c := all[1].Chat; c != (openclaw.Chat{Channel: "telegram", Account: "default", Kind: "direct", Peer: "42"}) ||
		all[0].Think != "low" || all[0].Label != "Home" {
		t.Errorf("%+v, %+v", c, all[0].Entry)
	}
	jobs := h.Jobs(t.Context())
	if len(jobs) != 2 || jobs[0].Own || !jobs[1].Own || !bytes.Contains(jobs[0].JSON, []byte("1796075157494")) {
		t.Errorf("jobs %+v", jobs)
	}
	if beats := h.Heartbeats(t.Context()); beats["main"] != "Look at the mail.\n" {
		t.Errorf("heartbeats %q", beats)
	}
	if people := h.People(t.Context(), nil); !slices.Equal(people, []openclaw.Person{{"telegram", "default", "42"}}) {
		t.Errorf("people %v", people)
	}
	checkDevice(t, h)
	if keys := h.Keys(t.Context()); len(keys) != 2 || keys[0].Agent != "" || keys[1].Agent != "main" ||
		keys[1].Name() != "manual" {
		t.Errorf("keys %v", keys)
	}
	if text, from := h.ExecApprovals(t.Context()); from != "state/openclaw.sqlite" || len(text) == 0 {
		t.Errorf("rules about commands from %q", from)
	}
	if problems := h.Problems(); len(problems) != 0 {
		t.Errorf("problems %v", problems)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if !reflect.DeepEqual(openclawtest.Snapshot(t, dir), before) {
		t.Error("the folder was changed")
	}
}

// TestDamaged breaks files one by one: the rest is still read.
func TestDamaged(t *testing.T) {
	t.Parallel()
	const agentDB = "agents/main/agent/openclaw-agent.sqlite"
	for _, c := range []struct {
		name, file, want string
		tables           bool
		change           func(t *testing.T, file string)
	}{
		{"a configuration that is no JSON5", "openclaw.json", "openclaw.json", false, write("{ agents: ")},
		{"a list of sessions that is cut", "agents/main/sessions/sessions.json", "sessions.json", false,
			write(`{"agent:main:main":{"sess`)},
		{"two jobs with an id, in a list alone", "cron/jobs.json", "two jobs have the id j1", false,
			write(`[{"id":"j1"},{"jobId":"j1"}]`)},
		{"jobs with a null byte", "cron/jobs.json", "cron/jobs.json", false, write("{\x00}")},
		{"devices that are a list", "devices/paired.json", "devices/paired.json", false, write("[1]")},
		{"a database that is none", agentDB, "openclaw-agent.sqlite", true,
			write("this is no database, but longer than its header would be: " + strings.Repeat("x", 4096))},
		{"a database that is cut", "state/openclaw.sqlite", "state/openclaw.sqlite", true, func(t *testing.T, file string) {
			if err := os.Truncate(file, 5000); err != nil {
				t.Fatal(err)
			}
		}},
		{"a newer schema", "state/openclaw.sqlite", "cron_jobs has no column job_json", true,
			func(t *testing.T, file string) {
				openclawtest.Run(t, file, "ALTER TABLE cron_jobs RENAME COLUMN job_json TO definition;")
			}},
		{"a view in the place of a table", "state/openclaw.sqlite", "", true, func(t *testing.T, file string) {
			openclawtest.Run(t, file, "DROP TABLE cron_jobs; CREATE VIEW cron_jobs AS SELECT 'x' AS store_key, 'y' AS job_id, '{}' AS job_json, 0 AS sort_order;")
		}},
		{"a link out of the folder", "exec-approvals.json", "exec-approvals.json", false, func(t *testing.T, file string) {
			if err := errors.Join(os.Remove(file), os.Symlink("/etc/passwd", file)); err != nil {
				t.Skip(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := openclawtest.Files(t)
			if c.tables {
				dir = openclawtest.Tables(t)
			}
			c.change(t, filepath.Join(dir, c.file))
			h := open(t, dir)
			h.Config()
			_, _ = told(t, h, "main")
			h.Jobs(t.Context())
			h.Devices(t.Context())
			h.ExecApprovals(t.Context())
			if got := fmt.Sprint(h.Problems()); !strings.Contains(got, c.want) {
				t.Errorf("problems %s, want %s", got, c.want)
			}
			if people := h.People(t.Context(), nil); len(people) == 0 && c.file != "state/openclaw.sqlite" {
				t.Error("the rest is not read")
			}
		})
	}
}

// TestFull fails as a whole if a database cannot be copied.
func TestFull(t *testing.T) {
	t.Parallel()
	h, err := openclaw.Open(openclawtest.Tables(t), func(context.Context, *os.Root, string) (openclaw.Tables, error) {
		return nil, syscall.ENOSPC
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.Jobs(t.Context())
	if err := h.Err(); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "openclaw.sqlite") {
		t.Error(err)
	}
}

func write(text string) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	dir := openclawtest.Files(t)
	outside := t.TempDir()
	write("secret")(t, filepath.Join(outside, "SKILL.md"))
	for link, to := range map[string]string{
		"workspace/out":  outside,
		"workspace/file": filepath.Join(outside, "SKILL.md"),
		"skills/out":     outside,
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	h := open(t, dir)
	for _, f := range h.Files("workspace", ".openclaw") {
		if strings.Contains(f.Rel, "out") || f.Rel == "file" || strings.HasPrefix(f.Rel, ".openclaw") {
			t.Errorf("%s is read", f.Rel)
		}
	}
	if got := h.Skills("skills"); len(got) != 1 {
		t.Errorf("skills %v", got)
	}
	if got := fmt.Sprint(h.Problems()); strings.Count(got, "symbolic link") != 3 {
		t.Errorf("problems %s", got)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, name := range []string{".openclaw", ".openclaw-work", ".clawdbot", ".openclawx", ".other"} {
		dir := filepath.Join(home, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write("{}")(t, filepath.Join(dir, "openclaw.json"))
	}
	if err := os.Mkdir(filepath.Join(home, ".openclaw-empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, dir := range openclaw.Find(home) {
		got = append(got, filepath.Base(dir))
	}
	if want := []string{".openclaw", ".clawdbot", ".openclaw-work"}; !slices.Equal(got, want) {
		t.Errorf("found %v", got)
	}
	if _, err := openclaw.Open(filepath.Join(home, ".openclaw-empty"), foreign.Tables); err == nil {
		t.Error("an empty folder was opened")
	}
}

func TestRunning(t *testing.T) {
	t.Parallel()
	dir := openclawtest.Files(t)
	temp := t.TempDir()
	h := open(t, dir)
	alive := func(pid int) bool { return pid == 7 }
	if got := h.Running(temp, alive); got != "" {
		t.Errorf("running without a lock: %s", got)
	}
	lock := filepath.Join(temp, "openclaw-1000", "gateway.abc.lock")
	if err := os.MkdirAll(filepath.Dir(lock), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`{"pid":7,"configPath":"` + filepath.Join(h.Dir, "openclaw.json") + `"}`: true,
		`{"pid":8,"configPath":"` + filepath.Join(h.Dir, "openclaw.json") + `"}`: false,
		`{"pid":7,"configPath":"/home/other/.openclaw/openclaw.json"}`:           false,
		`{`: false,
	} {
		write(text)(t, lock)
		if got := h.Running(temp, alive) != ""; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
