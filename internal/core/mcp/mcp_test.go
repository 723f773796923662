package mcp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/mcp"
)

func TestToolFilter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		include, exclude []string
		name             string
		want             bool
	}{
		{nil, nil, "a", true},
		{[]string{"search_*"}, nil, "search_docs", true},
		{[]string{"search_*"}, nil, "search", false},
		{[]string{"a", "b"}, nil, "b", true},
		{[]string{"a", "b"}, nil, "bb", false},
		{nil, []string{"admin_*"}, "admin_delete", false},
		{[]string{"*"}, []string{"*delete*"}, "admin_delete_all", false},
		{[]string{"a*c*e"}, nil, "abcde", true},
		{[]string{"a*c*e"}, nil, "abced", false},
		{[]string{"a*a"}, nil, "a", false},
		{[]string{"*a*a"}, nil, "a", false},
	} {
		if got := (mcp.ToolFilter{Include: tt.include, Exclude: tt.exclude}).Allows(tt.name); got != tt.want {
			t.Errorf("include %v, exclude %v, %s: %v, want %v", tt.include, tt.exclude, tt.name, got, tt.want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 80)
	for _, tt := range []struct {
		server string
		tools  []string
		want   []string
	}{
		{"vigil-harbor", []string{"memory_search"}, []string{"vigil-harbor__memory_search"}},
		{"12306", []string{"trains"}, []string{"m12306__trains"}},
		{"", []string{""}, []string{"mcp__-"}},
		{"a b", []string{"c.d", "c/d", "C-D"}, []string{"a-b__c-d", "a-b__c-d-2", "a-b__C-D-3"}},
		{"über", []string{"größe"}, []string{"m-ber__gr--e"}},
		{long, []string{long, long}, []string{long[:30] + "__" + long[:32], long[:30] + "__" + long[:30] + "-2"}},
	} {
		if got := mcp.Names(tt.server, tt.tools); !slices.Equal(got, tt.want) {
			t.Errorf("%q %q: %q, want %q", tt.server, tt.tools, got, tt.want)
		}
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, kind, want string }{
		{`{"command": "npx"}`, mcp.Stdio, ""},
		{`{"command": "npx", "type": "stdio"}`, mcp.Stdio, ""},
		{`{"url": "https://example.com/mcp"}`, mcp.SSE, ""},
		{`{"url": "https://example.com/mcp", "type": "http"}`, mcp.HTTP, ""},
		{`{"url": "https://example.com/mcp", "transport": "streamable-http"}`, mcp.HTTP, ""},
		{`{}`, mcp.SSE, "want command"},
		{`{"command": "npx", "url": "https://example.com"}`, mcp.Stdio, "either"},
		{`{"command": "npx", "transport": "sse"}`, mcp.SSE, "want url"},
		{`{"url": "https://example.com", "transport": "stdio"}`, mcp.Stdio, "want command"},
		{`{"url": "file:///etc/passwd"}`, mcp.SSE, "want http"},
		{`{"url": "https://user:secret@%zz"}`, mcp.SSE, "want http"},
		{`{"command": "npx", "transport": "pigeon"}`, "pigeon", "want stdio"},
	} {
		var s mcp.Server
		if err := json.Unmarshal([]byte(tt.text), &s); err != nil {
			t.Fatal(err)
		}
		if s.Kind() != tt.kind {
			t.Errorf("%s: transport %s, want %s", tt.text, s.Kind(), tt.kind)
		}
		switch err := s.Validate(); {
		case (err == nil) != (tt.want == ""), err != nil && !strings.Contains(err.Error(), tt.want), err != nil &&
			strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: %v, want %q", tt.text, err, tt.want)
		}
	}
}
