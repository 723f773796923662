// Package estimate estimates the tokens of what is sent to a model.
package estimate

import "github.com/chela-ai/chela/internal/core/llm"

// Estimates of tokens. Text has about four bytes for each token. Output of tools has
// fewer, because it contains numbers, paths and punctuation; the estimate is cautious.
const (
	BytesPerToken       = 4
	ResultBytesPerToken = 2
	ImageTokens         = 1600 // of one image, after scaling
	MessageTokens       = 4    // for the role and the separators of a message
)

// Messages estimates the tokens of messages in a request.
func Messages(messages ...*llm.Message) int {
	n := 0
	for _, m := range messages {
		per := BytesPerToken
		if m.Role == llm.RoleTool {
			per = ResultBytesPerToken
		}
		n += MessageTokens
		for i := range m.Parts {
			p := &m.Parts[i]
			if p.Kind == llm.PartImage {
				n += ImageTokens
				continue
			}
			n += (len(p.Text) + len(p.Signature) + len(p.Redacted) + per - 1) / per
			if p.Call != nil {
				n += (len(p.Call.Name) + len(p.Call.Args) + BytesPerToken - 1) / BytesPerToken
			}
		}
	}
	return n
}

// Text estimates the tokens of a text.
func Text(s string) int { return (len(s) + BytesPerToken - 1) / BytesPerToken }

// Tool estimates the tokens of the description of a tool.
func Tool(t llm.ToolSpec) int {
	return Text(t.Name) + Text(t.Description) + (len(t.Schema)+BytesPerToken-1)/BytesPerToken + MessageTokens
}

// Blocks estimates the tokens of a system prompt.
func Blocks(blocks []llm.Block) int {
	n := 0
	for i := range blocks {
		n += Text(blocks[i].Text)
	}
	return n
}

// Tools estimates the tokens of the descriptions of tools.
func Tools(tools []llm.ToolSpec) int {
	n := 0
	for i := range tools {
		n += Tool(tools[i])
	}
	return n
}

// Request estimates the tokens of a request.
func Request(r *llm.Request) int {
	return Messages(r.Messages...) + Blocks(r.System) + Tools(r.Tools) + Text(r.Note)
}
