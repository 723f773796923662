package chelatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/wire"
)

// childTools makes the test binary an MCP server with the tools that it lists.
const childTools = "CHELA_TEST_TOOLS"

// serveTools is an MCP server whose tools tell who they are, end the program, or write a
// file in the data folder of their plug-in.
func serveTools(names string) error {
	if file := os.Getenv("CHELA_TEST_STARTED"); file != "" {
		if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
			return err
		}
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	for name := range strings.SplitSeq(names, ",") {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "Does " + name},
			func(_ context.Context, _ *sdk.CallToolRequest, in struct {
				Text string `json:"text,omitempty"`
			}) (*sdk.CallToolResult, any, error) {
				if name == "crash" {
					fmt.Fprintln(os.Stderr, "out of paper")
					os.Exit(3)
				}
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{
					Text: fmt.Sprintf("%s says %s (config %s, secret %q)", name, in.Text, os.Getenv("CHELA_PLUGIN_CONFIG"),
						os.Getenv("CHELA_TEST_SECRET")),
				}}}, nil, nil
			})
	}
	return s.Run(context.Background(), &sdk.StdioTransport{})
}

// manifest is a chela.plugin.json.
type manifest map[string]any

// offering returns the manifest of a plug-in whose program is the test binary.
func offering(id string, tools ...string) manifest {
	return manifest{
		"id": id, "configSchema": manifest{"type": "object"}, "contracts": manifest{"tools": tools},
		"process": manifest{"command": os.Args[0], "env": manifest{childTools: strings.Join(tools, ",")}},
	}
}

// pluginFolder writes a plug-in.
func pluginFolder(t *testing.T, m manifest, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"chela.plugin.json": string(b)}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		mode := os.FileMode(0o600)
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// withPlugins starts a gateway that finds plug-ins in folders; they are not confined.
func withPlugins(t *testing.T, conf string, dirs ...string) (*Gateway, *Client) {
	t.Helper()
	var c map[string]any
	if err := json.Unmarshal([]byte(conf), &c); err != nil {
		t.Fatal(err)
	}
	plugins, _ := c["plugins"].(map[string]any)
	if plugins == nil {
		plugins = map[string]any{}
	}
	plugins["load"] = map[string]any{"paths": dirs}
	c["plugins"] = plugins
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return configuredWith(t, string(text),
		Options{Model: uses(), Listen: &endpoint.Listen{Port: -1}, Environ: []string{"CHELA_TEST_SECRET=s3cret"}})
}

// free returns the configuration of plug-ins that are not confined.
func free(ids ...string) string {
	entries := map[string]any{}
	for _, id := range ids {
		entries[id] = map[string]any{"sandbox": false}
	}
	b, _ := json.Marshal(map[string]any{"plugins": map[string]any{"entries": entries}})
	return string(b)
}

// pluginTools returns the tools of plug-ins in the catalog, each with its owner.
func (c *Client) pluginTools() []string {
	c.t.Helper()
	var all wire.ToolsCatalog
	c.must(wire.MethodToolsCatalog, nil, &all)
	out := []string{}
	for _, g := range all.Groups {
		for _, tool := range g.Tools {
			if tool.PluginID != "" {
				out = append(out, tool.PluginID+":"+tool.ID)
			}
		}
	}
	slices.Sort(out)
	return out
}

// diagnostics returns what is wrong with a plug-in.
func (c *Client) diagnostics(id string) string {
	c.t.Helper()
	var l wire.PluginsList
	c.must(wire.MethodPluginsList, nil, &l)
	var out []string
	for _, d := range l.Diagnostics {
		if d.PluginID == id {
			out = append(out, d.Level+": "+d.Message)
		}
	}
	return strings.Join(out, "\n")
}

// plugin returns what is known of a plug-in.
func (c *Client) plugin(id string) (p wire.PluginInfo) {
	c.t.Helper()
	c.must(wire.MethodPluginsInfo, wire.PluginGet{ID: id}, &p)
	return p
}

