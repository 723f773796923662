package wireview_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

func at(ms int64) time.Time { return time.UnixMilli(ms) }

// fullMeta is a session of which every field has a value of its own.
var fullMeta = session.Meta{
	Key:      "agent:main:main",
	ID:       "t1",
	Agent:    "main",
	Label:    "label",
	Title:    "title",
	Created:  at(1),
	Started:  at(2),
	Updated:  at(3),
	Active:   at(4),
	Answered: at(5),
	Address:  chela.Address{Channel: "telegram", Account: "work", Peer: chela.Peer{Kind: chela.Direct, ID: "p"}},
	Category: "category",
	Icon:     "icon",
	Color:    "color",
	Pinned:   at(6),
	Archived: at(7),
	Read:     at(8),
	Unread:   at(9),
	Model:    "mock/m1",
	Think:    "high",
	Verbose:  "full",
	Usage:    "tokens",
	Queue:    queue.Prefs{Mode: "collect"},
	Tokens:   llm.Usage{Input: 11, Output: 12, CacheRead: 13, CacheWrite: 14},
	Context:  15,
	NanoUSD:  16e9,
	Priced:   true,
	Aborted:  true,
}

// TestFullRow checks that each field of a session's row is that of the session.
func TestFullRow(t *testing.T) {
	t.Parallel()
	model := wire.SessionModel{
		Provider:      "mock",
		Model:         "m1",
		ContextWindow: 1000,
		Levels:        []wire.Level{{ID: "low"}},
		Options:       []string{"low"},
		Default:       "off",
	}
	rows := wireview.Rows{Model: func(session.Meta) wire.SessionModel { return model }}
	cost := 16.0
	want := wire.Session{
		Key:           "agent:main:main",
		Kind:          "direct",
		ChatType:      "direct",
		Class:         "main",
		AgentID:       "main",
		SessionID:     "t1",
		Label:         "label",
		DisplayName:   "label",
		Title:         "title",
		Channel:       "telegram",
		AccountID:     "work",
		Delivery:      &wire.DeliveryContext{Channel: "telegram", To: "direct:p", AccountID: "work"},
		Category:      "category",
		Icon:          "icon",
		Color:         "color",
		Main:          true,
		CreatedAt:     1,
		SinceAt:       2,
		UpdatedAt:     3,
		ActiveAt:      4,
		AnsweredAt:    5,
		Pinned:        true,
		PinnedAt:      6,
		Archived:      true,
		ArchivedAt:    7,
		ReadAt:        8,
		Unread:        true,
		UnreadAt:      9,
		Provider:      "mock",
		Model:         "m1",
		Override:      "user",
		ContextWindow: 1000,
		Levels:        model.Levels,
		Options:       model.Options,
		Default:       "off",
		Thinking:      "high",
		Verbose:       "full",
		UsageLine:     "tokens",

		QueueMode:    "collect",
		SendPolicy:   "allow",
		InputTokens:  11,
		OutputTokens: 12,
		CacheRead:    13,
		CacheWrite:   14,
		TotalTokens:  15,
		TotalFresh:   true,
		Cost:         &cost,
		Active:       true,
		Runs:         []string{"r1", "r2"},
		Status:       "running",
		Waiting:      true,
		StartedAt:    22,
		Aborted:      true,
		Queued:       17,
	}
	active := []run.Run{{ID: "s", State: run.Suspended, Started: at(20)}, {ID: "r1", State: run.Running, Started: at(21)},
		{ID: "r2", State: run.Running, Started: at(22)}}
	if diff := cmp.Diff(want, rows.Row(fullMeta, active, 17)); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	entry := wire.SessionEntry{
		SessionID: "t1", Label: "label", Category: "category", Icon: "icon", Color: "color",
		Model: "mock/m1", Thinking: "high", Verbose: "full", UsageLine: "tokens", QueueMode: "collect",
		CreatedAt: 1, SinceAt: 2, UpdatedAt: 3, PinnedAt: 6, ArchivedAt: 7, ReadAt: 8, UnreadAt: 9,
	}
	if diff := cmp.Diff(entry, wireview.Entry(fullMeta)); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
}

