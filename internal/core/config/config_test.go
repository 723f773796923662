package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/needtest"
)

// write writes files to a new directory and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// env returns an environment of the pairs.
func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(k string) string { return m[k] }
}

// writeEdits changes the files of a tree as they are now.
func writeEdits(t *Tree, edits ...Edit) (*Tree, error) {
	d, err := t.Now().Draft(edits...)
	if err != nil {
		return nil, err
	}
	return d.Write()
}

// load loads a file with the text.
func load(t *testing.T, text string, pairs ...string) (*Tree, error) {
	t.Helper()
	dir := write(t, map[string]string{"chela.json": text})
	return Options{Env: env(pairs...)}.Load(filepath.Join(dir, "chela.json"))
}

func mustLoad(t *testing.T, text string, pairs ...string) *Tree {
	t.Helper()
	tr, err := load(t, text, pairs...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestLoad(t *testing.T) {
	t.Parallel()
	t.Run("CF-01 no file is an empty configuration", func(t *testing.T) {
		tr, err := Options{Env: env()}.Load(filepath.Join(t.TempDir(), "chela.json"))
		if err != nil {
			t.Fatal(err)
		}
		if got := tr.Section("gateway"); got != nil {
			t.Errorf("Section(gateway) = %s, want nothing", got)
		}
		if v, err := tr.Get("gateway.port"); err != nil || string(v.JSON) != "18789" || v.Source != Default {
			t.Errorf("Get(gateway.port) = %+v, %v; want the default", v, err)
		}
	})
	t.Run("CF-02 comments and trailing commas", func(t *testing.T) {
		tr := mustLoad(t, "// mine\n{\n  gateway: { port: 0x10, /* why */ },\n}\n")
		if got := string(tr.Section("gateway.port")); got != "16" {
			t.Errorf("gateway.port = %s, want 16", got)
		}
	})
	t.Run("an empty file is an empty configuration", func(t *testing.T) {
		mustLoad(t, " \n")
	})
}

func TestTypes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"{gateway: {port: 'x y'}}", `gateway.port: want a whole number, not "x y"`},
		{"{gateway: 7}", "gateway: want an object, not 7"},
		{"{session: {sendPolicy: {default: 'no'}}}", `session.sendPolicy.default: want one of allow, deny, not "no"`},
		{"{session: {sendPolicy: {rules: [{action: 'denny'}]}}}",
			`session.sendPolicy.rules[0].action: want one of allow, deny, not "denny"`},
		{"{session: {sendPolicy: {rules: [{match: {chatType: 'grup'}}]}}}",
			`session.sendPolicy.rules[0].match.chatType: want one of direct, group, channel, dm, not "grup"`},
		{"{agents: {entries: {work: {contextPruning: {mode: 'on'}}}}}",
			`agents.entries.work.contextPruning.mode: want one of off, cache-ttl, not "on"`},
		{"{gateway: {bind: 'lann'}}", `gateway.bind: want one of loopback, lan, tailnet, auto, custom, not "lann"`},
		{"{agents: {defaults: {timeoutSeconds: 'soon'}}}", "agents.defaults.timeoutSeconds: want a number of seconds"},
		{"{agents: {list: {}}}", "agents.list: want an array, not an object"},
		{"{agents: {list: [{id: 1}]}}", "agents.list[0].id: want a string, not 1"},
		{"{agents: {list: [{tools: {deny: ['x'], fs: {workspaceOnly: 1}}}]}}",
			"agents.list[0].tools.fs.workspaceOnly: want true or false, not 1"},
		{"{agents: {entries: {a: {tools: {exec: {ask: 'always'}, fs: {workspaceOnly: 'no'}}}}}}",
			"agents.entries.a.tools.fs.workspaceOnly: want true or false, not \"no\""},
		{"{gateway: {auth: {token: 4711}}}", "gateway.auth.token: want a string or {source, id}, not a number"},
		{"[]", "want an object, not an array"},
		{"{\n  a: 1\n  b: 2\n}", "line 3, column 3"},
		{"{gateway: {port: '${SECRET}'}}", "gateway.port: want a whole number, not a string"},
		{"{a: $}", "line 1, column 5"},
	} {
		_, err := load(t, tc.in, "SECRET", "hunter2")
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.in, err, tc.want)
		}
	}
}

