package chelatest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/wire"
)

// answered sends a call and answers its questions.
func (c *Client) answered(call, decision string, asks int) Ended {
	c.t.Helper()
	run := c.Send("main", call)
	for range asks {
		c.decide(c.question().ID, decision)
	}
	return c.Await(run)
}

// encodings are the forms of a secret that a program may print.
func encodings(s string) []string {
	back := []byte(s)
	slices.Reverse(back)
	return []string{
		s, base64.StdEncoding.EncodeToString([]byte(s)), base64.StdEncoding.EncodeToString([]byte("x" + s)),
		hex.EncodeToString([]byte(s)),
		strings.ToUpper(hex.EncodeToString([]byte(s))), url.QueryEscape(s), string(back),
	}
}

// TestCanary puts a secret of each kind into the configuration, has tools print
// them, and searches everything that leaves or is stored.
func TestCanary(t *testing.T) {
	t.Run("C1 no secret of the configuration is in a log, transcript, request, event, export or file", func(t *testing.T) {
		outside, state := t.TempDir(), t.TempDir()
		n := 0
		var secrets []string
		fresh := func() string {
			n++
			s := fmt.Sprintf("cnry+%02d/%x", n, 7919*n*n*n+987654321)
			secrets = append(secrets, s)
			return s
		}
		inFile, inEnv := fresh(), fresh()
		plant(t, filepath.Join(outside, "key"), inFile+"\n")
		file := filepath.Join(outside, "chela.json")
		models := fmt.Sprintf(`{"providers": {"mock": {"models": [{"id": "m", "contextWindow": 1000000}]},
			"a": {"baseUrl": "http://user:%s@127.0.0.1:1/v1", "apiKey": %q, "headers": {"X-Odd": %q, "Authorization": "Bearer %s"}},
			"b": {"baseUrl": "http://127.0.0.1:1/v1?api_key=%s", "apiKey": "file:%s"}, "c": {"baseUrl": "http://127.0.0.1:1/v1", "apiKey": "env:FROM_ENV"}}}`,
			url.QueryEscape(fresh()), fresh(), fresh(), fresh(), url.QueryEscape(fresh()), filepath.Join(outside, "key"))
		plant(t, file, fmt.Sprintf(`{
			env: {vars: {HARMLESS: %q, DB_URL: "postgres://me:%s@db/x"}},
			channels: {telegram: {botToken: %q, accounts: {two: {token: %q}}}}, plugins: {entries: {brave: {config: {webSearch: {apiKey: %q}}}, x: {config: {password: %q}}}},
			tools: {web: {fetch: {headers: {"X-Odd": %q}, ssrfPolicy: {allowedHostnames: ["127.0.0.1"]}}}}, gateway: {remote: {token: %q}}, hooks: {token: %q}, mcp: {servers: {s: {command: "/bin/false", env: {PLAIN: %q}}}},
		}`, fresh(), url.QueryEscape(fresh()), fresh(), fresh(), fresh(), fresh(), fresh(), fresh(), fresh(), fresh()))
		const control = "control-4711-control"
		var lines strings.Builder
		for _, s := range secrets {
			for _, e := range encodings(s) {
				fmt.Fprintf(&lines, "%s %s\n", control, e)
			}
		}
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, lines.String())
		}))
		defer site.Close()
		found := filepath.Join(state, "workspace", "found.txt")
		plant(t, found, lines.String())
		plant(t, filepath.Join(state, "workspace", "AGENTS.md"), control+" in the prompt "+secrets[2]+"\n")
		log := &logged{}
		model := uses()
		g := Start(t, Options{
			Dir:     state,
			File:    file,
			Model:   model,
			Config:  Config{"models": json.RawMessage(models)},
			Env:     map[string]string{"FROM_ENV": inEnv},
			Dial:    noHosts,
			Environ: []string{"FROM_ENV=" + inEnv},
			Log:     slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		c := g.Client()
		sinks, background := map[string][]byte{}, 0
		var runs []string
		add := func(sink string, b []byte) { sinks[sink] = append(sinks[sink], b...) }
		for _, do := range []struct {
			call string
			asks int
		}{
			{`read {"path":"found.txt"}`, 0},
			{`exec {"command":"cat found.txt"}`, 0},
			{`exec {"command":"cat found.txt","host":"gateway"}`, 1},
			{`exec {"command":"cat ` + file + `; echo ` + control + `","host":"gateway"}`, 1},
			{`exec {"command":"env; echo ` + control + `","host":"gateway"}`, 1},
			{`grep {"pattern":"control"}`, 0},
			{`web_fetch {"url":"` + site.URL + `/found.txt"}`, 0},
			{`exec {"command":"cat found.txt; sleep 9999","yieldMs":1500}`, 0}, // it goes on in the background
			{`read {"path":"` + control + secrets[5] + `"}`, 0},                // a person writes it
		} {
			end := c.answered(do.call, wire.AllowOnce, do.asks)
			for _, later := range []string{`"yieldMs":15000`, `"yieldMs":100000`} { // a busy machine prints it later
				if strings.Contains(do.call, "yieldMs") && !strings.Contains(end.Text, control) {
					end = c.answered(strings.Replace(do.call, `"yieldMs":1500`, later, 1), wire.AllowOnce, do.asks)
				}
			}
			if end.State != wire.StateFinal || !strings.Contains(end.Text, control) ||
				strings.Contains(do.call, "found.txt") && strings.Count(end.Text, "[redacted]") < 20 {
				t.Errorf("%s: %s %q %s", do.call, end.State, end.Text, end.Error)
			}
			runs = append(runs, end.Run)
			for _, ev := range end.Seen {
				add("events", ev.Payload)
			}
			if _, id, ok := strings.Cut(end.Text, "in the background as sessionId "); ok {
				id, _, _ = strings.Cut(id, ",")
				for _, action := range []string{"log", "kill"} {
					end := c.answered(`process {"action":"`+action+`","sessionId":"`+id+`"}`, wire.AllowOnce, 0)
					if action == "log" && strings.Count(end.Text, "[redacted]") < 20 {
						t.Errorf("%s: %s", do.call, end.Text)
					}
					for _, ev := range end.Seen {
						add("events", ev.Payload)
					}
				}
				background++
			}
		}
		if background != 1 {
			t.Errorf("%d commands in the background", background)
		}
		for _, method := range []string{wire.MethodChatHistory, wire.MethodSessionsExport, wire.MethodConfigGet} {
			var params any
			switch method {
			case wire.MethodChatHistory:
				params = wire.ChatHistory{SessionKey: "main"}
			case wire.MethodSessionsExport:
				params = wire.SessionKey{Key: "main"}
			}
			var answer json.RawMessage
			c.must(method, params, &answer)
			add(method, answer)
		}
		// What else can be read, and the errors of what cannot.
		answered, methods := 0, 0
		all, _ := g.EntryPoints()
		for _, m := range all {
			if !m.Reads || m.Role != wire.RoleOperator {
				continue
			}
			methods++
			params := map[string]any{}
			for name, v := range map[string]any{
				"key":        "main",
				"sessionKey": "main",
				"agentId":    "main",
				"keys":       []string{"main"},
				"query":      "control",
				"runId":      runs[0],
				"id":         runs[0],
				"path":       "found.txt",
				"name":       "AGENTS.md",
				"limit":      100,
			} {
				if slices.Contains(m.Params, name) {
					params[name] = v
				}
			}
			for _, p := range []map[string]any{params, {}} {
				var answer json.RawMessage
				if err := c.Call(t.Context(), m.Method, p, &answer); err != nil {
					add("errors", []byte(m.Method+": "+err.Error()+"\n"))
					continue
				}
				answered++
				// a person reads an own file as it is
				if !slices.Contains([]string{wire.MethodAgentsFilesGet, wire.MethodWorkspaceGet, wire.MethodFilesGet}, m.Method) {
					add(m.Method, answer)
				}
			}
		}
		if methods < 50 || answered < methods {
			t.Errorf("%d answers of %d methods that can be read", answered, methods)
		}
		for _, r := range model.Requests() {
			b, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			add("requests", b)
		}
		files := func(when string) {
			err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() || path == found || filepath.Base(path) == "AGENTS.md" {
					return nil //nolint:nilerr // it went away
				}
				b, err := os.ReadFile(path)
				add("files "+when+": "+filepath.Base(path), b)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		files("running")
		c.Close()
		g.Stop()
		files("stopped")
		add("log", log.buf.Bytes())
		for sink, b := range sinks {
			for i, s := range secrets {
				for _, e := range encodings(s) {
					e = strings.TrimRight(e, "=")
					e = e[2 : len(e)-2] // the ends of base64 depend on what is beside it
					if at := bytes.Index(b, []byte(e)); at >= 0 {
						t.Errorf("%s has secret %d as %s: …%s…", sink, i+1, e, b[max(0, at-60):min(len(b), at+len(e)+20)])
					}
				}
			}
		}
		for _, sink := range []string{"events", "requests", wire.MethodChatHistory, wire.MethodSessionsExport,
			"files stopped: chela.db"} {
			if !bytes.Contains(sinks[sink], []byte(control)) {
				t.Errorf("%s has nothing of what the tools printed", sink)
			}
		}
	})
}

