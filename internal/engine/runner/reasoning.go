package runner

import (
	"cmp"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// maxReasoning limits the thoughts of a run that a chat shows, in bytes.
const maxReasoning = 8 << 10

// reasoning is the thoughts of a run, if its chat shows them.
type reasoning struct {
	all  string // of complete messages
	part string // of the message that is being written
}

// reasoningMode returns whether the chat shows the thoughts of the model: off, on, stream.
// Those of a heartbeat are never shown.
func (e *Execution) reasoningMode() string {
	if e.run.Origin.Kind == chela.OriginHeartbeat {
		return "off"
	}
	return cmp.Or(e.run.Overrides.Reasoning, e.meta.Reasoning, e.profile.Reasoning, "off")
}

// streamReasoning returns the thoughts of the message that is being written, if the chat
// shows them as they come; otherwise "".
func (e *Execution) streamReasoning(delta string) string {
	if e.reasoningMode() != "stream" || len(e.reasoning.part) > maxReasoning {
		return ""
	}
	e.reasoning.part += delta
	return e.reasoning.part
}

// addReasoning adds the thoughts of a complete message.
func (e *Execution) addReasoning(m *llm.Message) {
	e.reasoning.part = ""
	if e.reasoningMode() == "off" || len(e.reasoning.all) > maxReasoning {
		return
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == llm.PartThinking && strings.TrimSpace(p.Text) != "" {
			e.reasoning.all = humanize.TruncateBytes(strings.TrimSpace(e.reasoning.all+"\n\n"+p.Text), maxReasoning)
		}
	}
}
