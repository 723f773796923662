package migrate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/app/migrate"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite/foreign"
	"github.com/chela-ai/chela/internal/surface/cli"
	"github.com/chela-ai/chela/internal/test/openclawtest"
)

// mover is a state directory into which a folder of OpenClaw is moved.
type mover struct {
	t *testing.T
	m migrate.Migrator
	s cli.Start
	o cli.MigrateOptions
}

func newMover(t *testing.T, from string) *mover {
	r := &standard.Registry{}
	standard.Stores(r)
	state := filepath.Join(t.TempDir(), ".chela")
	return &mover{
		t: t,
		m: migrate.Migrator{
			Store: func(cli.Start) (standard.Store, error) {
				return r.StoreOf(func(string) json.RawMessage { return nil }, nil, "")
			},
			Open:        foreign.Tables,
			Providers:   []string{"anthropic", "openai", "groq", "openrouter"},
			Channels:    []string{"telegram", "discord"},
			Validate:    func(context.Context, cli.Start, *config.Tree) error { return nil },
			Ineffective: func(context.Context, cli.Start, *config.Tree) []string { return nil },
		},
		s: cli.Start{State: state, Config: filepath.Join(state, "chela.json"),
			LastGood: filepath.Join(state, "chela.json.last-good"), Log: slog.New(slog.DiscardHandler)},
		o: cli.MigrateOptions{From: from},
	}
}

func (m *mover) plan() cli.Migrated {
	m.t.Helper()
	p, err := m.m.Plan(m.t.Context(), m.s, m.o)
	if err != nil {
		m.t.Fatal(err)
	}
	return p
}

func (m *mover) apply() cli.Migrated {
	m.t.Helper()
	p, err := m.m.Apply(m.t.Context(), m.s, m.o)
	if err != nil {
		m.t.Fatal(err)
	}
	return p
}

func (m *mover) undo() cli.Migrated {
	m.t.Helper()
	p, err := m.m.Undo(m.t.Context(), m.s)
	if err != nil {
		m.t.Fatal(err)
	}
	return p
}

// db opens the database for f.
func (m *mover) db(f func(standard.Database)) {
	m.t.Helper()
	st, err := m.m.Store(m.s)
	if err != nil {
		m.t.Fatal(err)
	}
	db, err := st.Open(m.t.Context(), filepath.Join(m.s.State, "chela.db"), standard.StoreOptions{Log: m.s.Log})
	if err != nil {
		m.t.Fatal(err)
	}
	f(db)
	if err := db.Close(); err != nil {
		m.t.Error(err)
	}
}

// rows returns what the database has, without ids and times that differ between runs.
func (m *mover) rows() (out []string) {
	m.t.Helper()
	m.db(func(db standard.Database) {
		err := db.View(m.t.Context(), func(r store.Reader) error {
			all, _, err := r.Sessions().List(session.Query{Archived: session.ArchivedToo, Limit: 100})
			if err != nil {
				return err
			}
			for _, s := range all {
				line := fmt.Sprintf("%s %s %q %q %v %v", s.Key, s.ID, s.Title, s.Think, s.Address, !s.Archived.IsZero())
				past, err := r.Sessions().Past(s.Key)
				if err != nil {
					return err
				}
				for _, id := range append([]string{s.ID}, ids(past)...) {
					entries, err := r.Sessions().Entries(id, 0, 0)
					if err != nil {
						return err
					}
					line += " |"
					for _, e := range entries {
						if e.Message != nil {
							line += fmt.Sprintf(" %.30s", e.Message.PlainText())
						}
					}
				}
				out = append(out, line)
			}
			jobs, err := r.Jobs().List()
			if err != nil {
				return err
			}
			for _, j := range jobs {
				out = append(out, fmt.Sprintf("job %s %s %v %v", j.ID, j.Name, j.Enabled, j.State.Next != 0))
			}
			guests, err := r.Guests().List()
			if err != nil {
				return err
			}
			for _, g := range guests {
				out = append(out, fmt.Sprintf("person %s %s %s %v", g.Channel, g.Account, g.ID, !g.Admitted.IsZero()))
			}
			devices, err := r.Devices().Devices()
			for _, d := range devices {
				out = append(out, fmt.Sprintf("device %s %v %s", d.ID, d.Paired(), d.Via))
			}
			return err
		})
		if err != nil {
			m.t.Fatal(err)
		}
	})
	slices.Sort(out)
	return out
}

