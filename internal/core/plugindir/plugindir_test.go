package plugindir_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/hookdir"
	"github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/plugindir"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/needtest"
)

const (
	weather = `{
		// JSON5
		id: "weather", name: "Weather", version: "1.2.0", description: "Forecasts", homepage: "https://example.com",
		configSchema: {type: "object", additionalProperties: false, required: ["city"], properties: {
			city: {type: "string", minLength: 2}, days: {type: "integer", default: 3}, units: {enum: ["C", "F"]},
			more: {type: "object", properties: {deep: {type: "boolean", default: true}}},
		}},
		skills: ["./skills"], agents: "agents",
		mcpServers: {docs: {command: "node", args: ["./docs.js", "--root", "${PLUGIN_ROOT}"], cwd: "${PLUGIN_DATA}"}, net: {url: "https://example.com/mcp", headers: {Authorization: "Bearer ${TOKEN}"}}},
		process: {command: "python3", args: ["./server.py"], env: {CACHE: "${PLUGIN_DATA}/cache"}},
		contracts: {tools: ["weather_now", "weather_week"]},
		toolMetadata: {weather_week: {optional: true}},
		permissions: {hosts: ["api.example.com:443"], read: ["~/maps"]},
	}`
	plain  = `{"id": "ID", "configSchema": {}}`
	hookMD = "---\nname: guard\nmetadata: {openclaw: {events: [before_tool_call, llm_input, gateway_start]}}\n---\n"
	critic = "---\nname: critic\ndescription: criticizes\n---\nCriticize.\n"
)

type files map[string]string

// fill writes files to a folder and returns it. Those that begin with #! are executable.
func fill(t testing.TB, dir string, all files) string {
	t.Helper()
	for name, text := range all {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o600)
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return pathpolicy.Real(dir)
}

func weatherFiles() files {
	return files{
		"openclaw.plugin.json":   weather,
		"server.py":              "print()",
		"docs.js":                "",
		"skills/a/SKILL.md":      "a",
		"skills/b/SKILL.md":      "b",
		"skills/README.md":       "",
		"agents/critic.md":       critic,
		"hooks/guard/HOOK.md":    hookMD,
		"hooks/guard/handler.sh": "#!/bin/sh\n",
	}
}

func simple(id string) files {
	return files{"chela.plugin.json": strings.Replace(plain, "ID", id, 1)}
}

// home is a state directory with a workspace.
type home struct {
	state, workspace string
	plugindir.Options
}

func newHome(t testing.TB) *home {
	root := pathpolicy.Real(t.TempDir())
	h := &home{state: filepath.Join(root, "state"), workspace: filepath.Join(root, "workspace")}
	h.Options = plugindir.Options{
		State:  h.state,
		Home:   filepath.Join(root, "home"),
		Agents: []hookdir.Agent{{ID: "main", Workspace: h.workspace}},
		Getenv: func(name string) string { return map[string]string{"KEY": "sk-secret"}[name] },
		Config: plugindir.Config{Entries: map[string]plugindir.Entry{}},
	}
	return h
}

// find returns the only plug-in.
func (h *home) find(t testing.TB) *plugindir.Plugin {
	t.Helper()
	all := plugindir.Find(h.Options)
	if len(all) != 1 {
		t.Fatalf("%d plug-ins: %+v", len(all), all)
	}
	return &all[0]
}

// enable enables a plug-in as the person would, with its configuration.
func (h *home) enable(t testing.TB, id, config string) *plugindir.Plugin {
	t.Helper()
	yes := true
	h.Config.Entries[id] = plugindir.Entry{Enabled: &yes, Config: []byte(config)}
	e := h.Config.Entries[id]
	e.Hash = h.find(t).Hash
	h.Config.Entries[id] = e
	return h.find(t)
}

// has reports whether one of the texts contains a text.
func has(list []string, text string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, text) })
}

