// Package drawing defines how pictures are made from a description: by which service or
// program, and what may be asked of it.
package drawing

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Config is agents.defaults.mediaModels.image.
type Config struct {
	Primary   string            `json:"primary"`   // provider/model that is asked first
	Fallbacks []string          `json:"fallbacks"` // asked in order if it fails
	TimeoutMS int               `json:"timeoutMs"` // of one attempt; 0: 3 min
	Command   string            `json:"command"`   // a program that draws, asked before all models
	Args      []string          `json:"args"`      // with {{Prompt}}, {{OutputPath}} and {{OutputDir}}; none: {{Prompt}}
	Env       map[string]string `json:"env"`       // further variables of the program
}

// UnmarshalJSON also accepts "provider/model".
func (c *Config) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &c.Primary)
	}
	type plain Config
	return json.Unmarshal(b, (*plain)(c))
}

// Parse decodes agents.defaults.mediaModels.image. older is
// agents.defaults.imageGenerationModel, which is used if there is none.
func Parse(raw, older json.RawMessage) (Config, error) {
	var c Config
	at := "agents.defaults.mediaModels.image"
	if len(raw) == 0 {
		raw, at = older, "agents.defaults.imageGenerationModel"
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &c); err != nil {
			return c, fmt.Errorf("configuration, %s: %w", at, err)
		}
	}
	for _, m := range c.Models() {
		if provider, model, ok := strings.Cut(m, "/"); !ok || provider == "" || model == "" {
			return c, fmt.Errorf("configuration, %s: %q is not PROVIDER/MODEL", at, m)
		}
	}
	return c, nil
}

// Models returns the models in the order in which they are asked.
func (c Config) Models() []string {
	return slices.DeleteFunc(append([]string{c.Primary}, c.Fallbacks...), func(s string) bool { return s == "" })
}

// On reports whether anything can draw.
func (c Config) On() bool { return c.Command != "" || len(c.Models()) > 0 }

// maxTimeout is the longest time limit of an attempt.
const maxTimeout = 10 * time.Minute

// Patience returns the time limit of an attempt.
func (c Config) Patience() time.Duration {
	if c.TimeoutMS <= 0 {
		return 3 * time.Minute
	}
	return min(time.Duration(c.TimeoutMS)*time.Millisecond, maxTimeout)
}

// Limits.
const (
	MaxCount   = 4 // pictures of one request
	MaxSources = 5 // pictures that a request starts from
	MaxPrompt  = 32_000
	MaxPicture = 25 << 20 // bytes of a picture that is made
)

// Program is the name of the program among the models.
const Program = "program"

// Source is a picture that a request starts from.
type Source struct {
	Data []byte
	Type string // MIME type
}

// Request is what to draw. What a service does not know of it is left out.
type Request struct {
	Prompt     string
	Model      string // provider/model that alone is asked; "": as configured
	Count      int    // of pictures
	Sources    []Source
	Size       string // such as 1024x1536
	Aspect     string // such as 16:9
	Resolution string // 1K, 2K or 4K
	Quality    string // low, medium, high or auto
	Format     string // png, jpeg or webp
	Background string // transparent, opaque or auto
}

// Buyer is for whom a picture is drawn, and who pays for it.
type Buyer struct {
	Run     chela.RunID
	Session chela.SessionKey
	Agent   chela.AgentID
}

// Result is what was drawn.
type Result struct {
	Pictures [][]byte
	By       string   // provider/model, or Program
	Ignored  []string // parts of the request that it does not know
}

// Painter draws.
type Painter interface {
	// Draw asks what is configured in order until one answers.
	Draw(context.Context, Buyer, Request) (Result, error)
	// Models returns what can be asked, in order.
	Models() []string
}

// sizes are the sizes of OpenAI's models that come closest to an aspect ratio.
var sizes = map[string]string{
	"1:1":  "1024x1024",
	"3:2":  "1536x1024",
	"4:3":  "1536x1024",
	"5:4":  "1536x1024",
	"16:9": "1536x1024",
	"21:9": "1536x1024",
	"2:3":  "1024x1536",
	"3:4":  "1024x1536",
	"4:5":  "1024x1536",
	"9:16": "1024x1536",
}

// SizeOf returns the size that comes closest to an aspect ratio; "": it is unknown.
func SizeOf(aspect string) string { return sizes[aspect] }

// Named returns the names of what the request says beside its text, sorted.
func (r Request) Named() (out []string) {
	for _, f := range [...]struct{ name, value string }{
		{"aspectRatio", r.Aspect}, {"background", r.Background}, {"outputFormat", r.Format}, {"quality", r.Quality},
		{"resolution", r.Resolution}, {"size", r.Size},
	} {
		if f.value != "" {
			out = append(out, f.name)
		}
	}
	return out
}
