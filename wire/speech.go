package wire

// The methods about answers that are said aloud.
const (
	MethodTTSStatus      = "tts.status"
	MethodTTSProviders   = "tts.providers"
	MethodTTSPersonas    = "tts.personas"
	MethodTTSEnable      = "tts.enable"
	MethodTTSDisable     = "tts.disable"
	MethodTTSConvert     = "tts.convert"
	MethodTTSSpeak       = "tts.speak"
	MethodTTSSetProvider = "tts.setProvider"
)

// TTSStatus is the result of tts.status.
type TTSStatus struct {
	Enabled   bool          `json:"enabled"`
	Auto      string        `json:"auto"` // off, always, inbound or tagged
	Provider  string        `json:"provider"`
	Persona   *string       `json:"persona"` // always null
	Personas  []string      `json:"personas"`
	Fallback  *string       `json:"fallbackProvider"`
	Fallbacks []string      `json:"fallbackProviders"`
	States    []TTSProvider `json:"providerStates"`
}

// TTSProvider is a service or a program that speaks.
type TTSProvider struct {
	ID         string   `json:"id"`
	Label      string   `json:"label,omitempty"` // of tts.status
	Name       string   `json:"name,omitempty"`  // of tts.providers
	Configured bool     `json:"configured"`
	Models     []string `json:"models,omitempty"`
	Voices     []string `json:"voices,omitempty"`
}

// TTSProviders is the result of tts.providers.
type TTSProviders struct {
	Providers []TTSProvider `json:"providers"`
	Active    string        `json:"active"`
}

// TTSPersonas is the result of tts.personas: there are none.
type TTSPersonas struct {
	Active   *string  `json:"active"`
	Personas []string `json:"personas"`
}

// TTSEnabled is the result of tts.enable and tts.disable.
type TTSEnabled struct {
	Enabled bool `json:"enabled"`
}

// TTSSetProvider holds the parameters of tts.setProvider, and is its result.
type TTSSetProvider struct {
	Provider string `json:"provider"`
}

// TTSConvert holds the parameters of tts.convert.
type TTSConvert struct {
	Text     string `json:"text"`
	Provider string `json:"provider,omitempty"` // that alone is asked
	Voice    string `json:"voiceId,omitempty"`
	Model    string `json:"modelId,omitempty"`
	Channel  string `json:"channel,omitempty"` // for which it is made; voice notes need Ogg with Opus
}

// TTSConverted is the result of tts.convert.
type TTSConverted struct {
	Path     string `json:"audioPath"` // on the machine of the gateway
	Ref      string `json:"ref"`       // of the attachment
	Provider string `json:"provider"`
	Format   string `json:"outputFormat"` // mp3, opus or wav
	Voice    bool   `json:"voiceCompatible"`
}

// TTSSpeak holds the parameters of tts.speak. The result is a [TalkAudio].
type TTSSpeak struct {
	Text string `json:"text"`
}
