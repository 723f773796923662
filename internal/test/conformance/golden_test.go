//go:build conformance

package conformance

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/plugin/channel/telegram/telegramtest"
	"github.com/chela-ai/chela/internal/plugin/tool/mcp/oauth/oauthtest"
	"github.com/chela-ai/chela/wire"
)

// golden is a gateway with data of every kind, and a connection that saw it
// being created.
type golden struct {
	*gateway
	*line
	other    *line // another connection, subscribed to all sessions
	t        testing.TB
	approval string // id of a pending approval
	second   string // id of another one
	pending  []wire.PairRequest
	nodes    []wire.NodeRequest
	links    []*line // connections of the nodes
	message  string  // id of a message in the session talked
	config   wire.ConfigSnapshot
	paired   string // id of a device, also of its last request
	device   *line  // id of another device
	widened  string // id of its request for more scopes, which was approved
	change   string // id of the change of tide.txt
	undo     string // hash of the plan that undoes the last message
	proposed map[string]wire.ProposalContent
	agreed   string // address to which the browser of a person goes who logs in at the MCP server vault
}

const (
	talked  = "agent:main:main"
	aside   = "agent:main:aside"
	waiting = "agent:main:waiting"
)

// notes is a file in the workspace.
const notes = "the tide turns at six\n"

// weatherServer is an MCP server with one tool.
const weatherServer = `while IFS= read -r line; do
	id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
	case $line in
	*'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"weather","version":"1"}}' ;;
	*'"tools/list"'*) result='{"tools":[{"name":"now","inputSchema":{"type":"object"}}]}' ;;
	*) result='{}' ;;
	esac
	[ -z "$id" ] || printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`

