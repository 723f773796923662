package plugindir

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/kit/folder"
	"github.com/chela-ai/chela/internal/kit/json5"
)

// Format is the kind of a manifest.
type Format string

// The formats.
const (
	OpenClaw Format = "openclaw" // also chela.plugin.json
	Agent    Format = "agent"
	Claude   Format = "claude"
	Codex    Format = "codex"
)

// manifests are the files that are looked for, in this order.
var manifests = [...]struct {
	file   string
	format Format
}{
	{"chela.plugin.json", OpenClaw}, {"openclaw.plugin.json", OpenClaw},
	{".codex-plugin/plugin.json", Codex}, {".claude-plugin/plugin.json", Claude}, {"plugin.json", Agent},
}

// Limits of a manifest.
const (
	maxManifest = 1 << 20 // bytes
	maxPaths    = 50      // of one key
	maxTools    = 200
	maxServers  = 50
	maxID       = 64
)

// manifest is the content of a manifest. Its paths are as they are written.
type manifest struct {
	id, name, version, description, homepage string

	schema                          json.RawMessage // nil: none
	skills, hooks, agents, commands []string        // nil: not set
	servers                         map[string]json.RawMessage
	serverFiles                     []string
	process                         *mcp.Server
	channel                         *Channel
	tools                           []mcp.Declared
	permissions                     Permissions
	unsupported, warnings           []string
}

// object is a JSON object.
type object map[string]json.RawMessage

// parseObject parses an object in JSON5.
func parseObject(text []byte) (object, error) {
	text, err := json5.ToJSON(text)
	if err != nil {
		return nil, err
	}
	var o object
	if err := json.Unmarshal(text, &o); err != nil || o == nil {
		return nil, errors.New("want an object")
	}
	return o, nil
}

// read decodes the value of a key, if there is one. want describes the value.
func (o object) read(key string, to any, want string) error {
	raw := o[key]
	if raw == nil || string(raw) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("%s: want %s", key, want)
	}
	return nil
}

// has reports whether a key has a value that is neither empty nor false.
func (o object) has(key string) bool {
	switch string(o[key]) {
	case "", "null", "false", `""`, "0", "[]", "{}":
		return false
	}
	return true
}

// parse parses a manifest. With an error it returns what is known.
func parse(f Format, text []byte) (m manifest, err error) {
	o, err := parseObject(text)
	if err != nil {
		return m, err
	}
	const aText = "a text"
	err = errors.Join(
		o.read("id", &m.id, aText), o.read("name", &m.name, aText), o.read("version", &m.version, aText),
		o.read("description", &m.description, aText), o.read("homepage", &m.homepage, aText),
	)
	for _, s := range [...]*string{&m.name, &m.version, &m.description, &m.homepage} {
		*s = plainText(*s, 500)
	}
	if f != OpenClaw {
		m.id = slug(m.name)
	}
	switch {
	case err != nil:
		return m, err
	case f == OpenClaw && m.id == "":
		return m, errors.New("id is missing")
	case m.id == "":
		return m, errors.New("name is missing")
	case !validID(m.id):
		id := m.id
		m.id = slug(id)
		return m, fmt.Errorf("id %.100q: want lower-case letters, digits, -, _ and ., at most %d", id, maxID)
	}
	m.name = cmp.Or(m.name, m.id)
	switch f {
	case OpenClaw:
		err = m.readOwn(o)
	case Agent:
	default:
		err = m.readBundle(o)
	}
	m.unsupportedKeys(f, o)
	return m, err
}

// readOwn reads the keys of Chela's and OpenClaw's format.
func (m *manifest) readOwn(o object) error {
	var schema object
	var contracts struct {
		Tools []string `json:"tools"`
	}
	var metadata map[string]struct {
		Optional bool `json:"optional"`
	}
	var channel struct {
		Channel
		Limits struct {
			Text   int `json:"text"`
			EditMS int `json:"editMs"`
		} `json:"limits"`
	}
	err := errors.Join(
		o.read("configSchema", &schema, "a JSON Schema of an object"),
		m.readPaths(o, "skills", &m.skills), m.readPaths(o, "hooks", &m.hooks), m.readPaths(o, "agents", &m.agents),
		o.read("mcpServers", &m.servers, "an object of servers"),
		o.read("process", &m.process, `an object, as in {"command": "python3", "args": ["./server.py"]}`),
		o.read("channel", &channel,
			`an object, as in {"name": "box", "process": {"command": "python3", "args": ["./box.py"]}, "abilities": ["edit"]}`),
		o.read("permissions", &m.permissions, "an object with the lists hosts, read and write"),
		o.read("contracts", &contracts, "an object whose tools are a list of names"),
		o.read("toolMetadata", &metadata, "an object by the names of the tools"),
	)
	if err != nil {
		return err
	}
	if schema == nil {
		return errors.New(`configSchema is missing; for a plug-in without configuration it is {"type": "object", "additionalProperties": false}`)
	}
	m.schema = o["configSchema"]
	if o.has("channel") {
		m.channel = &channel.Channel
		m.channel.Text, m.channel.EditMS = channel.Limits.Text, channel.Limits.EditMS
		if err := m.channel.complete(m.id); err != nil {
			return fmt.Errorf("channel: %w", err)
		}
	}
	if len(contracts.Tools) > maxTools {
		return fmt.Errorf("contracts.tools has more than %d names", maxTools)
	}
	for _, name := range contracts.Tools {
		if !validTool().MatchString(name) {
			m.warnings = append(m.warnings,
				fmt.Sprintf("the tool %.100q is ignored: want a letter, then letters, digits, _ and -, at most 64", name))
		} else if !slices.ContainsFunc(m.tools, func(t mcp.Declared) bool { return t.Name == name }) {
			m.tools = append(m.tools, mcp.Declared{Name: name, Optional: metadata[name].Optional})
		}
	}
	return nil
}

