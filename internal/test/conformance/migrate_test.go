//go:build conformance

package conformance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// used returns a person who has used the kit's openclaw: two agents talked, a conversation
// was begun anew, jobs were added and commands allowed, and somebody was admitted on
// Telegram.
func used(t *testing.T, k kit) *person {
	model := httptest.NewServer(http.HandlerFunc(lenientModel))
	t.Cleanup(model.Close)
	port := freePort(t)
	p := newPerson(t, k, section{
		"agents": section{"defaults": section{"model": section{"primary": "mock/m"}, "skipBootstrap": true}},
		"models": section{"mode": "merge", "providers": section{"mock": section{
			"baseUrl": model.URL + "/v1", "api": "openai-completions", "apiKey": "the-key-of-the-model",
			"models": []section{{"id": "m", "name": "Mock", "input": []string{"text"}, "contextWindow": 128000,
				"maxTokens": 4096}},
		}}},
		"channels": section{"telegram": section{"enabled": false, "botToken": "123456:not-a-real-token",
			"dmPolicy": "pairing"}},
		"gateway": section{"mode": "local", "port": port, "bind": "loopback",
			"auth": section{"mode": "token", "token": token}},
	})
	state := filepath.Join(p.Home, ".openclaw")
	for name, text := range map[string]string{
		"credentials/telegram-allowFrom.json": `{"version":1,"allowFrom":["4242"]}`,
		"workspace/MEMORY.md":                 "Ada likes crabs.\n",
		"skills/greet/SKILL.md":               "---\nname: greet\ndescription: Greets people in a friendly way.\n---\nSay hello.\n",
	} {
		file := filepath.Join(state, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must := func(args ...string) {
		t.Helper()
		if a := p.Run(args...); a.Code != 0 {
			t.Fatalf("openclaw %s: %+v", strings.Join(args, " "), a)
		}
	}
	must("agents", "add", "work", "--non-interactive", "--workspace",
		filepath.Join(state, "workspace-work"), "--model", "mock/m")
	stop := p.serve(port)
	for _, c := range [][]string{
		{"main", "hello there"}, {"main", "/new"}, {"main", "after the reset"}, {"main", "tell me at length"},
		{"work", "work, please 中文"},
	} {
		must("agent", "--agent", c[0], "-m", c[1])
	}
	must("cron", "add", "--name", "nap", "--agent", "main", "--every", "2h", "--session", "main",
		"--system-event", "stretch")
	must("cron", "add", "--name", "later", "--agent", "main", "--at",
		time.Now().AddDate(5, 0, 0).UTC().Format(time.RFC3339), "--session", "main", "--system-event",
		"the future", "--disabled")
	must("approvals", "allowlist", "add", "--agent", "main", "/usr/bin/uptime")
	stop()
	return p
}

// lenientModel is a model service that takes any request, unlike that of the other tests: OpenClaw
// sends fields that only the service of OpenAI knows.
func lenientModel(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a test with a part of it fails
	text := "Understood."
	if bytes.Contains(body, []byte("at length")) {
		text = "At length: " + strings.Repeat("word ", 1000) + "end."
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, choice := range []string{
		fmt.Sprintf(`{"index":0,"delta":{"role":"assistant","content":%q},"finish_reason":null}`, text),
		`{"index":0,"delta":{},"finish_reason":"stop"}`,
	} {
		fmt.Fprintf(w,
			"data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[%s]}\n\n",
			choice)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// serve runs the person's gateway until stop is called.
func (p *person) serve(port int) (stop func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var log output
	cmd := p.command(ctx, "gateway", "run", "--port", strconv.Itoa(port))
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = cmd.Wait() }() // it is stopped by a signal
	end := func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-done:
		case <-time.After(time.Minute):
		}
		cancel()
		<-done
	}
	p.t.Cleanup(func() {
		end()
		if p.t.Failed() {
			p.t.Logf("log of OpenClaw:\n%s", log.String())
		}
	})
	for limit := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) { // it loads for a long time
		conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), time.Second)
		if err == nil {
			_ = conn.Close()
			return end
		}
		if time.Now().After(limit) {
			p.t.Fatalf("OpenClaw's gateway does not start: %v", err)
		}
	}
}

