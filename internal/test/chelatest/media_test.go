package chelatest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/wire"
)

// photo returns an incompressible JPEG of about n bytes.
func photo(t testing.TB, size int) []byte {
	t.Helper()
	side := 200
	for {
		m := image.NewRGBA(image.Rect(0, 0, side, side))
		_, _ = rand.NewChaCha8([32]byte{1}).Read(m.Pix)
		var b bytes.Buffer
		if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 90}); err != nil {
			t.Fatal(err)
		}
		if b.Len() >= size {
			return b.Bytes()
		}
		side = int(float64(side)*math.Sqrt(float64(size)/float64(b.Len()))) + 10
	}
}

func dot(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// show sends a picture and waits for the answer.
func (c *Client) show(session, text string, pic []byte) Ended {
	c.t.Helper()
	id, err := c.Client.Send(c.t.Context(), session, text,
		wire.Attachment{Type: "image", MIME: "image/jpeg", FileName: "a.jpg", Content: pic})
	if err != nil {
		c.t.Fatalf("send %q: %v", text, err)
	}
	return c.Await(id)
}

func (c *Client) history(session string) []wire.Message {
	c.t.Helper()
	var h wire.History
	c.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: session}, &h)
	return h.Messages
}

// pictures returns the stored files, without the scaled copies.
func pictures(t testing.TB, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(dir, media.Dir))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		if info, err := e.Info(); err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", e.Name(), info.Mode())
		}
		if !strings.Contains(e.Name(), "-") {
			out = append(out, e.Name())
		}
	}
	return out
}

// copied returns the size of the database without its log.
func (c *Client) copied() int64 {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "copy.db")
	c.must(wire.MethodBackupCreate, wire.BackupCreate{Path: file}, nil)
	info, err := os.Stat(file)
	if err != nil {
		c.t.Fatal(err)
	}
	return info.Size()
}