// newGolden has a gateway handle a text, a tool call, an abort, an error, an
// approval, a reset, a patch and pairings.
func newGolden(t testing.TB) *golden {
	t.Helper()
	platform := telegramtest.New()
	t.Cleanup(platform.Close)
	platform.Chat(7, "private")
	root, _ := platform.Listen()
	vault := oauthtest.New(t, http.NotFoundHandler(), oauthtest.Behaviour{Life: time.Hour})
	s := newGateway(t, section{
		"mcp":      section{"servers": section{"vault": section{"url": vault.URL(), "transport": "streamable-http"}}},
		"channels": section{"telegram": section{"botToken": telegramtest.Token, "apiRoot": root, "allowFrom": []string{"7"}}},
		"tools":    section{"exec": section{"mode": "ask"}},
		"gateway":  section{"nodes": section{"commands": section{"allow": []string{"camera.snap"}}}},
		"tts": section{
			"providers": section{"whisperer": section{"command": "printf", "args": []string{"OggS %s", "{{Text}}"}}}},
		"skills":  section{"registry": section{"url": registry(t)}},
		"plugins": section{"entries": section{"weather": section{"sandbox": false}}}, // a machine may have none
	})
	s.File("notes.txt", notes)
	s.File("MEMORY.md", "Ann likes green tea.\n")
	for _, dir := range []string{"greeter", "weather"} {
		if err := os.Mkdir(filepath.Join(s.Work, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.File("weather/chela.plugin.json", `{"id": "weather", "configSchema": {}, "contracts": {"tools": ["now"]}, "process": {"command": "sh", "args": ["./server.sh"]}}`)
	s.File("weather/server.sh", weatherServer)
	s.File("greeter/HOOK.md", "---\nname: greeter\nmetadata: {openclaw: {events: [gateway:startup]}}\n---\n")
	s.File("greeter/handler.sh", "exit 0\n")
	g := &golden{gateway: s, line: s.operator(t), t: t}
	p := hello(wire.ScopeAdmin)
	p.Catalog = json.RawMessage(`{"sessionKey":"main"}`)
	g.other = s.connect(t, p)
	g.Must("sessions.subscribe", wire.None{}, nil)
	g.other.Must("sessions.subscribe", wire.None{}, nil)
	g.chat(talked, "text", "count", wire.StateFinal)
	g.chat(talked, "tool", "read notes.txt", wire.StateFinal)
	g.chat(talked, "command", "/status", wire.StateFinal)
	g.chat(aside, "failed", "fail", wire.StateError)
	g.aborted()
	g.asked()
	g.Must("sessions.patch", map[string]any{"key": aside, "label": "Aside"}, nil)
	g.Must("sessions.reset", map[string]any{"key": aside}, nil)
	g.devices()
	g.widen()
	g.changes()
	g.proposals()
	var login wire.MCPLoginStarted
	g.Must(wire.MethodMCPLoginStart, wire.MCPLoginStart{Name: "vault", Redirect: "http://127.0.0.1:1/callback"}, &login)
	g.agreed = vault.Agree(login.URL)
	var h wire.History
	g.Must("chat.history", wire.ChatHistory{SessionKey: talked}, &h)
	g.message = h.Messages[0].Meta.ID
	g.Must(wire.MethodConfigGet, wire.None{}, &g.config)
	return g
}

// registry serves a registry with the skill tea. It returns its address.
func registry(t testing.TB) string {
	t.Helper()
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	w, err := z.Create("tea/SKILL.md")
	if err == nil {
		_, err = w.Write([]byte("---\nname: tea\ndescription: Make tea.\n---\nBoil water.\n"))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	detail := map[string]any{
		"slug": "tea", "name": "Tea", "description": "makes tea", "version": "1.0",
		"versions": []any{map[string]any{
			"version": "1.0", "sha256": fmt.Sprintf("%x", sha256.Sum256(archive.Bytes())), "url": "files/tea.zip",
			"createdAt": "2026-01-02T03:04:05Z", "changelog": "It brews.",
		}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/skills":
			_ = json.NewEncoder(w).Encode(map[string]any{"skills": []any{detail}})
		case "/v1/skills/tea":
			_ = json.NewEncoder(w).Encode(detail)
		case "/files/tea.zip":
			_, _ = w.Write(archive.Bytes())
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// changes has the model change files.
func (g *golden) changes() {
	g.t.Helper()
	g.chat(talked, "tide", "write tide.txt", wire.StateFinal)
	g.chat(talked, "moon", "write moon.txt", wire.StateFinal)
	var log wire.WorkspaceChanges
	g.Must(wire.MethodWorkspaceLog, wire.WorkspaceLog{Path: "tide.txt"}, &log)
	g.change = log.Changes[0].ID
	var plan wire.UndoPlanned
	g.Must(wire.MethodUndoPlan, wire.UndoPlan{SessionKey: talked, Turns: 1}, &plan)
	g.undo = plan.Hash
}

// proposals makes a proposal for each method that changes one. Those of update and rollback
// are applied.
func (g *golden) proposals() {
	g.t.Helper()
	g.proposed = map[string]wire.ProposalContent{}
	for _, name := range []string{"revise", "apply", "reject", "quarantine", "rollback", "update"} {
		var p wire.ProposalContent
		g.Must(wire.MethodProposalsCreate, wire.ProposalCreate{
			Name:        name,
			Description: "Make tea.",
			Content:     "Boil water.",
			Files:       []wire.SkillFile{{Path: "references/sorts.md", Content: "Oolong\n"}},
			Goal:        "tea",
		}, &p)
		g.proposed[name] = p
		if name == "rollback" || name == "update" {
			g.Must(wire.MethodProposalsApply, wire.ProposalDecision{ID: p.Record.ID, Hash: p.Hash}, nil)
		}
	}
}

func (g *golden) chat(session, run, text, state string) {
	g.t.Helper()
	g.Must("chat.send", wire.ChatSend{SessionKey: session, Message: text, IdempotencyKey: run}, nil)
	if end := g.Ended(run); end.State != state {
		g.t.Fatalf("%q ended as %s: %s", text, end.State, end.ErrorMessage)
	}
}

// aborted aborts a run in the middle of its answer.
func (g *golden) aborted() {
	g.t.Helper()
	g.Must("chat.send", wire.ChatSend{SessionKey: aside, Message: "wait", IdempotencyKey: "aborted"}, nil)
	g.Await("a delta of the run to abort", 0, func(f frame) bool {
		var c wire.Chat
		return f.Event == wire.EventChat && json.Unmarshal(f.Payload, &c) == nil && c.RunID == "aborted" &&
			c.State == wire.StateDelta
	})
	g.Must("chat.abort", wire.ChatAbort{SessionKey: aside, RunID: "aborted"}, nil)
	if end := g.Ended("aborted"); end.State != wire.StateAborted {
		g.t.Fatalf("an aborted run ended as %s", end.State)
	}
}

// asked creates an approval that is decided, and two that stay pending.
func (g *golden) asked() {
	g.t.Helper()
	for _, run := range []string{"allowed", "second", "open"} {
		n, session := len(g.Frames()), waiting
		if run == "second" {
			session = "agent:main:second"
		}
		g.Must("chat.send", wire.ChatSend{SessionKey: session, Message: "run touch " + run, IdempotencyKey: run}, nil)
		var asks struct{ ID string }
		if err := json.Unmarshal(g.Event(wire.EventApprovalRequested, n).Payload, &asks); err != nil {
			g.t.Fatal(err)
		}
		g.second, g.approval = g.approval, asks.ID
		if run == "allowed" {
			g.Must("exec.approval.resolve", map[string]any{"id": asks.ID, "decision": "allow-once"}, nil)
			g.Ended(run)
		}
	}
}

// devices pairs devices of this machine, which need no approval, and has them
// request the role of a node, which needs one.
func (g *golden) devices() {
	g.t.Helper()
	person, node := hello(wire.ScopeRead), asNode()
	for range 5 {
		d, n := newDevice(g.t), len(g.Frames())
		if _, f := d.Connect(g.t, g.gateway, person); !f.OK {
			g.t.Fatalf("a device of this machine: %v", f.Error)
		}
		if _, f := d.Connect(g.t, g.gateway, node); f.OK || f.Error.Code != wire.NotPaired {
			g.t.Fatalf("a new role: %s", f.raw)
		}
		var q wire.PairRequest
		if err := json.Unmarshal(g.Event(wire.EventPairRequested, n).Payload, &q); err != nil {
			g.t.Fatal(err)
		}
		if len(g.pending) == 3 {
			g.node(d, q)
			continue
		}
		g.pending = append(g.pending, q)
		g.paired = d.ID
	}
}

// widen has a device request more scopes and get them.
func (g *golden) widen() {
	g.t.Helper()
	l, f := newDevice(g.t).Connect(g.t, g.gateway, hello(wire.ScopeRead))
	if !f.OK {
		g.t.Fatalf("a device of this machine: %v", f.Error)
	}
	var q wire.DeviceRequestID
	l.Must("device.scopes.requestUpgrade", wire.DeviceUpgrade{Scopes: []string{wire.ScopeRead, wire.ScopeWrite}}, &q)
	g.Must("device.pair.approve", q, nil)
	g.device, g.widened = l, q.ID
}

// node pairs a device as a node, which then requests its commands.
func (g *golden) node(d device, q wire.PairRequest) {
	g.t.Helper()
	g.Must("device.pair.approve", wire.DeviceRequestID{ID: q.ID}, nil)
	n := len(g.Frames())
	l, f := d.Connect(g.t, g.gateway, asNode())
	if !f.OK {
		g.t.Fatalf("an approved node: %v", f.Error)
	}
	var r wire.NodeRequest
	if err := json.Unmarshal(g.Event(wire.EventNodePairRequested, n).Payload, &r); err != nil {
		g.t.Fatal(err)
	}
	g.nodes, g.links = append(g.nodes, r), append(g.links, l)
}