// TestClientsPlan requests an approval as a client that knows a secret.
func TestClientsPlan(t *testing.T) {
	t.Run("C1 what a client asks a person to approve is stored and shown without secrets", func(t *testing.T) {
		const canary = "cnry-of-a-client-4711"
		g := Start(t, Options{Model: uses(), Config: Config{"env.vars": json.RawMessage(`{"MINE":"` + canary + `"}`)}})
		c := g.Client()
		var asked wire.ApprovalAsked
		go func() {
			_ = c.Call(t.Context(), wire.MethodApprovalAsk, wire.ApprovalAsk{
				ID:      "mine",
				Command: "curl -H 'Authorization: " + canary + "' x",
				Env:     map[string]string{"TOKEN": canary},
				Dir:     "/" + canary,
				Warning: "it has " + canary,
			}, &asked)
		}()
		q := c.question()
		var shown json.RawMessage
		c.must(wire.MethodApprovalGet, wire.ApprovalID{ID: "mine"}, &shown)
		b, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		for sink, text := range map[string][]byte{"event": b, "answer": shown} {
			if bytes.Contains(text, []byte(canary)) || !bytes.Contains(text, []byte("[redacted]")) {
				t.Errorf("%s: %s", sink, text)
			}
		}
		if n := strings.Count(q.Request.Command, "[redacted]"); n != 3 ||
			!strings.Contains(q.Request.Reason, "it has [redacted]") {
			t.Errorf("asked %+v", q.Request)
		}
		c.decide("mine", wire.Deny)
		g.Stop()
		if bytes.Contains(database(g.Dir), []byte(canary)) {
			t.Error("the database has the secret")
		}
	})
}

