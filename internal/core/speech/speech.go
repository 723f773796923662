// Package speech defines how answers are said aloud: when, by which service or program,
// and which words of an answer.
//
// What is said goes to a chat as a message of its own, after the text. The text never
// waits for it, and is there if it fails.
package speech

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/kit/secret"
)

// Mode says which answers are said aloud.
type Mode string

// The modes.
const (
	Off     Mode = "off"
	Always  Mode = "always"
	Inbound Mode = "inbound" // answers to voice notes
	Tagged  Mode = "tagged"  // answers that say so with [[tts]]
)

// Modes are all modes.
var Modes = [...]Mode{Off, Always, Inbound, Tagged}

// Config is tts.
type Config struct {
	Auto      Mode                `json:"auto"`          // "": off
	Enabled   *bool               `json:"enabled"`       // an older form of auto: true is always
	Provider  string              `json:"provider"`      // that is asked first; "": the first one that can be used
	Providers map[string]Provider `json:"providers"`     // by id
	MaxText   int                 `json:"maxTextLength"` // characters of what is said; 0: 4000
	TimeoutMS int                 `json:"timeoutMs"`     // of one attempt; 0: 30 s
}

// Provider is a service or a program that speaks. OpenClaw writes some of its keys in two
// ways.
type Provider struct {
	APIKey  secret.Ref `json:"apiKey"`
	BaseURL string     `json:"baseUrl"`
	Model   string     `json:"model"`
	ModelID string     `json:"modelId"`
	Voice   string     `json:"speakerVoice"`
	VoiceID string     `json:"speakerVoiceId"`
	Older   string     `json:"voice"`
	OlderID string     `json:"voiceId"`
	Format  string     `json:"responseFormat"` // mp3, opus or wav; "": what the chat needs
	Manner  string     `json:"instructions"`   // how to speak, for models that take it
	Speed   float64    `json:"speed"`          // 0: the service's
	Command string     `json:"command"`        // of a program
	// with {{Text}}, {{Voice}}, {{OutputPath}}, {{OutputDir}} and {{OutputBase}}
	Args    []string          `json:"args"`
	Output  string            `json:"outputFormat"` // of a program: mp3, opus or wav; "": mp3
	Env     map[string]string `json:"env"`          // further variables of a program
	Timeout int               `json:"timeoutMs"`    // of a program; 0: that of all
}

const (
	defaultText    = 4000
	defaultTimeout = 30 * time.Second
)

// Parse decodes tts. older is messages.tts, which is used if there is no tts.
func Parse(raw, older json.RawMessage) (Config, error) {
	var c Config
	at := "tts"
	if len(raw) == 0 {
		raw, at = older, "messages.tts"
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &c); err != nil {
			return c, fmt.Errorf("configuration, %s: %w", at, err)
		}
	}
	if c.Auto == "" && c.Enabled != nil && *c.Enabled {
		c.Auto = Always
	}
	if c.Auto == "" {
		c.Auto = Off
	}
	if !slices.Contains(Modes[:], c.Auto) {
		return c, fmt.Errorf("configuration, %s.auto: %q is not one of off, always, inbound, tagged", at, c.Auto)
	}
	for id, p := range c.Providers {
		if !slices.Contains([]string{"", "mp3", "opus", "wav"}, p.Format+p.Output) {
			return c, fmt.Errorf("configuration, %s.providers.%s: the format is not one of mp3, opus, wav", at, id)
		}
	}
	return c, nil
}

// Chosen reports whether the person has chosen a voice, or answers that are said. Without
// that, models are not told of voices.
func (c Config) Chosen() bool { return c.Auto != Off || c.Provider != "" || len(c.Providers) > 0 }

// URLs returns the addresses of the services.
func (c Config) URLs() (out []string) {
	for _, p := range c.Providers {
		if p.BaseURL != "" {
			out = append(out, p.BaseURL)
		}
	}
	return out
}

// Limit returns the maximum number of characters of what is said.
func (c Config) Limit() int {
	if c.MaxText > 0 {
		return c.MaxText
	}
	return defaultText
}

// Patience returns the time limit of an attempt with a provider.
func (c Config) Patience(p Provider) time.Duration {
	for _, ms := range [...]int{p.Timeout, c.TimeoutMS} {
		if ms > 0 {
			return time.Duration(ms) * time.Millisecond
		}
	}
	return defaultTimeout
}

// VoiceOf returns the first voice that is named; "": none is.
func (p Provider) VoiceOf() string { return first(p.Voice, p.VoiceID, p.Older, p.OlderID) }

// ModelOf returns the model that is named; "": none is.
func (p Provider) ModelOf() string { return first(p.Model, p.ModelID) }

func first(list ...string) string {
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			return s
		}
	}
	return ""
}

// Request is a text to say.
type Request struct {
	Text     string
	Provider string // that alone is asked; "": as configured
	Voice    string // "": the configured one
	Model    string // "": the configured one
	Format   string // mp3, opus or wav; "": as configured
	Note     bool   // as a voice note, which platforms show only in Ogg with Opus
	Manner   Manner
}

// Manner is how a text is said. What a provider does not have has no effect.
type Manner struct {
	Speed      float64 // 0: the configured one
	Stability  *float64
	Similarity *float64
	Style      *float64
	Boost      *bool
	Seed       *int64
	Normalize  string // auto, on, off
	Language   string // such as de
	Latency    *int   // 0 to 4: the quality that may be given up for a fast answer
}

// Audio is what was said.
type Audio struct {
	Data     []byte
	Type     string // MIME type
	Provider string // that said it
}

// MaxAudio is the maximum size of what is said in bytes.
const MaxAudio = 20 << 20

// State is whether a provider can be used.
type State struct {
	ID, Name       string
	Configured     bool
	Models, Voices []string // that are known
}

// Speaker says texts aloud.
type Speaker interface {
	// Speak asks the providers in order until one answers.
	Speak(context.Context, Request) (Audio, error)
	// Providers returns the known and the configured providers in the order in which they
	// are asked. The first one that is configured is the active one.
	Providers() []State
}

// Voice is the speaker of a gateway, with the settings that people change.
type Voice interface {
	Speaker
	Mode() Mode
	Limit() int // characters of what is said
	// SetMode and SetProvider change the configuration.
	SetMode(context.Context, Mode) error
	SetProvider(ctx context.Context, id string) error
}

// Active returns the provider that is asked first; "": none can be used.
func Active(s Speaker) string {
	for _, p := range s.Providers() {
		if p.Configured {
			return p.ID
		}
	}
	return ""
}

// Extension returns the ending of a file with a recording of a MIME type.
func Extension(kind string) string {
	kind, _, _ = strings.Cut(kind, ";")
	switch kind {
	case "audio/ogg", "audio/opus":
		return ".ogg"
	case "audio/wav", "audio/x-wav", "audio/wave":
		return ".wav"
	}
	return ".mp3"
}
