package window

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/session"
)

// Inspection is what a report about the context of a session is made from: the parts of
// its next request.
type Inspection struct {
	Model    llm.Model
	Window   Size
	Ratio    float64 // see Calibrate
	Measured int64   // tokens of the last prompt, as the provider counted them; 0: unknown
	System   []llm.Block
	Note     string        // behind the messages
	Files    []prompt.File // from which the system prompt was made
	Tools    []llm.ToolSpec
	Sent     []session.Sent // the history
	Prunes   []session.Prune
	Cuts     int // times that the beginning of the history was left out
}

// Report is what the next request of a session consists of. Tokens are estimates,
// calibrated with the provider's counts; those of the parts add up to Total.
type Report struct {
	Model    string  `json:"model"`
	Window   Size    `json:"window"`
	Total    int     `json:"totalTokens"`
	Measured int64   `json:"lastPromptTokens,omitempty"`
	Ratio    float64 `json:"tokenRatio,omitempty"`
	Parts    []Part  `json:"parts"`

	System SystemSize  `json:"systemPrompt"`
	Files  []FileSize  `json:"injectedWorkspaceFiles"`
	Skills []SkillSize `json:"skills"`
	Tools  []ToolSize  `json:"tools"`
	// History has the messages of the history by kind.
	History []Part `json:"history"`
	Pruned  Pruned `json:"pruned"`
	Cuts    int    `json:"compactions"`

	// NanoUSD is the price of the request without its answer, Cached that if all of it
	// is read from the provider's cache, in billionths of a dollar; nil: unknown.
	NanoUSD *int64 `json:"nanoUSD,omitempty"`
	Cached  *int64 `json:"cachedNanoUSD,omitempty"`
}

// Part is a part of a request.
type Part struct {
	Name   string `json:"name"`
	Count  int    `json:"count,omitempty"` // of what it consists of
	Chars  int    `json:"chars,omitempty"`
	Tokens int    `json:"tokens"`
}

// SystemSize is the size of the system prompt in characters.
type SystemSize struct {
	Chars    int `json:"chars"`
	Files    int `json:"projectContextChars"`
	NotFiles int `json:"nonProjectContextChars"`
}

// FileSize is the size of a workspace file in characters.
type FileSize struct {
	Name      string `json:"name"`
	Missing   bool   `json:"missing"`
	Problem   string `json:"problem,omitempty"`
	Raw       int    `json:"rawChars"`
	Injected  int    `json:"injectedChars"`
	Truncated bool   `json:"truncated"`
	Tokens    int    `json:"tokens"`
}

// ToolSize is the size of the description of a tool in characters.
type ToolSize struct {
	Name        string `json:"name"`
	Description int    `json:"summaryChars"`
	Schema      int    `json:"schemaChars"`
	Tokens      int    `json:"tokens"`
}

// SkillSize is the size of a skill in the system prompt in characters.
type SkillSize struct {
	Name   string `json:"name"`
	Chars  int    `json:"blockChars"`
	Tokens int    `json:"tokens"`
}

// Pruned is how many parts of the history are sent in a shorter form.
type Pruned struct {
	Trimmed int `json:"trimmed"`
	Cleared int `json:"cleared"`
	Images  int `json:"images"` // messages and results without their images
}

// Names of the parts of a request, in their order.
const (
	PartSystem  = "System prompt"
	PartFiles   = "Workspace files"
	PartSkills  = "Skills"
	PartTools   = "Tools"
	PartHistory = "Conversation"
	PartResults = "Tool results"
	PartImages  = "Images"
)

// NewReport returns the report about a request.
func NewReport(in Inspection) Report {
	r := Report{
		Model: in.Model.Ref(), Window: in.Window, Measured: in.Measured, Ratio: in.Ratio, Cuts: in.Cuts,
		Files: []FileSize{}, Skills: []SkillSize{}, Tools: []ToolSize{},
	}
	scaled := func(n int) int { return Calibrated(n, in.Ratio) }
	text := ""
	for i := range in.System {
		text += in.System[i].Text
	}
	system := estimate.Blocks(in.System) + estimate.Text(in.Note)
	r.System.Chars = utf8.RuneCountInString(text)
	files := Part{Name: PartFiles}
	for i := range in.Files {
		f := fileSize(&in.Files[i], text, in.Ratio)
		r.Files = append(r.Files, f)
		if f.Injected > 0 {
			files.Count++
		}
		files.Chars, files.Tokens = files.Chars+f.Injected, files.Tokens+f.Tokens
	}
	r.System.Files, r.System.NotFiles = files.Chars, r.System.Chars-files.Chars
	r.Skills = skillSizes(text, in.Ratio)
	skills := Part{Name: PartSkills, Count: len(r.Skills)}
	for _, s := range r.Skills {
		skills.Chars, skills.Tokens = skills.Chars+s.Chars, skills.Tokens+s.Tokens
	}
	tools := Part{Name: PartTools, Count: len(in.Tools)}
	for _, t := range in.Tools {
		s := ToolSize{t.Name, utf8.RuneCountInString(t.Description), len(t.Schema), scaled(estimate.Tool(t))}
		r.Tools = append(r.Tools, s)
		tools.Chars, tools.Tokens = tools.Chars+len(t.Name)+s.Description+s.Schema, tools.Tokens+s.Tokens
	}
	history, results, images := r.history(in.Sent, in.Ratio)
	rest := Part{
		Name: PartSystem, Chars: r.System.Chars + utf8.RuneCountInString(in.Note) - files.Chars - skills.Chars,
		Tokens: max(scaled(system)-files.Tokens-skills.Tokens, 0),
	}
	for _, p := range [...]Part{rest, files, skills, tools, history, results, images} {
		r.Total += p.Tokens
		if p.Tokens > 0 || p.Name == PartSystem {
			r.Parts = append(r.Parts, p)
		}
	}
	for i := range in.Prunes {
		p := &in.Prunes[i]
		r.Pruned.Trimmed += len(p.Trim)
		r.Pruned.Cleared += len(p.Clear)
		r.Pruned.Images += len(p.Images)
	}
	if price := in.Model.Price; price != nil {
		n := price.Cost(llm.Usage{Input: int64(r.Total)})
		r.NanoUSD = &n
		if price.CacheRead > 0 {
			c := price.Cost(llm.Usage{CacheRead: int64(r.Total)})
			r.Cached = &c
		}
	}
	return r
}