func TestPlugins(t *testing.T) {
	t.Parallel()
	t.Run("PL-01 a manifest without configSchema", func(t *testing.T) {
		t.Parallel()
		m := offering("bad", "say")
		delete(m, "configSchema")
		_, c := withPlugins(t, `{}`, pluginFolder(t, m, nil))
		if d := c.diagnostics("bad"); !strings.Contains(d, "error: ") || !strings.Contains(d, "plug-in bad") ||
			!strings.Contains(d, "configSchema") {
			t.Errorf("diagnostics: %s", d)
		}
		if end := c.Ask("main", "ls {}"); end.State != "final" {
			t.Errorf("the gateway does not work: %+v", end)
		}
	})
	t.Run("PL-02 a configuration that does not match the schema", func(t *testing.T) {
		t.Parallel()
		m := offering("weather", "say")
		m["configSchema"] = manifest{"type": "object",
			"properties": manifest{"unit": manifest{"enum": []string{"C", "F"}, "default": "C"}}}
		_, c := withPlugins(t, `{"plugins": {"entries": {"weather": {"sandbox": false, "config": {"unit": "K"}}}}}`,
			pluginFolder(t, m, nil))
		if d := c.diagnostics("weather"); !strings.Contains(d, "plugins.entries.weather.config.unit") {
			t.Errorf("diagnostics: %s", d)
		}
		c.patch(`{"plugins": {"entries": {"weather": {"config": {"unit": "F"}}}}}`)
		eventually(t, "tools", []string{"weather:say"}, c.pluginTools)
		if got := c.Ask("main", `say {"text": "hi"}`).Text; !strings.Contains(got,
			`say says hi (config {"unit":"F"}, secret "")`) {
			t.Errorf("answer %s", got)
		}
	})
	t.Run("PL-03 deny goes before allow", func(t *testing.T) {
		t.Parallel()
		_, c := withPlugins(t, `{"plugins": {"deny": ["one"], "allow": ["one", "two"]}}`,
			pluginFolder(t, offering("one", "say_one"), nil), pluginFolder(t, offering("two", "say_two"), nil),
			pluginFolder(t, offering("three", "say_three"), nil))
		if p := c.plugin("one"); p.State == "enabled" || len(p.Reasons)+len(p.Warnings) == 0 {
			t.Errorf("denied: %+v", p)
		}
		if p := c.plugin("two"); p.State != "enabled" {
			t.Errorf("allowed: %+v", p)
		}
		if p := c.plugin("three"); p.State == "enabled" {
			t.Errorf("not in the list: %+v", p)
		}
	})
	t.Run("PL-04 a tool is listed and obeys group:plugins", func(t *testing.T) {
		t.Parallel()
		_, c := withPlugins(t, free("weather"), pluginFolder(t, offering("weather", "say"), nil))
		eventually(t, "tools", []string{"weather:say"}, c.pluginTools)
		if got := c.Ask("main", `say {"text": "hi"}`).Text; !strings.Contains(got, "say says hi") ||
			!strings.Contains(got, "<untrusted-content") {
			t.Errorf("answer %s", got)
		}
		for _, list := range []string{"group:plugins", "weather", "say"} {
			c.must(wire.MethodConfigPatch, map[string]any{
				"raw":          `{"tools": {"deny": ["` + list + `"]}}`,
				"baseHash":     c.hash(),
				"replacePaths": []string{"tools.deny"},
			}, nil)
			if got := c.Ask("main", `say {"text": "hi"}`).Text; strings.Contains(got, "says hi") {
				t.Errorf("deny %s: %s", list, got)
			}
		}
	})
	t.Run("PL-05 an optional tool is hidden until it is allowed", func(t *testing.T) {
		t.Parallel()
		m := offering("weather", "now", "week")
		m["toolMetadata"] = manifest{"week": manifest{"optional": true}}
		_, c := withPlugins(t, free("weather"), pluginFolder(t, m, nil))
		eventually(t, "tools", []string{"weather:now", "weather:week"}, c.pluginTools)
		if got := c.Ask("main", `week {"text": "hi"}`).Text; strings.Contains(got, "says hi") {
			t.Errorf("answer %s", got)
		}
		c.patch(`{"tools": {"alsoAllow": ["week"]}}`)
		if got := c.Ask("main", `week {"text": "hi"}`).Text; !strings.Contains(got, "week says hi") {
			t.Errorf("answer %s", got)
		}
	})
	t.Run("PL-06 a program that crashes", func(t *testing.T) {
		t.Parallel()
		_, c := withPlugins(t, free("printer"), pluginFolder(t, offering("printer", "say", "crash"), nil))
		eventually(t, "tools", []string{"printer:crash", "printer:say"}, c.pluginTools)
		if got := c.Ask("main", "crash {}").Text; !strings.Contains(got, "printer") ||
			!strings.Contains(got, "out of paper") {
			t.Errorf("answer %s", got)
		}
		if got := c.Ask("main", `say {"text": "again"}`).Text; !strings.Contains(got, "say says again") {
			t.Errorf("answer %s", got)
		}
	})
	t.Run("PL-07 tools with the same name", func(t *testing.T) {
		t.Parallel()
		_, c := withPlugins(t, free("one", "two"), pluginFolder(t, offering("one", "say"), nil),
			pluginFolder(t, offering("two", "say", "read", "tell"), nil))
		eventually(t, "tools", []string{"one:say", "two:tell"}, c.pluginTools)
		d := c.diagnostics("two")
		if !strings.Contains(d, "read") || !strings.Contains(d, "say") {
			t.Errorf("diagnostics: %s", d)
		}
		if d := c.diagnostics("one"); d != "" {
			t.Errorf("diagnostics of the first: %s", d)
		}
		if got := c.Ask("main", `read {"text": "hi"}`).Text; strings.Contains(got, "says hi") {
			t.Errorf("a plug-in replaces Chela's tool: %s", got)
		}
	})
	t.Run("PL-09 a server of the configuration and its filter", func(t *testing.T) {
		t.Parallel()
		server := func(filter string) string {
			return `{"mcp": {"servers": {"srv": {"command": "` + filepath.ToSlash(os.Args[0]) + `", "env": {"` + childTools +
				`": "x,y,admin_z"}` + filter + `}}}}`
		}
		_, c := configuredWith(t, server(""),
			Options{Model: uses(), Listen: &endpoint.Listen{Port: -1}, Environ: []string{"CHELA_TEST_SECRET=s3cret"}})
		eventually(t, "tools", []string{"bundle-mcp:srv__admin_z", "bundle-mcp:srv__x", "bundle-mcp:srv__y"}, c.pluginTools)
		if got := c.Ask("main", `srv__x {"text": "hi"}`).Text; !strings.Contains(got, `x says hi (config , secret "")`) {
			t.Errorf("answer %s", got)
		}
		c.patch(server(`, "toolFilter": {"include": ["x", "admin_*"], "exclude": ["admin_*"]}`))
		eventually(t, "tools", []string{"bundle-mcp:srv__x"}, c.pluginTools)
		var p wire.MCPProbed
		c.must(wire.MethodMCPProbe, wire.MCPProbe{Name: "srv"}, &p)
		if len(p.Tools) != 3 || p.Tools[0].Name != "admin_z" || p.Tools[0].Exposed != "" || p.Tools[1].Exposed != "srv__x" {
			t.Errorf("probe: %+v", p)
		}
		c.patch(server(`, "enabled": false`))
		eventually(t, "tools", []string{}, c.pluginTools)
	})
	t.Run("PL-11 a plug-in that is disabled", func(t *testing.T) {
		t.Parallel()
		_, c := withPlugins(t, free("weather"), pluginFolder(t, offering("weather", "say"), nil))
		eventually(t, "tools", []string{"weather:say"}, c.pluginTools)
		if got := c.Ask("main", `say {"text": "hi"}`).Text; !strings.Contains(got, "say says hi") {
			t.Errorf("answer %s", got)
		}
		var out wire.PluginChanged
		c.must(wire.MethodPluginsSetEnabled, wire.PluginsSetEnabled{ID: "weather"}, &out)
		if out.Plugin.Enabled || out.Plugin.State != "disabled" || len(c.pluginTools()) != 0 {
			t.Errorf("%+v, tools %q", out, c.pluginTools())
		}
		if got := c.Ask("main", `say {"text": "hi"}`).Text; strings.Contains(got, "says hi") {
			t.Errorf("answer %s", got)
		}
	})
	t.Run("PL-12 two with send and react, one with send, one with call", func(t *testing.T) {
		t.Parallel()
		started := filepath.Join(t.TempDir(), "started")
		var dirs []string
		for _, m := range []manifest{
			offering("teams", "teams_send", "teams_react"), offering("matrix", "matrix_send", "matrix_react"),
			offering("zalo", "zalo_send"), offering("voice-call", "voice_call"),
		} {
			m["process"].(manifest)["env"].(manifest)["CHELA_TEST_STARTED"] = started
			if m["id"] == "voice-call" {
				m["toolMetadata"] = manifest{"voice_call": manifest{"optional": true}}
			}
			dirs = append(dirs, pluginFolder(t, m, nil))
		}
		// An engine without a port lists no tools before its first run.
		text := strings.Replace(free("teams", "matrix", "zalo", "voice-call"), `{"entries"`, `{"load": {"paths": `+
			quoted(dirs...)+`}, "entries"`, 1)
		g, c := configuredWith(t, text, Options{Model: uses()})
		declared := []string{}
		for _, id := range []string{"teams", "matrix", "zalo", "voice-call"} {
			p := c.plugin(id)
			if p.State != "enabled" || p.Origin != "path" || len(p.Abilities) == 0 {
				t.Errorf("%s: %+v", id, p)
			}
			for _, name := range p.Tools {
				declared = append(declared, id+":"+name)
			}
		}
		slices.Sort(declared)
		want := []string{"matrix:matrix_react", "matrix:matrix_send", "teams:teams_react", "teams:teams_send",
			"voice-call:voice_call", "zalo:zalo_send"}
		if !slices.Equal(declared, want) {
			t.Errorf("declared tools %q", declared)
		}
		if _, err := os.Stat(started); err == nil {
			t.Error("a program was started to read what the plug-ins declare")
		}
		c.Ask("main", "ls {}")
		eventually(t, "tools", want, c.pluginTools)
		if got := c.Ask("main", `voice_call {"text": "hi"}`).Text; strings.Contains(got, "says hi") {
			t.Errorf("the optional tool answers %s", got)
		}
		if got := c.Ask("main", `matrix_react {"text": "hi"}`).Text; !strings.Contains(got, "matrix_react says hi") {
			t.Errorf("answer %s", got)
		}
		dir := g.Dir
		g.Stop()
		if err := os.Remove(started); err != nil {
			t.Fatal(err)
		}
		// The lists are kept: the next engine knows the tools without a program.
		c = Start(t, Options{Dir: dir, Model: uses()}).Client()
		if got := c.pluginTools(); !slices.Equal(got, want) {
			t.Errorf("tools after a restart %q", got)
		}
		if _, err := os.Stat(started); err == nil {
			t.Error("a program was started although its tools are known")
		}
	})
	t.Run("what Chela does not do is said", func(t *testing.T) {
		t.Parallel()
		_, c := withPlugins(t, `{}`, pluginFolder(t, manifest{"id": "chat", "configSchema": manifest{"type": "object"},
			"channels": []string{"chat"}}, nil))
		if p := c.plugin("chat"); len(p.Unsupported) == 0 || !strings.Contains(p.Unsupported[0], "channel") {
			t.Errorf("%+v", p)
		}
	})
}

