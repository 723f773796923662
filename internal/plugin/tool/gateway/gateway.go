// Package gateway implements the tool gateway, with which a model reads and changes
// Chela's configuration and restarts it, for the owner.
package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/wire"
)

// Change is a change of the configuration that a model asks for.
type Change struct {
	Text    string   // JSON5: a merge patch, or the whole configuration
	Merge   bool     // Text is a merge patch
	Base    string   // hash of the configuration that it was made from; "": any
	Replace []string // arrays that a merge patch may shorten
	Reason  string
}

// Gateway reads and changes the configuration of the process, and restarts it. Errors are
// for the model.
type Gateway interface {
	// Get returns the value at a path as JSON, with secrets redacted, and the hash of the
	// configuration. The empty path is everything that is set.
	Get(path string) (text, hash string, err error)
	// Lookup describes a key; false: it is unknown.
	Lookup(path string) (wire.ConfigKey, bool)
	// Closed returns why a model may not change a key; "": it may.
	Closed(path string) string
	// Write makes a change for a call. It refuses to change what is closed.
	Write(ctx context.Context, c tool.Call, change Change) (wire.ConfigWritten, error)
	// Restart restarts the gateway for a call, not before the delay. It returns when.
	Restart(ctx context.Context, c tool.Call, reason string, delay time.Duration) (time.Duration, error)
}

//go:embed gateway.md
var description string

// New returns the tool.
func New(g Gateway) tool.Tool { return gatewayTool{g} }

type gatewayTool struct{ Gateway }

// The actions.
const (
	get     = "config.get"
	lookup  = "config.schema.lookup"
	patch   = "config.patch"
	apply   = "config.apply"
	restart = "restart"
)

func (t gatewayTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "gateway",
		Label:       "Settings",
		Description: strings.TrimSpace(description),
		Effect:      tool.Writes,
		OwnerOnly:   true,
		Groups:      []string{"group:automation"},
		Sandboxed:   tool.Outside,
		Subagents:   tool.NoSubagents,
		InRuns:      true,
		Roles:       []tool.Role{tool.ChangesSettings},
		Aliases:     map[string]string{"patch": "raw", "note": "reason", "restartDelayMs": "delayMs"},
		Volatile:    []string{"hash"},
		Schema: json.RawMessage(`{"type":"object","required":["action"],"properties":{
			"action":{"type":"string","enum":["config.get","config.schema.lookup","config.patch","config.apply","restart"]},
			"path":{"type":"string"},
			"raw":{"type":["string","object"],"description":"JSON5"},
			"baseHash":{"type":"string","description":"from config.get: refuse if the settings changed since"},
			"replacePaths":{"type":"array","items":{"type":"string"}},
			"reason":{"type":"string"},
			"delayMs":{"type":"integer","minimum":0,"maximum":600000}},
			"additionalProperties":false}`),
	}
}

type args struct {
	Action  string          `json:"action"`
	Path    string          `json:"path"`
	Raw     json.RawMessage `json:"raw"`
	Base    string          `json:"baseHash"`
	Replace []string        `json:"replacePaths"`
	Reason  string          `json:"reason"`
	DelayMS int64           `json:"delayMs"`
}

// Plan implements tool.Planner: some actions only read.
func (t gatewayTool) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	a, err := tool.Decode[args](c.Args)
	sum := sha256.Sum256(c.Args)
	p := tool.Plan{Effect: tool.Writes, Text: "gateway " + string(c.Args), Hash: hex.EncodeToString(sum[:])}
	if a.Action == get || a.Action == lookup {
		p.Effect = tool.Reads
	}
	return p, err
}

const (
	maxText  = 256 << 10 // bytes of a change
	maxPaths = 256       // of arrays
)

