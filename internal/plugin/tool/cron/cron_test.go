package cron_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/job/jobtest"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/tool/tooltest"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/internal/plugin/tool/cron"
)

// fixture is the tool with a scheduler and a store.
type fixture struct {
	t     *testing.T
	s     *jobtest.Scheduler
	store store.Store
	tool.Tool
	calls int
}

func open(t *testing.T) *fixture {
	t.Helper()
	db, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(t.TempDir(), "chela.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	zone, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	s := &jobtest.Scheduler{}
	return &fixture{t: t, s: s, store: db, Tool: cron.New(cron.Options{Scheduler: s, Store: db, Location: zone})}
}

// call runs the tool with a call id of its own.
func (h *fixture) call(args string) (string, error) {
	h.t.Helper()
	h.calls++
	return h.callAs(tool.Call{
		ID:      "call-" + string(rune('a'+h.calls)),
		Args:    json.RawMessage(args),
		Agent:   "main",
		Session: "agent:main:telegram:direct:7",
		Run:     "run-1",
	})
}

func (h *fixture) callAs(c tool.Call) (string, error) {
	h.t.Helper()
	c.Update = func(string) {}
	ctx := chela.WithPrincipal(h.t.Context(), chela.Owner("channel"))
	r, err := h.Run(ctx, c)
	if err != nil {
		return "", err
	}
	return r.Content[0].Text, nil
}

// must runs the tool and checks that the result contains the texts.
func (h *fixture) must(args string, want ...string) string {
	h.t.Helper()
	got, err := h.call(args)
	if err != nil {
		h.t.Fatalf("%s: %v", args, err)
	}
	for _, w := range want {
		if !strings.Contains(got, w) {
			h.t.Errorf("%s: %q, want %q", args, got, w)
		}
	}
	return got
}

// jobs returns the jobs of the scheduler.
func (h *fixture) jobs() []job.Job {
	h.t.Helper()
	list, err := h.s.List(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

// begin stores the run that the calls belong to, with the chat that its answer goes to.
func (h *fixture) begin(a chela.Address) {
	h.t.Helper()
	err := h.store.Update(h.t.Context(), store.Synced, func(tx store.Tx) error {
		return tx.Runs().Put(run.Run{ID: "run-1", Session: "agent:main:telegram:direct:7", Address: a, Started: time.Now()})
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestSuite(t *testing.T) {
	h := open(t)
	tooltest.Run(t, h.Tool, tooltest.Options{Args: []string{
		`{"action":"list"}`, `{"action":"status"}`,
		`{"action":"add","schedule":"in 20 minutes","text":"call Ann"}`,
		`{"action":"add","schedule":{"kind":"cron","expr":"0 9 * * *"},"job":{"message":"report","name":"report"}}`,
	}})
}

func TestSize(t *testing.T) {
	t.Parallel()
	s := open(t).Spec()
	if n := len(s.Description) + len(s.Schema); n > 1300 {
		t.Errorf("the model is sent %d bytes of this tool in every prompt, want at most 1300", n)
	}
	if !s.OwnerOnly || !s.Keyed {
		t.Errorf("%+v", s)
	}
}

func TestOwner(t *testing.T) {
	t.Parallel()
	set := tool.NewSet(open(t).Tool)
	child := policy.NewCatalog(set).Pipeline(policy.Config{}, policy.Config{}, "",
		policy.Conversation{Depth: 1, MaxDepth: 2})
	for _, tt := range []struct {
		name string
		p    policy.Pipeline
		who  chela.Principal
		want bool
	}{
		{"CR-26 the owner may schedule", nil, chela.Owner("channel"), true},
		{"CR-26 others may not", nil,
			chela.Principal{ID: "telegram:bot:9", Credential: "channel", Scopes: []chela.Scope{chela.ScopeWrite}}, false},
		{"CR-26 nobody may not", nil, chela.Principal{}, false},
		{"CR-26 a subagent of the owner may not", child, chela.Owner("channel"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _ := invoke.Allowed(set, tt.p, tt.who)
			if _, ok := got.Get("cron"); ok != tt.want {
				t.Errorf("the tool is there: %v, want %v", ok, tt.want)
			}
		})
	}
}

func TestChat(t *testing.T) {
	t.Parallel()
	h := open(t)
	chat := chela.Address{Channel: "telegram", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "7"}, Thread: "3"}
	h.begin(chat)
	t.Run("CR-41 a reminder belongs to its chat", func(t *testing.T) {
		h.must(`{"action":"add","schedule":"in 20 minutes","text":"call Ann"}`, `"call Ann"`, "+09:00", "main session")
		j := h.jobs()[0]
		if j.Session != "agent:main:telegram:direct:7" || j.Agent != "main" || j.Address != chat || !j.Principal.IsOwner() ||
			j.Target != job.TargetMain || j.Payload.Text != "call Ann" || !j.OneShot() {
			t.Errorf("%+v", j)
		}
		h.must(`{"action":"list"}`, string(j.ID), `"call Ann"`, "+09:00")
		h.must(`{"action":"remove","id":"call ann"}`, "Removed "+string(j.ID))
		h.must(`{"action":"list"}`, "There are no jobs.")
	})
	t.Run("the answers of a turn go to the chat", func(t *testing.T) {
		h.must(`{"action":"add","schedule":"0 9 * * MON-FRI","message":"report"}`, "goes to: telegram")
		j := h.jobs()[0]
		if d := j.Delivery; d == nil || *d != (job.Delivery{
			Mode:    job.Announce,
			Channel: "telegram",
			To:      "7",
			Account: "bot",
			Thread:  "3",
		}) || j.Schedule.TZ != "Asia/Tokyo" || !j.Isolated() {
			t.Errorf("%+v, %+v", j, j.Delivery)
		}
	})
	t.Run("but for one that says where", func(t *testing.T) {
		h.must(`{"action":"add","schedule":"every 1h","job":{"message":"m","channel":"slack","to":"C1","name":"to slack"}}`,
			"goes to: slack")
		h.must(`{"action":"add","schedule":"every 1h","job":"{\"message\":\"m\",\"channel\":\"last\",\"name\":\"to last\"}"}`,
			"goes to: last")
		h.must(`{"action":"add","schedule":"every 1h","deliver":false,"message":"m","name":"silent"}`, "goes to: none")
	})
}

func TestAdd(t *testing.T) {
	t.Parallel()
	t.Run("CR-23 flat and nested forms give one job", func(t *testing.T) {
		t.Parallel()
		h := open(t)
		for _, args := range []string{
			`{"action":"add","name":"n","schedule":"every 5m","message":"water"}`,
			`{"action":"add","job":{"name":"n","schedule":{"kind":"every","everyMs":300000},"payload":{"kind":"agentTurn","message":"water"}}}`,
			`{"action":"add","job":"{\"name\":\"n\",\"every\":\"5m\",\"prompt\":\"water\"}"}`,
			`{"action":"add","name":"n","every_seconds":300,"message":"water"}`,
			`{"action":"add","name":"n","schedule":{"every_ms":"300000"},"payload":{"message":"water"}}`,
			`{"action":"add","name":"n","job":{"schedule":"every 5 minutes","sessionTarget":"isolated"},"payload":"water"}`,
		} {
			h.must(args, "every 5m")
		}
		first := h.jobs()[0]
		for _, j := range h.jobs() {
			j.ID, j.Created, j.Updated, j.State = first.ID, first.Created, first.Updated, first.State
			if j.Revision() != first.Revision() {
				t.Errorf("%+v, want %+v", j, first)
			}
		}
	})
	t.Run("a repeated call adds no second job", func(t *testing.T) {
		t.Parallel()
		h := open(t)
		c := tool.Call{ID: "again", Args: json.RawMessage(`{"action":"add","schedule":"in 20m","text":"call Ann"}`),
			Agent: "main", Session: "agent:main:main"}
		first, err := h.callAs(c)
		if err != nil {
			t.Fatal(err)
		}
		second, err := h.callAs(c)
		if err != nil || first != second || len(h.jobs()) != 1 {
			t.Errorf("%q, then %q, %v: %d jobs", first, second, err, len(h.jobs()))
		}
	})
	for _, tt := range []struct{ name, args, want string }{
		{"CR-31 words", `{"action":"add","schedule":"every day at nine","text":"x"}`,
			`"every day at nine" is not an interval; want a time like`},
		{"CR-31 a minute out of range", `{"action":"add","schedule":"61 * * * *","text":"x"}`,
			`minute "61" is not in the range 0 to 59`},
		{"CR-31 four fields", `{"action":"add","schedule":"0 9 * *","text":"x"}`, "does not have 5, 6 or 7 fields"},
		{"CR-31 eight fields", `{"action":"add","schedule":{"cron":"0 0 9 * * * * *"},"text":"x"}`,
			"does not have 5, 6 or 7 fields"},
		{"CR-36 a turn in the main session",
			`{"action":"add","job":{"every":"5m","sessionTarget":"main","payload":{"kind":"agentTurn","message":"x"}}}`,
			`payload {"kind":"systemEvent","text":"..."}`},
		{"CR-36 an event elsewhere",
			`{"action":"add","job":{"every":"5m","sessionTarget":"isolated","payload":{"kind":"systemEvent","text":"x"}}}`,
			`payload {"kind":"agentTurn","message":"..."}`},
		{"another agent", `{"action":"add","schedule":"every 5m","text":"x","agentId":"ops"}`,
			"agentId ops: a job can be added for the agent main only"},
		{"a session of another agent", `{"action":"add","schedule":"every 5m","text":"x","sessionKey":"agent:ops:main"}`,
			"belongs to another agent"},
		{"a principal", `{"action":"add","schedule":"every 5m","text":"x","principal":{"id":"owner"}}`,
			`unknown field "principal"`},
		{"an unknown action", `{"action":"wake"}`, `action "wake": want status`},
		{"no id", `{"action":"remove"}`, "id is required"},
		{"a job that does not exist", `{"action":"runs","id":"nothing"}`, "action list shows the jobs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			if got, err := h.call(tt.args); err == nil || !strings.Contains(err.Error(), tt.want) || len(h.jobs()) != 0 {
				t.Errorf("%s: %q, %v, want %s", tt.args, got, err, tt.want)
			}
		})
	}
}

func TestChange(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.must(`{"action":"add","schedule":"0 9 * * *","message":"report","name":"morning report"}`)
	id := string(h.jobs()[0].ID)
	h.must(`{"action":"update","id":"`+id[:8]+`","schedule":"0 8 * * *"}`, "Changed "+id, "0 8 * * *")
	if s := h.jobs()[0].Schedule; s.Expr != "0 8 * * *" || s.TZ != "Asia/Tokyo" {
		t.Errorf("%+v", s)
	}
	h.must(`{"action":"update","id":"morning report","enabled":false}`, "it is off")
	h.must(`{"action":"update","jobId":"`+id+`","patch":{"description":"d"}}`, "Changed")
	h.must(`{"action":"update","job":{"jobId":"`+id+`","message":"short report"}}`, "Changed")
	if p := h.jobs()[0].Payload; p.Message != "short report" {
		t.Errorf("%+v", p)
	}
	h.must(`{"action":"get","id":"`+id+`"}`, `"message":"short report"`, "next: never")
	if got := h.must(`{"action":"get","id":"` + id + `"}`); strings.Contains(got, "principal") ||
		strings.Contains(got, "operator") {
		t.Errorf("private fields: %s", got)
	}
	h.must(`{"action":"runs","id":"`+id+`"}`, "has not run yet")
	h.must(`{"action":"run","id":"`+id+`"}`, "Started")
	h.must(`{"action":"runs","id":"`+id+`"}`, "ok after", "delivered", "done: short report")
	h.must(`{"action":"list"}`, "last ok", "never: it is off")
	h.must(`{"action":"status"}`, "1 job")
	for args, want := range map[string]string{
		`{"action":"update","id":"` + id + `"}`:                          "say what changes",
		`{"action":"update","id":"` + id + `","agentId":"ops"}`:          "cannot be changed",
		`{"action":"update","id":"` + id + `","schedule":"61 * * * *"}`:  `minute "61"`,
		`{"action":"update","id":"` + id + `","job":{"id":"something"}}`: "is not the id of this job",
	} {
		if got, err := h.call(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v, want %s", args, got, err, want)
		}
	}
	if _, err := h.callAs(tool.Call{ID: "other", Args: json.RawMessage(`{"action":"remove","id":"` + id + `"}`),
		Agent: "ops"}); err == nil || len(h.jobs()) != 1 {
		t.Errorf("another agent removed the job: %v", err)
	}
	h.s.Off = true
	h.must(`{"action":"status"}`, "off (cron.enabled)")
}
