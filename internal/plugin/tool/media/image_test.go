package media_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	pictures "github.com/chela-ai/chela/internal/core/media"
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
		o.Model = func(context.Context, chela.SessionKey) (llm.Model, llm.Provider, error) {
			return imageModel, llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step { return llmtest.Say(received(t, r)) }), nil
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
	r, err := tl.Run(t.Context(), tool.Call{Args: b, Dir: dir, Session: "agent:main:main", Run: "r", Update: func(string) {}})
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

func TestSpent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.png"), picture(t, 10, 10), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var spent []string
	o := media.Options{RecordUsage: func(_ context.Context, c tool.Call, m llm.Model, u llm.Usage) error {
		mu.Lock()
		defer mu.Unlock()
		spent = append(spent, fmt.Sprint(c.Run, " ", m.Ref(), " ", u.Total() > 0))
		return nil
	}}
	if _, err := run(t, newTool(t, open(t), o), dir, map[string]any{"path": "a.png"}); err != nil || fmt.Sprint(spent) != "[r mock/eye true]" {
		t.Errorf("recorded %q, %v", spent, err)
	}
	blind := errors.New("mock/m takes no pictures")
	o.Model = func(context.Context, chela.SessionKey) (llm.Model, llm.Provider, error) {
		return llm.Model{}, nil, blind
	}
	if _, err := run(t, newTool(t, open(t), o), dir, map[string]any{"path": "a.png"}); !errors.Is(err, blind) || len(spent) != 1 {
		t.Errorf("no image model: %v, recorded %q", err, spent)
	}
	o.Model = func(context.Context, chela.SessionKey) (llm.Model, llm.Provider, error) {
		return imageModel, llmtest.NewScript(llmtest.Status(500, "oops")), nil
	}
	if _, err := run(t, newTool(t, open(t), o), dir, map[string]any{"path": "a.png"}); llm.ClassOf(err) != llm.ClassNetwork || len(spent) != 1 {
		t.Errorf("failing service: %v, recorded %q", err, spent)
	}
}
