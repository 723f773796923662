package settings

import (
	"cmp"
	"maps"

	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/core/talk"
)

// TalkSpeech returns how answers are said when apps talk: as tts says, with the changes of
// talk.
func (o *Settings) TalkSpeech() speech.Config {
	c, tts := o.Talk, o.Speech
	tts.Provider = cmp.Or(c.Provider, tts.Provider)
	tts.Providers = maps.Clone(tts.Providers)
	if tts.Providers == nil {
		tts.Providers = map[string]speech.Provider{}
	}
	for id, own := range c.Providers {
		p := tts.Providers[id]
		if !own.APIKey.IsZero() {
			p.APIKey = own.APIKey
		}
		if own.BaseURL != "" && own.BaseURL != p.BaseURL {
			p.BaseURL, p.APIKey = own.BaseURL, own.APIKey // another address does not get the other key
		}
		if own.Voice != "" {
			p.Voice = own.Voice
		}
		if own.Model != "" {
			p.Model = own.Model
		}
		if format := talk.Format(own.Format); format != "" && p.Command == "" {
			p.Format = format
		}
		tts.Providers[id] = p
	}
	return tts
}
