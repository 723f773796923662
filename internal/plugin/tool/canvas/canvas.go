// Package canvas implements the tool canvas: the assistant shows pages that it wrote, and
// surfaces of A2UI, on the screen of a device or on the gateway's own web page.
package canvas

import (
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/canvas"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/wire"
)

// Options configure the tool. All fields are required, except Nodes.
type Options struct {
	Host  canvas.Host
	Nodes node.Caller // nil: there are none
	Files *media.Files
	Paths pathpolicy.Rule // files that messages may be read from
}

//go:embed canvas.md
var description string

// New returns the tool.
func New(o Options) tool.Tool {
	return o.Paths.Guard(canvasTool{o, untrusted.New()}, pathpolicy.Reads, files)
}

type canvasTool struct {
	Options
	label untrusted.Labeler
}

// web is the name of the gateway's own page among the nodes.
const web = "web"

// actions are the actions, with their command of a node.
var actions = map[string]string{
	"present":    "canvas.present",
	"hide":       "canvas.hide",
	"navigate":   "canvas.navigate",
	"eval":       "canvas.eval",
	"snapshot":   "canvas.snapshot",
	"a2ui_push":  canvas.PushLines,
	"a2ui_reset": "canvas.a2ui.reset",
}

func (t canvasTool) Spec() tool.Spec {
	return tool.Spec{
		Name: "canvas", Label: "Show", Description: strings.TrimSpace(description), Effect: tool.Acts, OwnerOnly: true,
		Groups: []string{"group:ui", tool.Extra}, Sandboxed: tool.Outside,
		Aliases: map[string]string{
			"path":     "target",
			"file":     "target",
			"js":       "javaScript",
			"script":   "javaScript",
			"lines":    "jsonl",
			"messages": "jsonl",
			"nodeId":   "node",
		},
		Title: title,
		Schema: json.RawMessage(`{"type":"object","properties":{
			"action":{"type":"string","enum":["present","hide","navigate","eval","snapshot","a2ui_push","a2ui_reset"]},
			"node":{"type":"string","description":"name or id of a device, or web"},
			"target":{"type":"string","description":"of present: file in canvas/, or an address"},
			"url":{"type":"string"},
			"x":{"type":"number"},"y":{"type":"number"},"width":{"type":"number"},"height":{"type":"number"},
			"javaScript":{"type":"string"},
			"jsonl":{"type":"string"},"jsonlPath":{"type":"string"},
			"outputFormat":{"type":"string","enum":["png","jpg","jpeg"]},"maxWidth":{"type":"integer","minimum":1},"quality":{"type":"number","minimum":0,"maximum":1},
			"timeoutMs":{"type":"integer","minimum":1}},
			"required":["action"],"additionalProperties":false}`),
	}
}

type args struct {
	Action     string   `json:"action"`
	Node       string   `json:"node"`
	Target     string   `json:"target"`
	URL        string   `json:"url"`
	X          *float64 `json:"x"`
	Y          *float64 `json:"y"`
	Width      *float64 `json:"width"`
	Height     *float64 `json:"height"`
	JavaScript string   `json:"javaScript"`
	Lines      string   `json:"jsonl"`
	Path       string   `json:"jsonlPath"`
	Format     string   `json:"outputFormat"`
	MaxWidth   int      `json:"maxWidth"`
	Quality    *float64 `json:"quality"`
	Timeout    int      `json:"timeoutMs"`
}

// target returns what a call shows.
func (a args) target() string {
	if a.Target != "" {
		return a.Target
	}
	return a.URL
}

// files returns the files that a call reads.
func files(raw json.RawMessage) ([]string, error) {
	a, err := tool.Decode[args](raw)
	if err != nil || a.Path == "" || a.Lines != "" {
		return nil, err
	}
	return []string{a.Path}, nil
}

// title returns what a call does, for people.
func title(raw json.RawMessage) string {
	var a args
	if json.Unmarshal(raw, &a) != nil {
		return ""
	}
	switch a.Action {
	case "present", "navigate":
		if t := a.target(); t != "" {
			return t
		}
		return "the canvas"
	case "hide":
		return "hide the canvas"
	case "a2ui_push":
		return "surfaces"
	case "a2ui_reset":
		return "reset the canvas"
	}
	return a.Action + " of the canvas"
}