func TestUnknownKeys(t *testing.T) {
	t.Parallel()
	t.Run("CF-03 an unknown key is reported and preserved, but cannot be added", func(t *testing.T) {
		dir := write(t, map[string]string{"chela.json": "{gatway: {port: 1}, agents: {defaults: {modle: 'a/b', sandbox: {docker: {imgae: 'x', memory: 1}}}, entries: {ann: {sandbx: 1, sandbox: {docker: {ntework: 'x', cpus: 1}}}}}, messages: {queue: {mode: 'steer'}}}"})
		file := filepath.Join(dir, "chela.json")
		tr, err := Options{Env: env()}.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"agents.defaults.modle: unknown key; did you mean agents.defaults.model?",
			"agents.defaults.sandbox.docker.imgae: unknown key; did you mean agents.defaults.sandbox.docker.image?",
			"agents.entries.ann.sandbox.docker.ntework: unknown key; did you mean agents.entries.ann.sandbox.docker.network?",
			"agents.entries.ann.sandbx: unknown key; did you mean agents.entries.ann.sandbox?",
			"gatway: unknown key; did you mean gateway?",
		}
		if diff := cmp.Diff(want, texts(tr.Warnings())); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if got := string(tr.Section("gatway")); got != `{"port":1}` {
			t.Errorf("the unknown key is not preserved: %s", got)
		}
		_, err = writeEdits(tr, Edit{"mesages.queue.mode", json.RawMessage(`"collect"`)})
		if err == nil || !strings.Contains(err.Error(), "did you mean messages?") || chela.CodeOf(err) != chela.CodeInvalid {
			t.Errorf("a new unknown key: %v, want a refusal with a suggestion", err)
		}
		next, err := writeEdits(tr, Edit{"messages.queue.mode", json.RawMessage(`"collect"`)})
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, file); !strings.Contains(got, "gatway: {port: 1}") ||
			string(next.Section("messages.queue.mode")) != `"collect"` {
			t.Errorf("after another write the file is %s", got)
		}
		if ps := (Options{Env: env()}).Validate(file); len(ps) != 5 || !ps[0].Unknown || ps[0].Fatal {
			t.Errorf("Validate = %+v, want the five unknown keys", ps)
		}
	})
	t.Run("CF-15 a reference to a secret is no unknown key, and can be set", func(t *testing.T) {
		const ref = `{"id":"KEY","provider":"default","source":"env"}`
		tr := mustLoad(t, `{gateway: {auth: {token: `+ref+
			`}}, models: {providers: {x: {apiKey: {source: "env", id: "KEY", nmae: "y"}}}}}`)
		if diff := cmp.Diff([]string{"models.providers.x.apiKey.nmae: unknown key"}, texts(tr.Warnings())); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		next, err := writeEdits(mustLoad(t, "{}"), Edit{"gateway.auth.token", json.RawMessage(ref)})
		if err != nil || string(next.Section("gateway.auth.token")) != ref {
			t.Errorf("set: %s, %v", next.Section("gateway.auth.token"), err)
		}
	})
	t.Run("keys of OpenClaw are known and reported as unused", func(t *testing.T) {
		tr := mustLoad(t, `{meta: {lastTouchedVersion: "1"}, browser: {enabled: true, color: "#fff"}, agents: {defaults: {experimental: {a: 1}, contextInjection: "always"}, list: [{id: "x"}]}, plugins: {slots: {contextEngine: "none"}}, gateway: {port: 1}, tools: {fs: {maxReadBytes: 1}}, session: {dmScope: "main"}}`)
		if got := tr.Warnings(); len(got) != 0 {
			t.Errorf("warnings %v, want none", got)
		}
		want := []string{"agents.defaults.contextInjection", "agents.defaults.experimental", "browser.color", "meta",
			"plugins.slots.contextEngine", "tools.fs.maxReadBytes"}
		if diff := cmp.Diff(want, tr.Unused()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("unused security keys are reported one by one", func(t *testing.T) {
		tr := mustLoad(t, `{tools: {message: {}, subagents: {tools: {deny: ["exec"]}}, alsoAllow: ["x"], elevated: {enabled: false}, fs: {maxReadBytes: 1}}, gateway: {port: 1, auth: {mode: "token", rateLimit: {}}},
			agents: {defaults: {sandbox: {mode: "all", ssh: {}}}, list: [{id: "x", tools: {deny: ["exec"]}}], entries: {ann: {sandbox: {mode: "all", sessionToolsVisibility: "all"}}}},
			channels: {telegram: {dmPolicy: "allowlist", allowFrom: [1], accounts: {work: {dmPolicy: "pairing", name: "w"}}}}, commands: null}`, "CHELA_LOG_LEVEL", "info")
		want := []string{
			"agents.defaults.sandbox.ssh: has no effect in this version: it does not put anything into a sandbox",
			"agents.entries.ann.sandbox.sessionToolsVisibility: has no effect in this version: it does not put anything into a sandbox",
			"gateway.auth.rateLimit: has no effect in this version: it does not keep any client from connecting",
			"tools.message: has no effect in this version: it does not keep any message from being sent",
		}
		if diff := cmp.Diff(want, texts(tr.Unguarded())); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		want = []string{"tools.fs.maxReadBytes"}
		if diff := cmp.Diff(want, tr.Unused()); diff != "" {
			t.Errorf("unused: -want +got:\n%s", diff)
		}
		if got := texts((Options{Env: env()}).Validate(tr.Path())); len(got) != 4 {
			t.Errorf("Validate = %v, want four problems", got)
		}
		if got := mustLoad(t, `{tools: {exec: {mode: "deny"}, loopDetection: {enabled: true}}}`).Unguarded(); len(got) != 0 {
			t.Errorf("security keys that are used: %v", got)
		}
	})
}

func TestIncludes(t *testing.T) {
	t.Parallel()
	t.Run("CF-04 a string replaces, an array merges in order, siblings override both", func(t *testing.T) {
		dir := write(t, map[string]string{
			"chela.json":  "{$include: ['a.json5', 'sub/b.json5'], gateway: {port: 3}, session: {$include: './s.json5'}}",
			"a.json5":     "{gateway: {port: 1, bind: 'lan'}, tools: {deny: ['x']}}",
			"sub/b.json5": "{gateway: {port: 2, mode: 'local'}, tools: {deny: ['y']}, messages: {$include: 'm.json5'}}",
			"sub/m.json5": "{responsePrefix: 'hi'}",
			"s.json5":     "{mainKey: 'm'} // all of it",
		})
		tr, err := Options{Env: env()}.Load(filepath.Join(dir, "chela.json"))
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{
			"gateway": `{"bind":"lan","mode":"local","port":3}`, "tools.deny": `["x","y"]`,
			"session": `{"mainKey":"m"}`, "messages.responsePrefix": `"hi"`,
		} {
			if got := string(tr.Section(path)); got != want {
				t.Errorf("%s = %s, want %s", path, got, want)
			}
		}
		if got := len(tr.Files()); got != 5 {
			t.Errorf("%d files were read, want 5: %v", got, tr.Files())
		}
	})
	t.Run("the files of a configuration that cannot be used are known", func(t *testing.T) {
		dir := write(t, map[string]string{
			"chela.json":  "{session: {$include: 'sub/b.json5'}, gateway: {port: 'x'}}",
			"sub/b.json5": "{}",
			"good.json":   "{}",
		})
		at := func(name string) string { return filepath.Join(dir, name) }
		tr, err := Options{Env: env(), LastGood: at("good.json")}.Load(at("chela.json"))
		if err != nil || tr.Broken() == nil {
			t.Fatal(err, tr.Broken())
		}
		for _, name := range []string{"chela.json", "sub/b.json5"} {
			if !slices.Contains(tr.Own(), at(name)) {
				t.Errorf("%s is not among %q", name, tr.Own())
			}
		}
	})
	t.Run("CF-04 refused includes", func(t *testing.T) {
		files := map[string]string{
			"cycle.json":    "{a: {$include: 'loop/one.json'}}",
			"loop/one.json": "{b: {$include: 'two.json'}}",
			"loop/two.json": "{c: {$include: 'one.json'}}",
			"deep.json":     "{$include: 'd1.json'}",
			"d11.json":      "{}",
			"ten.json":      "{$include: 'd2.json'}",
			"up.json":       "{$include: '../../etc/passwd'}",
			"abs.json":      "{$include: '/etc/passwd'}",

			"link.json":   "{$include: 'escape.json'}",
			"gone.json":   "{$include: 'none.json'}",
			"bad.json":    "{$include: 'broken.json'}",
			"broken.json": "{\n a b }",

			"kind.json":   "{$include: 7}",
			"list.json":   "[1]",
			"beside.json": "{$include: 'list.json', x: 1}",
			"none0.json":  "{$include: []}",

			"nul.json":  "{$include: 'a\\0b'}",
			"self.json": "{$include: 'self.json'}",
			"long.json": "{$include: '" + strings.Repeat("x", 5000) + "'}",
			"huge.json": "{$include: 'big.json'}",

			"big.json": strings.Repeat(" ", 2<<20) + "{}",
		}
		for i := 1; i < 11; i++ {
			files[fmt.Sprintf("d%d.json", i)] = fmt.Sprintf("{$include: 'd%d.json'}", i+1)
		}
		dir := write(t, files)
		outside := filepath.Join(t.TempDir(), "secret.json")
		if err := os.WriteFile(outside, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(dir, "escape.json")); err != nil {
			needtest.Missing(t, "symbolic links")
		}
		for name, want := range map[string]string{
			"cycle": "one.json → ",
			"self":  "a cycle",
			"deep":  "nested more than 10 deep",
			"up":    "outside of the configuration's directory",
			"abs":   "outside of the configuration's directory",
			"link":  "outside of the configuration's directory",

			"gone":   `"none.json": no such file`,
			"bad":    "broken.json: line 2, column 4",
			"kind":   "want a file name",
			"beside": "must be an object",

			"none0": "the array is empty",
			"nul":   "want a file name",
			"long":  "a path of 5000 bytes",
			"huge":  "big.json: 2097154 bytes",
		} {
			_, err := Options{Env: env()}.Load(filepath.Join(dir, name+".json"))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", name, err, want)
			}
		}
		if _, err := (Options{Env: env()}).Load(filepath.Join(dir, "ten.json")); err != nil {
			t.Errorf("ten levels: %v", err)
		}
		if _, err := (Options{Env: env()}).Load(filepath.Join(dir, "big.json")); err != nil {
			t.Errorf("a long file that nobody includes: %v", err)
		}
	})
	t.Run("overrides that cannot be read are fatal", func(t *testing.T) {
		file := filepath.Join(write(t, map[string]string{"chela.json": "{gateway: {port: 1}}"}), "chela.json")
		for path, value := range map[string]string{"gateway.port": "{", "gateway..port": "1", "gateway.bind": ""} {
			o := Options{Env: env(), Overrides: map[string]json.RawMessage{path: json.RawMessage(value)}}
			if _, err := o.Load(file); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s = %q: %v, want an error with the path", path, value, err)
			}
			if ps := o.Validate(file); len(ps) != 1 || !ps[0].Fatal {
				t.Errorf("%s = %q: Validate = %v, want one fatal problem", path, value, ps)
			}
		}
	})
}