func TestPictures(t *testing.T) {
	t.Parallel()
	const size = 3 << 20
	srv := llmtest.ServerFunc(t, llmtest.Anthropic, func(int, llmtest.ReceivedRequest) llmtest.Step {
		s := llmtest.Say("I see noise")
		s.Usage = &llm.Usage{Input: 20_000, Output: 5}
		return s
	})
	url, hc := srv.Listen()
	dir, pic := t.TempDir(), photo(t, size)
	conf := seeing(llmtest.Anthropic, url)
	g := Start(t, Options{Dir: dir, HTTP: hc, Config: conf})
	c := g.Client()
	c.Ask("main", "before")
	empty := c.copied()
	for n := range 10 {
		if end := c.show("main", fmt.Sprint("turn ", n), pic); end.Text != "I see noise" {
			t.Fatalf("turn %d: %s %q %s", n, end.State, end.Text, end.Error)
		}
	}
	grown := c.copied() - empty
	t.Logf("10 turns with a picture of %d bytes: the database grew by %d bytes", len(pic), grown)
	if grown > size/10 {
		t.Errorf("the database grew by %d bytes", grown)
	}
	if got := pictures(t, dir); len(got) != 1 {
		t.Errorf("one picture is stored as %q", got)
	}
	last := srv.Requests()[10].Body
	if n := bytes.Count(last, []byte(`"type":"image"`)); n != 10 || len(last) > 10*size {
		t.Errorf("%d pictures were sent in %d bytes", n, len(last))
	}
	msgs := c.history("main")
	shown := msgs[len(msgs)-2].Content[0]
	if shown.Type != wire.ContentImage || shown.MIME != "image/jpeg" || shown.Bytes != 0 && shown.Data != nil ||
		shown.Bytes == 0 && shown.Data == nil {
		t.Errorf("shown as %s, %d bytes of data, size %d", shown.MIME, len(shown.Data), shown.Bytes)
	}

	t.Run("a copy of the database has its pictures", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "copy.db")
		c.must(wire.MethodBackupCreate, wire.BackupCreate{Path: file}, nil)
		if list, err := os.ReadDir(file + ".media"); err != nil || len(list) != 1 {
			t.Errorf("%d files, %v", len(list), err)
		}
	})
	t.Run("a picture without references is deleted", func(t *testing.T) {
		c.show("other", "a dot", dot(t))
		old := time.Now().Add(-2 * time.Hour)
		for _, name := range pictures(t, dir) {
			if err := os.Chtimes(filepath.Join(dir, media.Dir, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
		c.must(wire.MethodSessionsReset, map[string]any{"key": "agent:main:other"}, nil)
		c.must(wire.MethodSessionsDelete, map[string]any{"key": "agent:main:other"}, nil)
		waittest.Until(t, "only one picture", func() bool { return len(pictures(t, dir)) == 1 })
		if end := c.Ask("main", "still there?"); end.Text != "I see noise" {
			t.Errorf("%s %q %s", end.State, end.Text, end.Error)
		}
	})
}

// TestPictureKinds sends attachments of different types.
func TestPictureKinds(t *testing.T) {
	t.Parallel()
	script := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		switch {
		case last.Role == llm.RoleUser && strings.Contains(last.PlainText(), "read it"):
			return llmtest.Call("c1", "read", `{"path":"dot.png"}`)
		case last.Role == llm.RoleTool:
			return llmtest.Say(fmt.Sprint("a picture: ", last.Parts[len(last.Parts)-1].Ref != ""))
		}
		return llmtest.Say(last.PlainText())
	})
	dir := t.TempDir()
	g := Start(t, Options{Dir: dir, Model: script,
		Config: Config{"agents.defaults": json.RawMessage(`{"skipBootstrap": true}`)}})
	c := g.Client()

	t.Run("a picture in a tool result is stored", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(dir, "workspace", "dot.png"), dot(t), 0o600); err != nil {
			t.Fatal(err)
		}
		if end := c.Ask("main", "read it"); end.Text != "a picture: true" {
			t.Errorf("%s %q %s", end.State, end.Text, end.Error)
		}
		if n := len(pictures(t, dir)); n != 1 {
			t.Errorf("%d files", n)
		}
		msgs := c.history("main")
		if shown := msgs[2].Content[1]; !bytes.Equal(shown.Data, dot(t)) || shown.MIME != "image/png" {
			t.Errorf("shown: %+v", shown)
		}
	})
	t.Run("the type is detected from the content", func(t *testing.T) {
		c.show("typed", "a wrong MIME type", dot(t))
		if shown := c.history("typed")[0].Content[0]; shown.MIME != "image/png" || !bytes.Equal(shown.Data, dot(t)) {
			t.Errorf("shown: %+v", shown)
		}
		if end := c.show("typed", "no picture", []byte("#!/bin/sh\n")); !strings.Contains(end.Text,
			"[Document a.jpg]\n<untrusted-content ") || !strings.Contains(end.Text, "#!/bin/sh") {
			t.Errorf("%q", end.Text)
		}
		if msgs := c.history("typed"); msgs[len(msgs)-2].Text() != "no picture\n\n[Document a.jpg]" {
			t.Errorf("the person is shown %q", msgs[len(msgs)-2].Text())
		}
	})
	for name, data := range map[string][]byte{
		"a bomb": append(
			[]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\xff\xff\x00\x00\xff\xff\x08\x06\x00\x00\x00"),
			make([]byte, 40)...),
		"too large": append(dot(t), make([]byte, media.MaxImage)...),
		"damaged":   dot(t)[:30],
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			_, err := c.Client.Send(t.Context(), "refused", "look",
				wire.Attachment{MIME: "image/png", FileName: "b.png", Content: data})
			if err == nil || !strings.Contains(err.Error(), `attachment "b.png"`) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestOldPictures opens a database with pictures in its rows.
func TestOldPictures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "chela.db")})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	err = db.Update(t.Context(), store.Synced, func(tx store.Tx) error {
		m := session.Meta{Key: "agent:main:main", ID: "t", Agent: "main", Created: now, Started: now, Updated: now}
		if err := tx.Sessions().Put(m); err != nil {
			return err
		}
		return tx.Sessions().Append("t",
			&session.Entry{ID: "e1", Kind: session.KindMessage, Time: now, NanoUSD: -1, Message: &llm.Message{
				Role: llm.RoleUser, Parts: []llm.Part{llm.Image("image/png", dot(t)), llm.Text("look")},
			}},
			&session.Entry{ID: "e2", Kind: session.KindMessage, Time: now, NanoUSD: -1, Message: &llm.Message{
				Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text("a dot")}, Provider: "p", Model: "m", Stop: llm.StopEnd,
			}})
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	srv := llmtest.NewServer(t, llmtest.OpenAI, llmtest.Say("it is still a dot"))
	url, hc := srv.Listen()
	c := Start(t, Options{Dir: dir, HTTP: hc, Config: seeing(llmtest.OpenAI, url)}).Client()
	if end := c.Ask("main", "and now?"); end.Text != "it is still a dot" {
		t.Errorf("%s %q %s", end.State, end.Text, end.Error)
	}
	if !bytes.Contains(srv.Requests()[0].Body, []byte(base64.StdEncoding.EncodeToString(dot(t)))) {
		t.Error("the picture was not sent")
	}
	if shown := c.history("main")[0].Content[0]; !bytes.Equal(shown.Data, dot(t)) {
		t.Errorf("shown: %+v", shown)
	}
}