func ids(past []session.Past) (out []string) {
	for _, p := range past {
		out = append(out, p.ID)
	}
	return out
}

// files returns the files of the state directory that are a person's.
func (m *mover) files() map[string]string {
	m.t.Helper()
	out := map[string]string{}
	for _, dir := range []string{"workspace", "workspace-work", "skills", "credentials", "chela.json",
		"exec-approvals.json"} {
		_ = filepath.WalkDir(filepath.Join(m.s.State, dir), func(name string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				b, err := os.ReadFile(name)
				if err != nil {
					m.t.Error(err)
				}
				rel, _ := filepath.Rel(m.s.State, name)
				out[rel] = string(b)
			}
			return nil
		})
	}
	return out
}

func (m *mover) write(name, text string) {
	m.t.Helper()
	file := filepath.Join(m.s.State, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		m.t.Fatal(err)
	}
}

func layouts(t *testing.T, f func(t *testing.T, from string)) {
	t.Run("files", func(t *testing.T) { t.Parallel(); f(t, openclawtest.Files(t)) })
	t.Run("tables", func(t *testing.T) { t.Parallel(); f(t, openclawtest.Tables(t)) })
}

func actions(m cli.Migrated) map[string]string {
	out := map[string]string{}
	for _, g := range m.Groups {
		for _, i := range g.Items {
			out[i.What] = i.Action
		}
	}
	return out
}