func (t gatewayTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	a, err := tool.Decode[args](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	switch a.Action {
	case get:
		return t.get(a)
	case lookup:
		return t.lookup(a)
	case patch, apply:
		return t.write(ctx, c, a)
	case restart:
		return t.restart(ctx, c, a)
	}
	return tool.Result{}, fmt.Errorf("action %q: want %s, %s, %s, %s or %s", a.Action, get, lookup, patch, apply, restart)
}

func (t gatewayTool) get(a args) (tool.Result, error) {
	text, hash, err := t.Get(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Detailed(text+"\nbaseHash: "+hash, map[string]string{"path": a.Path, "hash": hash}), nil
}

func (t gatewayTool) lookup(a args) (tool.Result, error) {
	k, ok := t.Lookup(a.Path)
	if !ok {
		return tool.Result{}, fmt.Errorf("there is no setting %s; look up the path above it, or \"agents\", \"messages\", …",
			cmp.Or(a.Path, `""`))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", cmp.Or(k.Path, "the settings"), k.Schema)
	switch k.Reload {
	case wire.ReloadRestart:
		b.WriteString("\nA change takes effect after a restart.")
	case wire.ReloadNone:
		b.WriteString("\nIt has no effect in this version.")
	}
	if why := t.Closed(k.Path); why != "" && len(k.Children) == 0 {
		b.WriteString("\nYou cannot change it: " + why + ".")
	}
	for _, kid := range k.Children {
		fmt.Fprintf(&b, "\n- %s", kid.Path)
		if len(kid.Type) > 0 {
			b.WriteString(" (" + strings.Join(kid.Type, " or ") + ")")
		}
		if kid.Hint != nil && kid.Hint.Help != "" {
			b.WriteString(": " + kid.Hint.Help)
		}
	}
	return tool.Text(b.String()), nil
}

// text returns the text of a change, which is a string or an object.
func (a args) text() (string, error) {
	raw := bytes.TrimSpace(a.Raw)
	text := string(raw)
	if len(raw) > 0 && raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", err
		}
	}
	switch {
	case strings.TrimSpace(text) == "" || text == "null":
		return "", fmt.Errorf(`%s: raw is missing, such as {"messages":{"queue":{"mode":"steer"}}}`, a.Action)
	case len(text) > maxText:
		return "", fmt.Errorf("raw has %s, at most %s", humanize.Bytes(int64(len(text))), humanize.Bytes(maxText))
	case len(a.Replace) > maxPaths:
		return "", fmt.Errorf("replacePaths has %d paths, at most %d", len(a.Replace), maxPaths)
	}
	return text, nil
}

func (t gatewayTool) write(ctx context.Context, c tool.Call, a args) (tool.Result, error) {
	text, err := a.text()
	if err != nil {
		return tool.Result{}, err
	}
	w, err := t.Write(ctx, c, Change{
		Text:    text,
		Merge:   a.Action == patch,
		Base:    a.Base,
		Replace: a.Replace,
		Reason:  a.Reason,
	})
	if err != nil {
		return tool.Result{}, err
	}
	var b strings.Builder
	switch {
	case w.Noop:
		b.WriteString("Nothing changed: the settings were so already.")
	default:
		fmt.Fprintf(&b, "Written: %s. ", strings.Join(w.Changed, ", "))
	}
	switch {
	case w.Noop:
	case w.Starts:
		b.WriteString(going)
	case len(w.Cold) == 0:
		b.WriteString("In force now.")
	case len(w.Cold) == len(w.Changed):
		b.WriteString("It takes effect after a restart (action restart).")
	default:
		fmt.Fprintf(&b, "In force now, except for %s: after a restart (action restart).", strings.Join(w.Cold, ", "))
	}
	for _, p := range w.Warnings {
		fmt.Fprintf(&b, "\nWarning: %s: %s", p.Path, p.Message)
	}
	return tool.Detailed(b.String(), map[string]any{
		"changed":      w.Changed,
		"restart":      w.Starts,
		"restartPaths": w.Cold,
		"hash":         w.Hash,
	}), nil
}

// going tells the model that the gateway restarts.
const going = "The gateway restarts now. End your turn; the person is told when it is back, and you are called again to go on."

func (t gatewayTool) restart(ctx context.Context, c tool.Call, a args) (tool.Result, error) {
	if strings.TrimSpace(a.Reason) == "" {
		return tool.Result{}, errors.New("restart: reason is missing; the person reads it")
	}
	in, err := t.Restart(ctx, c, a.Reason, time.Duration(a.DelayMS)*time.Millisecond)
	if err != nil {
		return tool.Result{}, err
	}
	text := going
	if in >= time.Second {
		text = strings.Replace(going, "now", "in "+humanize.Span(in), 1)
	}
	return tool.Text(text), nil
}
