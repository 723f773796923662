package chelatest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/wire"
)

// listeners returns the TCP ports on which a process listens.
func listeners(t *testing.T, pid int) []string {
	t.Helper()
	own := map[string]bool{}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		t.Fatalf("the files of process %d: %v, %v", pid, fds, err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:[") {
			own[strings.Trim(to, "socket:[]")] = true
		}
	}
	var out []string
	for _, table := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if os.IsNotExist(err) {
			continue // a machine without IPv6
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			const listening = "0A"
			if f := strings.Fields(line); len(f) > 9 && f[3] == listening && own[f[9]] {
				out = append(out, f[1])
			}
		}
	}
	return out
}

func TestOnePort(t *testing.T) {
	t.Parallel()
	t.Run("GW-15 everything is on one port", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		writeConfig(t, dir, Config{
			"gateway": json.RawMessage(`{"auth": {"mode": "token", "token": "` + nodeToken +
				`"}, "http": {"endpoints": {"chatCompletions": {"enabled": true}}}}`),
			"canvasHost": json.RawMessage(`{"enabled": true}`),
		})
		p := spawn(t, dir, "", childListen+"=1")
		defer p.stop(t)
		b, err := os.ReadFile(filepath.Join(dir, "url.txt"))
		if err != nil {
			t.Fatal(err)
		}
		base := "http" + strings.TrimPrefix(string(b), "ws")
		c, err := client.Dial(t.Context(), client.Options{
			URL:  string(b),
			Auth: &wire.Auth{Token: nodeToken},
			ID:   "chela",
			Mode: wire.ModeCLI,
			Once: true,
		})
		if err != nil {
			t.Fatalf("WebSocket: %v", err)
		}
		defer c.Close()
		var health json.RawMessage
		if err := c.Call(t.Context(), wire.MethodHealth, nil, &health); err != nil ||
			!strings.Contains(string(health), `"ok":true`) {
			t.Errorf("RPC: %s, %v", health, err)
		}
		for _, r := range []struct{ name, method, path, body, want string }{
			{"health", http.MethodGet, "/healthz", "", `"ok":true`},
			{"the page", http.MethodGet, "/", "", "<html"},
			{"the assistant as a model", http.MethodPost, "/v1/chat/completions",
				`{"model": "chela", "messages": [{"role": "user", "content": "hello"}]}`, `"choices":[`},
			{"a tool", http.MethodPost, "/tools/invoke", `{"tool": "session_status"}`, `"ok":true`},
			{"the canvas", http.MethodGet, strings.TrimPrefix(c.Hello().Surfaces[wire.SurfaceCanvas], base) +
				"/__openclaw__/a2ui/", "", "<html"},
		} {
			if r.path == "" || strings.Contains(r.path, "://") {
				t.Errorf("%s is at %q, which is not below %s", r.name, c.Hello().Surfaces, base)
				continue
			}
			q, err := http.NewRequestWithContext(t.Context(), r.method, base+r.path, strings.NewReader(r.body))
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("Authorization", "Bearer "+nodeToken)
			q.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultClient.Do(q)
			if err != nil {
				t.Fatalf("%s: %v", r.name, err)
			}
			got, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != http.StatusOK || !strings.Contains(strings.ToLower(string(got)), r.want) {
				t.Errorf("%s: %d %.300s", r.name, res.StatusCode, got)
			}
		}
		if got := listeners(t, p.Process.Pid); len(got) != 1 {
			t.Errorf("the process listens on %v, want one port", got)
		}
	})
	t.Run("CF-17 a file .env of the workspace sets nothing of the gateway", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "workspace"), 0o700); err != nil {
			t.Fatal(err)
		}
		const other = "a-token-that-somebody-left-in-the-workspace"
		if err := os.WriteFile(filepath.Join(dir, "workspace", ".env"),
			[]byte("OPENCLAW_GATEWAY_TOKEN="+other+"\nCHELA_GATEWAY_TOKEN="+other+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		g := nodesGateway(t, Options{Dir: dir})
		for token, want := range map[string]bool{nodeToken: true, other: false} {
			c, err := client.Dial(t.Context(), client.Options{
				URL:  g.URL(),
				Auth: &wire.Auth{Token: token},
				ID:   "chela",
				Mode: wire.ModeCLI,
				Once: true,
			})
			if err == nil {
				c.Close()
			}
			if (err == nil) != want {
				t.Errorf("%s: %v", token, err)
			}
		}
	})
}