func TestVariables(t *testing.T) {
	t.Parallel()
	const text = "{\n  // mine\n  messages: { responsePrefix: '${FOO}-$${FOO}-${foo}' },\n  gateway: { port: '${PORT}' },\n}\n"
	t.Run("CF-05 set", func(t *testing.T) {
		tr := mustLoad(t, text, "FOO", "val", "PORT", "81")
		if got := string(tr.Section("messages.responsePrefix")); got != `"val-${FOO}-${foo}"` {
			t.Errorf("the value is %s", got)
		}
		if got := string(tr.Section("gateway.port")); got != "81" {
			t.Errorf("a number from a variable is %s, want 81", got)
		}
		if v, err := tr.Get("gateway.port"); err != nil || v.Source != FromEnv {
			t.Errorf("Get = %+v, %v; want source env", v, err)
		}
	})
	t.Run("CF-05 not set", func(t *testing.T) {
		tr := mustLoad(t, text)
		want := []string{
			"gateway.port: the variable PORT is not set; its name is used as the value",
			"messages.responsePrefix: the variable FOO is not set; its name is used as the value",
		}
		if diff := cmp.Diff(want, texts(tr.Warnings())); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if got := string(tr.Section("gateway.port")); got != `"${PORT}"` {
			t.Errorf("the value is %s, want the unresolved reference", got)
		}
	})
	t.Run("CF-05 a write of another key preserves the reference, also with the resolved value", func(t *testing.T) {
		dir := write(t, map[string]string{"chela.json": text})
		file := filepath.Join(dir, "chela.json")
		tr, err := Options{Env: env("FOO", "val", "PORT", "81")}.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = writeEdits(tr, Edit{"session.mainKey", json.RawMessage(`"m"`)}); err != nil {
			t.Fatal(err)
		}
		if _, err = writeEdits(tr, Edit{"messages", json.RawMessage(`{"responsePrefix":"val-${FOO}-${foo}"}`)}); err != nil {
			t.Fatal(err)
		}
		if got := read(t, file); strings.Contains(got, "val") || !strings.Contains(got, "'${FOO}-$${FOO}-${foo}'") ||
			!strings.Contains(got, "// mine") {
			t.Errorf("the file is %s", got)
		}
	})
	t.Run("the environment overrides env.vars", func(t *testing.T) {
		tr := mustLoad(t, "{env: {A: 'direct', vars: {B: 'file'}}, messages: {responsePrefix: '${A} ${B}'}}", "A", "process")
		if got := string(tr.Section("messages.responsePrefix")); got != `"process file"` {
			t.Errorf("the value is %s", got)
		}
	})
	t.Run("environment variables and overrides of keys", func(t *testing.T) {
		dir := write(t, map[string]string{"chela.json": "{gateway: {port: 1, auth: {token: 'a'}}}"})
		o := Options{Env: env("OPENCLAW_GATEWAY_PORT", "2", "CHELA_GATEWAY_TOKEN", "t"),
			Overrides: map[string]json.RawMessage{"gateway.bind": json.RawMessage(`"lan"`)}}
		tr, err := o.Load(filepath.Join(dir, "chela.json"))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(tr.Section("gateway")); got != `{"auth":{"token":"t"},"bind":"lan","port":2}` {
			t.Errorf("gateway = %s", got)
		}
		for path, want := range map[string]Source{
			"gateway.port": FromEnv,
			"gateway.bind": Override,
			"gateway.mode": Default,
		} {
			if v, err := tr.Get(path); err != nil || v.Source != want {
				t.Errorf("Get(%s) = %+v, %v; want source %s", path, v, err, want)
			}
		}
	})
}

