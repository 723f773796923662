package standard_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// visionSetup is a dialect with a scripted service and media files.
type visionSetup struct {
	*llmtest.Server
	llm.Provider
	files *media.Files
}

func openVision(t *testing.T, api string, sees bool, steps ...llmtest.Step) *visionSetup {
	t.Helper()
	files, err := media.Open(filepath.Join(t.TempDir(), media.Dir), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	wire := llmtest.OpenAI
	if api == standard.Anthropic {
		wire = llmtest.Anthropic
	}
	srv := llmtest.NewServer(t, wire, steps...)
	url, hc := srv.Pipe()
	p, err := standard.New().NewProvider(api, dialect.Options{
		Name: "p", BaseURL: url, Key: secret.New("sk-test"), HTTP: hc, Image: files.Scaled,
		Model: func(id string) llm.Model { return llm.Model{Provider: "p", ID: id, Images: sees, MaxOutput: 1000} },
	})
	if err != nil {
		t.Fatal(err)
	}
	return &visionSetup{srv, p, files}
}

// kept stores a picture and returns it with its base64 form.
func (e *visionSetup) store(t *testing.T, side int) (llm.Part, string) {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, side, 1))); err != nil {
		t.Fatal(err)
	}
	p := e.files.StorePart(llm.Image(media.PNG, b.Bytes()))
	if p.Ref == "" {
		t.Fatalf("not kept: %+v", p)
	}
	return p, base64.StdEncoding.EncodeToString(b.Bytes())
}

// ask sends a request and returns the last event.
func (e *visionSetup) ask(t *testing.T, msgs ...*llm.Message) (llm.Event, error) {
	t.Helper()
	for ev, err := range e.Stream(t.Context(), &llm.Request{Model: "m", Messages: msgs, MaxTokens: 100}) {
		if err != nil || ev.Kind == llm.Done {
			return ev, err
		}
	}
	t.Fatal("the stream has no end")
	return llm.Event{}, nil
}

func user(parts ...llm.Part) *llm.Message { return &llm.Message{Role: llm.RoleUser, Parts: parts} }

