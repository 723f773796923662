// Package nodes implements the tool nodes: the assistant uses cameras, screens, locations
// and notifications of paired devices, and other commands that they offer.
//
// Shell commands are left to exec, whose rules apply to them. Devices and their commands are
// approved by a person, never by the model.
package nodes

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/wire"
)

// Options configure the tool. All fields are required.
type Options struct {
	Nodes node.Caller
	Files *media.Files // for pictures and recordings
}

//go:embed nodes.md
var description string

// New returns the tool.
func New(o Options) tool.Tool { return nodesTool{o, untrusted.New()} }

type nodesTool struct {
	Options
	label untrusted.Labeler
}

var _ tool.Planner = nodesTool{}

func (t nodesTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "nodes",
		Label:       "Use a device",
		Description: strings.TrimSpace(description),
		Effect:      tool.Acts,
		OwnerOnly:   true,
		Groups:      []string{"group:nodes"}, Sandboxed: tool.Outside, InRuns: true,
		Aliases: map[string]string{
			"nodeId":    "node",
			"message":   "body",
			"text":      "body",
			"command":   "invokeCommand",
			"params":    "invokeParamsJson",
			"timeoutMs": "invokeTimeoutMs",
			"key":       "notificationKey",
			"replyText": "notificationReplyText",
		},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"action":{"type":"string","enum":["` + strings.Join(names(), `","`) + `"]},
			"node":{"type":"string","description":"name or id"},
			"title":{"type":"string"},"body":{"type":"string"},"sound":{"type":"string"},
			"priority":{"type":"string","enum":["passive","active","timeSensitive"]},"delivery":{"type":"string","enum":["system","overlay","auto"]},
			"facing":{"type":"string","enum":["front","back","both"]},"deviceId":{"type":"string"},
			"maxWidth":{"type":"integer","minimum":1},"quality":{"type":"number","minimum":0,"maximum":1},"delayMs":{"type":"integer","minimum":0},
			"durationMs":{"type":"integer","minimum":1,"maximum":300000},"includeAudio":{"type":"boolean"},"fps":{"type":"number"},"screenIndex":{"type":"integer","minimum":0},
			"limit":{"type":"integer","minimum":1,"maximum":20},
			"maxAgeMs":{"type":"integer","minimum":0},"desiredAccuracy":{"type":"string","enum":["coarse","balanced","precise"]},
			"notificationKey":{"type":"string"},"notificationAction":{"type":"string","enum":["open","dismiss","reply"]},"notificationReplyText":{"type":"string"},
			"bins":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":64},
			"invokeCommand":{"type":"string"},"invokeParamsJson":{"type":"string"},"invokeTimeoutMs":{"type":"integer","minimum":1}},
			"required":["action"],"additionalProperties":false}`),
	}
}

// args are the arguments of a call.
type args struct {
	Action string `json:"action"`
	Node   string `json:"node"`

	Title    string `json:"title"`
	Body     string `json:"body"`
	Sound    string `json:"sound"`
	Priority string `json:"priority"`
	Delivery string `json:"delivery"`

	Facing   string   `json:"facing"`
	Device   string   `json:"deviceId"`
	Width    int      `json:"maxWidth"`
	Quality  *float64 `json:"quality"`
	Delay    int      `json:"delayMs"`
	Duration int      `json:"durationMs"`
	Audio    *bool    `json:"includeAudio"`
	FPS      float64  `json:"fps"`
	Screen   int      `json:"screenIndex"`
	Limit    int      `json:"limit"`

	MaxAge   *int   `json:"maxAgeMs"`
	Accuracy string `json:"desiredAccuracy"`

	Key    string `json:"notificationKey"`
	Do     string `json:"notificationAction"`
	Answer string `json:"notificationReplyText"`

	Bins []string `json:"bins"`

	Command string `json:"invokeCommand"`
	Params  string `json:"invokeParamsJson"`
	Timeout int    `json:"invokeTimeoutMs"`
}

// Plan implements [tool.Planner]: some actions only read.
func (t nodesTool) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	a, err := tool.Decode[args](c.Args)
	if err != nil {
		return tool.Plan{}, err
	}
	act, err := find(a)
	if err != nil {
		return tool.Plan{}, err
	}
	if act.reads {
		return tool.Plan{Effect: tool.Reads}, nil
	}
	return tool.Plan{Effect: tool.Acts}, nil
}

// Run implements [tool.Tool].
func (t nodesTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := tool.Decode[args](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	act, err := find(a)
	if err != nil {
		return tool.Result{}, err
	}
	all, err := t.Nodes.Nodes(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	switch a.Action {
	case "status":
		return t.status(all), nil
	case "pending":
		return pending(all), nil
	case "approve", "reject":
		return tool.Result{}, errors.New("only a person approves or rejects devices and their commands: tell them to type `chela nodes approve` or `chela nodes reject`, or `chela devices list` for a device that is not paired yet")
	}
	n, err := t.node(all, a, act.command)
	if err != nil {
		return tool.Result{}, err
	}
	if a.Action == "describe" {
		return t.describe(n), nil
	}
	return t.call(ctx, c, n, a, act)
}

// node returns the node of a call of a command; "": any node.
func (t nodesTool) node(all []node.Node, a args, command string) (*node.Node, error) {
	what := "is paired"
	if command != "" {
		what = "that is connected may carry out " + command
	}
	n, err := node.Find(all, a.Node, func(n *node.Node) bool {
		return command == "" || n.Connected && t.Nodes.Allowed(n, command) == nil
	}, what)
	if err != nil || command == "" {
		return n, err
	}
	if err := t.Nodes.Allowed(n, command); err != nil {
		return nil, withHint(err)
	}
	if !n.Connected {
		return nil, chela.Errorf(chela.CodeUnavailable, "the node %s is not connected", n.Title())
	}
	return n, nil
}

// withHint returns an error whose text contains its hint: the model tells the person.
func withHint(err error) error {
	if h := chela.HintOf(err); h != "" {
		return fmt.Errorf("%w (the person can type: %s)", err, h)
	}
	return err
}

// call calls a command of a node and returns its answer as the result of the tool.
func (t nodesTool) call(ctx context.Context, c tool.Call, n *node.Node, a args, act action) (tool.Result, error) {
	var content []tool.Result
	for _, p := range act.params(a) {
		raw, err := json.Marshal(p)
		if err != nil {
			return tool.Result{}, err
		}
		if a.Action == "invoke" && a.Params != "" {
			raw = json.RawMessage(a.Params)
		}
		limit := node.DefaultTimeout + time.Duration(recordingTime(a, act))*time.Millisecond
		if a.Timeout > 0 {
			limit = time.Duration(a.Timeout) * time.Millisecond
		}
		payload, err := t.Nodes.Invoke(ctx, node.Request{
			Node:     n.ID,
			Command:  act.command,
			Params:   raw,
			Timeout:  limit,
			Session:  c.Session,
			Progress: c.Update,
		})
		if err != nil {
			return tool.Result{}, failure(n, err)
		}
		r, err := t.result(c, n, act, payload)
		if err != nil {
			return tool.Result{}, fmt.Errorf("node %s: %w", n.Title(), err)
		}
		content = append(content, r)
	}
	out := content[0]
	for _, r := range content[1:] {
		out.Content = append(out.Content, r.Content...)
	}
	return out, nil
}

// failure returns the error of a call for the model.
func failure(n *node.Node, err error) error {
	f, ok := errors.AsType[*node.Fault](err)
	switch {
	case !ok:
		return withHint(err)
	case f.Code == wire.NodeNotConnected:
		return chela.Errorf(chela.CodeUnavailable, "the node %s is not connected", n.Title())
	case f.Code == "NODE_BACKGROUND_UNAVAILABLE":
		return fmt.Errorf("node %s: %w; the person has to open the app on it", n.Title(), err)
	case strings.HasSuffix(f.Code, "_PERMISSION_REQUIRED"):
		return fmt.Errorf("node %s: %w; the person has to allow it in the settings of the device", n.Title(), err)
	}
	return fmt.Errorf("node %s: %w", n.Title(), err)
}

// maxText is the number of characters of an answer that the model gets.
const maxText = 20_000

// result returns the answer of a node as a result.
func (t nodesTool) result(c tool.Call, n *node.Node, act action, payload json.RawMessage) (tool.Result, error) {
	if act.media != nil {
		return t.media(c, n, act, payload)
	}
	text := string(payload)
	switch {
	case text == "" || text == "null":
		return tool.Text(act.command + ": done on " + n.Title()), nil
	case len(text) > maxText && strings.Contains(text[:min(len(text), 4096)], `"base64"`):
		return tool.Result{}, errors.New("the answer is a picture or a recording; use the action for it, not invoke")
	}
	text = humanize.Truncate(text, maxText)
	if act.foreign {
		text = t.label.Wrap("node", "From the device "+n.Title()+": "+untrusted.Data, text)
	}
	return tool.Text(text), nil
}

// status lists the nodes.
func (t nodesTool) status(all []node.Node) tool.Result {
	if len(all) == 0 {
		return tool.Text("There are no nodes. A person pairs one: on the device `chela node run --host HOST`, or OpenClaw's app; see docs/nodes.md.")
	}
	var b strings.Builder
	for i := range all {
		n := &all[i]
		state := "not connected"
		if n.Connected {
			state = "connected"
		}
		fmt.Fprintf(&b, "%s (%.12s, %s): %s; commands: %s\n", n.Title(), n.ID, platform(n), state, list(t.usable(n)))
	}
	return tool.Text(strings.TrimSuffix(b.String(), "\n"))
}

func platform(n *node.Node) string {
	if n.Platform == "" {
		return "unknown platform"
	}
	return n.Platform
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// usable returns the commands of a node that may be called.
func (t nodesTool) usable(n *node.Node) []string {
	return slices.DeleteFunc(slices.Clone(n.Declared), func(c string) bool { return t.Nodes.Allowed(n, c) != nil })
}

// describe says what a node can do, and why it may not do the rest.
func (t nodesTool) describe(n *node.Node) tool.Result {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, id %s, %s, version %s, ", n.Title(), n.ID, platform(n), n.Version)
	if n.Connected {
		b.WriteString("connected\n")
	} else {
		b.WriteString("not connected\n")
	}
	fmt.Fprintf(&b, "commands: %s", list(t.usable(n)))
	for _, c := range n.Declared {
		if err := t.Nodes.Allowed(n, c); err != nil {
			fmt.Fprintf(&b, "\nnot %s: %v", c, withHint(err))
		}
	}
	return tool.Text(b.String())
}

// pending lists the nodes whose commands wait for a person.
func pending(all []node.Node) tool.Result {
	var out []string
	for i := range all {
		if n := &all[i]; n.Request != "" {
			out = append(out, fmt.Sprintf("%s wants to offer %s; a person decides: chela nodes approve %s", n.Title(),
				list(n.Declared), n.Request))
		}
	}
	if out == nil {
		return tool.Text("No node waits for approval. Devices that are not paired yet: chela devices list")
	}
	return tool.Text(strings.Join(out, "\n"))
}
