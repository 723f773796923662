package chelatest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/app/endpoint"
)

// shellServer is an MCP server with one tool, which runs its text as a command.
const shellServer = `#!/bin/sh
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
	id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
	[ -n "$id" ] || continue
	case $line in
	*'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
	*'"tools/list"'*) answer '{"tools":[{"name":"attempt","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}' ;;
	*'"tools/call"'*)
		command=$(printf %s "$line" | sed -n 's/.*"text":"\([^"]*\)".*/\1/p')
		answer "{\"content\":[{\"type\":\"text\",\"text\":\"$(sh -c "$command" 2>&1 | tr '\n"\\' '   ')\"}]}" ;;
	*) answer '{}' ;;
	esac
done
`

// TestConfinedPlugin checks that the programs of an installed plug-in reach only what its
// manifest names.
func TestConfinedPlugin(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for name, text := range map[string]string{"letter": "to my love", "maps/town": "a map", "secret": "another"} {
		at := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	from := pluginFolder(t, manifest{
		"id": "explorer", "configSchema": manifest{"type": "object"}, "contracts": manifest{"tools": []string{"attempt"}},
		"process": manifest{"command": "./server.sh"}, "permissions": manifest{"read": []string{"~/maps"}},
	}, map[string]string{
		"server.sh":              shellServer,
		"hooks/guard/HOOK.md":    "---\nname: guard\nmetadata: {\"openclaw\": {\"events\": [\"before_tool_call\"]}}\n---\n",
		"hooks/guard/handler.sh": "#!/bin/sh\ncat >/dev/null; printf '{\"block\": %s, \"blockReason\": \"it reads the letter\"}' $(cat ~/letter >/dev/null 2>&1 && echo true || echo false)\n",
	})
	state := t.TempDir()
	if err := os.WriteFile(filepath.Join(state, "chela.json"), []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	g := Start(t, Options{
		Dir:    state,
		Home:   home,
		Env:    map[string]string{"HOME": home},
		Model:  uses(),
		Listen: &endpoint.Listen{Port: -1},
		Dial:   site(t),
	})
	c := g.Client()
	c.must("plugins.add", map[string]any{"path": from}, nil)
	c.must("plugins.setEnabled", map[string]any{"pluginId": "explorer", "enabled": true}, nil)
	eventually(t, "tools", []string{"explorer:attempt"}, c.pluginTools)
	attempt := func(command string) string { return c.Ask("main", `attempt {"text": "`+command+`"}`).Text }
	for _, tt := range []struct{ command, want, not string }{
		{"echo $((6 * 7))", "42", ""},
		{"cat ~/maps/town", "a map", ""},
		{"cat ~/letter", "", "my love"},
		{"cat " + filepath.Join(state, "chela.json"), "", "sha256"},
		{"ls " + state, "", "chela.db"},
		{"cat $PLUGIN_ROOT/chela.plugin.json", "configSchema", ""},
		{"echo x > $PLUGIN_ROOT/server.sh; head -c 9 $PLUGIN_ROOT/server.sh", "#!/bin/sh", ""},
		{"echo kept > $PLUGIN_DATA/note; cat $PLUGIN_DATA/note", "kept", ""},
	} {
		got := attempt(tt.command)
		if !strings.Contains(got, tt.want) || tt.not != "" && strings.Contains(got, tt.not) ||
			strings.Contains(got, "it reads the letter") {
			t.Errorf("%s: %s", tt.command, got)
		}
	}
	if b, err := os.ReadFile(filepath.Join(state, "plugin-data", "explorer", "note")); err != nil ||
		string(b) != "kept\n" {
		t.Errorf("the data folder: %q, %v", b, err)
	}
	if p := c.plugin("explorer"); p.State != "enabled" {
		t.Errorf("%+v", p)
	}
}