// TestEnvironment runs commands with a hostile environment.
func TestEnvironment(t *testing.T) {
	t.Run("E5 a command gets allow-listed variables only, in the sandbox and outside, and no secret", func(t *testing.T) {
		var hostile []string
		for _, name := range []string{
			"LD_PRELOAD", "BASH_ENV", "NODE_OPTIONS", "PYTHONPATH", "PERL5OPT", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL",
			"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN",
			"CHELA_GATEWAY_TOKEN", "OPENCLAW_GATEWAY_TOKEN", "CHELA_STATE_DIR", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS",
			"HTTPS_PROXY", "RANDOM_NAME", "DB_PASSWORD", "IFS", "ENV", "PS4", "EDITOR",
		} {
			hostile = append(hostile, name+"=cnry-env-1234")
		}
		g := Start(t, Options{
			Model: uses(), Dial: noHosts, Environ: append(hostile, "LANG=C.UTF-8"),
			Config: Config{"env.vars": json.RawMessage(`{"MINE":"cnry-env-5678"}`)},
		})
		c := g.Client()
		allowed := []string{
			"PATH", "HOME", "USER", "LOGNAME", "LANG", "TERM", "TMPDIR", "SHELL", "TZ", "PWD", "OLDPWD", "SHLVL", "_",
			"CHELA_SHELL", "OPENCLAW_SHELL", "CHELA_RUN", "PAGER",
			// of the sandbox: its proxy, and caches of toolchains
			"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
			"NPM_CONFIG_UPDATE_NOTIFIER", "NO_UPDATE_NOTIFIER", "PIP_DISABLE_PIP_VERSION_CHECK",
		}
		for _, do := range []struct {
			call string
			asks int
		}{{`exec {"command":"env >o; cat o"}`, 0}, {`exec {"command":"env","host":"gateway"}`, 1}} {
			end := c.answered(do.call, wire.AllowOnce, do.asks)
			if strings.Contains(end.Text, "cnry") || !strings.Contains(end.Text, "LANG=C.UTF-8") {
				t.Errorf("%s: %q", do.call, end.Text)
			}
			for line := range strings.Lines(end.Text) {
				name, _, ok := strings.Cut(line, "=")
				if ok && !slices.Contains(allowed, name) && !strings.HasPrefix(name, "GIT_") {
					t.Errorf("%s: %s is not on the list: %s", do.call, name, line)
				}
			}
		}
	})
}
