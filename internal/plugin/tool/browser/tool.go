package browser

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
)

//go:embed browser.md
var description string

// actions are the actions of the tool.
var actions = [...]string{
	"status", "start", "stop", "profiles", "tabs", "open", "focus", "close", "navigate", "snapshot", "screenshot", "act",
	"console", "pdf", "upload", "download", "waitfordownload", "dialog",
}

// Configured returns the tool for a section of the configuration (nil: the defaults), which
// is off if the section says so, or if there are no Browsers. rule says which files it may
// upload.
func Configured(raw json.RawMessage, b *Browsers, rule pathpolicy.Rule) ([]tool.Tool, error) {
	c, err := ParseConfig(raw)
	if err != nil {
		return nil, err
	}
	t := browserTool{b, rule, c.evaluates()}
	if b == nil || !c.On() {
		return tool.Off(t), nil
	}
	return []tool.Tool{t}, nil
}

type browserTool struct {
	browsers  *Browsers
	rule      pathpolicy.Rule
	evaluates bool
}

var _ tool.Planner = browserTool{}

// Spec implements tool.Tool.
func (t browserTool) Spec() tool.Spec {
	text := strings.TrimSpace(description)
	if !t.evaluates {
		text = strings.ReplaceAll(text, ", evaluate (fn, ref?)", "")
	}
	return tool.Spec{
		Name: "browser", Label: "Browser", Description: text, Effect: tool.Acts, OwnerOnly: true,
		Groups: []string{"group:ui"}, Sandboxed: tool.Outside,
		Aliases: map[string]string{"targetUrl": "url", "tabId": "targetId", "function": "fn", "maxCharacters": "maxChars"},
		Title:   title,
		Schema: json.RawMessage(`{"type":"object","properties":{
			"action":{"type":"string","description":"` + strings.Join(actions[:], ", ") + `"},
			"kind":{"type":"string","description":"of act"},
			"request":{"type":"object","description":"kind and parameters of act; or give them directly"},
			"profile":{"type":"string"},
			"target":{"type":"string","enum":["host","sandbox","node"]},
			"targetId":{"type":"string","description":"tab: t1, label or target id; default: the last used"},
			"url":{"type":"string"},
			"label":{"type":"string"},
			"ref":{"type":"string","description":"element of a snapshot, such as e12"},
			"selector":{"type":"string","description":"CSS selector, instead of ref"},
			"element":{"type":"string","description":"CSS selector"},
			"frame":{"type":"string","description":"ref or selector of an iframe"},
			"interactive":{"type":"boolean"},
			"compact":{"type":"boolean"},
			"depth":{"type":"integer","minimum":0},
			"maxChars":{"type":"integer","minimum":0},
			"limit":{"type":"integer","minimum":0},
			"mode":{"type":"string","enum":["efficient"]},
			"snapshotFormat":{"type":"string","enum":["ai","aria"]},
			"refs":{"type":"string","enum":["role","aria"]},
			"urls":{"type":"boolean"},
			"fullPage":{"type":"boolean"},
			"type":{"type":"string","enum":["png","jpeg"]},
			"level":{"type":"string"},
			"clear":{"type":"boolean"},
			"text":{"type":"string"},
			"textGone":{"type":"string"},
			"submit":{"type":"boolean"},
			"slowly":{"type":"boolean"},
			"key":{"type":"string","description":"such as Enter or Control+A"},
			"doubleClick":{"type":"boolean"},
			"button":{"type":"string"},
			"modifiers":{"type":"array","items":{"type":"string"}},
			"x":{"type":"number"},
			"y":{"type":"number"},
			"delayMs":{"type":"integer","minimum":0},
			"startRef":{"type":"string"},
			"endRef":{"type":"string"},
			"values":{"type":"array","items":{"type":"string"}},
			"fields":{"type":"array","items":{"type":"object"},"description":"{ref, value} each"},
			"width":{"type":"integer","minimum":1},
			"height":{"type":"integer","minimum":1},
			"timeMs":{"type":"integer","minimum":0},
			"loadState":{"type":"string"},
			"fn":{"type":"string"},
			"paths":{"type":"array","items":{"type":"string"}},
			"inputRef":{"type":"string"},
			"accept":{"type":"boolean"},
			"promptText":{"type":"string"},
			"timeoutMs":{"type":"integer","minimum":1}},
			"required":["action"],"additionalProperties":false}`),
	}
}

// title returns what a call does, for people.
func title(raw json.RawMessage) string {
	a, err := decode(raw)
	if err != nil {
		return ""
	}
	parts := []string{strings.TrimPrefix(a.Action, "act ")}
	for _, s := range [...]string{a.URL, a.Ref, a.Selector, a.Key} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, " ")
}

// decode reads the arguments of a call, in their flat form.
func decode(raw json.RawMessage) (Args, error) {
	a, err := tool.Decode[Args](raw)
	return a.flat(), err
}

// Plan implements tool.Planner. A person is asked before a script runs in a page, and before a
// page gets a file.
func (t browserTool) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	a, err := decode(c.Args)
	if err != nil {
		return tool.Plan{}, err
	}
	p := tool.Plan{Effect: tool.Acts, Text: "browser " + title(c.Args)}
	switch a.Action {
	case "status", "profiles", "tabs", "snapshot", "screenshot", "console":
		p.Effect = tool.Reads
	case "upload":
		p.Ask, p.Reason = true, "it gives files to a web page"
		p.Text = "browser upload " + strings.Join(a.Paths, ", ")
	}
	if a.Function != "" && (a.Action == "act evaluate" || a.Action == "act wait") {
		if !t.evaluates {
			return tool.Plan{}, errEvaluate
		}
		p.Ask, p.Reason, p.Text = true, "it runs a script in a web page",
			"browser "+strings.TrimPrefix(a.Action, "act ")+"\n"+a.Function
	}
	h := sha256.Sum256(slices.Concat([]byte("browser\x00"), c.Args))
	p.Hash = hex.EncodeToString(h[:])
	return p, nil
}

// disabled is the error of a script although browser.evaluateEnabled is false.
type disabled struct{}

var errEvaluate = disabled{}

// Error returns what was refused, and how to allow it.
func (disabled) Error() string {
	return "ACT_EVALUATE_DISABLED: scripts are off (browser.evaluateEnabled); the person can allow them: chela config set browser.evaluateEnabled true"
}

// Run implements tool.Tool.
func (t browserTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	a, err := decode(c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	out, err := t.browsers.Do(ctx, Input{Args: a, Session: c.Session, Read: func(path string) ([]byte, error) {
		return t.rule.Read(c, path, media.MaxFile)
	}})
	if err != nil {
		if ctx.Err() != nil {
			return tool.Result{}, ctx.Err()
		}
		return tool.Result{}, fmt.Errorf("browser: %w", err)
	}
	delete(out.Details, "snapshot") // it is in the text
	delete(out.Details, "messages")
	r := tool.Detailed(out.Text, out.Details)
	r.Content = append(r.Content, out.Images...)
	return r, nil
}
