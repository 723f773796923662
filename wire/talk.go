package wire

// Methods about talking: apps that listen to a person and say the answers.
const (
	MethodTalkCatalog = "talk.catalog"
	MethodTalkConfig  = "talk.config"
	MethodTalkSpeak   = "talk.speak"
	MethodTalkMode    = "talk.mode"

	MethodWakeGet     = "voicewake.get"
	MethodWakeSet     = "voicewake.set"
	MethodWakeRouting = "voicewake.routing.get"
)

// Events about talking.
const (
	EventTalkMode    = "talk.mode"
	EventWakeChanged = "voicewake.changed" // nodes get it, too, also when they connect
)

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
	Ready     bool           `json:"ready"`
	Active    string         `json:"activeProvider,omitempty"`
	Providers []TalkProvider `json:"providers"`
}

// TalkProvider is a service or a program for one part of talking.
type TalkProvider struct {
	ID         string   `json:"id"`
	Label      string   `json:"label"`
	Configured bool     `json:"configured"`
	Models     []string `json:"models,omitempty"`
	Voices     []string `json:"voices,omitempty"`
}

// TalkConfigGet holds the parameters of talk.config.
type TalkConfigGet struct {
	Secrets bool `json:"includeSecrets,omitempty"` // needs operator.talk.secrets
}

// TalkConfig is the result of talk.config.
type TalkConfig struct {
	Config TalkSettings `json:"config"`
}

// TalkSettings is what apps are told about talking.
type TalkSettings struct {
	Talk    Talk        `json:"talk"`
	Session TalkSession `json:"session"`
}

// TalkSession says in which session apps talk.
type TalkSession struct {
	MainKey string `json:"mainKey"`
}

// Talk is the section talk of the configuration, without keys of services.
type Talk struct {
	Provider  string               `json:"provider,omitempty"`
	Providers map[string]TalkVoice `json:"providers,omitempty"`
	Resolved  *TalkResolved        `json:"resolved,omitempty"` // nil: nothing speaks
	Locale    string               `json:"speechLocale,omitempty"`
	Interrupt *bool                `json:"interruptOnSpeech,omitempty"`
	Silence   int                  `json:"silenceTimeoutMs,omitempty"`
	Think     string               `json:"consultThinkingLevel,omitempty"`
	Fast      *bool                `json:"consultFastMode,omitempty"`
}

// TalkResolved is the provider that speaks.
type TalkResolved struct {
	Provider string    `json:"provider"`
	Config   TalkVoice `json:"config"`
}

// TalkVoice is how a provider speaks. Keys of services never leave the gateway.
type TalkVoice struct {
	Voice   string            `json:"voiceId,omitempty"`
	Model   string            `json:"modelId,omitempty"`
	Format  string            `json:"outputFormat,omitempty"`
	Aliases map[string]string `json:"voiceAliases,omitempty"` // names of voices
}

// TalkSpeak holds the parameters of talk.speak: a text, and how to say it. A setting that
// the provider does not have has no effect.
type TalkSpeak struct {
	Text       string   `json:"text"`
	Voice      string   `json:"voiceId,omitempty"` // also one of voiceAliases
	Model      string   `json:"modelId,omitempty"`
	Format     string   `json:"outputFormat,omitempty"` // mp3, opus or wav, or one of ElevenLabs
	Speed      *float64 `json:"speed,omitempty"`        // 0.5 to 2
	Rate       *int     `json:"rateWpm,omitempty"`      // words in a minute, instead of speed
	Stability  *float64 `json:"stability,omitempty"`    // 0 to 1
	Similarity *float64 `json:"similarity,omitempty"`   // 0 to 1
	Style      *float64 `json:"style,omitempty"`        // 0 to 1
	Boost      *bool    `json:"speakerBoost,omitempty"`
	Seed       *int64   `json:"seed,omitempty"`
	Normalize  string   `json:"normalize,omitempty"` // auto, on, off
	Language   string   `json:"language,omitempty"`  // such as de
	Latency    *int     `json:"latencyTier,omitempty"`
}

// TalkAudio is the result of talk.speak and tts.speak.
type TalkAudio struct {
	Audio     []byte `json:"audioBase64"`
	Provider  string `json:"provider"`
	Format    string `json:"outputFormat"` // mp3, opus or wav
	Voice     *bool  `json:"voiceCompatible,omitempty"`
	Type      string `json:"mimeType"`
	Extension string `json:"fileExtension"` // such as .mp3
}

// Reasons of errors of talk.speak; see [TalkFailure].
const (
	TalkUnconfigured = "talk_unconfigured"    // there is no provider
	TalkFailed       = "synthesis_failed"     // the providers failed
	TalkInvalidAudio = "invalid_audio_result" // the recording is too large for a frame
)

// TalkFailure is the details of an error of talk.speak.
type TalkFailure struct {
	Reason   string `json:"reason"`
	Fallback bool   `json:"fallbackEligible"` // the client may say the text itself
}

// TalkMode holds the parameters of talk.mode: a person begins or ends talking.
type TalkMode struct {
	Enabled bool   `json:"enabled"`
	Phase   string `json:"phase,omitempty"` // such as listening, thinking, speaking
}

// TalkModeChanged is the result of talk.mode, and the payload of the event.
type TalkModeChanged struct {
	Enabled bool    `json:"enabled"`
	Phase   *string `json:"phase"`
	Time    Millis  `json:"ts"`
}

// WakeWords holds the parameters of voicewake.set, and is the result of it and of
// voicewake.get, and the payload of voicewake.changed: the words that wake an app.
type WakeWords struct {
	Triggers []string `json:"triggers"`
}

// WakeRouting is the result of voicewake.routing.get: all wake words lead to the session
// that the app has open.
type WakeRouting struct {
	Config WakeRoutes `json:"config"`
}

// WakeRoutes says where what follows a wake word goes.
type WakeRoutes struct {
	Version int        `json:"version"`
	Default WakeTarget `json:"defaultTarget"`
	Routes  []None     `json:"routes"` // always empty
}

// WakeTarget is a session that a wake word leads to.
type WakeTarget struct {
	Mode string `json:"mode"` // current
}