// Run implements [tool.Tool].
func (t canvasTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := tool.Decode[args](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	if _, ok := actions[a.Action]; !ok {
		return tool.Result{}, fmt.Errorf("there is no action %q", a.Action)
	}
	var lines []canvas.Message
	if a.Action == "a2ui_push" {
		if a.Lines == "" && a.Path != "" {
			b, err := t.Paths.Read(c, a.Path, canvas.MaxLines)
			if err != nil {
				return tool.Result{}, err
			}
			a.Lines = string(b)
		}
		if lines, err = canvas.Parse(a.Lines); err != nil {
			return tool.Result{}, err
		}
	}
	if t := a.target(); a.Action == "present" || a.Action == "navigate" {
		if _, _, ok := canvas.PageOf(t); !ok {
			return tool.Result{}, fmt.Errorf("target %q is neither a file in %s/ nor an http or https address", t, canvas.Folder)
		}
		if a.Action == "navigate" && t == "" {
			return tool.Result{}, errors.New("url is missing")
		}
	}
	n, err := t.node(ctx, a)
	if err != nil {
		return tool.Result{}, err
	}
	if n == nil {
		return t.onWeb(ctx, c, a, lines)
	}
	return t.onNode(ctx, c, a, n, lines)
}

// node returns the device of a call; nil: the gateway's own page.
func (t canvasTool) node(ctx context.Context, a args) (*node.Node, error) {
	if strings.EqualFold(a.Node, web) {
		return nil, nil
	}
	if t.Nodes == nil {
		if a.Node != "" {
			return nil, fmt.Errorf("there is no node %q; node web is the gateway's own page", a.Node)
		}
		return nil, nil
	}
	all, err := t.Nodes.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	command := func(n *node.Node) string { return t.command(n, a.Action) }
	fits := func(n *node.Node) bool { return n.Connected && t.Nodes.Allowed(n, command(n)) == nil }
	if a.Node == "" && !slices.ContainsFunc(all, func(n node.Node) bool { return fits(&n) }) {
		return nil, nil
	}
	n, err := node.Find(all, a.Node, fits, "shows the canvas")
	if err != nil {
		return nil, fmt.Errorf("%w; node web is the gateway's own page", err)
	}
	if err := t.Nodes.Allowed(n, command(n)); err != nil {
		if !slices.ContainsFunc(n.Declared, func(c string) bool { return strings.HasPrefix(c, node.Canvas) }) {
			return nil, fmt.Errorf("the node %s has no canvas; node web is the gateway's own page", n.Title())
		}
		if h := chela.HintOf(err); h != "" {
			return nil, fmt.Errorf("%w (the person can type: %s)", err, h)
		}
		return nil, err
	}
	if !n.Connected {
		return nil, chela.Errorf(chela.CodeUnavailable, "the node %s is not connected", n.Title())
	}
	return n, nil
}

// command returns the command of a node for an action.
func (t canvasTool) command(n *node.Node, action string) string {
	command := actions[action]
	if command == canvas.PushLines && !slices.Contains(n.Declared, canvas.PushLines) {
		return canvas.PushMessages
	}
	return command
}

// onWeb carries out an action on the gateway's own page.
func (t canvasTool) onWeb(ctx context.Context, c tool.Call, a args, lines []canvas.Message) (tool.Result, error) {
	var said string
	switch a.Action {
	case "present", "navigate":
		page, external, _ := canvas.PageOf(a.target())
		if external {
			return tool.Result{},
				errors.New("the gateway's own page shows files of canvas/ only, no other addresses; give the person the link instead")
		}
		v, err := t.Host.Show(ctx, c.Session, page)
		if err != nil {
			return tool.Result{}, err
		}
		if said = "Shown: the surfaces."; v.Kind == canvas.Page {
			said = "Shown: " + v.Page + "."
		}
	case "a2ui_push":
		p, err := t.Host.Push(c.Session, lines)
		if err != nil {
			return tool.Result{}, err
		}
		said = fmt.Sprintf("Pushed %s. Shown: %s.", humanize.Many(p.Messages, "message"), surfaces(p.Surfaces))
		if len(p.Missing) > 0 {
			said += "\nComponents that others name, but no message defines: " +
				humanize.Truncate(strings.Join(p.Missing, ", "), 1000)
		}
	case "hide":
		t.Host.Hide(c.Session)
		return tool.Text("Hidden."), nil
	case "a2ui_reset":
		t.Host.Reset(c.Session)
		return tool.Text("The surfaces are gone."), nil
	default:
		return tool.Result{},
			fmt.Errorf("%s needs a device with a canvas, and none is connected. In a browser you can open the address that present gives", a.Action)
	}
	if problems := t.Host.Problems(c.Session); len(problems) > 0 {
		said += "\n" + t.label.Wrap("canvas", "A screen reported problems before this: "+untrusted.Data,
			strings.Join(problems, "\n"))
	}
	link, until := t.Host.Link(c.Session)
	if link == "" {
		return tool.Detailed(said+" The gateway has no port, so nobody can see it yet.", map[string]any{"shown": true}), nil
	}
	said += "\nThe web page of the gateway shows it in this conversation. This address also shows it, without signing in, until it was not used for an hour; give it to nobody but the person: " + link
	return tool.Detailed(said, map[string]any{"shown": true, "expiresAtMs": until.UnixMilli()}), nil
}

func surfaces(list []string) string {
	if len(list) == 0 {
		return "nothing yet (createSurface or beginRendering begins a surface)"
	}
	return strings.Join(list, ", ")
}

// onNode carries out an action on a device.
func (t canvasTool) onNode(ctx context.Context, c tool.Call, a args, n *node.Node,
	lines []canvas.Message) (tool.Result, error) {
	command := t.command(n, a.Action)
	params, err := json.Marshal(a.params(command, lines))
	if err != nil {
		return tool.Result{}, err
	}
	payload, err := t.Nodes.Invoke(ctx, node.Request{
		Node:    n.ID,
		Command: command,
		Params:  params,
		Timeout: time.Duration(a.Timeout) * time.Millisecond,
		Session: c.Session,
	})
	if err != nil {
		return tool.Result{}, failure(n, err)
	}
	switch a.Action {
	case "eval":
		var r struct {
			Result string `json:"result"`
		}
		if json.Unmarshal(payload, &r) != nil || r.Result == "" {
			return tool.Text("Done; there was no result."), nil
		}
		return tool.Text(t.label.Wrap("canvas", "Result of the script on "+n.Title()+": "+untrusted.Data,
			humanize.Truncate(r.Result, 20_000))), nil
	case "snapshot":
		r, err := t.picture(n, payload)
		if err != nil {
			return tool.Result{}, fmt.Errorf("node %s: %w", n.Title(), err)
		}
		return r, nil
	}
	return tool.Text(a.Action + ": done on " + n.Title()), nil
}

// params returns the parameters of a command of a node.
func (a args) params(command string, lines []canvas.Message) map[string]any {
	out := map[string]any{}
	switch a.Action {
	case "present":
		if t := a.target(); t != "" {
			out["url"] = t
		}
		place := map[string]float64{}
		for name, v := range map[string]*float64{"x": a.X, "y": a.Y, "width": a.Width, "height": a.Height} {
			if v != nil {
				place[name] = *v
			}
		}
		if len(place) > 0 {
			out["placement"] = place
		}
	case "navigate":
		if out["url"] = a.URL; a.URL == "" {
			out["url"] = a.Target
		}
	case "eval":
		out["javaScript"] = a.JavaScript
	case "snapshot":
		out["format"] = "png"
		if a.Format == "jpg" || a.Format == "jpeg" {
			out["format"] = "jpeg"
		}
		if a.MaxWidth > 0 {
			out["maxWidth"] = a.MaxWidth
		}
		if a.Quality != nil {
			out["quality"] = *a.Quality
		}
	case "a2ui_push":
		var text []string
		var messages []json.RawMessage
		for _, m := range lines {
			text, messages = append(text, string(m.Raw)), append(messages, m.Raw)
		}
		if out["jsonl"] = strings.Join(text, "\n"); command == canvas.PushMessages {
			out["messages"] = messages
		}
	}
	return out
}

// failure returns the error of a call for the model.
func failure(n *node.Node, err error) error {
	f, ok := errors.AsType[*node.Fault](err)
	switch {
	case !ok:
		return err
	case f.Code == wire.NodeNotConnected:
		return chela.Errorf(chela.CodeUnavailable, "the node %s is not connected", n.Title())
	case f.Code == "CANVAS_DISABLED":
		return fmt.Errorf("node %s: %w; the person has to allow the canvas in the settings of the app", n.Title(), err)
	case strings.HasSuffix(f.Code, "BACKGROUND_UNAVAILABLE"):
		return fmt.Errorf("node %s: %w; the person has to open the app on it", n.Title(), err)
	}
	return fmt.Errorf("node %s: %w", n.Title(), err)
}

// picture returns the picture of a snapshot.
func (t canvasTool) picture(n *node.Node, payload json.RawMessage) (tool.Result, error) {
	var p struct {
		Base64 string `json:"base64"`
	}
	if err := json.Unmarshal(payload, &p); err != nil || p.Base64 == "" {
		return tool.Result{}, errors.New("the answer to canvas.snapshot has no picture")
	}
	data, err := base64.StdEncoding.DecodeString(p.Base64)
	switch {
	case err != nil:
		return tool.Result{}, fmt.Errorf("the answer to canvas.snapshot: %w", err)
	case len(data) > media.MaxFile:
		return tool.Result{}, fmt.Errorf("the picture has %s; at most %s are kept", humanize.Bytes(int64(len(data))),
			humanize.Bytes(media.MaxFile))
	}
	if _, err := media.Probe(data); err != nil {
		return tool.Result{}, fmt.Errorf("the answer to canvas.snapshot is no picture: %w", err)
	}
	m, err := t.Files.Store(chela.Media{Name: "canvas", Data: data})
	if err != nil {
		return tool.Result{}, err
	}
	r := tool.Detailed("canvas of "+n.Title()+": "+media.Scheme+m.Ref, map[string]any{"file": media.Scheme + m.Ref})
	r.Content = append(r.Content, media.Part(m))
	return r, nil
}
