package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chela-ai/chela/internal/core/mcp"
)

func TestCatalog(t *testing.T) {
	t.Parallel()
	object := map[string]any{"type": "object"}
	deep := map[string]any{"type": "object"}
	for range 100 {
		deep = map[string]any{"type": "object", "properties": map[string]any{"a": deep}}
	}
	for _, tt := range []struct {
		name string
		tool sdk.Tool
		want string // why it is refused; "": it is not
	}{
		{"plain", sdk.Tool{Name: "a", InputSchema: object}, ""},
		{"draft 7", sdk.Tool{Name: "a", InputSchema: map[string]any{
			"$schema":    "http://json-schema.org/draft-07/schema#",
			"type":       "object",
			"properties": map[string]any{"a": map[string]any{"type": "string", "pattern": `(?!x)`}},
		}}, ""},
		{"no name", sdk.Tool{InputSchema: object}, "tool : the name"},
		{"no schema", sdk.Tool{Name: "a"}, "tool a: schema: want an object schema"},
		{"string schema", sdk.Tool{Name: "a", InputSchema: map[string]any{"type": "string"}}, "want an object schema"},
		{"list", sdk.Tool{Name: "a", InputSchema: []any{}}, "want an object schema"},
		{"remote", sdk.Tool{Name: "a", InputSchema: map[string]any{"type": "object", "$ref": "https://example.com/s.json"}},
			"tool a: schema: "},
		{"wrong type", sdk.Tool{Name: "a", InputSchema: map[string]any{
			"type":       "object",
			"properties": map[string]any{"x": map[string]any{"type": "text"}},
		}}, "tool a: schema: "},
		{"deep", sdk.Tool{Name: "a", InputSchema: deep}, "tool a: schema: "},
		{"large", sdk.Tool{Name: "a", InputSchema: map[string]any{
			"type":        "object",
			"description": strings.Repeat("x", maxSchema),
		}}, "tool a: schema: it has more than"},
		{"control characters", sdk.Tool{Name: "a\x1b[2J", InputSchema: nil}, "tool a [2J: "},
	} {
		var cat Catalog
		cat.add([]*sdk.Tool{&tt.tool})
		switch {
		case tt.want == "" && (len(cat.Tools) != 1 || len(cat.Refused) != 0):
			t.Errorf("%s: refused: %q", tt.name, cat.Refused)
		case tt.want != "" && (len(cat.Tools) != 0 || len(cat.Refused) != 1 || !strings.Contains(cat.Refused[0], tt.want)):
			t.Errorf("%s: %d tools, %q, want %q", tt.name, len(cat.Tools), cat.Refused, tt.want)
		}
	}
	var many []*sdk.Tool
	for i := range 300 {
		many = append(many, &sdk.Tool{Name: fmt.Sprintf("t%03d", i), Description: strings.Repeat("ü", 3000),
			InputSchema: object})
	}
	var cat Catalog
	cat.add(append(many, many[0]))
	if len(cat.Tools) != 199 || len(cat.Refused) != 2 || len([]rune(cat.Tools[0].Description)) != maxDescription {
		t.Errorf("%d tools, %q", len(cat.Tools), cat.Refused)
	}
	var hidden Catalog
	hidden.add([]*sdk.Tool{{Name: "a", Title: "A\x1b[2J", Description: "Adds.\n\tTwo\u00a0numbers.\U000e0041\x1b[2J\u200b",
		InputSchema: object}})
	if e := hidden.Tools[0]; e.Description != "Adds.\n\tTwo numbers.[2J" || e.Title != "A [2J" {
		t.Errorf("%q, %q", e.Title, e.Description)
	}
	data, _ := json.Marshal(cat)
	if back, err := parseCatalog(data); err != nil || !reflect.DeepEqual(back, cat) {
		t.Errorf("a stored list is read as another: %v", err)
	}
}

func newTestPool(t *testing.T, state string) *Pool {
	t.Helper()
	p := New(Options{Log: slog.New(slog.DiscardHandler), State: state})
	t.Cleanup(func() { p.Close(context.WithoutCancel(t.Context())) })
	return p
}

// The file of a list may be removed or damaged at any time.
func TestCacheFile(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	p := newTestPool(t, state)
	s := mcp.Server{Command: "x", Env: map[string]string{"TOKEN": "a"}, Headers: map[string]string{"Authorization": "b"}}
	k := key("srv", s)
	s.Env["TOKEN"], s.Headers["Authorization"] = "other", "other"
	if key("srv", s) != k || key("srv2", s) == k {
		t.Error("the key depends on secrets, or not on the name")
	}
	var cat Catalog
	cat.add([]*sdk.Tool{{Name: "a", Description: "<b>", InputSchema: map[string]any{"type": "object"}}})
	p.learn(k, cat)
	file := filepath.Join(state, "cache", "mcp", k+".json")
	old := filepath.Join(state, "cache", "mcp", "old.json")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-keepTime - time.Hour)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	if got, ok := newTestPool(t, state).catalog(k); !ok || !reflect.DeepEqual(got, cat) {
		t.Errorf("%+v, %v", got, ok)
	}
	p.learn(key("other", s), cat)
	if _, err := os.Stat(old); err == nil {
		t.Error("an old file is left")
	}
	if err := os.WriteFile(file, []byte(`{"tools":[{"name":"a"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	q := newTestPool(t, state)
	if got, ok := q.catalog(k); ok {
		t.Errorf("a damaged file: %+v", got)
	}
	q.learn(k, cat)
	if err := os.RemoveAll(filepath.Join(state, "cache")); err != nil {
		t.Fatal(err)
	}
	if _, ok := q.catalog(k); !ok {
		t.Error("a list that is known needs its file")
	}
}

func FuzzParseCatalog(f *testing.F) {
	f.Add([]byte(`{"tools":[{"name":"a","schema":{"type":"object"}}]}`))
	f.Add([]byte(`{"tools":[{"name":"a","title":"T","description":"d","schema":{"type":"object","properties":{"x":{"$ref":"#/$defs/y"}},"$defs":{"y":{"type":"string"}}}}],"refused":["x"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		cat, err := parseCatalog(data)
		if err != nil {
			return
		}
		text, err := json.Marshal(cat)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := parseCatalog(text); err != nil || !reflect.DeepEqual(back.Tools, cat.Tools) {
			t.Errorf("%s: %v", text, err)
		}
	})
}

// FuzzOutput checks that the lines that are JSON objects, and no others, are messages,
// however the output is divided.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("{\"a\":1}\n"), 3)
	f.Add([]byte("ready\n  {\"a\":1}\r\n\n[info]\n{\"b\":2}"), 1)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		var want, wantOther bytes.Buffer
		for line := range bytes.Lines(data) {
			line = bytes.TrimLeft(line, " \t\r\n")
			if bytes.HasPrefix(line, []byte("{")) {
				want.Write(line)
			} else {
				wantOther.Write(line)
			}
		}
		var got, other bytes.Buffer
		o := &output{messages: &got, other: &other}
		for rest := data; len(rest) > 0; {
			n := min(max(1, size), len(rest))
			if k, err := o.Write(rest[:n]); k != n || err != nil {
				t.Fatal(k, err)
			}
			rest = rest[n:]
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) || !bytes.Equal(other.Bytes(), wantOther.Bytes()) {
			t.Errorf("%q in parts of %d: messages %q, others %q", data, size, got.Bytes(), other.Bytes())
		}
	})
}
