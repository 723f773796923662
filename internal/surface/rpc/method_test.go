package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

type params struct {
	Key   string   `json:"key"`
	Text  string   `json:"text"`
	Limit int      `json:"limit,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	File  []byte   `json:"file,omitempty"`
	In    struct {
		Deep bool `json:"deep"`
	} `json:"in,omitzero"`
}

func set() rpc.Set {
	f := func(_ context.Context, _ rpc.Peer, p params) (string, error) { return p.Key + p.Text, nil }
	none := func(context.Context, rpc.Peer, wire.None) (string, error) { return "done", nil }
	return rpc.NewSet(
		[]rpc.Method{
			rpc.New("m", wire.RoleOperator, chela.ScopeWrite, f).Ignoring("legacy").Refusing("expectedMood", "worktree"),
			rpc.New("read", wire.RoleOperator, chela.ScopeRead, f),
			rpc.New("read.more", wire.RoleOperator, chela.ScopeApprovals, f).Reads(),
			rpc.New("ask", wire.RoleOperator, chela.ScopeRead, f).Changes(),
			rpc.New("open", wire.RoleOperator, "", none),
		},
		[]rpc.Method{rpc.New("node.m", wire.RoleNode, chela.ScopeWrite, none)},
	)
}

// noPeer is a peer that must not be used.
type noPeer struct{ rpc.Peer }

func TestCall(t *testing.T) {
	t.Parallel()
	s := set()
	for _, tc := range []struct {
		method, params string
		scopes         []chela.Scope
		want           string // the result or the error
	}{
		{"m", `{"key":"a","text":"b"}`, []chela.Scope{chela.ScopeWrite}, "ab"},
		{"m", `{"key":"a","text":"b","legacy":{"x":1}}`, []chela.Scope{chela.ScopeAdmin}, "ab"},
		{"m", `{"key":"a","text":"b"}`, []chela.Scope{chela.ScopeRead}, "missing scope: operator.write"},
		{"m", `{"bogus":1}`, nil, "missing scope: operator.write"},
		{"m", `{"bogus":1}`, []chela.Scope{chela.ScopeWrite}, "invalid m params: must have required property 'key'; must have required property 'text'; at root: unexpected property 'bogus'"},
		{"m", `{"key":1,"text":""}`, []chela.Scope{chela.ScopeWrite}, "invalid m params: at /key: must be string"},
		{"m", `{"key":"","text":"","limit":1.5}`, []chela.Scope{chela.ScopeWrite},
			"invalid m params: at /limit: must be integer"},
		{"m", `{"key":"","text":"","tags":"x"}`, []chela.Scope{chela.ScopeWrite},
			"invalid m params: at /tags: must be array"},
		{"m", `{"key":"","text":"","in":{"deep":"x"}}`, []chela.Scope{chela.ScopeWrite},
			"invalid m params: at /in/deep: must be boolean"},
		{"m", `[]`, []chela.Scope{chela.ScopeWrite}, "invalid m params: at root: must be object"},
		{"m", `{"key":"a","text":"b","expectedMood":"x"}`, []chela.Scope{chela.ScopeWrite},
			"invalid m params: at root: property 'expectedMood' is not supported"},
		{"m", `{"key":"a","text":"b","expectedMood":null,"worktree":false}`, []chela.Scope{chela.ScopeWrite}, "ab"},
		{"m", `{"key":"a","text":"b","bogus":null}`, []chela.Scope{chela.ScopeWrite},
			"invalid m params: at root: unexpected property 'bogus'"},
		{"read", `{"key":"a","text":"b","bogus":1}`, []chela.Scope{chela.ScopeRead}, "ab"},
		{"read", `{"bogus":1}`, []chela.Scope{chela.ScopeRead},
			"invalid read params: must have required property 'key'; must have required property 'text'"},
		{"read", `{"key":"a","text":"b","expectedHash":"x"}`, []chela.Scope{chela.ScopeRead},
			"invalid read params: at root: unexpected property 'expectedHash'"},
		{"read", `{"key":"a","text":"b","toolsAllow":[]}`, []chela.Scope{chela.ScopeRead},
			"invalid read params: at root: unexpected property 'toolsAllow'"},
		{"read.more", `{"key":"a","text":"b","bogus":1}`, []chela.Scope{chela.ScopeApprovals}, "ab"},
		{"ask", `{"key":"a","text":"b","bogus":1}`, []chela.Scope{chela.ScopeRead},
			"invalid ask params: at root: unexpected property 'bogus'"},
		{"open", ``, nil, "done"},
		{"open", `null`, nil, "done"},
		{"open", `{}`, nil, "done"},
		{"node.m", `{}`, []chela.Scope{chela.ScopeAdmin}, "unauthorized role: operator"},
		{"M", `{}`, []chela.Scope{chela.ScopeAdmin}, "unknown method: M"},
	} {
		ctx := chela.WithPrincipal(t.Context(), chela.Principal{ID: "p", Scopes: tc.scopes})
		res, err := s.Call(ctx, wire.RoleOperator, noPeer{}, tc.method, json.RawMessage(tc.params))
		got := fmt.Sprint(res)
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s %s as %v: %q, want %q", tc.method, tc.params, tc.scopes, got, tc.want)
		}
	}
	if diff := cmp.Diff([]string{"ask", "m", "node.m", "open", "read", "read.more"}, s.Names()); diff != "" {
		t.Error(diff)
	}
}

func TestMissingScopeDetails(t *testing.T) {
	t.Parallel()
	e := rpc.Error(rpc.Need(t.Context(), chela.ScopeRead))
	want := `{"code":"MISSING_SCOPE","missingScope":"operator.read","requiredScopes":["operator.read"]}`
	if e.Code != wire.Forbidden || string(e.Details) != want {
		t.Errorf("got %s with %s, want %s with %s", e.Code, e.Details, wire.Forbidden, want)
	}
}

func TestPanicsOfWiring(t *testing.T) {
	t.Parallel()
	none := func(context.Context, rpc.Peer, wire.None) (string, error) { return "", nil }
	for name, f := range map[string]func(){
		"a condition is ignored": func() {
			rpc.New("m", wire.RoleOperator, "", none).Ignoring("expectedMood")
		},
		"a prohibition is ignored": func() {
			rpc.New("m", wire.RoleOperator, "", none).Ignoring("disableMessageTool")
		},
		"duplicate name": func() {
			m := rpc.New("m", wire.RoleOperator, "", none)
			rpc.NewSet([]rpc.Method{m}, []rpc.Method{m})
		},
		"parameters are not a struct": func() {
			rpc.New("m", wire.RoleOperator, "", func(context.Context, rpc.Peer, string) (string, error) { return "", nil })
		},
		"field without a json name": func() {
			rpc.New("m", wire.RoleOperator, "", func(context.Context, rpc.Peer, struct{ A int }) (string, error) {
				return "", nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("did not panic")
				}
			}()
			f()
		})
	}
}

func TestAcceptingLeavesTheMethod(t *testing.T) {
	t.Parallel()
	m := rpc.New("m", wire.RoleOperator, "", func(context.Context, rpc.Peer, wire.None) (string, error) { return "", nil })
	m.Ignoring("more")
	if _, err := rpc.NewSet([]rpc.Method{m}).Call(t.Context(), wire.RoleOperator, noPeer{}, "m",
		json.RawMessage(`{"more":1}`)); err == nil {
		t.Error("the original method accepts what only its copy ignores")
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	absent := json.RawMessage(`{"code":"NOT_FOUND"}`)
	for _, tc := range []struct {
		err  error
		want wire.Error
	}{
		{chela.Errorf(chela.CodeInvalid, "bad"), wire.Error{Code: wire.InvalidRequest, Message: "bad"}},
		{chela.Errorf(chela.CodeForbidden, "no"), wire.Error{Code: wire.Forbidden, Message: "no"}},
		{chela.Errorf(chela.CodeConflict, "changed"), wire.Error{Code: wire.InvalidRequest, Message: "changed"}},
		{chela.Errorf(chela.CodeFull, "no room"), wire.Error{Code: wire.Unavailable, Message: "no room"}},
		{fmt.Errorf("run x: %w", chela.ErrNotFound),
			wire.Error{Code: wire.InvalidRequest, Message: "run x: not found", Details: absent}},
		{chela.Errorf(chela.CodeNotFound, "unknown id"),
			wire.Error{Code: wire.InvalidRequest, Message: "unknown id", Details: absent}},
		{
			&chela.Error{Code: chela.CodeUnavailable, Message: "no model", Hint: "chela doctor"},
			wire.Error{Code: wire.Unavailable, Message: "no model (chela doctor)", Retryable: true},
		},
		{chela.ErrClosed, wire.Error{Code: wire.Unavailable, Message: "closed", Retryable: true}},
		{fmt.Errorf("wait: %w", context.DeadlineExceeded),
			wire.Error{Code: wire.Unavailable, Message: "wait: context deadline exceeded", Retryable: true}},
		{errors.New("disk on fire"), wire.Error{Code: wire.Unavailable, Message: "disk on fire"}},
		{&rpc.RoleError{Role: "node"}, wire.Error{Code: wire.InvalidRequest, Message: "unauthorized role: node"}},
		{&rpc.PayloadError{Err: wire.Errorf(wire.NotPaired, "who?")}, wire.Error{Code: wire.NotPaired, Message: "who?"}},
	} {
		if diff := cmp.Diff(tc.want, *rpc.Error(tc.err)); diff != "" {
			t.Errorf("Error(%v) (-want +got):\n%s", tc.err, diff)
		}
	}
}

// TestIdleProperties checks that the log names each property without effect once, and
// one that asks for nothing not at all.
func TestIdleProperties(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := set().Logging(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	ctx := chela.WithPrincipal(t.Context(), chela.Principal{ID: "p", Scopes: []chela.Scope{chela.ScopeWrite}})
	for _, c := range []struct{ method, more string }{
		{"m", `"legacy":false`}, {"m", `"legacy":{"x":1}`}, {"m", `"legacy":{"x":2}`}, {"read", `"tint":"red","hue":1`},
		{"read", `"hue":1,"mood":"x"`},
	} {
		if _, err := s.Call(ctx, wire.RoleOperator, noPeer{}, c.method,
			json.RawMessage(`{"key":"a","text":"b",`+c.more+`}`)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for line := range strings.Lines(log.String()) {
		_, rest, _ := strings.Cut(line, "level=")
		got = append(got, strings.TrimSpace(rest))
	}
	want := []string{
		`INFO msg="properties without effect" method=m properties=legacy`,
		`DEBUG msg="properties without effect" method=read properties="tint, hue"`,
		`DEBUG msg="properties without effect" method=read properties=mood`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the log (-want +got):\n%s", d)
	}
}

// FuzzCall checks that the function is called only with objects that have all
// required properties and no unknown ones.
func FuzzCall(f *testing.F) {
	for _, s := range []string{
		`{"key":"a","text":"b"}`, `{"key":"a","text":"b","legacy":1}`, `{"key":null,"text":""}`,
		`{"key":"a","key":"b","text":""}`,
		`{"KEY":"a","text":"b"}`, `{"key":"a","text":"b","in":{"deep":true,"x":1}}`, `[]`, `null`, ``, `{`, `"x"`,
		`{"key":"a","text":"b","file":"%"}`,
	} {
		f.Add([]byte(s))
	}
	s := set()
	f.Fuzz(func(t *testing.T, raw []byte) {
		ctx := chela.WithPrincipal(t.Context(), chela.Owner("test"))
		_, err := s.Call(ctx, wire.RoleOperator, noPeer{}, "m", raw)
		if err != nil {
			if e := rpc.Error(err); e.Code != wire.InvalidRequest {
				t.Errorf("%q: %v with code %s", raw, err, e.Code)
			}
			return
		}
		var props map[string]json.RawMessage
		if err := json.Unmarshal(raw, &props); err != nil {
			t.Fatalf("%q was called: %v", raw, err)
		}
		if props["key"] == nil || props["text"] == nil {
			t.Errorf("%q was called without required properties", raw)
		}
		for name := range props {
			switch name {
			case "key", "text", "limit", "tags", "file", "in", "legacy":
			default:
				t.Errorf("%q was called with %q", raw, name)
			}
		}
	})
}
