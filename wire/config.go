package wire

import "encoding/json"

// Methods that read and change the configuration.
const (
	MethodConfigGet    = "config.get"
	MethodConfigSchema = "config.schema"
	MethodConfigLookup = "config.schema.lookup"
	MethodConfigSet    = "config.set"
	MethodConfigPatch  = "config.patch"
	MethodConfigApply  = "config.apply"
)

// EventConfigChanged is sent when a new configuration has taken effect.
const EventConfigChanged = "config.changed"

// ConfigChanged is the payload of [EventConfigChanged].
type ConfigChanged struct {
	Path string `json:"path"`
	Hash string `json:"hash"`
	Time Millis `json:"ts"`
}

// ConfigSet holds the parameters of config.set: the complete configuration.
type ConfigSet struct {
	Raw      string `json:"raw"`
	BaseHash string `json:"baseHash,omitempty"` // from config.get; required if the file exists
}

// ConfigPatch holds the parameters of config.patch.
type ConfigPatch struct {
	Raw          string   `json:"raw"` // a merge patch
	BaseHash     string   `json:"baseHash,omitempty"`
	Note         string   `json:"note,omitempty"`
	ReplacePaths []string `json:"replacePaths,omitempty"` // arrays that may lose elements
}

// ConfigApply holds the parameters of config.apply: the complete configuration.
type ConfigApply struct {
	Raw      string `json:"raw"`
	BaseHash string `json:"baseHash,omitempty"`
	Note     string `json:"note,omitempty"`
}

// ConfigStale starts the message of the error for an outdated base hash.
const ConfigStale = "config changed since last load"

// ConfigWritten is the result of the methods that change the configuration.
type ConfigWritten struct {
	OK       bool            `json:"ok"`
	Noop     bool            `json:"noop,omitempty"` // nothing changed
	Path     string          `json:"path"`
	Hash     string          `json:"hash,omitempty"`
	Config   json.RawMessage `json:"config"`
	Changed  []string        `json:"changedPaths"`
	Restart  bool            `json:"requiresRestart"`        // some changes take effect after a restart
	Cold     []string        `json:"restartPaths,omitempty"` // the keys of those changes
	Starts   bool            `json:"restarts,omitempty"`     // the gateway restarts by itself
	Warnings []ConfigIssue   `json:"warnings,omitempty"`
}

// ConfigSnapshot is the result of config.get: the configuration without
// secrets.
type ConfigSnapshot struct {
	Path     string          `json:"path"`
	Included []string        `json:"includedPaths"`
	Exists   bool            `json:"exists"`
	Raw      string          `json:"raw"`           // as text, includes merged, comments removed
	Parsed   json.RawMessage `json:"parsed"`        // as written
	Source   json.RawMessage `json:"sourceConfig"`  // same as Parsed
	Resolved json.RawMessage `json:"resolved"`      // with variables substituted
	Runtime  json.RawMessage `json:"runtimeConfig"` // with defaults applied
	Config   json.RawMessage `json:"config"`        // same as Runtime
	Valid    bool            `json:"valid"`
	Hash     string          `json:"hash"` // of the files; valid for this gateway process only
	Applied  string          `json:"appliedConfigHash"`
	Issues   []ConfigIssue   `json:"issues"` // why it is invalid
	Warnings []ConfigIssue   `json:"warnings"`
	Legacy   []ConfigIssue   `json:"legacyIssues"`
}

// ConfigIssue is a problem of the configuration.
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

// ConfigHint describes how to display a key.
type ConfigHint struct {
	Label     string `json:"label,omitempty"`
	Help      string `json:"help,omitempty"`
	Group     string `json:"group,omitempty"`
	Advanced  bool   `json:"advanced,omitempty"`
	Sensitive bool   `json:"sensitive,omitempty"`
}

// ConfigPath holds the parameters of config.schema.lookup.
type ConfigPath struct {
	Path string `json:"path"`
}

// ConfigKey is the result of config.schema.lookup: the description of a key.
type ConfigKey struct {
	Path     string          `json:"path"`
	Schema   json.RawMessage `json:"schema"`
	Reload   string          `json:"reloadKind"` // hot, restart, none
	Hint     *ConfigHint     `json:"hint,omitempty"`
	HintPath string          `json:"hintPath,omitempty"`
	Children []ConfigChild   `json:"children"`
}

// When a changed key takes effect.
const (
	ReloadHot     = "hot"     // immediately
	ReloadRestart = "restart" // after a restart
	ReloadNone    = "none"    // never, in this version
)

// ConfigChild is a key directly below a [ConfigKey].
type ConfigChild struct {
	Key      string      `json:"key"`
	Path     string      `json:"path"`
	Type     []string    `json:"type,omitempty"` // absent: any type
	Required bool        `json:"required"`
	Children bool        `json:"hasChildren"`
	Reload   string      `json:"reloadKind"`
	Hint     *ConfigHint `json:"hint,omitempty"`
	HintPath string      `json:"hintPath,omitempty"`
}
