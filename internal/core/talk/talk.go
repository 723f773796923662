// Package talk defines how apps talk with a person: which voice says the answers, what apps
// are told about listening, and the words that wake them.
//
// Listening, and noticing that a person interrupts, is the work of the apps. The gateway
// keeps their settings, and speaks with the providers of tts.
package talk

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/kit/secret"
)

// Config is talk. Apps are told all of it but keys and addresses.
type Config struct {
	Provider  string              `json:"provider"`  // that is asked first; "": as in tts
	Providers map[string]Provider `json:"providers"` // by id; what they set replaces what tts.providers sets
	// in which apps listen, such as de-DE; "": that of the device
	Locale string `json:"speechLocale"`
	// an app stops speaking when the person speaks; nil: the app decides
	Interrupt *bool `json:"interruptOnSpeech"`
	// after which an app sends what it heard; 0: the app decides
	Silence int    `json:"silenceTimeoutMs"`
	Think   string `json:"consultThinkingLevel"` // of questions to the agent; "": that of the session
	Fast    *bool  `json:"consultFastMode"`
}

// Provider is how a service or a program speaks when apps talk.
type Provider struct {
	APIKey  secret.Ref        `json:"apiKey"`
	BaseURL string            `json:"baseUrl"`
	Voice   string            `json:"voiceId"`
	Model   string            `json:"modelId"`
	Format  string            `json:"outputFormat"` // see [Format]
	Aliases map[string]string `json:"voiceAliases"` // names of voices
}

// older is the provider of an older form of talk, which had no name.
const older = "elevenlabs"

// maxSilence is the longest silence in milliseconds that apps may be told.
const maxSilence = 60_000

// Parse decodes talk.
func Parse(raw json.RawMessage) (Config, error) {
	var c Config
	if len(raw) == 0 {
		return c, nil
	}
	var flat Provider
	for _, into := range [...]any{&c, &flat} {
		if err := json.Unmarshal(raw, into); err != nil {
			return c, fmt.Errorf("configuration, talk: %w", err)
		}
	}
	if !flat.empty() && len(c.Providers) == 0 {
		id := cmp.Or(c.Provider, older)
		c.Provider, c.Providers = id, map[string]Provider{id: flat}
	}
	if c.Silence < 0 || c.Silence > maxSilence {
		return c, fmt.Errorf("configuration, talk.silenceTimeoutMs: %d is not between 1 and %d", c.Silence, maxSilence)
	}
	return c, nil
}

func (p Provider) empty() bool {
	return p.APIKey.IsZero() && p.BaseURL == "" && p.Voice == "" && p.Model == "" && p.Format == "" && len(p.Aliases) == 0
}

// Format returns the format of recordings that a name stands for: mp3, opus or wav, or one
// of ElevenLabs such as mp3_44100_128. For others, such as samples without a header, it is
// "": the provider's.
func Format(name string) string {
	family, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(name)), "_")
	if slices.Contains([]string{"mp3", "opus", "wav"}, family) {
		return family
	}
	return ""
}

// URLs returns the addresses of the services.
func (c Config) URLs() (out []string) {
	for _, p := range c.Providers {
		if p.BaseURL != "" {
			out = append(out, p.BaseURL)
		}
	}
	return out
}

// VoiceOf returns the voice that a name stands for at a provider, which may be an alias.
func (c Config) VoiceOf(provider, name string) string {
	name = strings.TrimSpace(name)
	for alias, id := range c.Providers[provider].Aliases {
		if strings.EqualFold(strings.TrimSpace(alias), name) {
			return id
		}
	}
	return name
}