func TestGet(t *testing.T) {
	t.Parallel()
	t.Run("CF-13 secrets are redacted", func(t *testing.T) {
		tr := mustLoad(t, `{gateway: {auth: {token: 'hunter2', mode: 'token'}}, models: {providers: {x: {apiKey: '${GONE}', headers: {"X-Custom": 'hunter2'}}}},
			channels: {telegram: {botToken: 'hunter2', accounts: [{password: 'hunter2', name: 'me'}]}, irc: {password: 4711}}, agents: {defaults: {contextTokens: 5}}}`)
		for _, path := range []string{"", "gateway", "gateway.auth.token", "channels",
			"channels.telegram.accounts[0].password", "models"} {
			v, err := tr.Get(path)
			if err != nil || strings.Contains(string(v.JSON), "hunter2") || strings.Contains(string(v.JSON), "4711") {
				t.Errorf("Get(%q) = %s, %v", path, v.JSON, err)
			}
		}
		for path, want := range map[string]string{
			"gateway.auth.token": `"[redacted]"`, "gateway.auth.mode": `"token"`, "models.providers.x.apiKey": `"${GONE}"`,
			"channels.telegram.accounts[0].name": `"me"`, "agents.defaults.contextTokens": "5",
		} {
			if v, err := tr.Get(path); err != nil || string(v.JSON) != want {
				t.Errorf("Get(%q) = %s, %v; want %s", path, v.JSON, err, want)
			}
		}
	})
	t.Run("a key that is not set", func(t *testing.T) {
		_, err := mustLoad(t, "{}").Get("gateway.prot")
		if err == nil || !strings.Contains(err.Error(), "did you mean gateway.port?") {
			t.Errorf("Get(gateway.prot): %v, want a suggestion", err)
		}
	})
	t.Run("durations and sizes are numbers in sections", func(t *testing.T) {
		tr := mustLoad(t, "{agents: {defaults: {timeoutSeconds: '5m'}}, messages: {queue: {debounceMs: '1.5s'}}, logging: {maxFileBytes: '10mb'}, tools: {allow: 'read', exec: {timeoutSeconds: 1.5, maxOutputChars: 1e3}}}")
		for path, want := range map[string]string{
			"agents.defaults.timeoutSeconds": "300",
			"messages.queue.debounceMs":      "1500",
			"logging.maxFileBytes":           "10485760",
			"tools.allow":                    `["read"]`,
			"tools.exec.timeoutSeconds":      "2",
			"tools.exec.maxOutputChars":      "1000",
		} {
			if got := string(tr.Section(path)); got != want {
				t.Errorf("%s = %s, want %s", path, got, want)
			}
		}
	})
}