func TestManifest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		files files
		fail  string
	}{
		{"PL-01 a manifest without configSchema: the error names the plug-in",
			files{"openclaw.plugin.json": `{"id": "weather"}`},
			"plug-in weather: openclaw.plugin.json: configSchema is missing"},
		{"PL-01 the same in our file", files{"chela.plugin.json": `{"id": "weather", "configSchema": null}`},
			"plug-in weather: chela.plugin.json: configSchema is missing"},
		{"no manifest", files{"package.json": `{"name": "x"}`}, "no manifest"},
		{"no JSON", files{"chela.plugin.json": "{"}, "plug-in x: chela.plugin.json:"},
		{"not an object", files{"chela.plugin.json": "[]"}, "want an object"},
		{"a broken manifest before a bundle", files{"openclaw.plugin.json": "null", "plugin.json": `{"name": "x"}`},
			"want an object"},
		{"no id", files{"chela.plugin.json": `{"configSchema": {}}`}, "id is missing"},
		{"a bundle without a name", files{"plugin.json": `{}`}, "name is missing"},
		{"an id in upper case", files{"chela.plugin.json": `{"id": "Weather", "configSchema": {}}`},
			`id "Weather": want lower-case`},
		{"an id that is a path", files{"chela.plugin.json": `{"id": "../x", "configSchema": {}}`}, "want lower-case"},
		{"an id that is a device", files{"chela.plugin.json": `{"id": "nul", "configSchema": {}}`}, "want lower-case"},
		{"a long id", files{"chela.plugin.json": strings.Replace(plain, "ID", strings.Repeat("x", 65), 1)},
			"want lower-case"},
		{"too large", files{"chela.plugin.json": plain + strings.Repeat(" ", 1<<20)}, "more than 1048576 bytes"},
		{"a wrong type", files{"chela.plugin.json": `{"id": "x", "configSchema": {}, "skills": 1}`}, "skills: want a path"},
		{"a schema that is none", files{"chela.plugin.json": `{"id": "x", "configSchema": true}`},
			"configSchema: want a JSON Schema"},
		{"a schema that cannot be used", files{"chela.plugin.json": `{"id": "x", "configSchema": {"type": 5}}`},
			"configSchema"},
		{"skills outside", files{"chela.plugin.json": `{"id": "x", "configSchema": {}, "skills": ["../skills"]}`},
			`skills: "../skills" is not in the plug-in's folder`},
		{"skills at an absolute path", files{"chela.plugin.json": `{"id": "x", "configSchema": {}, "skills": "/etc"}`},
			"not in the plug-in's folder"},
		{"a program outside", files{"chela.plugin.json": `{"id": "x", "configSchema": {}, "process": {"command": "../x"}}`},
			"process: command"},
		{"a program that is missing",
			files{"chela.plugin.json": `{"id": "x", "configSchema": {}, "process": {"command": "./server"}}`}, "no such file"},
		{"a directory outside",
			files{"chela.plugin.json": `{"id": "x", "configSchema": {}, "process": {"command": "python3", "cwd": "/etc"}}`},
			"process: cwd"},
		{"an argument outside",
			files{"chela.plugin.json": `{"id": "x", "configSchema": {}, "process": {"command": "python3", "args": ["./../y"]}}`},
			"process: args"},
		{"a placeholder to the outside",
			files{"chela.plugin.json": `{"id": "x", "configSchema": {}, "process": {"command": "python3", "cwd": "${PLUGIN_ROOT}/../.."}}`}, "process: cwd"},
		{"a program on the network",
			files{"chela.plugin.json": `{"id": "x", "configSchema": {}, "process": {"url": "https://example.com"}}`},
			"process: want command"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := plugindir.Read(fill(t, filepath.Join(t.TempDir(), "x"), tt.files))
			if err == nil || !strings.Contains(err.Error(), tt.fail) {
				t.Errorf("%v, want %q", err, tt.fail)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	outside := fill(t, t.TempDir(), files{"chela.plugin.json": strings.Replace(plain, "ID", "x", 1), "secret/x": ""})
	link := func(t *testing.T, from, to string) {
		if err := os.Symlink(from, to); err != nil {
			needtest.Missing(t, "symbolic links")
		}
	}
	t.Run("a manifest that is a link out of the folder", func(t *testing.T) {
		dir := t.TempDir()
		link(t, filepath.Join(outside, "chela.plugin.json"), filepath.Join(dir, "chela.plugin.json"))
		if _, err := plugindir.Read(dir); err == nil {
			t.Error("accepted")
		}
	})
	t.Run("skills that are a link out of the folder", func(t *testing.T) {
		dir := fill(t, t.TempDir(), files{"chela.plugin.json": `{"id": "x", "configSchema": {}, "skills": "skills"}`})
		link(t, filepath.Join(outside, "secret"), filepath.Join(dir, "skills"))
		if p, err := plugindir.Read(dir); err == nil {
			t.Errorf("accepted %v", p.Skills)
		}
	})
	t.Run("a directory that is a link out of the folder", func(t *testing.T) {
		dir := fill(t, t.TempDir(),
			files{"chela.plugin.json": `{"id": "x", "configSchema": {}, "process": {"command": "python3", "cwd": "work"}}`})
		link(t, filepath.Join(outside, "secret"), filepath.Join(dir, "work"))
		if _, err := plugindir.Read(dir); err == nil || !strings.Contains(err.Error(), "cwd") {
			t.Error(err)
		}
	})
	t.Run("a link in a workspace is no plug-in", func(t *testing.T) {
		h := newHome(t)
		fill(t, filepath.Join(h.workspace, ".chela", "plugins"), files{"README.md": ""})
		link(t, outside, filepath.Join(h.workspace, ".chela", "plugins", "x"))
		if all := plugindir.Find(h.Options); len(all) > 0 {
			t.Errorf("%+v", all)
		}
	})
	t.Run("an installed folder with a link is not used", func(t *testing.T) {
		h := newHome(t)
		dir := fill(t, filepath.Join(h.state, "plugins", "x"), simple("x"))
		link(t, "/etc/passwd", filepath.Join(dir, "link"))
		if p := h.enable(t, "x", ""); p.Loadable() || !has(p.Reasons, "link is not a regular file") {
			t.Error(p.Reasons)
		}
	})
}

func TestFormats(t *testing.T) {
	t.Parallel()
	const servers = `{"mcpServers": {"a": {"command": "npx"}, "bad": {}}}`
	type want struct {
		ID, Name, Format               string
		Skills, Hooks, Agents, Command []string
		Servers                        []string
		Unsupported, Warnings          []string
	}
	for _, tt := range []struct {
		name  string
		files files
		want  want
	}{
		{"our own", weatherFiles(), want{
			ID: "weather", Name: "Weather", Format: "openclaw", Skills: []string{"skills"}, Hooks: []string{"hooks"},
			Agents: []string{"agents"}, Servers: []string{"docs", "net"},
		}},
		{"OpenClaw's, with code", files{
			"openclaw.plugin.json": `{"id": "x", "configSchema": {}, "channels": ["a"], "providers": [], "kind": "memory", "contracts": {"tools": ["t", "t", "bad name"], "speechProviders": ["s"]}, "skills": ["no"], "hooks": ["h"], "later": {}}`,
			"package.json":         `{"openclaw": {"extensions": ["./index.js"]}}`, "h/README.md": "", "hooks/README.md": "",
		}, want{
			ID: "x", Name: "x", Format: "openclaw", Hooks: []string{"h"},
			Unsupported: []string{
				"Its channels are not available: their code runs only in OpenClaw.",
				"It cannot take the slot for memory or for the context engine.",
				"Its code for speechProviders is not run: it runs only in OpenClaw.",
				"Its tools are not available: it has no program that offers them (key process), and their code runs only in OpenClaw.",
				"Its JavaScript code (package.json) is not run: it runs only in OpenClaw.",
			},
			Warnings: []string{`the tool "bad name" is ignored: want a letter, then letters, digits, _ and -, at most 64`,
				"skills: there is no no"},
		}},
		{"OpenClaw's, with nothing for Chela", files{"openclaw.plugin.json": `{"id": "x", "configSchema": {}}`},
			want{ID: "x", Name: "x", Format: "openclaw", Unsupported: []string{"It adds nothing that Chela uses."}}},
		{"Agent Plugins", files{"plugin.json": `{"name": "My Pack!"}`, "mcp.json": servers,
			".mcp.json": `{"mcpServers": {"z": {"command": "z"}}}`, "skills/a/SKILL.md": "", "hooks/x": ""}, want{
			ID: "my-pack", Name: "My Pack!", Format: "agent", Skills: []string{"skills"}, Servers: []string{"a"},
			Warnings: []string{
				`the server bad is ignored: want command, as in {"command": "npx", "args": ["-y", "some-server"]}, or url`},
		}},
		{"Agent Plugins with a wrong mcp.json",
			files{"plugin.json": `{"name": "x"}`, "mcp.json": "{", "skills/a/SKILL.md": ""}, want{
				ID: "x", Name: "x", Format: "agent", Skills: []string{"skills"},
				Warnings: []string{"the servers of mcp.json are ignored: line 1, column 1: this '{' is never closed"},
			}},
		{"Claude's", files{
			".claude-plugin/plugin.json": `{"name": "cl", "mcpServers": {"a": {"command": "a"}}, "commands": ["./more/"], "outputStyles": "x", "hooks": "./hooks/hooks.json"}`, "plugin.json": `{"name": "other"}`,
			".mcp.json": `{"a": {"command": "other"}, "b": {"command": "${CLAUDE_PLUGIN_ROOT}/run"}}`, "run": "#!",
			"skills/a": "", "agents/critic.md": critic, "commands/c.md": "", "more/d.md": "",
			"hooks/hooks.json": "{}", ".lsp.json": "{}",
		}, want{
			ID: "cl", Name: "cl", Format: "claude", Skills: []string{"skills"}, Hooks: []string{"hooks"},
			Agents: []string{"agents"}, Command: []string{"more", "commands"}, Servers: []string{"a", "b"},
			Unsupported: []string{
				"Its output styles are not used.",
				"Its hooks in Claude's format (hooks.json) are not run: only folders with a HOOK.md are.",
				"Its language servers are not used.",
			},
		}},
		{"Claude's with hooks in the manifest and servers in a file", files{
			".claude-plugin/plugin.json": `{"name": "cl", "hooks": {"PreToolUse": []}, "mcpServers": "./servers.json"}`,
			"servers.json":               servers,
		}, want{
			ID: "cl", Name: "cl", Format: "claude", Servers: []string{"a"},
			Unsupported: []string{"Its hooks in Claude's format (hooks.json) are not run: only folders with a HOOK.md are."},
			Warnings: []string{
				`the server bad is ignored: want command, as in {"command": "npx", "args": ["-y", "some-server"]}, or url`},
		}},
		{"Claude's with servers in a file that is missing",
			files{".claude-plugin/plugin.json": `{"name": "cl", "mcpServers": "../servers.json"}`}, want{
				ID: "cl", Name: "cl", Format: "claude", Unsupported: []string{"It adds nothing that Chela uses."},
				Warnings: []string{`the servers of ../servers.json are ignored: "../servers.json" is not in the plug-in's folder`},
			}},
		{"Codex's", files{".codex-plugin/plugin.json": `{"name": "cx", "skills": "./skills/"}`,
			".claude-plugin/plugin.json": `{"name": "cl"}`, ".mcp.json": servers, "skills/a": "", "agents/x": "",
			".app.json": ""}, want{
			ID: "cx", Name: "cx", Format: "codex", Skills: []string{"skills"}, Servers: []string{"a"},
			Unsupported: []string{"Its apps are not used."},
			Warnings: []string{
				`the server bad is ignored: want command, as in {"command": "npx", "args": ["-y", "some-server"]}, or url`},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := fill(t, t.TempDir(), tt.files)
			p, err := plugindir.Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			rel := func(paths []string) (out []string) {
				for _, path := range paths {
					r, err := filepath.Rel(dir, path)
					if err != nil {
						t.Error(err)
					}
					out = append(out, r)
				}
				return out
			}
			var names []string
			for name := range p.Servers {
				names = append(names, name)
			}
			slices.Sort(names)
			got := want{
				ID:          p.ID,
				Name:        p.Name,
				Format:      string(p.Format),
				Skills:      rel(p.Skills),
				Hooks:       rel(p.Hooks),
				Agents:      rel(p.Agents),
				Command:     rel(p.Commands),
				Servers:     names,
				Unsupported: p.Unsupported,
				Warnings:    p.Warnings,
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, config string
		want         []string // reasons
		passed       string
	}{
		{"PL-02 a value that does not match the schema", `{"city": 5}`,
			[]string{"plugins.entries.weather.config.city: want string"}, "{}"},
		{"PL-02 an unknown key", `{"city": "Bern", "x": 1}`,
			[]string{"plugins.entries.weather.config.x: the plug-in has no such key"}, "{}"},
		{"PL-02 a required key, without a configuration", ``, []string{"plugins.entries.weather.config.city: it is required"},
			"{}"},
		{"PL-02 not one of the values", `{"city": "Bern", "units": "K"}`,
			[]string{`plugins.entries.weather.config.units: want one of "C","F"`}, "{}"},
		{"PL-02 deeper", `{"city": "Bern", "more": {"deep": "yes"}}`,
			[]string{"plugins.entries.weather.config.more.deep: want boolean"}, "{}"},
		{"PL-02 another keyword, and the value does not show", `{"city": "s"}`,
			[]string{"plugins.entries.weather.config.city: it does not satisfy minLength of the plug-in's schema"}, "{}"},
		{"PL-02 several", `{"days": 1.5}`, []string{"plugins.entries.weather.config.city: it is required",
			"plugins.entries.weather.config.days: want integer"}, "{}"},
		{"PL-02 not an object", `[]`, []string{"plugins.entries.weather.config: want an object"}, "{}"},
		{"defaults", `{"city": "Bern"}`, nil, `{"city":"Bern","days":3,"more":{"deep":true}}`},
		{"no defaults for what is set", `{"city": "Bern", "days": 1, "more": {"deep": false}}`, nil,
			`{"city":"Bern","days":1,"more":{"deep":false}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			fill(t, filepath.Join(h.state, "plugins", "weather"), weatherFiles())
			p := h.enable(t, "weather", tt.config)
			if !slices.Equal(p.Reasons, tt.want) || string(p.Config) != tt.passed || p.Loadable() != (tt.want == nil) {
				t.Errorf("%q, %s, want %q, %s", p.Reasons, p.Config, tt.want, tt.passed)
			}
		})
	}
	t.Run("a cyclic schema ends", func(t *testing.T) {
		h := newHome(t)
		fill(t, filepath.Join(h.state, "plugins", "x"),
			files{"chela.plugin.json": `{"id": "x", "configSchema": {"$ref": "#"}}`})
		if p := h.enable(t, "x", `{}`); p.Loadable() {
			t.Error("used")
		}
	})
}

func TestFind(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	t.Run("sources and the same id twice", func(t *testing.T) {
		h := newHome(t)
		fill(t, filepath.Join(h.state, "plugins", "both"), simple("both"))
		fill(t, filepath.Join(h.state, "plugins", "own"), simple("own"))
		fill(t, filepath.Join(h.state, "plugins", ".install-1", "new"), simple("half"))
		fill(t, filepath.Join(h.state, "plugins", "nothing"), files{"README.md": ""})
		fill(t, filepath.Join(h.state, "one"), simple("one"))
		fill(t, filepath.Join(h.Home, "many", "a"), simple("both"))
		fill(t, filepath.Join(h.Home, "many", "b"), files{"chela.plugin.json": "{"})
		fill(t, filepath.Join(h.workspace, ".openclaw/extensions/x"), simple("both"))
		fill(t, filepath.Join(h.workspace, ".openclaw/extensions/y"), simple("own"))
		fill(t, filepath.Join(h.workspace, ".chela/plugins/z"), simple("there"))
		h.Config.Load.Paths = []string{"one", "~/many", "/none"}
		var got []string
		for _, p := range plugindir.Find(h.Options) {
			state := "off"
			if p.Loadable() {
				state = "on"
			} else if len(p.Reasons) > 0 {
				state = "broken"
			}
			got = append(got,
				strings.TrimSpace(strings.Join([]string{p.ID, string(p.Source), p.Agent, state,
					strings.Repeat("!", len(p.Warnings))}, " ")))
		}
		want := []string{"b path  broken", "both path  on !!", "none path  broken", "one path  on", "own installed  off !",
			"there workspace main off"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	for _, tt := range []struct {
		name   string
		config plugindir.Config
		reason string
	}{
		{"PL-03 deny wins over allow", plugindir.Config{Allow: []string{"x"}, Deny: []string{"x"}}, "plugins.deny names it"},
		{"PL-03 allow is exclusive", plugindir.Config{Allow: []string{"y"}}, "plugins.allow does not name it"},
		{"PL-03 allow names it", plugindir.Config{Allow: []string{"x"}}, ""},
		{"all are off", plugindir.Config{Enabled: &no}, "plug-ins are off"},
		{"it is off", plugindir.Config{Entries: map[string]plugindir.Entry{"x": {Enabled: &no}}}, "off"},
		{"another hash", plugindir.Config{Entries: map[string]plugindir.Entry{"x": {Hash: "00"}}}, "chela plugins enable x"},
		{"a key that cannot be resolved", config(t, `{"entries": {"x": {"apiKey": "env:NO_SUCH"}}}`),
			"plugins.entries.x.apiKey"},
		{"a wrong host", config(t, `{"entries": {"x": {"permissions": {"hosts": ["https://example.com"]}}}}`), "want NAME"},
		{"a relative path", config(t, `{"entries": {"x": {"permissions": {"read": ["maps"]}}}}`), "want an absolute path"},
		{"the state of Chela", config(t, `{"entries": {"x": {"permissions": {"write": ["/"]}}}}`), "state of Chela"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			fill(t, filepath.Join(h.state, "one"), simple("x"))
			h.Config = tt.config
			h.Config.Load.Paths = []string{"one"}
			for _, p := range plugindir.Find(h.Options) {
				if p.ID == "x" && (p.Loadable() != (tt.reason == "") ||
					tt.reason != "off" && tt.reason != "" && !has(p.Reasons, tt.reason)) {
					t.Errorf("%q, want %q", p.Reasons, tt.reason)
				}
			}
		})
	}
	t.Run("a stale entry is a warning", func(t *testing.T) {
		h := newHome(t)
		h.Known = []string{"brave"}
		h.Config.Entries = map[string]plugindir.Entry{
			"brave":   {Config: []byte("{}")},
			"gone":    {Enabled: &yes},
			"removed": {Enabled: &no},
		}
		h.Config.Deny = []string{"worse"}
		var got []string
		for _, p := range plugindir.Find(h.Options) {
			if p.Loadable() || p.Source != plugindir.Missing || len(p.Warnings) != 1 {
				t.Errorf("%+v", p)
			}
			got = append(got, p.Warnings...)
		}
		want := []string{"stale entry: there is no plug-in gone; chela config unset plugins.entries.gone",
			"plugins.deny names worse, but there is no such plug-in"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// config returns a section plugins.
func config(t *testing.T, text string) (c plugindir.Config) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestChanged(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"state/plugins/x", "workspace/.chela/plugins/x"} {
		h := newHome(t)
		dir := fill(t, filepath.Join(filepath.Dir(h.state), filepath.FromSlash(at)), simple("x"))
		if p := h.find(t); p.Enabled || p.Hash == "" {
			t.Errorf("%s: %+v", at, p)
		}
		p := h.enable(t, "x", "")
		if !p.Loadable() || p.Changed() || p.Check() != nil {
			t.Fatalf("%s: %q", at, p.Reasons)
		}
		fill(t, dir, files{"more": "x"})
		if !p.Changed() || p.Check() == nil {
			t.Errorf("%s: the change is not noticed", at)
		}
		if p := h.find(t); p.Loadable() ||
			!slices.Equal(p.Reasons, []string{"it was changed since it was enabled: read it, then chela plugins enable x"}) {
			t.Errorf("%s: %q", at, p.Reasons)
		}
		if err := os.Remove(filepath.Join(dir, "more")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if p.Changed() {
				t.Errorf("%s: it is as it was", at)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if !p.Changed() {
			t.Errorf("%s: the folder is missing", at)
		}
	}
	h := newHome(t)
	dir := fill(t, filepath.Join(h.state, "one"), simple("x"))
	h.Config.Load.Paths = []string{"one"}
	p := h.find(t)
	fill(t, dir, files{"more": "x"})
	if p.Changed() || !h.find(t).Loadable() {
		t.Error("a plug-in of load.paths has no hash")
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := fill(t, filepath.Join(h.state, "plugins", "weather"), weatherFiles())
	data := filepath.Join(h.state, "plugin-data", "weather")
	maps := fill(t, filepath.Join(h.Home, "maps"), files{"a": ""})
	entry := config(t, `{"entries": {"weather": {"enabled": true, "apiKey": "env:KEY", "config": {"city": "Bern"}, "env": {"TOKEN": "t", "PLUGIN_ROOT": "/wrong"}, "permissions": {"write": ["~/none"], "hosts": ["b.example.com"]}}}}`).Entries["weather"]
	entry.Hash = h.find(t).Hash
	h.Config.Entries["weather"] = entry
	p := h.find(t)
	servers, err := p.MCPServers(data)
	if err != nil || len(servers) != 3 {
		t.Fatal(servers, err, p.Reasons)
	}
	env := map[string]string{
		"TOKEN":                   "t",
		"PLUGIN_ROOT":             dir,
		"PLUGIN_DATA":             data,
		"CLAUDE_PLUGIN_ROOT":      dir,
		"CHELA_PLUGIN_ID":         "weather",
		"CHELA_PLUGIN_API_KEY":    "sk-secret",
		"CHELA_PLUGIN_CONFIG":     `{"city":"Bern","days":3,"more":{"deep":true}}`,
		"PYTHONDONTWRITEBYTECODE": "1",
	}
	if diff := cmp.Diff(env, p.Environ(data)); diff != "" {
		t.Error(diff)
	}
	rights := &sandbox.Rights{Workspace: dir, Hosts: []string{"api.example.com:443", "b.example.com"},
		Read: []string{maps}, Own: data}
	own := servers["weather"]
	env["CACHE"] = data + "/cache"
	want := mcp.Server{
		Command: "python3",
		Args:    []string{filepath.Join(dir, "server.py")},
		Env:     env,
		Dir:     dir,
		Plugin:  "weather",
		Rights:  rights,
		Own:     []mcp.Declared{{Name: "weather_now"}, {Name: "weather_week", Optional: true}},
	}
	if own.Check == nil || own.Check() != nil {
		t.Error("Check")
	}
	if own.Check = nil; !cmp.Equal(want, own) {
		t.Error(cmp.Diff(want, own))
	}
	docs := servers["docs"]
	if docs.Own != nil || docs.Dir != data ||
		!slices.Equal(docs.Args, []string{filepath.Join(dir, "docs.js"), "--root", dir}) || docs.Env["TOKEN"] != "t" {
		t.Errorf("%+v", docs)
	}
	if net := servers["net"]; net.Headers["Authorization"] != "Bearer t" || net.Env != nil {
		t.Errorf("%+v", net)
	}
	if p.Process.Args[0] != "./server.py" || p.Servers["net"].Headers["Authorization"] != "Bearer ${TOKEN}" {
		t.Error("the manifest was changed")
	}
	fill(t, dir, files{"server.py": "evil()"})
	if err := servers["docs"].Check(); err == nil || !strings.Contains(err.Error(), "chela plugins enable weather") {
		t.Error(err)
	}
	off := false
	p.Entry.Sandbox = &off
	if servers, err := p.MCPServers(data); err != nil || servers["weather"].Rights != nil {
		t.Error(servers, err)
	}
	p.Enabled = false
	if servers, err := p.MCPServers(data); err != nil || servers != nil {
		t.Error(servers, err)
	}
}

func TestAbilities(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs modes of files")
	}
	h := newHome(t)
	fill(t, filepath.Join(h.state, "plugins", "weather"), weatherFiles())
	p := h.enable(t, "weather", `{"city": "Bern"}`)
	want := []string{
		"adds 2 skills",
		"adds the agent type critic",
		"adds the tools of the server docs (docs__*)",
		"adds the tools of the server net (net__*)",
		"adds the tools weather_now, weather_week (optional)",
		"asks to see conversations (llm_input): plugins.entries.weather.hooks.allowConversationAccess",
		"connects to the server https://example.com",
		"decides about tool calls (before_tool_call)",
		"is told of events: gateway_start",
		"runs a program: hook guard, handler.sh (confined; may connect to api.example.com:443; may read ~/maps; may change its data folder)",
		"runs a program: node ./docs.js --root ${PLUGIN_ROOT} (confined; may connect to api.example.com:443; may read ~/maps; may change its data folder)",
		"runs a program: python3 ./server.py (confined; may connect to api.example.com:443; may read ~/maps; may change its data folder)",
	}
	if diff := cmp.Diff(want, p.Abilities()); diff != "" {
		t.Error(diff)
	}
	yes, no := true, false
	p.Entry.Hooks.Conversation, p.Entry.Sandbox, p.Entry.Env = &yes, &no, map[string]string{"TOKEN": "t"}
	for _, line := range []string{"sees conversations (llm_input)", "gets the variable TOKEN",
		"runs a program: python3 ./server.py (not confined: it may do everything that Chela may)"} {
		if !slices.Contains(p.Abilities(), line) {
			t.Errorf("no %q in %q", line, p.Abilities())
		}
	}
}
