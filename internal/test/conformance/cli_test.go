//go:build conformance

package conformance

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/wire"
)

// command is a command line and its expected result.
type command struct {
	args  []string
	fails bool     // expect exit code 1
	shows []string // texts that the output must contain
}

func typed(line string, shows ...string) command {
	return command{args: strings.Fields(line), shows: shows}
}

// refused returns a command for a method that this gateway lacks. The person
// gets the error.
func refused(line, method string) command {
	return command{args: strings.Fields(line), fails: true, shows: []string{"unknown method: " + method}}
}

// TestCommandLine runs OpenClaw's command line against our gateway, as from
// this machine and as from another one.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	s := newGateway(t, nil)
	s.Chela("agent", "-m", "echo before")
	for name, conf := range map[string]section{"local": s.localConfig(), "remote": s.remoteConfig()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t, current(), conf)
			for _, c := range append(commonCommands(), special(name)...) {
				t.Run(strings.Join(c.args, " "), func(t *testing.T) { p.t = t; p.try(c) })
			}
		})
	}
	t.Run("approvals", func(t *testing.T) {
		t.Parallel()
		decide(t)
	})
	t.Run("devices", func(t *testing.T) {
		t.Parallel()
		approve(t)
	})
	t.Run("skills workshop apply", func(t *testing.T) {
		t.Parallel()
		applySkill(t)
	})
	t.Run("logs --follow", func(t *testing.T) {
		t.Parallel()
		follow(t, s)
	})
}

// commonCommands contains the commands that work alike from everywhere.
func commonCommands() []command {
	return []command{
		typed("gateway call health", `"ok": true`, `"defaultAgentId": "main"`),
		typed(`gateway call chat.history --params {"sessionKey":"main"}`, `"before"`),
		typed("gateway health", "OK"),
		typed("gateway probe", "Reachable: yes", "Connect: ok"),
		typed("gateway usage-cost", "Usage cost", "tokens"),
		typed("health", "Agents: main (default)", "agent:main:main"),
		typed("status", "· reachable"),
		typed("channels status", "Gateway reachable."),
		typed("logs --limit 50", "gateway listens url=ws://127.0.0.1:"),
		typed("nodes status", "Known: 0"),
		typed("nodes list", "Pending: 0"),
		typed("nodes pending", "No pending"),
		typed("approvals get --gateway", "security=full", "ask=off"), // from the configuration: there is no document
		typed("system presence", `"mode": "gateway"`, `"mode": "cli"`),
		typed("agent --agent main -m hello", greeting),
		refused("gateway call no.such.method", "no.such.method"),
		typed("system event --text rain --mode now --json", `"ok": true`),
		typed("cron add --name tea --every 1d --message hello --no-deliver --json", `"name": "tea"`, `"everyMs": 86400000`),
		typed("cron list", "tea", "every 1d"),
		typed("cron status --json", `"enabled": true`, `"jobs":`),
		typed("system heartbeat last"),
		refused("secrets reload", "secrets.reload"),
		refused("audit", "audit.list"),
	}
}

// special contains the commands that only query the gateway from this place: on
// the same machine, status checks the port; from elsewhere, lists do not
// contain those of the person's own machine.
func special(where string) []command {
	if where == "local" {
		return []command{typed("gateway status", "Connectivity probe: ok"), typed("status --json", `"reachable": true`)}
	}
	return []command{
		typed("models list", "mock/m"),
		typed("skills list", "summarize"),
		typed("skills info weather", "weather"),
		typed("skills check", "Eligible"),
		{args: strings.Fields("message send --channel telegram --target 1 --message hi"), fails: true,
			shows: []string{"no channels are configured"}},
	}
}

// try runs a command and checks its output.
func (p *person) try(c command) {
	p.t.Helper()
	a := p.Run(c.args...)
	code := 0
	if c.fails {
		code = 1
	}
	if a.Code != code {
		p.t.Errorf("exit code %d, want %d", a.Code, code)
	}
	all := a.Out + a.Err
	for _, want := range c.shows {
		if !strings.Contains(all, want) {
			p.t.Errorf("the output does not contain %q", want)
		}
	}
	if p.t.Failed() {
		p.t.Logf("%.4000s", all)
	}
}