func each(t *testing.T, f func(*testing.T, string)) {
	for _, api := range []string{standard.Anthropic, standard.OpenAI} {
		t.Run(api, func(t *testing.T) { t.Parallel(); f(t, api) })
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	t.Run("PROV-14 a model without vision gets the reference", func(t *testing.T) {
		each(t, func(t *testing.T, api string) {
			e := openVision(t, api, false, llmtest.Say("ok"))
			pic, data := e.store(t, 5)
			if _, err := e.ask(t, user(llm.Text("what is it?"), pic)); err != nil {
				t.Fatal(err)
			}
			body := string(e.Requests()[0].Body)
			if strings.Contains(body, data) || !strings.Contains(body, "media:"+pic.Ref) ||
				!strings.Contains(body, "image tool") {
				t.Errorf("sent: %s", body)
			}
		})
	})
	t.Run("a stored picture is sent in full with each request", func(t *testing.T) {
		each(t, func(t *testing.T, api string) {
			e := openVision(t, api, true, llmtest.Say("a line"), llmtest.Say("a line"))
			pic, data := e.store(t, 5)
			m := user(llm.Text("what is it?"), pic)
			for range 2 {
				if _, err := e.ask(t, m); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range e.Requests() {
				if !bytes.Contains(r.Body, []byte(data)) || bytes.Contains(r.Body, []byte(pic.Ref)) {
					t.Errorf("sent: %s", r.Body)
				}
			}
			if m.Size() > 2000 || m.Parts[1].Data != nil {
				t.Errorf("the message contains %d bytes", m.Size())
			}
		})
	})
	t.Run("a missing picture is replaced by a note", func(t *testing.T) {
		each(t, func(t *testing.T, api string) {
			e := openVision(t, api, true, llmtest.Say("ok"))
			gone := llm.Part{Kind: llm.PartImage, MIME: media.PNG, Ref: strings.Repeat("0", 32), Bytes: 9}
			if _, err := e.ask(t, user(llm.Text("see"), gone)); err != nil ||
				!bytes.Contains(e.Requests()[0].Body, []byte("its file is missing")) {
				t.Errorf("%v, sent %s", err, e.Requests()[0].Body)
			}
		})
	})
	t.Run("PROV-15 a picture in a result follows in a message of the user", func(t *testing.T) {
		t.Parallel()
		e := openVision(t, standard.OpenAI, true, llmtest.Say("ok"))
		pic, data := e.store(t, 5)
		call := &llm.Message{Role: llm.RoleAssistant, Stop: llm.StopTools, Parts: []llm.Part{
			{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "c", Name: "read", Args: json.RawMessage(`{}`)}},
		}}
		if _, err := e.ask(t, user(llm.Text("look")), call,
			&llm.Message{Role: llm.RoleTool, CallID: "c", ToolName: "read", Parts: []llm.Part{pic}}); err != nil {
			t.Fatal(err)
		}
		var sent struct {
			Messages []struct {
				Role    string
				Content json.RawMessage
			}
		}
		if err := json.Unmarshal(e.Requests()[0].Body, &sent); err != nil {
			t.Fatal(err)
		}
		var roles []string
		for _, m := range sent.Messages {
			roles = append(roles, m.Role)
			if bytes.Contains(m.Content, []byte(data)) != (m.Role == "user" && len(roles) == len(sent.Messages)) {
				t.Errorf("message %d of %s: %s", len(roles), m.Role, m.Content)
			}
		}
		if got := fmt.Sprint(roles); got != "[user assistant tool user]" {
			t.Errorf("roles %s", got)
		}
	})
}

// TestRefusedImages checks what happens when a service refuses one of three pictures.
func TestRefusedImages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, api, words string
		bad              int // which of the pictures is replaced
	}{
		{"PROV-22 Anthropic names the place", standard.Anthropic,
			"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum", 0},
		{"PROV-22 Anthropic names a place in a result", standard.Anthropic,
			"messages.2.content.0.tool_result.content.1.image.source.base64: image dimensions exceed 8000 pixels", 1},
		{"PROV-22 OpenAI names the place", standard.OpenAI,
			"Invalid value: 'messages[0].content[1].image_url'. The image is not supported", 0},
		{"PROV-22 no place is named: the last one", standard.OpenAI, "You uploaded an unsupported image.", 2},
		{"PROV-22 a place that is none: the last one", standard.Anthropic,
			"messages.9.content.7: Could not process image", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := openVision(t, c.api, true, llmtest.Status(400, c.words), llmtest.Say("I see two"), llmtest.Say("still two"))
			var pics [3]llm.Part
			var data [3]string
			for i := range pics {
				pics[i], data[i] = e.store(t, 3+i)
			}
			call := &llm.Message{Role: llm.RoleAssistant, Stop: llm.StopTools, Parts: []llm.Part{
				{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "c", Name: "read", Args: json.RawMessage(`{}`)}},
			}}
			msgs := []*llm.Message{
				user(llm.Text("one"), pics[0]), call,
				{Role: llm.RoleTool, CallID: "c", ToolName: "read", Parts: []llm.Part{llm.Text("two"), pics[1]}},
				user(llm.Text("three"), pics[2]),
			}
			done, err := e.ask(t, msgs...)
			if err != nil || done.Message.PlainText() != "I see two" || !strings.Contains(done.Note, "left out") ||
				!strings.Contains(done.Note, "image") {
				t.Fatalf("%+v, note %q, %v", done.Message, done.Note, err)
			}
			again, err := e.ask(t, msgs...) // it is not tried again
			if err != nil || again.Message.PlainText() != "still two" || again.Note != "" || len(e.Requests()) != 3 {
				t.Errorf("the next turn: %+v, note %q, %v, %d calls", again.Message, again.Note, err, len(e.Requests()))
			}
			for n, r := range e.Requests() {
				for i := range data {
					if sent := bytes.Contains(r.Body, []byte(data[i])); sent != (n == 0 || i != c.bad) {
						t.Errorf("call %d: picture %d was sent: %v", n, i, sent)
					}
				}
				if noted := bytes.Contains(r.Body, []byte("media:"+pics[c.bad].Ref)); noted != (n > 0) {
					t.Errorf("call %d: has the note: %v", n, noted)
				}
			}
			if msgs[0].Parts[1].Ref != pics[0].Ref || msgs[3].Parts[1].Ref != pics[2].Ref {
				t.Error("the transcript has lost a reference")
			}
		})
	}
	t.Run("PROV-22 only one further call", func(t *testing.T) {
		t.Parallel()
		e := openVision(t, standard.Anthropic, true, llmtest.Status(400, "Could not process image"),
			llmtest.Status(400, "Could not process image"))
		pic, _ := e.store(t, 3)
		other, _ := e.store(t, 4)
		if _, err := e.ask(t, user(llm.Text("x"), pic, other)); llm.ClassOf(err) != llm.ClassFormat ||
			len(e.Requests()) != 2 {
			t.Errorf("%v after %d calls", err, len(e.Requests()))
		}
	})
	t.Run("another refusal is not tried again", func(t *testing.T) {
		t.Parallel()
		e := openVision(t, standard.Anthropic, true, llmtest.Status(400, "max_tokens: too large"))
		pic, _ := e.store(t, 3)
		if _, err := e.ask(t, user(llm.Text("x"), pic)); llm.ClassOf(err) != llm.ClassFormat || len(e.Requests()) != 1 {
			t.Errorf("%v after %d calls", err, len(e.Requests()))
		}
	})
}
