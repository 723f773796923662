package media_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	pictures "github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/tool/tooltest"
	"github.com/chela-ai/chela/internal/plugin/tool/media"
)

var imageModel = llm.Model{Provider: "mock", ID: "eye", Images: true}

func picture(t testing.TB, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(t testing.TB) *pictures.Files {
	t.Helper()
	f, err := pictures.Open(filepath.Join(t.TempDir(), pictures.Dir), 100)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// newTool returns the tool with a model that describes what it was sent.
func newTool(t testing.TB, f *pictures.Files, o media.Options) tool.Tool {
	t.Helper()
	o.Files, o.Side = f, 100
	if o.Model == nil {
		o.Model = func(context.Context, tool.Call) (llm.Model, llm.Provider, error) {
			return imageModel, llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
				return llmtest.Say(received(t, r))
			}), nil
		}
	}
	return media.New(o)
}

// received describes what a model was sent: texts, and pictures with their
// sizes.
func received(t testing.TB, r *llm.Request) string {
	var out []string
	for _, p := range r.Messages[0].Parts {
		if p.Kind == llm.PartText {
			out = append(out, p.Text)
			continue
		}
		i, err := pictures.Probe(p.Data)
		if err != nil || i.Type != p.MIME {
			t.Errorf("%s: %+v %v", p.MIME, i, err)
		}
		out = append(out, fmt.Sprintf("%s %dx%d", p.MIME, i.Width, i.Height))
	}
	return strings.Join(out, "; ")
}

func run(t testing.TB, tl tool.Tool, dir string, args any) (string, error) {
	t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tl.Run(t.Context(), tool.Call{
		Args:    b,
		Dir:     dir,
		Session: "agent:main:main",
		Run:     "r",
		Update:  func(string) {},
	})
	if err != nil {
		return "", err
	}
	return r.Content[0].Text, nil
}

// Not parallel: the suite checks for activity after a call has ended.
func TestSuite(t *testing.T) {
	tooltest.Run(t, newTool(t, open(t), media.Options{}), tooltest.Options{
		Args: []string{`{"path":"a.png"}`, `{"paths":["a.png","a.png"],"prompt":"which is larger?"}`},
		Setup: func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "a.png"), picture(t, 10, 10), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	})
}

func TestImage(t *testing.T) {
	t.Parallel()
	f, dir := open(t), t.TempDir()
	ref, err := f.Put(picture(t, 300, 150))
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "secret.png")
	for name, data := range map[string][]byte{
		filepath.Join(dir, "small.png"): picture(t, 20, 10), filepath.Join(dir, "large.jpg"): picture(t, 400, 100),
		filepath.Join(dir, "notes.png"): []byte("the password is 1234"), outside: picture(t, 5, 5),
	} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.png")); err != nil {
		t.Fatal(err)
	}
	tl := newTool(t, f, media.Options{})
	many := make([]string, 21)
	for i := range many {
		many[i] = "small.png"
	}
	for _, c := range []struct {
		args map[string]any
		want string
		err  string
	}{
		{args: map[string]any{"path": "small.png"}, want: "Describe the picture.; image/png 20x10"},
		{args: map[string]any{"path": filepath.Join(dir, "small.png"), "prompt": "what?"}, want: "what?; image/png 20x10"},
		{args: map[string]any{"path": "large.jpg", "prompt": "what?"}, want: "what?; image/png 100x25"},
		{args: map[string]any{"path": "media:" + ref, "prompt": "what?"}, want: "what?; image/png 100x50"},
		{
			args: map[string]any{"paths": []string{"small.png", "media:" + ref}, "prompt": "what?"},
			want: "what?; [Picture 1: small.png]; image/png 20x10; [Picture 2: media:" + ref + "]; image/png 100x50",
		},
		{args: map[string]any{}, err: "path is missing"},
		{args: map[string]any{"paths": many}, err: "21 pictures, at most 20"},
		{args: map[string]any{"path": "none.png"}, err: "none.png does not exist"},
		{args: map[string]any{"path": "notes.png"}, err: "not a PNG, JPEG, GIF or WebP"},
		{args: map[string]any{"path": "../x.png"}, err: "outside"},
		{args: map[string]any{"path": outside}, err: "outside"},
		{args: map[string]any{"path": "link.png"}, err: "outside"},
		{args: map[string]any{"path": "."}, err: ". is a folder"},
		{args: map[string]any{"path": "https://example.com/a.png"}, err: "web_fetch"},
		{args: map[string]any{"path": "media:" + strings.Repeat("0", 32)}, err: "no such picture"},
	} {
		got, err := run(t, tl, dir, c.args)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "1234") {
				t.Errorf("%v: %q, %v; want %q", c.args, got, err, c.err)
			}
			continue
		}
		if got != c.want || err != nil {
			t.Errorf("%v:\n got %q, %v\nwant %q", c.args, got, err, c.want)
		}
	}
}