// TestVisionModel has a model without vision ask one with vision.
func TestVisionModel(t *testing.T) {
	t.Parallel()
	var ref string
	blind := llmtest.ServerFunc(t, llmtest.OpenAI, func(n int, r llmtest.ReceivedRequest) llmtest.Step {
		body := string(r.Body)
		if i := strings.Index(body, "[image media:"); i >= 0 {
			ref = body[i+len("[image ") : i+len("[image media:")+32]
		}
		if n == 0 {
			return llmtest.Call("c1", "view_image", fmt.Sprintf(`{"path":%q,"prompt":"what colour?"}`, ref))
		}
		return llmtest.Say("it is black")
	})
	eye := llmtest.NewServer(t, llmtest.Anthropic, llmtest.Say("black"))
	url1, _ := blind.Listen()
	url2, _ := eye.Listen()
	conf := Config{
		"agents.defaults": json.RawMessage(`{"model": "blind/m", "imageModel": "eye/see", "skipBootstrap": true}`),
		"models": json.RawMessage(fmt.Sprintf(`{"providers": {
			"blind": {"baseUrl": %q, "api": "openai-completions", "models": [{"id": "m", "contextWindow": 100000}]},
			"eye": {"baseUrl": %q, "api": "anthropic-messages", "apiKey": "sk-x", "models": [{"id": "see", "contextWindow": 100000}]}}}`, url1+"/v1", url2)),
		"tools": json.RawMessage(`{"media": {"image": {"enabled": false}}}`), // or else a description is in the message
	}
	c := Start(t, Options{Config: conf}).Client()
	end := c.show("main", "what is it?", dot(t))
	if end.Text != "it is black" || len(ref) != len("media:")+32 {
		t.Fatalf("%s %q %s, reference %q", end.State, end.Text, end.Error, ref)
	}
	if n := len(eye.Requests()); n != 1 ||
		!bytes.Contains(eye.Requests()[0].Body, []byte(base64.StdEncoding.EncodeToString(dot(t)))) {
		t.Errorf("the model with vision was asked %d times", n)
	}
	if got := c.history("main")[2].Text(); got != "black" {
		t.Errorf("the tool result is %q", got)
	}
	var used json.RawMessage
	c.must(wire.MethodSessionsUsage, map[string]any{}, &used)
	if !bytes.Contains(used, []byte(`"see"`)) {
		t.Errorf("the usage of the call is not recorded: %s", used)
	}
}

// seeing is the configuration of a service whose model accepts pictures.
func seeing(w llmtest.Wire, url string) Config {
	c := modelConfig(w, url)
	c["models"] = bytes.Replace(c["models"], []byte(`"contextWindow"`),
		[]byte(`"input": ["text", "image"], "contextWindow"`), 1)
	return c
}

func TestRefusedPicture(t *testing.T) {
	t.Parallel()
	t.Run("PROV-22 the person gets the answer and a notice, and the transcript keeps the picture", func(t *testing.T) {
		srv := llmtest.NewServer(t, llmtest.Anthropic,
			llmtest.Status(400, "messages.0.content.0.image.source.base64: Could not process image"),
			llmtest.Say("I cannot see it"))
		url, hc := srv.Listen()
		c := Start(t, Options{HTTP: hc, Config: seeing(llmtest.Anthropic, url)}).Client()
		end := c.show("main", "look", dot(t))
		if end.Text != "I cannot see it" || len(srv.Requests()) != 2 {
			t.Fatalf("%s %q %s, %d calls", end.State, end.Text, end.Error, len(srv.Requests()))
		}
		told := false
		for _, e := range end.Seen {
			told = told || bytes.Contains(e.Payload, []byte("an image was left out: the service refused it"))
		}
		if !told {
			t.Error("the person did not get the notice during the run")
		}
		msgs := c.history("main")
		if !bytes.Equal(msgs[0].Content[0].Data, dot(t)) {
			t.Errorf("the picture is shown as %+v", msgs[0].Content[0])
		}
		if notice := msgs[1]; notice.Role != wire.RoleSystem || !strings.Contains(notice.Text(), "Could not process image") {
			t.Errorf("told: %s %q", notice.Role, notice.Text())
		}
	})
}