// TestRowOf checks what a row says about kinds of sessions, and about reading.
func TestRowOf(t *testing.T) {
	t.Parallel()
	rows := wireview.Rows{Model: func(session.Meta) wire.SessionModel { return wire.SessionModel{} }}
	type said struct {
		Kind, Agent, Class           string
		Main, Background, Unread     bool
		Priced, Pinned, Archived, On bool
	}
	room := chela.Address{Peer: chela.Peer{Kind: chela.Room}}
	for _, tt := range []struct {
		meta session.Meta
		want said
	}{
		{session.Meta{Key: "agent:ops:main"}, said{Kind: "direct", Agent: "ops", Class: "main", Main: true}},
		{session.Meta{Key: "agent:main:other", Agent: "second"}, said{Kind: "direct", Agent: "second"}},
		{session.Meta{Key: "agent:main:telegram:group:1"}, said{Kind: "group", Agent: "main"}},
		{session.Meta{Key: "agent:main:x", Address: room}, said{Kind: "group", Agent: "main"}},
		{session.Meta{Key: "agent:main:x", Address: chela.Address{Peer: chela.Peer{Kind: chela.Group}}},
			said{Kind: "group", Agent: "main"}},
		{session.Meta{Key: "agent:main:main:subagent:1"}, said{Kind: "direct", Agent: "main", Background: true}},
		{session.Meta{Key: "agent:main:cron:1"}, said{Kind: "direct", Agent: "main", Background: true}},
		{session.Meta{Key: "agent:main:hook:1"}, said{Kind: "direct", Agent: "main", Background: true}},
		{session.Meta{Key: "agent:main:x", Answered: at(2), Read: at(1)}, said{Kind: "direct", Agent: "main", Unread: true}},
		{session.Meta{Key: "agent:main:x", Answered: at(2), Read: at(2)}, said{Kind: "direct", Agent: "main"}},
		{session.Meta{Key: "agent:main:x", Answered: at(1), Read: at(2), Unread: at(1)},
			said{Kind: "direct", Agent: "main", Unread: true}},
		{session.Meta{Key: "agent:main:x", NanoUSD: 5}, said{Kind: "direct", Agent: "main"}},
	} {
		r := rows.Row(tt.meta, nil, 0)
		got := said{r.Kind, r.AgentID, r.Class, r.Main, r.Background, r.Unread, r.Cost != nil, r.Pinned, r.Archived,
			r.Active || r.Override != "" || r.TotalFresh}
		if got != tt.want {
			t.Errorf("%+v: %+v, want %+v", tt.meta, got, tt.want)
		}
	}
}

