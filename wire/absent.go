package wire

import "encoding/json"

// Methods about features of OpenClaw that Chela does not have. They are answered because
// pages of the Control UI wait for them.
const (
	MethodUpdateStatus       = "update.status"
	MethodObserverVisibility = "sessions.observer.visibility"
	MethodTalkCatalog        = "talk.catalog"
	MethodThemesList         = "themes.list"
	MethodUsersList          = "users.list"
	MethodEnvironmentsList   = "environments.list"
)

// UpdateStatus is the result of update.status. Chela does not update itself and does not
// look for new versions: both properties are null.
type UpdateStatus struct {
	Sentinel  json.RawMessage `json:"sentinel"`
	Available json.RawMessage `json:"updateAvailable"`
}

// ObserverVisibility holds the parameters of sessions.observer.visibility: whether the
// client shows what an observer of sessions says.
type ObserverVisibility struct {
	Visible bool `json:"visible"`
}

// TalkCatalog is the result of talk.catalog: what a client can talk with.
type TalkCatalog struct {
	Modes         []string      `json:"modes"`
	Transports    []string      `json:"transports"`
	Brains        []string      `json:"brains"`
	Speech        TalkProviders `json:"speech"`
	Transcription TalkProviders `json:"transcription"`
	Realtime      TalkProviders `json:"realtime"`
}

// TalkProviders are the services for one part of talking.
type TalkProviders struct {
	Ready     bool   `json:"ready"`
	Providers []None `json:"providers"`
}

// ThemesList is the result of themes.list: the themes that the gateway has besides those
// of the page, and the selected one.
type ThemesList struct {
	Current ThemeChoice `json:"current"`
	Theme   Theme       `json:"theme"` // the selected one
	Themes  []Theme     `json:"themes"`
}

// ThemeChoice names the selected theme.
type ThemeChoice struct {
	ID        string `json:"id"`
	Mode      string `json:"mode"`      // system, light, dark
	Scope     string `json:"scope"`     // gateway, profile
	Overrides None   `json:"overrides"` // what a person has chosen
}

// Theme describes a theme.
type Theme struct {
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Source string   `json:"source"` // builtin, plugin, user
	Modes  []string `json:"modes"`
}

// UsersList is the result of users.list: the people with a profile.
type UsersList struct {
	Profiles []None `json:"profiles"`
}

// EnvironmentsList is the result of environments.list: where sessions can run.
type EnvironmentsList struct {
	Environments []Environment `json:"environments"`
}

// Environment is a place where sessions can run.
type Environment struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Label  string `json:"label"`
	Status string `json:"status"` // available
}