// provider answers with fixed events.
type provider func(ctx context.Context, r *llm.Request) []llm.Event

func (p provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		for _, e := range p(ctx, r) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// is not scaled
	heavy := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x00\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x09\x00\x00"),
		make([]byte, 15<<20-30)...)
	for name, data := range map[string][]byte{
		"a.png":      picture(t, 10, 10),
		"wide.png":   picture(t, 2400, 10),
		"heavy.webp": heavy,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := func(text string) *llm.Message {
		return &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text(text)}}
	}
	other := llm.Model{Provider: "mock", ID: "other"}
	for _, c := range []struct {
		name, path string
		events     []llm.Event
		want, err  string
	}{
		{"another model answers", "a.png", []llm.Event{{Kind: llm.TextDelta, Text: "x"},
			{Kind: llm.Done, Message: said(" a cat "), By: &other, Note: "by other"}}, "a cat\n[by other]", ""},
		{"the tool's own limit of size", "wide.png", []llm.Event{{Kind: llm.Done, Message: said("a line")}}, "a line", ""},
		{"no text", "a.png", []llm.Event{{Kind: llm.Done, Message: said(" ")}}, "", "mock/eye returned no text"},
		{"no answer", "a.png", []llm.Event{{Kind: llm.TextDelta, Text: "x"}, {Kind: llm.Done}}, "", "gave no answer"},
		{"too much", "heavy.webp", nil, "", "too large together; ask about the first 2 only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tl := media.New(media.Options{
				Files: open(t),
				Model: func(_ context.Context, call tool.Call) (llm.Model, llm.Provider, error) {
					return imageModel, provider(func(ctx context.Context, r *llm.Request) []llm.Event {
						if r.Model != "eye" || r.MaxTokens != 4096 || len(r.System) != 1 ||
							!strings.Contains(r.System[0].Text, "never an instruction") || r.Messages[0].Role != llm.RoleUser ||
							call.Session != "agent:main:main" {
							t.Errorf("sent %+v for %s", r, call.Session)
						}
						if got := received(t, r); c.path == "wide.png" && !strings.HasSuffix(got, " 1200x5") {
							t.Errorf("sent %s", got)
						}
						return c.events
					}), nil
				},
			})
			paths := []string{c.path}
			if c.path == "heavy.webp" {
				paths = []string{c.path, c.path, c.path}
			}
			got, err := run(t, tl, dir, map[string]any{"paths": paths, "prompt": " "})
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// Only files are subject to the rule about paths, not references and addresses.
func TestPlan(t *testing.T) {
	t.Parallel()
	private := t.TempDir()
	tl := newTool(t, open(t),
		media.Options{Paths: pathpolicy.Rule{Outside: true, Private: func() []string { return []string{private} }}})
	for args, asks := range map[string]bool{
		`{"path":"media:` + strings.Repeat("0", 32) + `"}`: false, `{"paths":["https://host/a.png"]}`: false, `{"path":"` +
			private + `/a.png"}`: true, `{"paths":["a.png","` + private + `/a.png"]}`: true,
	} {
		p, err := tl.(tool.Planner).Plan(t.Context(), tool.Call{Args: json.RawMessage(args), Dir: t.TempDir()})
		if err != nil || p.Ask != asks {
			t.Errorf("%s: asks %v, %q, %v", args, p.Ask, p.Reason, err)
		}
	}
}

func TestNoModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.png"), picture(t, 10, 10), 0o600); err != nil {
		t.Fatal(err)
	}
	blind := errors.New("mock/m takes no pictures")
	o := media.Options{Model: func(context.Context, tool.Call) (llm.Model, llm.Provider, error) {
		return llm.Model{}, nil, blind
	}}
	if _, err := run(t, newTool(t, open(t), o), dir, map[string]any{"path": "a.png"}); !errors.Is(err, blind) {
		t.Errorf("no image model: %v", err)
	}
	o.Model = func(context.Context, tool.Call) (llm.Model, llm.Provider, error) {
		return imageModel, llmtest.NewScript(llmtest.Status(500, "oops")), nil
	}
	if _, err := run(t, newTool(t, open(t), o), dir, map[string]any{"path": "a.png"}); llm.ClassOf(err) !=
		llm.ClassNetwork {
		t.Errorf("failing service: %v", err)
	}
}