// chelaAs runs chela in the person's home folder.
func (p *person) chelaAs(args ...string) string {
	p.t.Helper()
	cmd := exec.Command(chela, args...)
	cmd.Dir, cmd.Env = p.Home, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.Home, "NO_COLOR=1", "TZ=UTC"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("chela %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// contents returns the files of a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			b, err := os.ReadFile(name)
			all[name] = string(b)
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestMigrate moves in from folders that the real program made.
func TestMigrate(t *testing.T) {
	t.Parallel()
	for _, k := range []kit{current(), older()} {
		t.Run(k.Needs["openclaw"], func(t *testing.T) {
			t.Parallel()
			p := used(t, k)
			before := contents(t, filepath.Join(p.Home, ".openclaw"))
			plan := p.chelaAs("migrate", "openclaw")
			for _, want := range []string{"Nothing was changed", "agent:main:main", "in 2 transcripts", "agent:work:main", "nap",
				"later", "telegram 4242", "1 allowed command of main", "skills/greet"} {
				if !strings.Contains(plan, want) {
					t.Errorf("the plan does not name %q", want)
				}
			}
			if t.Failed() {
				t.Log(plan)
			}
			done := p.chelaAs("migrate", "openclaw", "--apply", "--yes")
			for _, out := range []string{plan, done} {
				if strings.Contains(out, "the-key-of-the-model") || strings.Contains(out, token) ||
					strings.Contains(out, "not-a-real-token") {
					t.Error("a secret is printed")
				}
			}
			p.checkMoved()
			if again := p.chelaAs("migrate", "openclaw", "--apply", "--yes"); !strings.Contains(again,
				"Everything is here already") {
				t.Errorf("again: %s", again)
			}
			for name, text := range contents(t, filepath.Join(p.Home, ".openclaw")) {
				if before[name] != text {
					t.Errorf("%s was changed", name)
				}
				delete(before, name)
			}
			if len(before) > 0 {
				t.Errorf("removed: %v", before)
			}
			p.chelaAs("migrate", "openclaw", "--undo", "--yes")
			if out := p.chelaAs("sessions", "list"); !strings.Contains(out, "there are no sessions") {
				t.Errorf("after the undo: %s", out)
			}
			if _, err := os.Stat(filepath.Join(p.Home, ".chela", "workspace", "MEMORY.md")); err == nil {
				t.Error("MEMORY.md is still there")
			}
		})
	}
}

// checkMoved looks at what arrived.
func (p *person) checkMoved() {
	p.t.Helper()
	if out := p.chelaAs("sessions", "list"); !strings.Contains(out, "agent:main:main") ||
		!strings.Contains(out, "agent:work:main") {
		p.t.Errorf("sessions: %s", out)
	}
	for key, want := range map[string][]string{
		"agent:main:main": {"after the reset", "Understood.", "word end."},
		"agent:work:main": {"work, please 中文"},
	} {
		out := p.chelaAs("sessions", "export", key)
		for _, w := range want {
			if !strings.Contains(out, w) {
				p.t.Errorf("%s: no %q in\n%s", key, w, out)
			}
		}
		if strings.Contains(out, "hello there") {
			p.t.Errorf("%s: what was before the reset is not archived", key)
		}
	}
	if out := p.chelaAs("cron", "list", "--all"); !strings.Contains(out, "nap") || !strings.Contains(out, "later") ||
		strings.Contains(out, "heartbeat") {
		p.t.Errorf("jobs: %s", out)
	}
	if out := p.chelaAs("pairing", "list"); !strings.Contains(out, "4242") {
		p.t.Errorf("people: %s", out)
	}
	if b, err := os.ReadFile(filepath.Join(p.Home, ".chela", "workspace", "MEMORY.md")); err != nil ||
		!bytes.Contains(b, []byte("crabs")) {
		p.t.Errorf("MEMORY.md: %q, %v", b, err)
	}
	if out := p.chelaAs("config", "validate"); !strings.Contains(out, "is valid") {
		p.t.Error(out)
	}
	if out := p.chelaAs("skills", "list"); !strings.Contains(out, "greet") {
		p.t.Errorf("skills: %s", out)
	}
}