func TestEdit(t *testing.T) {
	t.Parallel()
	t.Run("comments and the mode are preserved, and backups are written", func(t *testing.T) {
		dir := write(t, map[string]string{"chela.json": "{\n  // the port\n  gateway: { port: 1 }, // mine\n}\n"})
		file := filepath.Join(dir, "chela.json")
		tr, err := Options{Env: env()}.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := 2; i < 10; i++ {
			if tr, err = writeEdits(tr, Edit{"gateway.port", json.RawMessage(fmt.Sprint(i))}); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := read(t, file), "{\n  // the port\n  gateway: { port: 9 }, // mine\n}\n"; got != want {
			t.Errorf("the file is %q, want %q", got, want)
		}
		for i, name := range []string{".bak", ".bak.1", ".bak.2", ".bak.3", ".bak.4"} {
			if fi, err := os.Stat(file + name); err != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("the mode of %s is %v, %v; want 0600", name, fi.Mode(), err)
			}
			if want := fmt.Sprintf("port: %d }", 8-i); !strings.Contains(read(t, file+name), want) {
				t.Errorf("%s is %q, want %q in it", name, read(t, file+name), want)
			}
		}
		all, _ := filepath.Glob(filepath.Join(dir, "*"))
		if len(all) != 6 {
			t.Errorf("the directory contains %v, want the file and five copies", all)
		}
		if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("the file's mode is %v, %v; want 0600", fi.Mode(), err)
		}
		if tr, err = writeEdits(tr, Edit{Path: "gateway.port"}); err != nil || tr.Section("gateway.port") != nil {
			t.Errorf("after Unset: %s, %v", tr.Section("gateway.port"), err)
		}
		if _, err = writeEdits(tr, Edit{Path: "gateway.port"}); !errors.Is(err, chela.ErrNotFound) {
			t.Errorf("Unset of nothing: %v, want ErrNotFound", err)
		}
	})
	t.Run("a new file, in a new directory", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "new", "chela.json")
		tr, err := Options{Env: env()}.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		tr, err = writeEdits(tr, Edit{"agents.list[0].id", json.RawMessage(`"ann"`)},
			Edit{"tools.deny[0]", json.RawMessage(`"exec"`)},
			Edit{"models.providers[\"my.host\"].baseUrl", json.RawMessage(`"http://x"`)})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(tr.Section("")), `{"agents":{"list":[{"id":"ann"}]},"models":{"providers":{"my.host":{"baseUrl":"http://x"}}},"tools":{"deny":["exec"]}}`; got != want {
			t.Errorf("the tree is %s, want %s", got, want)
		}
	})
	t.Run("new files and folders are those of their owner alone", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "new", "chela.json")
		o := Options{Env: env(), LastGood: filepath.Join(dir, "state", "chela.json.last-good")}
		tr, err := o.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if tr, err = writeEdits(tr, Edit{"gateway.auth.token", json.RawMessage(`"hunter2"`)}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(tr.SaveLastGood(), tr.MarkUntried()); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]fs.FileMode{
			file: 0o600, filepath.Dir(file): 0o700, o.LastGood: 0o600, filepath.Dir(o.LastGood): 0o700,
		} {
			if fi, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && fi.Mode().Perm() != want {
				t.Errorf("the mode of %s is %v, %v; want %v", name, fi.Mode(), err, want)
			}
		}
	})
	t.Run("what was written is untried until a person edits the file", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "chela.json")
		o := Options{Env: env(), LastGood: filepath.Join(dir, "state", "chela.json.last-good")}
		tr, err := o.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if tr, err = writeEdits(tr, Edit{"gateway.port", json.RawMessage("2")}); err != nil {
			t.Fatal(err)
		}
		if err := tr.MarkUntried(); err != nil || !tr.Untried() {
			t.Errorf("after a change of the program: %v, untried: %t", err, tr.Untried())
		}
		if tr, err = o.Load(file); err != nil || !tr.Untried() {
			t.Errorf("read again: %v, untried: %t", err, tr.Untried())
		}
		if err := os.WriteFile(file, []byte("{gateway: {port: 3}}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if tr, err = o.Load(file); err != nil || tr.Untried() {
			t.Errorf("edited by a person: %v, untried: %t", err, tr.Untried())
		}
	})
	t.Run("CF-11 a stale base is a conflict", func(t *testing.T) {
		dir := write(t, map[string]string{"chela.json": "{}"})
		file := filepath.Join(dir, "chela.json")
		tr, err := Options{Env: env()}.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		stale, err := tr.Draft(Edit{"gateway.port", json.RawMessage("2")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := writeEdits(tr, Edit{"session.mainKey", json.RawMessage(`"m"`)}); err != nil {
			t.Fatal(err)
		}
		_, err = stale.Write()
		if chela.CodeOf(err) != chela.CodeConflict {
			t.Errorf("error %v, want a conflict", err)
		}
		next, err := writeEdits(tr, Edit{"gateway.port", json.RawMessage("2")})
		if err != nil || string(next.Section("session.mainKey")) != `"m"` {
			t.Errorf("an edit of an old tree loses a later change: %v", err)
		}
	})
	t.Run("includes", func(t *testing.T) {
		dir := write(t, map[string]string{
			"chela.json": "{session: {$include: 's.json'}, tools: {$include: ['a.json', 'b.json'], fs: {workspaceOnly: true}}, agents: {defaults: {$include: 'b.json', model: 'a/b'}}}",
			"s.json":     "{mainKey: 'm' /* key */}", "a.json": "{deny: ['x']}", "b.json": "{}",
		})
		tr, err := Options{Env: env()}.Load(filepath.Join(dir, "chela.json"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := writeEdits(tr, Edit{"session.mainKey", json.RawMessage(`"n"`)}); err != nil ||
			read(t, filepath.Join(dir, "s.json")) != "{mainKey: 'n' /* key */}" {
			t.Errorf("a file that is one section: %v, %s", err, read(t, filepath.Join(dir, "s.json")))
		}
		if _, err := writeEdits(tr, Edit{"tools.deny", json.RawMessage(`[]`)}); err == nil ||
			!strings.Contains(err.Error(), "several files: "+filepath.Join(dir, "chela.json")+" includes ['a.json', 'b.json']") {
			t.Errorf("a section of several files: %v, want a refusal", err)
		}
		if _, err := writeEdits(tr, Edit{"agents.defaults.thinkingDefault", json.RawMessage(`"low"`)}); err == nil ||
			!strings.Contains(err.Error(), "edit it by hand") || read(t, filepath.Join(dir, "b.json")) != "{}" {
			t.Errorf("a section of a file and of keys beside it: %v, want a refusal", err)
		}
		if _, err := writeEdits(tr, Edit{"tools.fs.workspaceOnly", json.RawMessage(`false`)}); err != nil {
			t.Errorf("a key beside the include: %v", err)
		}
	})
	t.Run("a refused edit changes nothing", func(t *testing.T) {
		dir := write(t, map[string]string{"chela.json": "{gateway: {port: 1, auth: {token: 'hunter2'}}}", "real.json": "{}"})
		file := filepath.Join(dir, "chela.json")
		tr, err := Options{Env: env()}.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		before := read(t, file)
		for path, value := range map[string]string{
			"gateway.port":          `"x"`,
			"gateway":               "7",
			"gateway.auth.password": `"[redacted]"`,
			"a..b":                  "1",
			"agents.list[3].id":     `"x"`,
			"gateway.port.x":        "1",
		} {
			if _, err := writeEdits(tr, Edit{"session.mainKey", json.RawMessage(`"m"`)},
				Edit{path, json.RawMessage(value)}); err == nil {
				t.Errorf("%s = %s is accepted, want an error", path, value)
			}
		}
		if read(t, file) != before {
			t.Errorf("the file is %s now", read(t, file))
		}
		if _, err := writeEdits(tr, Edit{"gateway.auth", json.RawMessage(`{"mode":"token","token":"[redacted]"}`)}); err !=
			nil || !strings.Contains(read(t, file), "hunter2") {
			t.Errorf("a redacted secret in an edit: %v, %s", err, read(t, file))
		}
		link := filepath.Join(dir, "link.json")
		if err := os.Symlink("real.json", link); err != nil {
			needtest.Missing(t, "symbolic links")
		}
		tr, err = Options{Env: env()}.Load(link)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := writeEdits(tr, Edit{"gateway.port", json.RawMessage("2")}); err == nil {
			t.Error("a symbolic link is written to")
		}
	})
}

func TestLastGood(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"chela.json": "{gateway: {port: 7}, messages: {$include: 'm.json'}}",
		"m.json":     "{responsePrefix: '${FOO}'}",
	})
	file := filepath.Join(dir, "chela.json")
	o := Options{Env: env("FOO", "hunter2"), LastGood: filepath.Join(dir, "state", "chela.json.last-good")}
	tr, err := o.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.SaveLastGood(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, o.LastGood); strings.Contains(got, "hunter2") {
		t.Errorf("the copy contains the value of a variable: %s", got)
	}
	for _, text := range []string{"{gateway: {port: 8}", "{gateway: {port: 'x'}}", "[]"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		tr, err := o.Load(file)
		if err != nil || tr.Broken() == nil {
			t.Fatalf("%s: %v, want the last good configuration", text, err)
		}
		if said := tr.Broken().Error(); strings.Count(said, file) != 1 {
			t.Errorf("%s: the file does not occur once: %s", text, said)
		}
		if got := string(tr.Section("gateway.port")); got != "7" ||
			string(tr.Section("messages.responsePrefix")) != `"hunter2"` {
			t.Errorf("%s: the port is %s, want 7", text, got)
		}
		if v, err := tr.Get("gateway.port"); err != nil || v.Source != LastGood {
			t.Errorf("%s: Get = %+v, %v", text, v, err)
		}
		if _, err := writeEdits(tr, Edit{"gateway.port", json.RawMessage("9")}); err == nil || read(t, file) != text {
			t.Errorf("%s: a broken file is overwritten", text)
		}
		if ps := o.Validate(file); len(ps) != 1 || !ps[0].Fatal {
			t.Errorf("%s: Validate = %v, want one fatal problem", text, ps)
		}
	}
	if err := os.WriteFile(o.LastGood, []byte("{gateway: 1}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Load(file); err == nil || !strings.Contains(err.Error(), file) ||
		strings.Contains(err.Error(), o.LastGood) {
		t.Errorf("both files are broken: %v, want the error about %s", err, file)
	}
	if err := os.Remove(o.LastGood); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Load(file); err == nil {
		t.Error("without a last good file a broken one is loaded")
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name          string
		env           []string
		profile       string
		state, config string
	}{
		{"default", nil, "", "/h/.chela", "/h/.chela/chela.json"},
		{"profile", nil, "work", "/h/.chela-work", "/h/.chela-work/chela.json"},
		{"profile of the environment", []string{"CHELA_PROFILE", "w2"}, "", "/h/.chela-w2", "/h/.chela-w2/chela.json"},
		{"the directory overrides the profile", []string{"CHELA_STATE_DIR", "~/s"}, "work", "/h/s", "/h/s/chela.json"},
		{"OpenClaw's variable", []string{"OPENCLAW_STATE_DIR", "/o"}, "", "/o", "/o/chela.json"},
		{"our variable first", []string{"OPENCLAW_STATE_DIR", "/o", "CHELA_STATE_DIR", "/c"}, "", "/c", "/c/chela.json"},
		{"file", []string{"CHELA_CONFIG_PATH", "/x/y.json"}, "", "/h/.chela", "/x/y.json"},
		{"home", []string{"CHELA_HOME", "/elsewhere"}, "default", "/elsewhere/.chela", "/elsewhere/.chela/chela.json"},
	} {
		got, err := Resolve(env(append(tc.env, "HOME", "/h")...), Flags{Profile: tc.profile})
		if err != nil || got.State != tc.state || got.Config != tc.config ||
			got.LastGood != tc.state+"/chela.json.last-good" {
			t.Errorf("%s: %+v, %v; want %s, %s", tc.name, got, err, tc.state, tc.config)
		}
	}
	if _, err := Resolve(env("HOME", "/h"), Flags{Profile: "../x"}); err == nil {
		t.Error("the profile ../x is accepted")
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"":           nil,
		"a":          {"a"},
		"a.b[0].c":   {"a", "b", "0", "c"},
		`a["x.y"].z`: {"a", "x.y", "z"},
		`['q r']`:    {"q r"},
		`a["]"]`:     {"a", "]"},
		"[0][1]":     {"0", "1"},
	} {
		got, err := ParsePath(in)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("ParsePath(%q): %v; -want +got:\n%s", in, err, diff)
		}
	}
	for _, in := range []string{".", "a.", ".a", "a..b", "a[", "a[]", `a["x]`} {
		if got, err := ParsePath(in); err == nil {
			t.Errorf("ParsePath(%q) = %q, want an error", in, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		"512":     512,
		"64k":     65536,
		"10mb":    10 << 20,
		"1.5 GiB": 3 << 29,
		"1TB":     1 << 40,
	} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "x", "-5", "5 parsecs", "NaN", "1e99"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("ParseSize(%q) = %v, want an error", in, got)
		}
	}
}

// TestTable checks the consistency of the table.
func TestTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range Keys() {
		if seen[k.Path] {
			t.Errorf("%s is in the table twice", k.Path)
		}
		seen[k.Path] = true
		if k.Guards != "" && k.Used() {
			t.Errorf("%s is used, but has Guards", k.Path)
		}
		if k.Default == "" {
			continue
		}
		v, err := decodeJSON([]byte(k.Default))
		if _, ok := k.check(v); err != nil || !ok {
			t.Errorf("%s: the default %s is not a valid value", k.Path, k.Default)
		}
	}
}

// sample is a configuration with all kinds of syntax.
const sample = `// sample
{
  gateway: { port: 18789, bind: "loopback", mode: 'local', auth: { mode: "token", token: "${TOKEN}" }, tls: { enabled: false, certPath: "/c", keyPath: "/k" }, reload: { mode: "hybrid", debounceMs: 300 } },
  agents: { defaults: { model: { primary: "anthropic/claude", fallbacks: ["openai/x"] }, models: { "a/b": { alias: "b", params: { t: 1 } } }, bootstrapMaxChars: 20000, timeoutSeconds: "10m" }, list: [{ id: "main", default: true }, { agentId: "two", tools: { deny: ["exec"] } }] },
  session: { dmScope: "main", reset: { mode: "daily", atHour: 4 }, identityLinks: { ann: ["telegram:1", 2] } },
  messages: { queue: { mode: "collect", byChannel: { telegram: "steer" } }, inbound: { debounceMs: 100, byChannel: { irc: 50 } } },
  models: { mode: "merge", providers: { x: { baseUrl: "http://x", api: "openai-completions", models: [{ id: "m" }] } } },
  tools: { exec: { timeoutSec: 5 }, loopDetection: { enabled: true, detectors: { pingPong: true } }, subagents: { tools: { deny: ["x"] } } },
  env: { vars: { A: "b" } }, logging: { level: "info" }, channels: { telegram: { enabled: true } },
}
`

func TestSample(t *testing.T) {
	t.Parallel()
	if got := mustLoad(t, sample, "TOKEN", "t").Warnings(); len(got) != 0 {
		t.Errorf("warnings %v, want none", got)
	}
}

func TestShapes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, path, want string }{
		"CF-19 gateway": {
			`{"gateway": {"port": 1, "bind": "lan", "mode": "local", "auth": {"mode": "token", "token": "t"}, "tls": {"enabled": true, "certPath": "/c", "keyPath": "/k"}, "reload": {"mode": "hot", "debounceMs": 9}}}`,
			"gateway.reload", `{"debounceMs":9,"mode":"hot"}`,
		},
		"CF-19 limits of workspace files": {
			`{"agents": {"defaults": {"bootstrapMaxChars": 5, /* all */ "bootstrapTotalMaxChars": 6}}}`, "agents.defaults",
			`{"bootstrapMaxChars":5,"bootstrapTotalMaxChars":6}`},
		"CF-19 context": {
			`{"agents": {"defaults": {"contextTokens": 7, "compaction": {"mode": "auto", "targetTokens": 0.7}, "contextPruning": {"ttl": "5m"}}}, "models": {"providers": {"a": {"models": [{"id": "m", "contextWindow": 8}]}}}}`,
			"agents.defaults.compaction", `{"mode":"auto","targetTokens":0.7}`,
		},
		"CF-19 subagents": {
			`{"agents": {"defaults": {"subagents": {"maxSpawnDepth": 2}}, "list": [{"agentId": "x", "subagents": {"allowAgents": ["y"]}}]}, "tools": {"subagents": {"tools": {"deny": ["z"]}}}}`,
			"agents.list[0].agentId", `"x"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := mustLoad(t, tc.text)
			if got := tr.Warnings(); len(got) != 0 {
				t.Errorf("warnings %v, want none", got)
			}
			if got := string(tr.Section(tc.path)); got != tc.want {
				t.Errorf("%s = %s, want %s", tc.path, got, tc.want)
			}
		})
	}
}

// TestMutations loads mutations of the sample. Nothing panics, and Validate and Load
// agree.
func TestMutations(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"{", "}", "[", "]", "null", "7", "'x'", ":", ",", "$include", "//", "\"", "true",
		"${X}", "\x00", "-", "{a:1}"}
	file := filepath.Join(t.TempDir(), "chela.json")
	loaded := 0
	for range 500 {
		text := []byte(sample)
		for range 1 + rnd.IntN(3) {
			at := rnd.IntN(len(text))
			end := min(len(text), at+rnd.IntN(8))
			text = slices.Concat(text[:at], []byte(pieces[rnd.IntN(len(pieces))]), text[end:])
		}
		if agree(t, file, text) {
			loaded++
		}
	}
	if loaded == 0 || loaded == 500 {
		t.Errorf("%d of 500 mutations load: the test is meaningless", loaded)
	}
}

// agree checks that Validate and Load agree, and reports whether the text can be
// loaded.
func agree(t *testing.T, file string, text []byte) bool {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Env: env("TOKEN", "t")}
	tr, err := o.Load(file)
	fatal := slices.ContainsFunc(o.Validate(file), func(p Problem) bool { return p.Fatal })
	if fatal != (err != nil) {
		t.Errorf("Load says %v and Validate says fatal: %v, of %q", err, fatal, text)
	}
	if err == nil && !json.Valid(tr.Section("")) {
		t.Errorf("the section of the empty path is not JSON: %q", text)
	}
	return err == nil
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("{$include: 'chela.json'}"))
	f.Add([]byte("{agents: {list: [{id: null}], defaults: 7}, gatway: 1}"))
	file := filepath.Join(f.TempDir(), "chela.json")
	f.Fuzz(func(t *testing.T, text []byte) { agree(t, file, text) })
}

func texts(ps []Problem) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.String())
	}
	slices.Sort(out)
	return out
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReadText(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "none.json")
	o := Options{Env: func(string) string { return "" }}
	tree, err := o.ReadText(file, []byte("{ gateway: { port: 7 }, telepathy: 1 }"))
	if err != nil || string(tree.Section("gateway.port")) != "7" || len(tree.Warnings()) != 1 {
		t.Errorf("%v, %v", tree, err)
	}
	if _, err := o.ReadText(file, []byte("{ gateway: { port: 'x' } }")); err == nil {
		t.Error("an invalid value was read")
	}
}