// quoted returns texts as a JSON array.
func quoted(texts ...string) string {
	b, err := json.Marshal(texts)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestInstalledPlugin follows a plug-in from its installation to its removal.
func TestInstalledPlugin(t *testing.T) {
	t.Parallel()
	m := offering("weather", "say")
	m["agents"] = []string{"agents"}
	from := pluginFolder(t, m, map[string]string{
		"agents/forecaster.md":   "---\nname: forecaster\ndescription: explains forecasts\n---\nExplain forecasts.\n",
		"hooks/guard/HOOK.md":    "---\nname: guard\nmetadata: {\"openclaw\": {\"events\": [\"before_tool_call\", \"llm_input\"]}}\n---\n",
		"hooks/guard/handler.sh": "#!/bin/sh\ngrep -q '\"toolName\":\"ls\"' && echo '{\"block\": true, \"blockReason\": \"nothing is listed\"}'\nexit 0\n",
	})
	g, c := configuredWith(t, `{}`, Options{Model: uses(), Listen: &endpoint.Listen{Port: -1}})
	var out wire.PluginChanged
	c.must(wire.MethodPluginsAdd, wire.PluginsAdd{Path: from}, &out)
	if out.Plugin.ID != "weather" || out.Plugin.Enabled || out.Plugin.State != "disabled" || len(c.pluginTools()) != 0 {
		t.Errorf("installed: %+v", out)
	}
	if got := c.Ask("main", "ls {}").Text; strings.Contains(got, "nothing is listed") {
		t.Error("a hook of a plug-in that is off was called")
	}
	p := c.plugin("weather")
	if len(p.Hash) != 64 || !p.Removable {
		t.Errorf("%+v", p)
	}
	for _, part := range []string{"adds the tool say", "adds the agent type forecaster",
		"decides about tool calls", "runs a program"} {
		if !slices.ContainsFunc(p.Abilities, func(s string) bool { return strings.Contains(s, part) }) {
			t.Errorf("what it does lacks %q: %q", part, p.Abilities)
		}
	}
	if err := c.Call(t.Context(), wire.MethodPluginsAdd, wire.PluginsAdd{Path: from}, nil); err == nil {
		t.Error("it was installed twice")
	}
	if err := c.Call(t.Context(), wire.MethodPluginsSetEnabled, wire.PluginsSetEnabled{ID: "weather", Enabled: true,
		Acknowledge: &wire.PluginReview{Token: "another"}}, nil); err == nil {
		t.Error("another state was enabled than the one that was read")
	}
	c.patch(`{"plugins": {"entries": {"weather": {"sandbox": false}}}}`)
	c.must(wire.MethodPluginsSetEnabled,
		wire.PluginsSetEnabled{ID: "weather", Enabled: true, Acknowledge: &wire.PluginReview{Token: p.Hash}}, &out)
	if out.Plugin.State != "enabled" {
		t.Fatalf("enabled: %+v", out)
	}
	eventually(t, "tools", []string{"weather:say"}, c.pluginTools)
	if got := c.Ask("main", "ls {}").Text; !strings.Contains(got, "nothing is listed") {
		t.Errorf("the hook does not block: %s", got)
	}
	var hooks wire.HooksStatus
	c.must(wire.MethodHooksStatus, wire.HooksGet{}, &hooks)
	if i := slices.IndexFunc(hooks.Hooks, func(h wire.Hook) bool { return h.Name == "guard" }); i < 0 ||
		!hooks.Hooks[i].Managed || hooks.Hooks[i].Source != "plugin" || !hooks.Hooks[i].Loadable {
		t.Errorf("hooks: %+v", hooks.Hooks)
	}
	var seen wire.PluginInspected
	c.must(wire.MethodPluginsInspect, wire.PluginGet{ID: "weather"}, &seen)
	if !slices.Equal(seen.Declared.Hooks, []string{"before_tool_call", "llm_input"}) || seen.ReviewToken != p.Hash ||
		seen.Grants.Hooks.Conversation.Effective || seen.Grants.Hooks.Prompt.Effective {
		t.Errorf("inspected: %+v", seen)
	}
	if got := c.Ask("main", `sessions_spawn {"task": "explain", "agentType": "forecaster"}`).Text; strings.Contains(got,
		"no agent type") {
		t.Errorf("the agent type: %s", got)
	}

	// A change, even one that a tool made, stops everything of it.
	file := filepath.Join(g.Dir, "plugins", "weather", "hooks", "guard", "handler.sh")
	if err := os.WriteFile(file, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := c.Ask("main", "ls {}").Text; !strings.Contains(got, "blocked") ||
		strings.Contains(got, "nothing is listed") {
		t.Errorf("a hook that was changed does not refuse: %s", got)
	}
	var ok wire.OK
	c.must(wire.MethodPluginsRefresh, nil, &ok)
	if d := c.diagnostics("weather"); !strings.Contains(d, "it was changed since it was enabled") ||
		len(c.pluginTools()) != 0 {
		t.Errorf("after a change: %s, tools %q", d, c.pluginTools())
	}

	var gone wire.PluginRemoved
	c.must(wire.MethodPluginsRemove, wire.PluginGet{ID: "weather"}, &gone)
	var l wire.PluginsList
	c.must(wire.MethodPluginsList, nil, &l)
	if len(l.Plugins)+len(l.Diagnostics) != 0 {
		t.Errorf("after the removal: %+v", l)
	}
	if b, err := os.ReadFile(filepath.Join(g.Dir, "chela.json")); err != nil || strings.Contains(string(b), "weather") {
		t.Errorf("settings after the removal: %s, %v", b, err)
	}
}

// TestPluginInstallHook checks that a hook may forbid an installation.
func TestPluginInstallHook(t *testing.T) {
	t.Parallel()
	g, c := configuredWith(t, `{}`, Options{Model: uses(), Hooks: func(to *hook.Points) {
		to.BeforeInstall.Add(hook.Hook[hook.BeforeInstall, hook.Block]{Name: "no",
			Func: func(_ context.Context, e hook.BeforeInstall) (hook.Block, error) {
				return hook.Block{Block: e.Kind == "plugin", Reason: "no plug-ins here"}, nil
			}})
	}})
	err := c.Call(t.Context(), wire.MethodPluginsAdd,
		wire.PluginsAdd{Path: pluginFolder(t, offering("weather", "say"), nil)}, nil)
	if err == nil || !strings.Contains(err.Error(), "no plug-ins here") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(g.Dir, "plugins", "weather")); err == nil {
		t.Error("it was installed")
	}
}
