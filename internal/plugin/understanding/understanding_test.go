package understanding

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{}`: "",
		``:   "",
		`{"audio": {"models": [{"command": "whisper"}]}}`:  "",
		`{"models": [{"provider": "groq", "model": "w"}]}`: "",
		`{"models": [{"type": "magic"}]}`:                  "models[0]: type",
		`{"audio": {"models": [{"type": "cli"}]}}`:         "audio.models[0]: command is missing",
		`{"image": {"models": [{"model": "x"}]}}`:          "image.models[0]: provider is missing",
		`{"concurrency": "many"}`:                          "concurrency",
	} {
		_, err := ParseConfig([]byte(raw))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
	c, err := ParseConfig([]byte(`{
		"models": [{"provider": "a", "model": "sees"}, {"command": "hears"}, {"provider": "b", "model": "all", "capabilities": ["image", "audio", "video"]}],
		"audio": {"preferredModel": "p/first", "models": [{"provider": "own", "model": "x"}]},
		"scope": {"rules": [{"action": "deny", "match": {"chatType": "group"}}, {"action": "deny", "match": {"keyPrefix": "agent:work:"}}]},
		"image": {"enabled": false}}`))
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range map[media.Kind]string{
		media.Audio:   "[p/first own/x hears b/all]",
		media.Picture: "[a/sees b/all]",
		media.Video:   "[b/all]",
	} {
		var got []string
		for _, m := range c.models(k) {
			got = append(got, m.name())
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", k, got, want)
		}
	}
	chat := Caller{Session: "agent:main:main"}
	crowd := Caller{Session: "agent:main:x",
		Address: chela.Address{Channel: "c", Peer: chela.Peer{Kind: chela.Group, ID: "g"}}}
	if !c.reads(media.Audio, chat) || c.reads(media.Picture, chat) || c.reads(media.Audio, crowd) ||
		c.reads(media.Audio, Caller{Session: "agent:work:main"}) || c.reads(media.Other, chat) {
		t.Error("the scope is not respected")
	}
	for p, want := range map[Attachments]string{
		{}:                                    "[0]",
		{Prefer: "last"}:                      "[4]",
		{Mode: "all"}:                         "[0 1 2 3 4]",
		{Mode: "all", Max: 2}:                 "[0 1]",
		{Mode: "all", Max: 2, Prefer: "last"}: "[3 4]",
	} {
		c := Config{Attachments: p}
		if got := fmt.Sprint(c.choose(media.Audio, []int{0, 1, 2, 3, 4})); got != want {
			t.Errorf("%+v: %s, want %s", p, got, want)
		}
	}
}

// reader returns an Understander with the ways.
func reader(c Config, ways ...Way) (*Understander, *[]llm.Usage) {
	recorded, mu := new([]llm.Usage), sync.Mutex{}
	return New(Options{
		Log: slog.New(slog.DiscardHandler), Config: c, Load: func(m chela.Media) (chela.Media, error) { return m, nil },
		Found:   func(media.Kind, Caller) []Way { return ways },
		Extract: func(_ context.Context, _ string, data []byte) (string, error) { return string(data), nil },
		Record: func(_ context.Context, _ Caller, _ llm.Model, u llm.Usage) error {
			mu.Lock()
			defer mu.Unlock()
			*recorded = append(*recorded, u)
			return nil
		},
		Cache: new(Cache),
	}), recorded
}

func said(text string) Way {
	return Way{Name: "said", Reader: media.ReaderFunc(func(context.Context, media.Input) (media.Reading, error) {
		return media.Reading{Text: text, Model: llm.Model{Provider: "p", ID: "m"}, Usage: llm.Usage{Input: 3}}, nil
	})}
}

func failed(err error) Way {
	return Way{Name: "failed",
		Reader: media.ReaderFunc(func(context.Context, media.Input) (media.Reading, error) { return media.Reading{}, err })}
}

func sound(n int) chela.Media {
	return chela.Media{Type: "audio/ogg", Data: bytes.Repeat([]byte("a"), n)}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		config        Config
		ways          []Way
		in            chela.Media
		text, problem string
		calls         int
	}{
		{name: "the first way that succeeds", ways: []Way{failed(errors.New("no")), said("hi"), said("ho")},
			in: sound(2000), text: "hi", calls: 1},
		{name: "no way", in: sound(2000), problem: "not read: no service or program is configured for it"},
		{name: "all ways fail", ways: []Way{failed(errors.New("first")), failed(errors.New("second"))}, in: sound(2000),
			problem: "not read: first"},
		{name: "silence", ways: []Way{said(" \n")}, in: sound(2000), text: silence, calls: 1},
		{name: "short", ways: []Way{said("hi")}, in: sound(1023), problem: "skipped: the recording is too short"},
		{name: "long", ways: []Way{said("hi")}, in: sound(2000), config: Config{Audio: Ability{MaxBytes: 1500}},
			problem: "skipped: 2 KB, at most 1.5 KB are read"},
		{name: "a long text", ways: []Way{said(strings.Repeat("界", 100))}, in: sound(2000),
			config: Config{Audio: Ability{MaxChars: 10}}, text: strings.Repeat("界", 9) + "…", calls: 1},
		{name: "a way with a limit", ways: []Way{{Name: "small", MaxBytes: 1000, Reader: said("x").Reader}, said("hi")},
			in: sound(2000), text: "hi", calls: 1},
	} {
		u, recorded := reader(c.config, c.ways...)
		got, err := u.Read(t.Context(), Caller{}, []chela.Media{c.in}, media.Audio)
		if err != nil || got[0].Text != c.text || got[0].Problem != c.problem || len(*recorded) != c.calls {
			t.Errorf("%s: text %q, problem %q, %d calls, %v", c.name, got[0].Text, got[0].Problem, len(*recorded), err)
		}
		if again := u.Reads(Caller{}, got, media.Audio); again {
			t.Errorf("%s: it would be read again", c.name)
		}
	}
	t.Run("the same content is read once", func(t *testing.T) {
		u, recorded := reader(Config{}, said("hi"))
		m := sound(2000)
		m.Ref = "r"
		m.Bytes = 2000
		for range 3 {
			if got, err := u.Read(t.Context(), Caller{}, []chela.Media{m}, media.Audio); err != nil || got[0].Text != "hi" {
				t.Errorf("%+v, %v", got, err)
			}
		}
		if len(*recorded) != 1 {
			t.Errorf("%d calls", len(*recorded))
		}
	})
	t.Run("attachments of two kinds; the given list stays as it is", func(t *testing.T) {
		u, _ := reader(Config{}, said("hi"))
		list := []chela.Media{{Name: "a.txt", Type: "text/plain", Data: []byte("Tea at five.")}, sound(2000)}
		got, err := u.Read(t.Context(), Caller{}, list, media.Document, media.Audio)
		if err != nil || !strings.Contains(got[0].Text, "Tea at five.") || got[1].Text != "hi" ||
			list[0].Text+list[1].Text != "" {
			t.Errorf("%+v, %v; given %+v", got, err, list)
		}
	})
	t.Run("a document without text, and a long one", func(t *testing.T) {
		u, _ := reader(Config{Document: Ability{MaxChars: 5}})
		list := []chela.Media{{Name: "empty.txt", Type: "text/plain", Data: []byte(" ")},
			{Name: "long.txt", Type: "text/plain", Data: []byte("123456789")}}
		got, err := u.Read(t.Context(), Caller{}, list, media.Document)
		if err != nil || got[0].Problem != "not read: it contains no text" ||
			!strings.Contains(got[1].Text, "\n---\n1234…\n") ||
			!strings.Contains(got[1].Text, "Only the first 5 of 9 characters") {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("a way that hangs is given up, and no more are read at once than configured", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			now, most := 0, 0
			hangs := Way{Name: "hangs", Timeout: time.Second,
				Reader: media.ReaderFunc(func(ctx context.Context, _ media.Input) (media.Reading, error) {
					mu.Lock()
					now++
					most = max(most, now)
					mu.Unlock()
					<-ctx.Done()
					mu.Lock()
					now--
					mu.Unlock()
					return media.Reading{}, ctx.Err()
				})}
			u, _ := reader(Config{Concurrency: 3, Attachments: Attachments{Mode: "all", Max: 9}}, hangs, said("hi"))
			var list []chela.Media
			for range 9 {
				list = append(list, sound(2000))
			}
			begun := time.Now()
			got, err := u.Read(t.Context(), Caller{}, list, media.Audio)
			if took := time.Since(begun); err != nil || got[8].Text != "hi" || took != 3*time.Second || most != 3 {
				t.Errorf("%v after %s, at most %d at once: %+v", err, took, most, got[8])
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if _, err := u.Read(ctx, Caller{}, list, media.Audio); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("with an ended context: %v", err)
			}
		})
	})
}

// transport answers a request without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, kind, body string) transport {
	return func(r *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, r.Body)
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}},
			Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
}

func TestSpeech(t *testing.T) {
	t.Parallel()
	m := llm.Model{Provider: "p", ID: "m"}
	for _, c := range []struct {
		name, text, err string
		transport       transport
	}{
		{"json", "hello", "", answer(200, "application/json", `{"text": "hello"}`)},
		{"text", "hello", "", answer(200, "text/plain", "hello")},
		{"no transcript", "", "the answer is no transcript", answer(200, "text/html", "<html>")},
		{"too long", "", "too long", answer(200, "application/json", `{"text": "`+strings.Repeat("a", maxResponse)+`"}`)},
		{"an error with the key", "", "p/m: p/m: auth (http 401): bad key [redacted]",
			answer(401, "application/json", `{"error": {"message": "bad key sk-topsecret-1234"}}`)},
		{"a redirect", "", "http 302", answer(302, "", "")},
	} {
		r, err := Speech(dialect.Options{BaseURL: "http://h/v1", Key: secret.New("sk-topsecret-1234"),
			HTTP: &http.Client{Transport: c.transport}}, m).Read(t.Context(), media.Input{Type: "audio/ogg", Data: []byte("x")})
		if r.Text != c.text || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", c.name, r.Text, err)
		}
	}
	t.Run("the request", func(t *testing.T) {
		var got *http.Request
		see := transport(func(r *http.Request) (*http.Response, error) {
			got = r
			if err := r.ParseMultipartForm(1 << 20); err != nil {
				t.Error(err)
			}
			return answer(200, "application/json", `{"text": "", "usage": {"input_tokens": 7, "output_tokens": 2}}`)(r)
		})
		o := dialect.Options{BaseURL: "http://h", Key: secret.New("k"), Header: http.Header{"X-Own": {"1"}},
			HTTP: &http.Client{Transport: see}}
		r, err := Speech(o, m).Read(t.Context(), media.Input{Type: "audio/mp4", Data: []byte("sound"), Language: "de"})
		if err != nil || r.Usage != (llm.Usage{Input: 7, Output: 2}) || r.Model.Ref() != "p/m" {
			t.Fatalf("%+v, %v", r, err)
		}
		f := got.MultipartForm
		if got.URL.String() != "http://h/v1/audio/transcriptions" || got.Header.Get("Authorization") != "Bearer k" ||
			got.Header.Get("X-Own") != "1" ||
			fmt.Sprint(f.Value) != "map[language:[de] model:[m] response_format:[json]]" ||
			f.File["file"][0].Filename != "audio.m4a" {
			t.Errorf("%s %v %v", got.URL, got.Header, f.Value)
		}
	})
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := Programs{sandbox.Programs{Broker: host.New(""), Environ: []string{"PATH=/usr/bin:/bin", "SECRET=x"},
		Dir: filepath.Join(dir, "files")}}
	for _, c := range []struct {
		name, program string
		args          []string
		text, err     string
	}{
		{"what it prints", "sh", []string{"-c", `cat "$0"; echo " $1 $SECRET"`, "{{AttachmentPath}}", "{{MaxChars}}"},
			"sound 12", ""},
		{"the file that it leaves", "sh", []string{"-c", `cp "$0" "$1.txt"`, "{{MediaPath}}", "{{OutputBase}}"}, "sound", ""},
		{"nothing", "true", nil, "", ""},
		{"it fails", "sh", []string{"-c", "echo loading >&2; echo no model >&2; exit 3"}, "", "sh: exit status 3: no model"},
		{"it prints too much", "sh", []string{"-c", "yes"}, "", "printed too much"},
		{"it does not exist", "no-such-program", nil, "", "the program no-such-program was not found"},
	} {
		r, err := p.Reader(c.program, c.args).Read(t.Context(),
			media.Input{Type: "audio/ogg", Data: []byte("sound"), MaxChars: 12})
		if r.Text != c.text || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", c.name, r.Text, err)
		}
	}
	if left, err := os.ReadDir(p.Dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"whisper-cli", "whisper"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.Environ = []string{"PATH=" + bin}
	for model, want := range map[string]string{"": "[whisper]", "/m": "[whisper-cli whisper]"} {
		var got []string
		for _, w := range p.Local(func(name string) string { return map[string]string{"WHISPER_CPP_MODEL": model}[name] }) {
			got = append(got, w.Name)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("with the model %q: %v, want %s", model, got, want)
		}
	}
}

// document returns a word processor document with the XML.
func document(t testing.TB, xml string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("word/document.xml")
	if err == nil {
		_, err = io.WriteString(w, xml)
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDocx(t *testing.T) {
	t.Parallel()
	for xml, want := range map[string]string{
		`<w:document xmlns:w="w"><w:p><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t></w:r></w:p><w:p><w:r><w:t>three &amp; four</w:t></w:r></w:p></w:document>`: "one\ttwo\nthree & four\n",
		`<w:document xmlns:w="w"><w:p><w:instrText>HYPERLINK</w:instrText><w:t>link</w:t></w:p></w:document>`:                                              "link\n",
		`<a/>`: "",
	} {
		if got, err := docx(document(t, xml)); err != nil || got != want {
			t.Errorf("%s: %q, %v", xml, got, err)
		}
	}
	for _, bad := range [][]byte{nil, []byte("PK\x03\x04"), document(t, "no xml <")} {
		if got, err := docx(bad); err == nil {
			t.Errorf("%q: %q", bad, got)
		}
	}
}

func FuzzDocx(f *testing.F) {
	f.Add(document(f, `<w:document xmlns:w="w"><w:p><w:t>one</w:t></w:p></w:document>`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if text, err := docx(b); err != nil && text != "" {
			t.Errorf("%q with %v", text, err)
		}
	})
}

func FuzzTranscript(f *testing.F) {
	f.Add("application/json", []byte(`{"text": "hello", "usage": {"input_tokens": 1}}`))
	f.Fuzz(func(t *testing.T, kind string, b []byte) {
		r, err := (&speech{}).decode(kind, b)
		if err != nil && r.Text != "" {
			t.Errorf("%q with %v", r.Text, err)
		}
	})
}