// decide allows a pending command.
func decide(t *testing.T) {
	s := newGateway(t, section{"tools": section{"exec": section{"mode": "ask"}}})
	l := s.operator(t)
	l.Must("chat.send", wire.ChatSend{SessionKey: "main", Message: "run echo allowed > made.txt", IdempotencyKey: "asks"},
		nil)
	var asks wire.Approval
	if err := json.Unmarshal(l.Event(wire.EventApprovalRequested, 0).Payload, &asks); err != nil {
		t.Fatal(err)
	}
	p := newPerson(t, current(), s.remoteConfig())
	p.try(typed("approvals pending", "made.txt", "agent:main:main"))
	p.try(typed("approvals resolve "+asks.ID+" allow-once", "resolved allow-once"))
	if end := l.Ended("asks"); end.State != wire.StateFinal {
		t.Errorf("the run ended as %s: %s", end.State, end.ErrorMessage)
	}
	if b, err := os.ReadFile(filepath.Join(s.Work, "made.txt")); err != nil || string(b) != "allowed\n" {
		t.Errorf("the allowed command wrote %q, %v", b, err)
	}
	p.try(typed("approvals resolve "+asks.ID+" allow-once", "already resolved"))
}

// approve pairs a device as a node and approves its commands.
func approve(t *testing.T) {
	s, d := newGateway(t, nil), newDevice(t)
	if _, f := d.Connect(t, s, hello(wire.ScopeRead)); !f.OK {
		t.Fatalf("a device of this machine: %v", f.Error)
	}
	if _, f := d.Connect(t, s, asNode()); f.OK {
		t.Fatal("the device became a node without approval")
	}
	p := newPerson(t, current(), s.remoteConfig())
	p.try(typed("devices list", "Pending", "Paired"))
	latest := typed("devices approve --latest", d.ID, "Approve this exact request with")
	latest.fails = true
	p.try(latest)
	var pairs wire.DevicePairs
	s.operator(t).Must("device.pair.list", wire.None{}, &pairs)
	if len(pairs.Pending) == 0 {
		t.Fatal("--latest approved a device without showing it")
	}
	p.try(typed("devices approve "+pairs.Pending[0].ID, "Approved"))
	if _, f := d.Connect(t, s, asNode()); !f.OK {
		t.Errorf("an approved node: %v", f.Error)
	}
	p.try(typed("nodes list", "Pending: 1", "Paired: 1"))
	var nodes wire.NodePairs
	s.operator(t).Must("node.pair.list", wire.None{}, &nodes)
	if len(nodes.Pending) != 1 {
		t.Fatalf("%+v", nodes)
	}
	p.try(typed("nodes approve "+nodes.Pending[0].ID, d.ID))
	p.try(typed("nodes status", "Known: 1 · Paired: 1 · Connected: 1"))
	p.try(typed("nodes describe --node "+d.ID, "camera.snap"))
}

// applySkill applies a proposal of a skill.
func applySkill(t *testing.T) {
	s := newGateway(t, nil)
	var made wire.ProposalContent
	s.operator(t).Must(wire.MethodProposalsCreate,
		wire.ProposalCreate{Name: "brew", Description: "Make tea.", Content: "Boil water."}, &made)
	p := newPerson(t, current(), s.remoteConfig())
	p.try(typed("skills workshop apply "+made.Record.ID, "brew"))
	if _, err := os.Stat(filepath.Join(s.Work, "skills", "brew", "SKILL.md")); err != nil {
		t.Error(err)
	}
	again := typed("skills workshop apply "+made.Record.ID, "is applied")
	again.fails = true
	p.try(again)
}

// follow waits until a line of the log appears.
func follow(t *testing.T, s *gateway) {
	p := newPerson(t, current(), s.remoteConfig())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var out output
	cmd := p.command(ctx, "logs", "--follow", "--interval", "200")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := out.Await(ctx, "gateway listens"); err != nil {
		t.Error(err)
	}
	s.Chela("agent", "-m", "run true")
	if err := out.Await(ctx, `tool=exec`); err != nil {
		t.Error(err)
	}
	cancel()
	_ = cmd.Wait() // it was killed
}

// TestOlder runs a client of protocol 3 against our gateway.
func TestOlder(t *testing.T) {
	t.Parallel()
	s := newGateway(t, nil)
	p := newPerson(t, older(), s.localConfig())
	for _, c := range []command{
		typed("health", "Agents: main (default)"),
		typed("status", s.URL(), "· reachable "),
		typed("gateway call health", `"ok": true`),
		typed("agent --agent main -m hello", greeting),
		typed("devices list", "Paired"),
		typed("logs --limit 5", "gateway listens url=ws://127.0.0.1:"),
		refused("gateway call no.such.method", "no.such.method"),
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) { p.t = t; p.try(c) })
	}
}
