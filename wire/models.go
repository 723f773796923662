package wire

// The methods about models, and the event that tells of them unasked.
const (
	MethodModelsList       = "models.list"
	MethodModelsAuthStatus = "models.authStatus"
	MethodModelsStatus     = "models.status" // our own
	EventModelsSnapshot    = "models.snapshot"
)

// Views of the models.
const (
	ModelsDefault    = "default"
	ModelsConfigured = "configured"
	ModelsProvider   = "provider-config"
	ModelsAll        = "all" // also those that cannot be asked now
)

// ModelsGet is the parameters of models.list.
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
}

// MissingAuth says that a model cannot be asked because its provider has no
// key.
const MissingAuth = "missing-auth"

// Level is a thinking level.
type Level struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// ModelsSnapshot is the payload of models.snapshot: the models as a client that
// asked for them with its connect is told of them.
type ModelsSnapshot struct {
	Target  ModelsScope `json:"target"`
	Scope   ModelsScope `json:"scope"`
	Catalog ModelsList  `json:"catalog"`
}

// ModelsScope says for whom models are listed.
type ModelsScope struct {
	SessionKey string `json:"sessionKey,omitempty"`
	AgentID    string `json:"agentId,omitempty"`
}

// ModelsAuthGet is the parameters of models.authStatus.
type ModelsAuthGet struct {
	AgentID string `json:"agentId,omitempty"`
}

// ModelsAuth is the result of models.authStatus: which providers have a key.
// Keys themselves are never part of it.
type ModelsAuth struct {
	Time         Millis               `json:"ts"`
	Providers    []ProviderAuth       `json:"providers"`
	Capabilities []ProviderCapability `json:"providerCapabilities"`
}

// ProviderAuth says how a provider is asked.
type ProviderAuth struct {
	Provider string    `json:"provider"`
	Auth     string    `json:"authProvider"`
	Name     string    `json:"displayName"`
	Status   string    `json:"status"`   // static: a key that does not expire; missing
	Profiles []string  `json:"profiles"` // accounts; none in this version
	Key      *KeyPlace `json:"apiKey,omitempty"`
}

// The states of a [ProviderAuth].
const (
	AuthStatic  = "static"
	AuthMissing = "missing"
)

// KeyPlace says where a key is.
type KeyPlace struct {
	Source string `json:"source"` // config, env, profile
	Env    string `json:"envVar,omitempty"`
}

// ProviderCapability says what can be set up for a provider.
type ProviderCapability struct {
	Provider string `json:"provider"`
	Key      bool   `json:"apiKeySupported"`
	Quick    bool   `json:"quickApiKeySetup"` // a key is all it needs
}

// ModelsStatus is the result of models.status: which model answers, which do
// when it does not, and which keys rest.
type ModelsStatus struct {
	Default   string            `json:"default"` // provider/model
	Reason    string            `json:"reason"`  // why that one
	Fallbacks []string          `json:"fallbacks"`
	Aliases   map[string]string `json:"aliases"` // that the configuration gives
	Providers []ProviderStatus  `json:"providers"`
}

// ProviderStatus says whether a provider can be asked.
type ProviderStatus struct {
	ID    string      `json:"id"`
	Ready bool        `json:"ready"`
	Error string      `json:"error,omitempty"` // why it cannot be asked
	Hint  string      `json:"hint,omitempty"`  // what can be done about it
	Keys  []KeyStatus `json:"keys"`
}

// KeyStatus is a key, without its value.
type KeyStatus struct {
	ID    string    `json:"id"` // openai:OPENAI_API_KEY
	Rests []KeyRest `json:"rests,omitempty"`
}

// KeyRest says that a key is not asked for a while.
type KeyRest struct {
	Model  string `json:"model,omitempty"` // for this model only; "": for all
	Until  Millis `json:"until"`
	Reason string `json:"reason"`
}

// The methods that try the keys of a provider, and forget them.
const (
	MethodModelsProbe  = "models.probe"
	MethodModelsLogout = "models.authLogout"
)

// ModelsProbe is the parameters of models.probe.
type ModelsProbe struct {
	Provider string `json:"provider"`
	Key      string `json:"profileId,omitempty"` // of a saved key; "": all keys
	Timeout  int64  `json:"timeoutMs,omitempty"` // for each; 0: 20 s
	AgentID  string `json:"agentId,omitempty"`
}

// The states of a probe.
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

// ModelsProbed is the result of models.probe: ok when one key works.
type ModelsProbed struct {
	Provider string      `json:"provider"`
	Status   string      `json:"status"`
	Latency  *int64      `json:"latencyMs,omitempty"`
	Error    string      `json:"error,omitempty"`
	Results  []ProbedKey `json:"results"`
}

// ProbedKey is what became of a question under one key.
type ProbedKey struct {
	Key     string `json:"profileId,omitempty"` // of a saved key
	Label   string `json:"label"`               // key and model
	Status  string `json:"status"`
	Latency *int64 `json:"latencyMs,omitempty"`
	Error   string `json:"error,omitempty"`
}

// ModelsLogout is the parameters of models.authLogout.
type ModelsLogout struct {
	Provider   string   `json:"provider"`
	Keys       []string `json:"profileIds,omitempty"`     // none: all saved keys
	Credential string   `json:"credentialType,omitempty"` // api_key: the only type that is saved
	AgentID    string   `json:"agentId,omitempty"`
}

// ModelsLoggedOut is the result of models.authLogout.
type ModelsLoggedOut struct {
	Provider string   `json:"provider"`
	Removed  []string `json:"removedProfiles"`
	Aborted  []string `json:"abortedRunIds"` // none: what runs goes on
	Warning  string   `json:"warning,omitempty"`
}