// readBundle reads the keys of Claude's and Codex's formats.
func (m *manifest) readBundle(o object) error {
	if raw := o["hooks"]; len(raw) > 0 && raw[0] == '{' {
		delete(o, "hooks")
		m.unsupported = append(m.unsupported, unsupportedHooks)
	}
	err := errors.Join(
		m.readPaths(o, "skills", &m.skills), m.readPaths(o, "hooks", &m.hooks),
		m.readPaths(o, "agents", &m.agents), m.readPaths(o, "commands", &m.commands),
	)
	if raw := o["mcpServers"]; len(raw) > 0 && raw[0] != '{' {
		return errors.Join(err, m.readPaths(o, "mcpServers", &m.serverFiles))
	}
	return errors.Join(err, o.read("mcpServers", &m.servers, "an object of servers, or the path of a file"))
}

// readPaths reads a path or a list of paths.
func (m *manifest) readPaths(o object, key string, to *[]string) error {
	if raw := o[key]; len(raw) > 0 && raw[0] == '"' {
		o = object{key: slices.Concat([]byte("["), raw, []byte("]"))}
	}
	if err := o.read(key, to, "a path in the plug-in's folder, or a list of paths"); err != nil {
		return err
	}
	if len(*to) > maxPaths {
		return fmt.Errorf("%s has more than %d paths", key, maxPaths)
	}
	return nil
}

// What is not supported.
const (
	unsupportedHooks = "Its hooks in Claude's format (hooks.json) are not run: only folders with a HOOK.md are."
	unsupportedLSP   = "Its language servers are not used."
	unsupportedStyle = "Its output styles are not used."
	unsupportedApps  = "Its apps are not used."
)

// foreign are the keys that ask for something that is not supported.
var foreign = map[Format]map[string]string{
	OpenClaw: {
		"channels":                   "Its channels are not available: their code runs only in OpenClaw.",
		"providers":                  "Its model providers are not available: their code runs only in OpenClaw.",
		"cliBackends":                "Its model providers that are commands are not available.",
		"cliCommands":                "Its commands for the terminal are not available.",
		"controlUi":                  "Its part of the web interface is not shown.",
		"dashboard":                  "Its dashboard widgets are not shown.",
		"themes":                     "Its themes are not used.",
		"kind":                       "It cannot take the slot for memory or for the context engine.",
		"lspServers":                 unsupportedLSP,
		"secretProviderIntegrations": "Its sources of secrets are not used.",
		"modelCatalog":               "Its list of models is not used.",
	},
	Claude: {"lspServers": unsupportedLSP, "outputStyles": unsupportedStyle},
	Codex:  {"apps": unsupportedApps},
}

// unsupportedKeys notes what the manifest asks for in vain.
func (m *manifest) unsupportedKeys(f Format, o object) {
	for _, key := range slices.Sorted(maps.Keys(foreign[f])) {
		if o.has(key) {
			m.unsupported = append(m.unsupported, foreign[f][key])
		}
	}
	if f != OpenClaw {
		return
	}
	var contracts object
	_ = json.Unmarshal(o["contracts"], &contracts) // readOwn has reported the error
	var others []string
	for _, key := range slices.Sorted(maps.Keys(contracts)) {
		if key != "tools" && contracts.has(key) {
			others = append(others, plainText(key, 50))
		}
	}
	if len(others) > 0 {
		m.unsupported = append(m.unsupported,
			plainText("Its code for "+strings.Join(others, ", ")+" is not run: it runs only in OpenClaw.", 500))
	}
	if len(m.tools) > 0 && m.process == nil {
		m.unsupported = append(m.unsupported, "Its tools are not available: it has no program that offers them (key process), and their code runs only in OpenClaw.")
	}
}

// validTool matches the names of tools that all model services accept.
var validTool = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`) })

// validID reports whether a text is the id of a plug-in, which is also the name of its
// folder.
func validID(s string) bool {
	return len(s) <= maxID && folder.ValidName(s) && s[0] != '.' && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	})
}

// slug returns an id for a name, or "".
func slug(name string) string {
	id := strings.Map(func(r rune) rune {
		switch r = unicode.ToLower(r); {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '.':
			return r
		}
		return '-'
	}, strings.TrimSpace(name))
	id = strings.Trim(id[:min(len(id), maxID)], "-.")
	if !validID(id) {
		return ""
	}
	return id
}

// plainText returns a text in one line without control characters, of at most n
// characters.
func plainText(s string, n int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if r := []rune(s); len(r) > n {
		s = string(r[:n-1]) + "…"
	}
	return s
}