// history adds the messages by kind, and returns their sums.
func (r *Report) history(sent []session.Sent, ratio float64) (talk, results, images Part) {
	talk, results, images = Part{Name: PartHistory}, Part{Name: PartResults}, Part{Name: PartImages}
	kinds := [...]Part{{Name: "messages of people and events"}, {Name: "answers"}, {Name: "thinking"},
		{Name: "tool calls"}, {Name: "tool results"}, {Name: "images"}}
	add := func(kind, n, chars int, tokens float64, to *Part) {
		p := &kinds[kind]
		p.Count, p.Chars = p.Count+n, p.Chars+chars
		p.Tokens += Calibrated(int(tokens), ratio)
		to.Count, to.Chars, to.Tokens = to.Count+n, to.Chars+chars, to.Tokens+Calibrated(int(tokens), ratio)
	}
	for i := range sent {
		m := sent[i].Message
		kind, to, per := 0, &talk, float64(estimate.BytesPerToken)
		switch m.Role {
		case llm.RoleAssistant:
			kind = 1
		case llm.RoleTool:
			kind, to, per = 4, &results, estimate.ResultBytesPerToken
		}
		add(kind, 1, 0, estimate.MessageTokens, to)
		for j := range m.Parts {
			switch p := &m.Parts[j]; {
			case p.Kind == llm.PartImage:
				add(5, 1, 0, estimate.ImageTokens, &images)
			case p.Kind == llm.PartThinking:
				add(2, 1, utf8.RuneCountInString(p.Text), float64(len(p.Text)+len(p.Signature)+len(p.Redacted))/per, to)
			case p.Call != nil:
				add(3, 1, len(p.Call.Name)+len(p.Call.Args), float64(len(p.Call.Name)+len(p.Call.Args))/estimate.BytesPerToken, to)
			default:
				add(kind, 0, utf8.RuneCountInString(p.Text), float64(len(p.Text))/per, to)
			}
		}
	}
	for _, p := range kinds {
		if p.Count > 0 {
			r.History = append(r.History, p)
		}
	}
	return talk, results, images
}

// fileSize returns the size of a file and of what of it is in the system prompt.
func fileSize(f *prompt.File, system string, ratio float64) FileSize {
	s := FileSize{Name: f.Name, Missing: f.Missing, Problem: f.Problem, Raw: utf8.RuneCountInString(f.Text)}
	switch {
	case f.Missing || f.Problem != "" || f.Text == "":
		return s
	case strings.Contains(system, f.Text):
		s.Injected = s.Raw
	default:
		if n, all := omitted(f.Name, system); n > 0 {
			s.Injected, s.Truncated = max(all-n, 0), true
		} else if s.Truncated = !strings.Contains(system, "### "+prompt.Name(f.Name)+"\n"); !s.Truncated {
			s.Injected = s.Raw // a secret in it was replaced
		}
	}
	s.Tokens = Calibrated(s.Injected*len(f.Text)/max(s.Raw, 1)/estimate.BytesPerToken, ratio)
	return s
}

// omitted returns how many of all characters of a file are omitted in the system prompt,
// as the marker in it says.
func omitted(name, system string) (n, all int) {
	head, _, ok := strings.Cut(system, " characters of "+name+" omitted …]")
	if !ok {
		return 0, 0
	}
	if _, err := fmt.Sscanf(head[strings.LastIndex(head, "[")+1:], "… %d of %d", &n, &all); err != nil {
		return 0, 0
	}
	return n, all
}

// skillSizes returns the sizes of the skills in the system prompt.
func skillSizes(system string, ratio float64) []SkillSize {
	out := []SkillSize{}
	_, list, ok := strings.Cut(system, "<available_skills>")
	if !ok {
		return out
	}
	list, _, _ = strings.Cut(list, "</available_skills>")
	for _, block := range strings.SplitAfter(list, "</skill>") {
		_, name, ok := strings.Cut(block, "<name>")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(name, "</name>")
		out = append(out, SkillSize{strings.TrimSpace(name), utf8.RuneCountInString(block),
			Calibrated(estimate.Text(block), ratio)})
	}
	return out
}

// Free returns the tokens of the window that are not used.
func (r *Report) Free() int { return max(r.Window.Tokens-r.Total, 0) }

// Largest returns the tools with the largest descriptions, and the number of the others.
func (r *Report) Largest(n int) (tools []ToolSize, others int) {
	tools = slices.Clone(r.Tools)
	slices.SortStableFunc(tools, func(a, b ToolSize) int { return cmp.Compare(b.Tokens, a.Tokens) })
	n = min(n, len(tools))
	return tools[:n], len(tools) - n
}

// String returns the size of a part: "1.2k tokens".
func (p Part) String() string { return fmt.Sprintf("%s: %d tokens", p.Name, p.Tokens) }
