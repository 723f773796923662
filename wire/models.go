package wire

// Methods and the event about models.
const (
	MethodModelsList       = "models.list"
	MethodModelsAuthStatus = "models.authStatus"
	MethodModelsStatus     = "models.status" // not in OpenClaw
	EventModelsSnapshot    = "models.snapshot"
)

// Views of models.list.
const (
	ModelsDefault    = "default"
	ModelsConfigured = "configured"
	ModelsProvider   = "provider-config"
	ModelsAll        = "all" // including models without a key
)

// ModelsGet holds the parameters of models.list.
type ModelsGet struct {
	View       string `json:"view,omitempty"` // "": default
	AgentID    string `json:"agentId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"`
}

// ModelsList is the result of models.list.
type ModelsList struct {
	Models []Model `json:"models"`
}

// Model describes a model.
type Model struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Provider     string   `json:"provider"`
	Alias        string   `json:"alias,omitempty"`
	Tags         []string `json:"tags,omitempty"` // default
	Available    bool     `json:"available"`
	Unavailable  string   `json:"unavailableReason,omitempty"` // missing-auth
	Context      int      `json:"contextWindow,omitempty"`
	Reasoning    bool     `json:"reasoning"`
	Levels       []Level  `json:"thinkingLevels,omitempty"`
	DefaultLevel string   `json:"thinkingDefault,omitempty"`
	Input        []string `json:"input,omitempty"` // text, image
	Local        *bool    `json:"local,omitempty"` // it runs on this machine; nil: unknown
}

// MissingAuth says that a model is unavailable because its provider has no key.
const MissingAuth = "missing-auth"

// Level is a thinking level.
type Level struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// ModelsSnapshot is the payload of models.snapshot: the models, for a client
// that requested them in connect.
type ModelsSnapshot struct {
	Target  ModelsScope `json:"target"`
	Scope   ModelsScope `json:"scope"`
	Catalog ModelsList  `json:"catalog"`
}

// ModelsScope names the session whose models are listed.
type ModelsScope struct {
	SessionKey string `json:"sessionKey,omitempty"`
	AgentID    string `json:"agentId,omitempty"`
}

// ModelsAuthGet holds the parameters of models.authStatus.
type ModelsAuthGet struct {
	AgentID string `json:"agentId,omitempty"`
}

// ModelsAuth is the result of models.authStatus: which providers have a key. It
// never contains keys.
type ModelsAuth struct {
	Time         Millis               `json:"ts"`
	Providers    []ProviderAuth       `json:"providers"`
	Capabilities []ProviderCapability `json:"providerCapabilities"`
}

// ProviderAuth is the state of a provider's credentials.
type ProviderAuth struct {
	Provider string     `json:"provider"`
	Auth     string     `json:"authProvider"`
	Name     string     `json:"displayName"`
	Status   string     `json:"status"`   // static: a key that does not expire; missing
	Profiles []string   `json:"profiles"` // always empty in this version
	Key      *KeySource `json:"apiKey,omitempty"`
}

// States of a [ProviderAuth].
const (
	AuthStatic  = "static"
	AuthMissing = "missing"
)

// KeySource says where a key is stored.
type KeySource struct {
	Source string `json:"source"` // config, env, profile
	Env    string `json:"envVar,omitempty"`
}

// ProviderCapability describes how a provider can be set up.
type ProviderCapability struct {
	Provider string `json:"provider"`
	Key      bool   `json:"apiKeySupported"`
	Quick    bool   `json:"quickApiKeySetup"` // an API key is sufficient
}

// ModelsStatus is the result of models.status: the default model, its
// fallbacks, and the keys on cooldown.
type ModelsStatus struct {
	Default   string            `json:"default"` // provider/model
	Reason    string            `json:"reason"`  // why it is the default
	Fallbacks []string          `json:"fallbacks"`
	Aliases   map[string]string `json:"aliases"` // from the configuration
	Providers []ProviderStatus  `json:"providers"`
}

// ProviderStatus says whether a provider is usable.
type ProviderStatus struct {
	ID    string      `json:"id"`
	Ready bool        `json:"ready"`
	Error string      `json:"error,omitempty"` // why it is unusable
	Hint  string      `json:"hint,omitempty"`  // what to do about it
	Keys  []KeyStatus `json:"keys"`
}

// KeyStatus is a key, without its value.
type KeyStatus struct {
	ID        string        `json:"id"` // openai:OPENAI_API_KEY
	Cooldowns []KeyCooldown `json:"rests,omitempty"`
}

// KeyCooldown is the cooldown of a key.
type KeyCooldown struct {
	Model  string `json:"model,omitempty"` // limited to this model; "": all models
	Until  Millis `json:"until"`
	Reason string `json:"reason"`
}

// Methods that probe and delete a provider's keys.
const (
	MethodModelsProbe  = "models.probe"
	MethodModelsLogout = "models.authLogout"
)

// ModelsProbe holds the parameters of models.probe.
type ModelsProbe struct {
	Provider string `json:"provider"`
	Key      string `json:"profileId,omitempty"` // of a saved key; "": all keys
	Timeout  int64  `json:"timeoutMs,omitempty"` // a saved key; "": all keys
	AgentID  string `json:"agentId,omitempty"`
}

// States of a probe.
const (
	ProbeOK      = "ok"
	ProbeAuth    = "auth"
	ProbeRate    = "rate_limit"
	ProbeBilling = "billing"
	ProbeTimeout = "timeout"
	ProbeFormat  = "format"
	ProbeNoModel = "no_model"
	ProbeUnknown = "unknown"
)

// ModelsProbed is the result of models.probe. OK is set when one key works.
type ModelsProbed struct {
	Provider string      `json:"provider"`
	Status   string      `json:"status"`
	Latency  *int64      `json:"latencyMs,omitempty"`
	Error    string      `json:"error,omitempty"`
	Results  []ProbedKey `json:"results"`
}

// ProbedKey is the result for one key.
type ProbedKey struct {
	Key     string `json:"profileId,omitempty"` // of a saved key
	Label   string `json:"label"`               // key and model
	Status  string `json:"status"`
	Latency *int64 `json:"latencyMs,omitempty"`
	Error   string `json:"error,omitempty"`
}

// ModelsLogout holds the parameters of models.authLogout.
type ModelsLogout struct {
	Provider   string   `json:"provider"`
	Keys       []string `json:"profileIds,omitempty"`     // empty: all saved keys
	Credential string   `json:"credentialType,omitempty"` // api_key: the only type
	AgentID    string   `json:"agentId,omitempty"`
}

// ModelsLoggedOut is the result of models.authLogout.
type ModelsLoggedOut struct {
	Provider string   `json:"provider"`
	Removed  []string `json:"removedProfiles"`
	Aborted  []string `json:"abortedRunIds"` // always empty: active runs continue
	Warning  string   `json:"warning,omitempty"`
}