func TestFiles(t *testing.T) {
	t.Parallel()
	from := openclawtest.Files(t)
	before := openclawtest.Snapshot(t, from)
	m := newMover(t, from)
	plan := m.plan()
	if _, err := os.Stat(m.s.State); !errors.Is(err, os.ErrNotExist) {
		t.Error("the plan made the state directory")
	}
	out := m.apply()
	if !reflect.DeepEqual(actions(plan), actions(out)) {
		t.Errorf("the plan was\n%v\nand done was\n%v", actions(plan), actions(out))
	}
	want := []string{
		`agent:main:main ID "read the list" "high" {  { } } false | [Sun 2026-03-01 08:00 UTC] rea  eggs Eggs 鸡蛋. | [Sat 2026-02-28 08:00 UTC] wha A claw.`,
		`agent:main:recovered-11111111-aaaa-4aaa-8aaa-000000000004 ID "nobody knows my key" "" {  { } } true | nobody knows my key`,
		`agent:main:telegram:group:-100 ID "hello from the group" "" {telegram default {group -100} 7} false | hello from the group`,
		`agent:work:main ID "work, please" "" {  { } } false | work, please Done.`,
		`device ` + openclawtest.Device + ` true import`,
		`job 33333333-aaaa-4aaa-8aaa-000000000001 morning true true`,
		`job 33333333-aaaa-4aaa-8aaa-000000000002 stretch false false`,
		`person telegram default 42 true`, `person telegram default 43 true`, `person telegram default 44 true`,
		`person telegram work 45 true`,
	}
	if got := m.rows(); !slices.Equal(anonymous(got), want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(anonymous(got), "\n"), strings.Join(want, "\n"))
	}
	files := m.files()
	for name, text := range map[string]string{
		"workspace/AGENTS.md":            "# Rules\n\nBe kind.\n",
		"workspace/memory/2026-03-01.md": "Bought eggs.\n",
		"workspace-work/AGENTS.md":       "# Work\n",
		"skills/greet/SKILL.md":          "---\nname: greet",
		"credentials/anthropic.key":      "sk-ant-test-aaaaaaaaaaaaaaaaaaaa\n",

		"credentials/work/openai.work.key": "sk-test-work",
		"exec-approvals.json":              "/usr/bin/uptime",
	} {
		if !strings.Contains(files[name], text) {
			t.Errorf("%s: %q", name, files[name])
		}
	}
	for _, name := range []string{"workspace/.openclaw/workspace-state.json", "credentials/openai.login.key",
		"credentials/groq.old.key", "credentials/mars.key"} {
		if _, ok := files[name]; ok {
			t.Errorf("%s was taken", name)
		}
	}
	if strings.Contains(files["exec-approvals.json"], "socket") {
		t.Error("the socket of OpenClaw was taken")
	}
	m.checkConfig()
	left := fmt.Sprint(out.Left)
	for _, what := range []string{"telepathy", "agents.defaults.timeoutSeconds", "env.vars.HOUSE", "logs", "openai:login",
		"groq:old", "mars:default", "openrouter:ref", "deleted in OpenClaw", "telegram *"} {
		if !strings.Contains(left, what) {
			t.Errorf("not reported: %s\n%s", what, left)
		}
	}
	problems := fmt.Sprint(out.Problems)
	for _, what := range []string{"martian", "agent:main:broken", "sessions.json", "job 5"} {
		if !strings.Contains(problems, what) {
			t.Errorf("not reported: %s\n%s", what, problems)
		}
	}
	text, err := os.ReadFile(out.Report)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range openclawtest.Secrets() {
		if strings.Contains(fmt.Sprint(plan, out), s) || strings.Contains(string(text), s) {
			t.Errorf("the secret %.6s… is printed", s)
		}
	}
	if !reflect.DeepEqual(openclawtest.Snapshot(t, from), before) {
		t.Error("the folder of OpenClaw was changed")
	}
}

// anonymous replaces the ids of transcripts.
func anonymous(rows []string) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		f := strings.SplitN(r, " ", 3)
		if strings.HasPrefix(r, "agent:") {
			r = f[0] + " ID " + f[2]
		}
		out[i] = r
	}
	return out
}