// TestNode checks the states of a node, and that only what is approved is shown of
// a connected one.
func TestNode(t *testing.T) {
	t.Parallel()
	now := at(1e12)
	surface := func(names ...string) pairing.Surface { return pairing.Surface{Caps: names, Commands: names} }
	waiting := &pairing.NodeRequest{ID: "q", Surface: surface("a", "b"), Time: now}
	old := &pairing.NodeRequest{ID: "q", Surface: surface("a", "b"), Time: now.Add(-pairing.Lifetime)}
	for _, tt := range []struct {
		name string
		node *pairing.Node
		want wire.Node
	}{
		{"never a node", nil, wire.Node{Approval: wire.NodeUnapproved}},
		{"not approved", &pairing.Node{Declared: surface("a")}, wire.Node{Approval: wire.NodeUnapproved}},
		{"a request has expired", &pairing.Node{Request: old}, wire.Node{Approval: wire.NodeUnapproved}},
		{"requested", &pairing.Node{Request: waiting}, wire.Node{Approval: wire.NodePending, Pending: "q"}},
		{"requested more", &pairing.Node{Since: at(5), Request: waiting},
			wire.Node{Approval: wire.NodeReapproval, Pending: "q"}},
		{"approved", &pairing.Node{Since: at(5), Request: old}, wire.Node{Approval: wire.NodeApproved}},
	} {
		got := wireview.Node(pairing.Device{Node: tt.node}, false, now)
		if got.Connected || got.LastSeen != "" {
			t.Errorf("%s: connected %v, last seen %q", tt.name, got.Connected, got.LastSeen)
		}
		if got.Approval != tt.want.Approval || got.Pending != tt.want.Pending {
			t.Errorf("%s: %s %q, want %s %q", tt.name, got.Approval, got.Pending, tt.want.Approval, tt.want.Pending)
		}
	}

	d := pairing.Device{
		ID:          "d",
		DisplayName: "name",
		Platform:    "platform",
		Family:      "family",
		ClientID:    "client",
		ClientMode:  "mode",
		LastSeen:    at(1),
		Node: &pairing.Node{
			Version:  "v",
			Declared: surface("a", "b"),
			Approved: surface("b", "c"),
			Since:    at(2),
			Created:  at(3),
		},
	}
	who := wire.NodeClient{
		ID:          "d",
		DisplayName: "name",
		Platform:    "platform",
		Family:      "family",
		ClientID:    "client",
		ClientMode:  "mode",
		Version:     "v",
	}
	want := wire.Node{
		NodeClient: who,
		Caps:       []string{"b"},
		Commands:   []string{"b"},
		Approval:   wire.NodeApproved,
		Paired:     true,
		Connected:  true,
		LastSeenAt: 1,
		LastSeen:   "connect",
		ApprovedAt: 2,
	}
	if diff := cmp.Diff(want, wireview.Node(d, true, now)); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
	d.Label, who.DisplayName = "label", "label"
	d.Node.Approved.Caps = []string{"x"}
	paired := wire.PairedNode{
		NodeClient: who,
		Caps:       []string{"x"},
		Commands:   []string{"b", "c"},
		CreatedAt:  3,
		ApprovedAt: 2,
		LastSeenAt: 1,
		LastSeen:   "connect",
	}
	if diff := cmp.Diff(paired, wireview.PairedNode(d)); diff != "" {
		t.Errorf("paired node (-want +got):\n%s", diff)
	}
	r := pairing.NodeRequest{ID: "q", Surface: pairing.Surface{Caps: []string{"x"}, Commands: []string{"y"}}, Time: at(9)}
	request := wire.NodeRequest{
		ID:         "q",
		NodeClient: who,
		Caps:       []string{"x"},
		Commands:   []string{"y"},
		Time:       9,
		Required:   []string{wire.ScopePairing, wire.ScopeWrite},
	}
	if diff := cmp.Diff(request, wireview.NodeRequest(d, r)); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// TestPairRequest checks that each field of a request is shown.
func TestPairRequest(t *testing.T) {
	t.Parallel()
	got := wireview.PairRequest(pairing.Request{
		ID:          "q",
		Device:      "d",
		PublicKey:   "key",
		DisplayName: "name",
		Platform:    "platform",
		Family:      "family",
		ClientID:    "client",
		ClientMode:  "mode",
		Role:        wire.RoleOperator,
		Scopes:      []chela.Scope{chela.ScopeRead, chela.ScopeWrite},
		Silent:      true,

		Repair: true,
		Time:   at(1),
	})
	want := wire.PairRequest{
		ID:          "q",
		Device:      "d",
		PublicKey:   "key",
		DisplayName: "name",
		Platform:    "platform",
		Family:      "family",
		ClientID:    "client",
		ClientMode:  "mode",
		Role:        wire.RoleOperator,
		Roles:       []string{wire.RoleOperator},
		Scopes:      []string{wire.ScopeRead, wire.ScopeWrite},

		Silent: true,
		Repair: true,
		Time:   1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestApprovalSnapshot checks what is said about an approval after each decision.
func TestApprovalSnapshot(t *testing.T) {
	t.Parallel()
	r := approval.Request{
		ID:      "a/1",
		Session: "agent:ops:main",
		Tool:    "exec",
		Text:    "rm x",
		Reason:  "it deletes",
		Created: at(1),
		Expires: at(2),
		Decided: at(3),
		By:      "ada",
		Via:     "channel",
	}
	shown := wire.ApprovalPresented{
		Kind:    wire.ApprovalExec,
		Command: "rm x",
		Warning: "it deletes",
		AgentID: "ops",
		Allowed: []string{wire.AllowOnce, wire.AllowAlways, wire.Deny},
	}
	by := func(kind, id string) *wire.ApprovalResolver { return &wire.ApprovalResolver{Kind: kind, ID: id} }
	for _, tt := range []struct {
		decision approval.Decision
		via      string
		want     wire.ApprovalSnapshot // what differs
	}{
		{approval.Pending, "channel", wire.ApprovalSnapshot{Status: wire.ApprovalPending, Session: "agent:ops:main"}},
		{approval.AllowOnce, "channel", wire.ApprovalSnapshot{Status: wire.ApprovalAllowed, Reason: "user",
			Decision: wire.AllowOnce, Resolver: by("channel", "ada")}},
		{approval.AllowAlways, "device:d1", wire.ApprovalSnapshot{Status: wire.ApprovalAllowed, Reason: "user",
			Decision: wire.AllowAlways, Resolver: by("device", "d1")}},
		{approval.AllowSession, "token", wire.ApprovalSnapshot{Status: wire.ApprovalAllowed, Reason: "user",
			Decision: wire.AllowAlways, Resolver: by("device", "ada"), Extent: wire.ExtentSession}},
		{approval.Revoked, "channel", wire.ApprovalSnapshot{Extent: wire.ExtentRevoked, Status: wire.ApprovalAllowed,
			Reason: "user", Decision: wire.AllowAlways, Resolver: by("channel", "ada")}},
		{approval.Deny, "channel", wire.ApprovalSnapshot{Status: wire.ApprovalDenied, Reason: "user", Decision: wire.Deny,
			Resolver: by("channel", "ada")}},
		{approval.Expired, "", wire.ApprovalSnapshot{Status: wire.ApprovalExpired, Reason: "timeout"}},
		{approval.Withdrawn, "", wire.ApprovalSnapshot{Status: wire.ApprovalCancelled, Reason: "run-aborted"}},
	} {
		r.Decision, r.Via = tt.decision, tt.via
		want := tt.want
		want.ID, want.Path, want.Created, want.Expires, want.Shown = "a/1", "/approve/a%2F1", 1, 2, shown
		if tt.decision != approval.Pending {
			want.Resolved, want.Source = 3, &wire.ApprovalSource{AgentID: "ops", Session: "agent:ops:main"}
		}
		if diff := cmp.Diff(want, wireview.ApprovalSnapshot(r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.decision, diff)
		}
	}
	r.Once = true
	if diff := cmp.Diff([]string{wire.AllowOnce, wire.Deny}, wireview.AllowedDecisions(r)); diff != "" {
		t.Errorf("only once (-want +got):\n%s", diff)
	}
}

// TestModel checks what clients are told about a model.
func TestModel(t *testing.T) {
	t.Parallel()
	m := llm.Model{
		Provider: "mock",
		ID:       "m1",
		Name:     "One",
		Context:  1000,
		Images:   true,
		Levels:   []llm.Level{llm.Off, llm.High},
	}
	levels := []wire.Level{{ID: "off", Label: "off"}, {ID: "high", Label: "high"}}
	want := wire.Model{
		ID:           "m1",
		Name:         "One",
		Provider:     "mock",
		Context:      1000,
		Reasoning:    true,
		Available:    true,
		Levels:       levels,
		DefaultLevel: "high",
		Input:        []string{"text", "image"},
	}
	if diff := cmp.Diff(want, wireview.Model(m, llm.High, true)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = wire.Model{
		ID: "m2", Name: "m2", Unavailable: wire.MissingAuth, Levels: levels[:1], DefaultLevel: "off", Input: []string{"text"},
	}
	if diff := cmp.Diff(want, wireview.Model(llm.Model{ID: "m2"}, "", false)); diff != "" {
		t.Errorf("a plain one (-want +got):\n%s", diff)
	}
	session := wire.SessionModel{
		Provider:      "mock",
		Model:         "m1",
		ContextWindow: 1000,
		Levels:        levels,
		Options:       []string{"off", "high"},
		Default:       "high",
	}
	if diff := cmp.Diff(session, wireview.SessionModel(m, llm.High)); diff != "" {
		t.Errorf("of a session (-want +got):\n%s", diff)
	}
}

// TestShow checks that the pictures of the newest messages are loaded, as far as there
// is room.
func TestShow(t *testing.T) {
	t.Parallel()
	picture := func(m *llm.Message, most int) *llm.Message {
		if len(m.Parts) == 0 {
			return m
		}
		return &llm.Message{Role: m.Role, Parts: []llm.Part{{Kind: llm.PartImage, Data: make([]byte, min(most, 300))}}}
	}
	for _, tt := range []struct {
		room int
		want string
	}{{0, "...."}, {399, "...."}, {400, "...x"}, {799, "...x"}, {800, ".x.x"}, {1200, "xx.x"}} {
		list := make([]session.Entry, 4)
		for i := range list {
			list[i].Message = &llm.Message{Parts: []llm.Part{{Kind: llm.PartImage}}}
		}
		list[2].Message.Parts = nil
		wireview.Show(picture).Entries(list, tt.room)
		got := ""
		for _, e := range list {
			if len(e.Message.Parts) > 0 && len(e.Message.Parts[0].Data) > 0 {
				got += "x"
			} else {
				got += "."
			}
		}
		if got != tt.want {
			t.Errorf("room for %d bytes: %s, want %s", tt.room, got, tt.want)
		}
	}
}

// TestMessageFields checks what is shown of each kind of entry.
func TestMessageFields(t *testing.T) {
	t.Parallel()
	meta := wire.MessageMeta{ID: "e1", Seq: 7, RunID: "r1"}
	command := meta
	command.Kind = wire.KindCommand
	asked := meta
	asked.IdempotencyKey = "i:user"
	cut := meta
	cut.Truncated = true
	slash := command
	slash.ID, slash.IdempotencyKey = "e1:command", "i:user"
	said := llm.Message{
		Role: llm.RoleAssistant, Provider: "mock", Model: "m1", Stop: "stop",
		Parts: []llm.Part{{Kind: llm.PartThinking, Text: "hm"}, {Kind: llm.PartThinking}, llm.Text("yes"),
			{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "c", Name: "read", Args: []byte(`{}`)}}},
	}
	picture := []byte("picture")
	for _, tt := range []struct {
		name  string
		entry session.Entry
		want  []wire.Message
	}{
		{"a person's", session.Entry{Kind: session.KindMessage, ItemID: "i", Message: &llm.Message{Role: llm.RoleUser,
			Parts: []llm.Part{
				llm.Text("hi"), {Kind: llm.PartImage, MIME: "image/png", Data: picture},
			}}}, []wire.Message{{Role: wire.RoleUser, Content: wire.Contents{
			{Type: wire.ContentText, Text: "hi"}, {Type: wire.ContentImage, MIME: "image/png", Data: picture},
		}, IdempotencyKey: "i:user", Meta: asked}}},
		{"an answer", session.Entry{Kind: session.KindMessage, Message: &said, Usage: &llm.Usage{Input: 1, Output: 2,
			CacheRead: 3, CacheWrite: 4}, NanoUSD: 5e8, Partial: true}, []wire.Message{{
			Role: wire.RoleAssistant, Content: wire.Contents{
				{Type: wire.ContentThinking, Thinking: "hm"}, {Type: wire.ContentText, Text: "yes"},
				{Type: wire.ContentCall, ID: "c", Name: "read", Arguments: []byte(`{}`)},
			}, Provider: "mock", Model: "m1", StopReason: "stop", Usage: &wire.Usage{
				Input:      1,
				Output:     2,
				CacheRead:  3,
				CacheWrite: 4,
				Total:      10,
				Cost:       &wire.Cost{Total: 0.5},
			},
			Abort: &wire.Abort{Aborted: true, Origin: "rpc", RunID: "r1"}, Meta: meta,
		}}},
		{"an answer without a price", session.Entry{Kind: session.KindMessage, Message: &llm.Message{Role: llm.RoleAssistant,
			Parts: []llm.Part{llm.Text("x")}}, Usage: &llm.Usage{}, NanoUSD: -1}, []wire.Message{{
			Role: wire.RoleAssistant, Content: wire.TextContent("x"), Usage: &wire.Usage{}, Meta: meta,
		}}},
		{"a result", session.Entry{Kind: session.KindMessage, Cut: true, Details: []byte(`{"a":1}`), Message: &llm.Message{
			Role: llm.RoleTool, CallID: "c", ToolName: "read", IsError: true, Parts: []llm.Part{llm.Text("no")},
		}}, []wire.Message{{
			Role: wire.RoleToolResult, Content: wire.TextContent("no"), ToolCallID: "c", ToolName: "read", IsError: true,
			Details: []byte(`{"a":1}`), Meta: cut,
		}}},
		{"a command and its answer",
			session.Entry{Kind: session.KindCommand, ItemID: "i", Text: "/status\nAll is well.\nReally."}, []wire.Message{
				{Role: wire.RoleUser, Content: wire.TextContent("/status"), IdempotencyKey: "i:user", Meta: slash},
				{Role: wire.RoleAssistant, Content: wire.TextContent("All is well.\nReally."), Meta: command},
			}},
		{"a command without a person", session.Entry{Kind: session.KindCommand, Text: "a\nb"},
			[]wire.Message{{Role: wire.RoleSystem, Content: wire.TextContent("a\nb"), Meta: command}}},
		{"a silent answer", session.Entry{Kind: session.KindMessage, Message: &llm.Message{Role: llm.RoleAssistant,
			Parts: []llm.Part{llm.Text("NO_REPLY")}}}, nil},
		{"no message", session.Entry{Kind: session.KindMessage}, nil},
		{"another kind", session.Entry{Kind: "other", Text: "x"}, nil},
	} {
		tt.entry.ID, tt.entry.Seq, tt.entry.Run, tt.entry.Time = "e1", 7, "r1", at(3)
		for i := range tt.want {
			tt.want[i].Timestamp = 3
		}
		if diff := cmp.Diff(tt.want, wireview.Messages(tt.entry)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	for _, size := range []int{wireview.MaxImage, wireview.MaxImage + 1} {
		m, _ := wireview.Message(session.Entry{Kind: session.KindMessage,
			Message: &llm.Message{Parts: []llm.Part{{Kind: llm.PartImage, Data: make([]byte, size)}}}})
		if c, shown := m.Content[0], size <= wireview.MaxImage; (len(c.Data) == size) != shown || (c.Bytes == size) == shown {
			t.Errorf("a picture of %d bytes: %d bytes are shown, and the size %d", size, len(c.Data), c.Bytes)
		}
	}
	quoted := session.Entry{Kind: session.KindMessage,
		Message: &llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text("NO_REPLY")}}}
	calling := session.Entry{Kind: session.KindMessage,
		Message: &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text("NO_REPLY"), said.Parts[3]}}}
	for _, e := range []session.Entry{quoted, calling} {
		if len(wireview.Messages(e)) != 1 {
			t.Errorf("%+v is hidden", e.Message)
		}
	}
}

// TestCalled checks that each field of a recorded call is shown.
func TestCalled(t *testing.T) {
	t.Parallel()
	got := wireview.Called(session.Call{
		Seq:      1,
		ID:       "c",
		Session:  "agent:ops:main",
		Run:      "r",
		Wire:     llm.ToolCall{Name: "exec"},
		State:    "done",
		Effect:   "write",
		Approval: "a",
		Updated:  at(2),
		Outcome: session.Outcome{
			Who:      "ada",
			Ran:      `{}`,
			Decision: "allowed",
			Rule:     "rule",
			Result:   "ok",
			Took:     3 * time.Millisecond,
		},
	})
	want := wire.ToolCalled{
		Seq:        1,
		ID:         "c",
		Time:       2,
		Principal:  "ada",
		AgentID:    "ops",
		SessionKey: "agent:ops:main",
		RunID:      "r",
		Tool:       "exec",
		Args:       `{}`,
		State:      "done",
		Effect:     "write",
		Decision:   "allowed",
		Rule:       "rule",
		Outcome:    "ok",
		DurationMs: 3,
		ApprovalID: "a",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
