package wire

import "encoding/json"

// The methods that show the configuration, and those that change it.
const (
	MethodConfigGet    = "config.get"
	MethodConfigSchema = "config.schema"
	MethodConfigLookup = "config.schema.lookup"
	MethodConfigSet    = "config.set"
	MethodConfigPatch  = "config.patch"
	MethodConfigApply  = "config.apply"
)

// EventConfigChanged tells that another configuration is in force.
const EventConfigChanged = "config.changed"

// ConfigChanged is what [EventConfigChanged] carries.
type ConfigChanged struct {
	Path string `json:"path"`
	Hash string `json:"hash"`
	Time Millis `json:"ts"`
}

// ConfigSet is the parameters of config.set: the configuration as a whole.
type ConfigSet struct {
	Raw      string `json:"raw"`
	BaseHash string `json:"baseHash,omitempty"` // of config.get; required where there is a file
}

// ConfigPatch is the parameters of config.patch.
type ConfigPatch struct {
	Raw          string   `json:"raw"` // a merge patch
	BaseHash     string   `json:"baseHash,omitempty"`
	Note         string   `json:"note,omitempty"`
	ReplacePaths []string `json:"replacePaths,omitempty"` // of arrays that may lose elements
}

// ConfigApply is the parameters of config.apply: the configuration as a whole.
type ConfigApply struct {
	Raw      string `json:"raw"`
	BaseHash string `json:"baseHash,omitempty"`
	Note     string `json:"note,omitempty"`
}

// ConfigStale begins the message of the error that says that the base hash is
// not that of the configuration any more.
const ConfigStale = "config changed since last load"

// ConfigWritten is the result of the methods that change the configuration.
type ConfigWritten struct {
	OK       bool            `json:"ok"`
	Noop     bool            `json:"noop,omitempty"` // it said so already
	Path     string          `json:"path"`
	Hash     string          `json:"hash,omitempty"`
	Config   json.RawMessage `json:"config"`
	Changed  []string        `json:"changedPaths"`
	Restart  bool            `json:"requiresRestart"`        // some of it is taken by a start
	Cold     []string        `json:"restartPaths,omitempty"` // these keys
	Starts   bool            `json:"restarts,omitempty"`     // the gateway starts anew by itself
	Warnings []ConfigIssue   `json:"warnings,omitempty"`
}

// ConfigSnapshot is the result of config.get: the configuration without its
// secrets.
type ConfigSnapshot struct {
	Path     string          `json:"path"`
	Included []string        `json:"includedPaths"`
	Exists   bool            `json:"exists"`
	Raw      string          `json:"raw"`           // as text, with the includes merged and without comments
	Parsed   json.RawMessage `json:"parsed"`        // as it is written
	Source   json.RawMessage `json:"sourceConfig"`  // the same
	Resolved json.RawMessage `json:"resolved"`      // with variables in their places
	Runtime  json.RawMessage `json:"runtimeConfig"` // what the gateway works with
	Config   json.RawMessage `json:"config"`        // the same
	Valid    bool            `json:"valid"`
	Hash     string          `json:"hash"` // of the files; it means nothing to another gateway, or after a start
	Applied  string          `json:"appliedConfigHash"`
	Issues   []ConfigIssue   `json:"issues"` // why it cannot be used
	Warnings []ConfigIssue   `json:"warnings"`
	Legacy   []ConfigIssue   `json:"legacyIssues"`
}

// ConfigIssue is something that a person should know of the configuration.
type ConfigIssue struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// ConfigSchema is the result of config.schema.
type ConfigSchema struct {
	Schema    json.RawMessage       `json:"schema"` // a JSON Schema
	Hints     map[string]ConfigHint `json:"uiHints"`
	Version   string                `json:"version"`
	Generated string                `json:"generatedAt"`
}

// ConfigHint says how a key is shown.
type ConfigHint struct {
	Label     string `json:"label,omitempty"`
	Help      string `json:"help,omitempty"`
	Group     string `json:"group,omitempty"`
	Advanced  bool   `json:"advanced,omitempty"`
	Sensitive bool   `json:"sensitive,omitempty"`
}

// ConfigPath is the parameters of config.schema.lookup.
type ConfigPath struct {
	Path string `json:"path"`
}

// ConfigPlace is the result of config.schema.lookup: what is known of a key.
type ConfigPlace struct {
	Path     string          `json:"path"`
	Schema   json.RawMessage `json:"schema"`
	Reload   string          `json:"reloadKind"` // hot, restart, none
	Hint     *ConfigHint     `json:"hint,omitempty"`
	HintPath string          `json:"hintPath,omitempty"`
	Children []ConfigChild   `json:"children"`
}

// When a changed key takes effect.
const (
	ReloadHot     = "hot"     // at once
	ReloadRestart = "restart" // with the next start
	ReloadNone    = "none"    // never in this version
)

// ConfigChild is a key directly below a [ConfigPlace].
type ConfigChild struct {
	Key      string      `json:"key"`
	Path     string      `json:"path"`
	Type     []string    `json:"type,omitempty"` // any: absent
	Required bool        `json:"required"`
	Children bool        `json:"hasChildren"`
	Reload   string      `json:"reloadKind"`
	Hint     *ConfigHint `json:"hint,omitempty"`
	HintPath string      `json:"hintPath,omitempty"`
}