// checkConfig checks the paths and values of the configuration of the files.
func (m *mover) checkConfig() {
	m.t.Helper()
	tree, err := (config.Options{Env: func(string) string { return "" }}).Read(m.s.Config)
	if err != nil {
		m.t.Fatal(err)
	}
	for path, want := range map[string]string{
		"agents.defaults.workspace": fmt.Sprintf("%q", filepath.Join(m.s.State, "workspace")),
		"agents.defaults.model":     `{"primary":"house/m1"}`,
		"gateway.auth.token":        `"gateway-token-of-ada"`,
		"skills.load.extraDirs":     fmt.Sprintf("[%q,%q]", filepath.Join(m.s.State, "skills"), "/home/ada/elsewhere"),
	} {
		if got := string(tree.Section(path)); got != want {
			m.t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if s := string(tree.Section("agents.list")); !strings.Contains(s, filepath.Join(m.s.State, "workspace-work")) ||
		strings.Contains(s, "agentDir") || strings.Contains(s, "telepathy") {
		m.t.Errorf("agents.list: %s", s)
	}
	for _, path := range []string{"meta", "wizard", "telepathy", "agents.defaults.timeoutSeconds"} {
		if tree.Section(path) != nil {
			m.t.Errorf("%s was taken", path)
		}
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	from := openclawtest.Tables(t)
	before := openclawtest.Snapshot(t, from)
	m := newMover(t, from)
	out := m.apply()
	want := []string{
		`agent:main:main ID "after the reset" "low" {  { } } false | after the reset long long long long long long  | hello there Hi.`,
		`agent:main:telegram:direct:42 ID "from the phone" "" {telegram default {direct 42} } false | from the phone`,
		`device ` + openclawtest.Device + ` true import`,
		`job 66666666-aaaa-4aaa-8aaa-000000000001 nap true true`,
		`person telegram default 42 true`,
	}
	if got := m.rows(); !slices.Equal(anonymous(got), want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(anonymous(got), "\n"), strings.Join(want, "\n"))
	}
	files := m.files()
	if files["workspace/HEARTBEAT.md"] != "Look at the mail.\n" || files["credentials/anthropic.manual.key"] == "" ||
		files["credentials/openai.manual.key"] == "" {
		t.Errorf("%v", slices.Sorted(keys(files)))
	}
	if !strings.Contains(fmt.Sprint(out.Left), "1 job that OpenClaw made for itself") {
		t.Errorf("%v", out.Left)
	}
	m.db(func(db standard.Database) { // the phone connects with its token
		err := db.View(t.Context(), func(r store.Reader) error {
			p, ok, err := pairing.Bearer(r.Devices(), openclawtest.Token)
			if !ok || p.Device != openclawtest.Device {
				t.Errorf("%+v", p)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	if !reflect.DeepEqual(openclawtest.Snapshot(t, from), before) {
		t.Error("the folder of OpenClaw was changed")
	}
}

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestTwice(t *testing.T) {
	t.Parallel()
	layouts(t, func(t *testing.T, from string) {
		m := newMover(t, from)
		m.apply()
		rows, files := m.rows(), m.files()
		again := m.apply()
		if n := again.Count(cli.ItemAdd, cli.ItemReplace, cli.ItemConflict); n != 0 || again.Report != "" {
			t.Errorf("%d items, %s", n, again.Report)
		}
		if !slices.Equal(rows, m.rows()) || !reflect.DeepEqual(files, m.files()) {
			t.Error("the second time changed something")
		}
		m.undo()
		if rows := m.rows(); len(rows) != 0 {
			t.Errorf("rows %q", rows)
		}
		if files := m.files(); len(files) != 0 {
			t.Errorf("files %q", slices.Sorted(keys(files)))
		}
		if _, err := os.Stat(filepath.Join(m.s.State, "workspace")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the workspace stayed: %v", err)
		}
		if _, err := m.m.Undo(t.Context(), m.s); chela.CodeOf(err) != chela.CodeNotFound {
			t.Errorf("a second undo: %v", err)
		}
		m.apply()
		if !slices.Equal(rows, m.rows()) || !reflect.DeepEqual(files, m.files()) {
			t.Error("applied after the undo, something is missing")
		}
	})
}

// TestCopied takes back in a copy of a state directory: the other one stays as it is. What
// the configuration had is not left in the copy of the last valid one.
func TestCopied(t *testing.T) {
	t.Parallel()
	layouts(t, func(t *testing.T, from string) {
		m := newMover(t, from)
		m.apply()
		rows, files := m.rows(), m.files()
		c := newMover(t, from)
		if err := os.CopyFS(c.s.State, os.DirFS(m.s.State)); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(c.s.Config)
		if err == nil {
			err = os.WriteFile(c.s.LastGood, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range c.undo().Groups {
			for _, i := range g.Items {
				if strings.HasPrefix(i.What, m.s.State) {
					t.Errorf("%s %s", i.Action, i.What)
				}
			}
		}
		if !slices.Equal(rows, m.rows()) || !reflect.DeepEqual(files, m.files()) {
			t.Error("the other state directory was changed")
		}
		if rows := c.rows(); len(rows) != 0 {
			t.Errorf("rows %q", rows)
		}
		if _, err := os.Stat(filepath.Join(c.s.State, "workspace")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the workspace stayed: %v", err)
		}
		for _, file := range []string{c.s.Config, c.s.LastGood} {
			if text, err := os.ReadFile(file); err != nil || string(text) != "{}\n" {
				t.Errorf("%s: %q, %v", file, text, err)
			}
		}
	})
}

var errKilled = errors.New("killed")

// killed runs f so that it ends before step n. It reports whether there was such a step.
func (m *mover) killed(n int, f func() error) (name string, was bool) {
	m.t.Helper()
	at := 0
	m.m.Step = func(step string) error {
		if at++; at > n {
			name = step
			return errKilled
		}
		return nil
	}
	err := f()
	m.m.Step = nil
	if err != nil && !errors.Is(err, errKilled) {
		m.t.Fatalf("before step %d: %v", n, err)
	}
	return name, err != nil
}

// TestKilled ends an Apply before each of its steps, then completes it or takes it back;
// and an Undo likewise.
func TestKilled(t *testing.T) {
	t.Parallel()
	layouts(t, func(t *testing.T, from string) {
		whole := newMover(t, from)
		whole.apply()
		rows := whole.rows()
		files := strings.ReplaceAll(fmt.Sprint(whole.files()), whole.s.State, "STATE")
		check := func(m *mover, what string) {
			t.Helper()
			if got := m.rows(); !slices.Equal(got, rows) {
				t.Errorf("%s: rows\n%s", what, strings.Join(got, "\n"))
			}
			if got := strings.ReplaceAll(fmt.Sprint(m.files()), m.s.State, "STATE"); got != files {
				t.Errorf("%s: files\n%s", what, got)
			}
		}
		empty := func(m *mover, what string) {
			t.Helper()
			if r, f := m.rows(), m.files(); len(r)+len(f) != 0 {
				t.Errorf("%s: left %q, %q", what, r, slices.Sorted(keys(f)))
			}
		}
		for n := 0; ; n++ {
			m := newMover(t, from)
			step, was := m.killed(n, func() error { _, err := m.m.Apply(t.Context(), m.s, m.o); return err })
			if !was {
				break
			}
			m.apply()
			check(m, "completed after a kill before "+step)
			m.undo()
			empty(m, "taken back after a kill before "+step)

			if n == 0 { // nothing was written yet
				continue
			}
			m = newMover(t, from)
			m.killed(n, func() error { _, err := m.m.Apply(t.Context(), m.s, m.o); return err })
			m.undo()
			empty(m, "taken back at once, after a kill before "+step)
		}
		for n := 0; ; n++ {
			m := newMover(t, from)
			m.apply()
			step, was := m.killed(n, func() error { _, err := m.m.Undo(t.Context(), m.s); return err })
			if !was {
				break
			}
			if n > 0 {
				if _, err := m.m.Apply(t.Context(), m.s, m.o); err == nil {
					t.Errorf("applied while an undo is not complete")
				}
			}
			m.undo()
			empty(m, "undo after a kill before "+step)
		}
	})
}

// TestHalfWritten removes what a killed process left of a file.
func TestHalfWritten(t *testing.T) {
	t.Parallel()
	m := newMover(t, openclawtest.Files(t))
	m.killed(4, func() error { _, err := m.m.Apply(t.Context(), m.s, m.o); return err })
	temp := "workspace/.tmp-" + strings.Repeat("A", 26)
	mine := "workspace/.tmp-mine"
	m.write(temp, "half")
	m.write(mine, "mine")
	m.apply()
	if f := m.files(); f[temp] != "" || f[mine] != "mine" {
		t.Errorf("%q", slices.Sorted(keys(f)))
	}
	m.write(temp, "half")
	m.undo()
	if f := m.files(); len(f) != 1 || f[mine] != "mine" {
		t.Errorf("%q", slices.Sorted(keys(f)))
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	m := newMover(t, openclawtest.Files(t))
	template, err := os.ReadFile("../../core/prompt/files/AGENTS.md")
	if err != nil || !prompt.IsTemplate("AGENTS.md", template) {
		t.Fatal("no template", err)
	}
	mine := map[string]string{
		"workspace/AGENTS.md":       string(template),
		"workspace/MEMORY.md":       "my own\n",
		"credentials/anthropic.key": "sk-mine\n",
		"skills/greet/SKILL.md":     "mine\n",
		"chela.json":                "{\n  // mine\n  gateway: { port: 1234 },\n  models: { providers: { other: { baseUrl: 'http://127.0.0.1:8/v1' } } },\n}\n",
		"exec-approvals.json":       `{"version":1,"agents":{"main":{"allowlist":[{"pattern":"/bin/mine"}]}}}`,
	}
	for name, text := range mine {
		m.write(name, text)
	}
	main := chela.MainSession(chela.DefaultAgent)
	now := time.Now()
	morning := job.Job{
		ID:       "33333333-aaaa-4aaa-8aaa-000000000001",
		Name:     "mine",
		Schedule: job.Schedule{Kind: job.KindEvery, EveryMs: 3_600_000},
		Payload:  job.Payload{Kind: job.SystemEvent, Text: "x"},
		Target:   job.TargetMain,
	}
	m.db(func(db standard.Database) {
		if err := db.Update(t.Context(), store.Synced, func(tx store.Tx) error {
			return errors.Join(
				tx.Sessions().Put(session.Meta{
					Key:     main,
					ID:      "mine",
					Agent:   "main",
					Created: now,
					Started: now,
					Updated: now,
					Title:   "my own",
				}),
				tx.Sessions().Append("mine", &session.Entry{ID: "e", Kind: session.KindNotice, Time: now, Text: "my own"}),
				tx.Jobs().Put(morning),
			)
		}); err != nil {
			t.Fatal(err)
		}
	})
	rows, files := m.rows(), m.files()
	out := m.apply()
	got := actions(out)
	for what, want := range map[string]string{
		"workspace/MEMORY.md":                 cli.ItemConflict,
		"anthropic:default of the agent main": cli.ItemConflict,
		"skills/greet":                        cli.ItemConflict,
		"gateway.port":                        cli.ItemConflict,
		"gateway.bind":                        cli.ItemAdd,
		string(main):                          cli.ItemConflict,

		"agent:work:main": cli.ItemAdd,
		"morning":         cli.ItemConflict,
	} {
		if got[what] != want {
			t.Errorf("%s: %s, want %s", what, got[what], want)
		}
	}
	after := m.files()
	if after["workspace/AGENTS.md"] != "# Rules\n\nBe kind.\n" || after["workspace/MEMORY.md"] != "my own\n" ||
		after["credentials/anthropic.key"] != "sk-mine\n" ||
		!strings.Contains(after["chela.json"], "// mine") || !strings.Contains(after["chela.json"], "1234") ||
		!strings.Contains(after["chela.json"], "loopback") ||
		!strings.Contains(after["exec-approvals.json"], "/bin/mine") ||
		!strings.Contains(after["exec-approvals.json"], "uptime") {
		t.Errorf("%q", after)
	}
	m.undo()
	if got := m.files(); !reflect.DeepEqual(got, files) {
		t.Errorf("got %q\nwant %q", got, files)
	}
	if got := m.rows(); !slices.Equal(got, rows) {
		t.Errorf("got %q\nwant %q", got, rows)
	}

	m.o.Overwrite = true
	out = m.apply()
	if n := out.Count(cli.ItemConflict); n != 0 {
		t.Errorf("conflicts with --overwrite: %v", actions(out))
	}
	after = m.files()
	if after["workspace/MEMORY.md"] != "Ada likes crabs.\n" || !strings.Contains(after["chela.json"], "18789") ||
		strings.Contains(after["skills/greet/SKILL.md"], "mine") {
		t.Errorf("%q", after)
	}
	if got := strings.Join(m.rows(), "\n"); !strings.Contains(got, "A claw.") || !strings.Contains(got, "morning") {
		t.Errorf("%s", got)
	}
	m.undo()
	if got := m.files(); !reflect.DeepEqual(got, files) {
		t.Errorf("after --overwrite: got %q\nwant %q", got, files)
	}
	if got := m.rows(); !slices.Equal(got, rows) {
		t.Errorf("after --overwrite: got %q\nwant %q", got, rows)
	}
}

// TestSourceChanged changes the source, and what is here, between an Apply that is killed
// and the next one.
func TestSourceChanged(t *testing.T) {
	t.Parallel()
	from := openclawtest.Files(t)
	for n := 3; ; n++ {
		m := newMover(t, from)
		m.write("chela.json", "{ gateway: { port: 1234 } }\n")
		m.write("workspace/MEMORY.md", "mine\n")
		m.o.Overwrite = true
		_, was := m.killed(n, func() error { _, err := m.m.Apply(t.Context(), m.s, m.o); return err })
		if !was {
			break
		}
		source := filepath.Join(from, "workspace", "MEMORY.md")
		old, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(source, []byte(fmt.Sprintf("Ada likes %d crabs.\n", n)), 0o600); err != nil {
			t.Fatal(err)
		}
		m.apply()
		if f := m.files(); f["workspace/MEMORY.md"] != fmt.Sprintf("Ada likes %d crabs.\n", n) ||
			!strings.Contains(f["chela.json"], "18789") {
			t.Errorf("killed at step %d: %q, %s", n, f["workspace/MEMORY.md"], f["chela.json"])
		}
		m.undo()
		if f := m.files(); len(f) != 2 || f["workspace/MEMORY.md"] != "mine\n" ||
			f["chela.json"] != "{ gateway: { port: 1234 } }\n" {
			t.Errorf("killed at step %d, and taken back: %q", n, f)
		}
		if err := os.WriteFile(source, old, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestChangedSince changes what was taken over: Undo keeps it.
func TestChangedSince(t *testing.T) {
	t.Parallel()
	m := newMover(t, openclawtest.Files(t))
	m.apply()
	m.write("workspace/MEMORY.md", "Ada likes crabs and eggs.\n")
	if err := os.Remove(filepath.Join(m.s.State, "workspace/AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(m.s.Config)
	if err != nil {
		t.Fatal(err)
	}
	text, err = config.Edited(text, config.Edit{Path: "gateway.port", Value: json.RawMessage("4321")},
		config.Edit{Path: "tools.profile", Value: json.RawMessage(`"minimal"`)})
	if err != nil {
		t.Fatal(err)
	}
	m.write("chela.json", string(text))
	main := chela.MainSession(chela.DefaultAgent)
	m.db(func(db standard.Database) {
		if err := db.Update(t.Context(), store.Synced, func(tx store.Tx) error {
			meta, err := tx.Sessions().Get(main)
			if err != nil {
				return err
			}
			j, err := tx.Jobs().Get("33333333-aaaa-4aaa-8aaa-000000000001")
			if err != nil {
				return err
			}
			j.State.Last, j.State.LastStatus = job.At(time.Now()), job.OK // it ran
			other, err := tx.Jobs().Get("33333333-aaaa-4aaa-8aaa-000000000002")
			other.Name = "renamed"
			return errors.Join(err, tx.Jobs().Put(j), tx.Jobs().Put(other),
				tx.Sessions().Append(meta.ID,
					&session.Entry{ID: "new", Kind: session.KindNotice, Time: time.Now(), Text: "it went on"}))
		}); err != nil {
			t.Fatal(err)
		}
	})
	got := actions(m.undo())
	for what, want := range map[string]string{
		filepath.Join(m.s.State, "workspace/MEMORY.md"): cli.ItemKeep, m.s.Config: cli.ItemKeep, string(main): cli.ItemKeep,
		"agent:work:main": cli.ItemRemove, "morning": cli.ItemRemove, "renamed": cli.ItemKeep,
	} {
		if got[what] != want {
			t.Errorf("%s: %q, want %s", what, got[what], want)
		}
	}
	if f := m.files(); f["workspace/MEMORY.md"] != "Ada likes crabs and eggs.\n" ||
		!strings.Contains(f["chela.json"], "4321") || !strings.Contains(f["chela.json"], "minimal") ||
		strings.Contains(f["chela.json"], "house") || len(f) != 2 {
		t.Errorf("%q", f)
	}
	if rows := m.rows(); len(rows) != 2 {
		t.Errorf("%q", rows)
	}
}

func TestNoSecrets(t *testing.T) {
	t.Parallel()
	layouts(t, func(t *testing.T, from string) {
		m := newMover(t, from)
		m.o.NoSecrets = true
		out := m.apply()
		for name, text := range m.files() {
			for _, s := range openclawtest.Secrets() {
				if strings.Contains(text, s) {
					t.Errorf("%s has the secret %.6s…", name, s)
				}
			}
		}
		if rows := strings.Join(m.rows(), "\n"); strings.Contains(rows, "device") ||
			!strings.Contains(rows, "agent:main:main") {
			t.Error(rows)
		}
		if left := fmt.Sprint(out.Left); strings.Count(left, "--no-secrets") < 3 {
			t.Error(left)
		}
	})
}

func TestAgent(t *testing.T) {
	t.Parallel()
	m := newMover(t, openclawtest.Files(t))
	m.o.Agent = "work"
	m.apply()
	if rows := m.rows(); len(rows) != 2 || !strings.HasPrefix(rows[0], "agent:work:main") ||
		!strings.Contains(rows[1], "stretch") {
		t.Errorf("%q", rows)
	}
	files := m.files()
	if files["workspace-work/AGENTS.md"] == "" || files["workspace/AGENTS.md"] != "" ||
		files["skills/greet/SKILL.md"] != "" || strings.Contains(files["chela.json"], "telegram") {
		t.Errorf("%q", files)
	}
	m.o.Agent = "nobody"
	if _, err := m.m.Plan(t.Context(), m.s, m.o); err == nil || !strings.Contains(err.Error(), "main, work") {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	m := newMover(t, openclawtest.Files(t))
	m.o.From = m.s.State
	if err := os.MkdirAll(m.s.State, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := m.m.Plan(t.Context(), m.s, m.o); err == nil ||
		!strings.Contains(err.Error(), "must not be in each other") {
		t.Error(err)
	}
	m.o.From = filepath.Join(t.TempDir(), "none")
	if _, err := m.m.Plan(t.Context(), m.s, m.o); err == nil || !strings.Contains(err.Error(), m.o.From) {
		t.Error(err)
	}
	m.o.From = openclawtest.Files(t)
	m.write("chela.json", "{ broken")
	if _, err := m.m.Plan(t.Context(), m.s, m.o); err == nil {
		t.Error("an invalid configuration is edited")
	}
}

// TestOwned refuses while another process has the state directory.
func TestOwned(t *testing.T) {
	t.Parallel()
	m := newMover(t, openclawtest.Files(t))
	m.apply()
	lock, err := statedir.Own(m.s.State)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	cancel() // nobody answers on the socket: do not wait for it
	if _, err := m.m.Undo(ctx, m.s); err == nil {
		t.Error("taken back")
	}
	if err := lock.Leave(); err != nil {
		t.Fatal(err)
	}
	m.undo()
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	m := newMover(t, openclawtest.Files(t))
	ctx, cancel := context.WithCancel(t.Context())
	m.m.Step = func(name string) error {
		if strings.HasPrefix(name, "session") {
			cancel()
		}
		return nil
	}
	_, err := m.m.Apply(ctx, m.s, m.o)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	m.m.Step = nil
	m.apply()
	if n := len(m.rows()); n != 11 {
		t.Errorf("%d rows", n)
	}
}
