package media

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	pictures "github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// SpeechOptions configure the tool that says texts aloud. All fields are required.
type SpeechOptions struct {
	Speaker speech.Speaker
	Limit   int // characters of a text
	Files   *pictures.Files
	Do      func(context.Context, action.Request) (action.Result, error)
}

//go:embed tts.md
var speechDescription string

// NewSpeech returns the tool that says texts aloud.
func NewSpeech(o SpeechOptions) tool.Tool { return speechTool{o} }

type speechTool struct{ SpeechOptions }

func (t speechTool) Spec() tool.Spec {
	return tool.Spec{
		Name: "tts", Label: "Say aloud", Description: strings.TrimSpace(speechDescription),
		Effect: tool.Acts, Groups: []string{"group:media"}, Sandboxed: tool.Outside, Subagents: tool.NoSubagents,
		Keyed:   true,
		Aliases: map[string]string{"message": "text", "input": "text", "voiceId": "voice", "speakerVoice": "voice"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"text":{"type":"string"},
			"voice":{"type":"string","description":"only if the person names one"}},
			"required":["text"],"additionalProperties":false}`),
	}
}

func (t speechTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	args, err := tool.Decode[struct{ Text, Voice string }](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	words := speech.Words(args.Text, len(args.Text))
	if words == "" {
		return tool.Result{}, fmt.Errorf("text: there is nothing to say in it")
	}
	if n := len([]rune(words)); n > t.Limit {
		return tool.Result{}, fmt.Errorf("text: %d characters, at most %d can be said at once; send it in parts", n, t.Limit)
	}
	a, err := t.Speaker.Speak(ctx, speech.Request{Text: words, Voice: args.Voice, Note: true})
	if err != nil {
		return tool.Result{}, err
	}
	m, err := t.Files.Store(chela.Media{Name: "voice" + speech.Extension(a.Type), Type: a.Type, Data: a.Data})
	if err != nil {
		return tool.Result{}, err
	}
	if _, err := t.Do(ctx, action.Request{
		Action: action.Send, Media: []chela.Media{m}, Key: c.ID,
		From: action.Origin{Run: c.Run, Session: c.Session, Agent: c.Agent},
	}); err != nil {
		return tool.Result{}, err
	}
	return tool.Result{
		Content: []llm.Part{llm.Text(fmt.Sprintf("Sent as a voice message (%s, %s). Do not repeat its text.", a.Provider,
			humanize.Bytes(int64(m.Bytes))))}}, nil
}
