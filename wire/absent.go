package wire

import "encoding/json"

// Methods about features of OpenClaw that Chela does not have. They are answered because
// pages of the Control UI wait for them.
const (
	MethodUpdateStatus       = "update.status"
	MethodObserverVisibility = "sessions.observer.visibility"
	MethodThemesList         = "themes.list"
	MethodUsersList          = "users.list"
	MethodEnvironmentsList   = "environments.list"
	MethodAssistantChat      = "openclaw.chat"
	MethodWizardStart        = "wizard.start"
)

// AssistantChat holds the parameters of openclaw.chat, a conversation with an assistant that
// sets OpenClaw up.
type AssistantChat struct {
	SessionID string `json:"sessionId"`
	Message   string `json:"message,omitempty"`
	Welcome   string `json:"welcomeVariant,omitempty"` // onboarding, new-agent
}

// AssistantReply is the result of openclaw.chat.
type AssistantReply struct {
	SessionID string `json:"sessionId"`
	Reply     string `json:"reply"`
	Action    string `json:"action"` // always none
}

// WizardStart holds the parameters of wizard.start.
type WizardStart struct {
	Flow    string `json:"flow,omitempty"`    // setup, channels
	Channel string `json:"channel,omitempty"` // "": any
}

// WizardStarted is the result of wizard.start: a wizard that has ended with an error.
type WizardStarted struct {
	SessionID string `json:"sessionId"`
	Done      bool   `json:"done"`
	Status    string `json:"status"`
	Error     string `json:"error"`
}

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
