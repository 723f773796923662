package cli

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// nodeCall holds the flags of a command that calls a node.
type nodeCall struct {
	node    string
	timeout time.Duration
	key     string
}

// flags adds the flags to a command.
func (q *nodeCall) flags(cmd *cobra.Command, timeout time.Duration) {
	cmd.Flags().StringVar(&q.node, "node", "",
		"name or id of the `NODE`, or a prefix of its id (default: the only one that can do it)")
	cmd.Flags().DurationVar(&q.timeout, "invoke-timeout", timeout, "wait for the answer no longer than `TIME`")
}

// invoke calls a command of the node, and f with its answer.
func (c *commands) invoke(ctx context.Context, q nodeCall, command string, params any,
	f func(n wire.Node, payload json.RawMessage) error) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.withLink(ctx, func(l *link) error {
		n, err := findNode(ctx, l, q.node, command)
		if err != nil {
			return err
		}
		if q.key == "" {
			q.key = rand.Text()
		}
		var out wire.NodeInvoked
		p := wire.NodeInvoke{Node: n.ID, Command: command, Params: raw, Timeout: q.timeout.Milliseconds(), Key: q.key}
		if err := l.Call(ctx, wire.MethodNodeInvoke, p, &out); err != nil {
			return err
		}
		return f(n, out.Payload)
	})
}

// findNode returns the node with a name, or, without one, the only one that is connected and
// has a command; "": any.
func findNode(ctx context.Context, l *link, name, command string) (wire.Node, error) {
	var list wire.Nodes
	if err := l.Call(ctx, wire.MethodNodeList, wire.None{}, &list); err != nil {
		return wire.Node{}, err
	}
	all := make([]node.Node, len(list.Nodes))
	for i, n := range list.Nodes {
		all[i] = node.Node{ID: n.ID, Name: n.DisplayName, Connected: n.Connected, Approved: n.Commands}
	}
	what := "is paired"
	if command != "" {
		what = "that is connected has the command " + command
	}
	found, err := node.Find(all, name, func(n *node.Node) bool { return command == "" || n.Connected && n.Has(command) },
		what)
	if err != nil {
		return wire.Node{}, err
	}
	for _, n := range list.Nodes {
		if n.ID == found.ID {
			return n, nil
		}
	}
	return wire.Node{}, errors.New("unknown node") // cannot happen
}

func (c *commands) nodesDescribe() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "describe [NODE]", Short: "Show a node with its commands", Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withLink(cmd.Context(), func(l *link) error {
				n, err := findNode(cmd.Context(), l, strings.Join(args, ""), "")
				if err != nil {
					return err
				}
				return queryOn(cmd.Context(), l, wire.MethodNodeDescribe, wire.NodeID{ID: n.ID}, func(d wire.NodeDescription) {
					c.printRow("node", ansi.Line(d.DisplayName)+" ("+d.ID+")")
					c.printRow("platform", ansi.Line(strings.TrimSpace(d.Platform+" "+d.Family)))
					c.printRow("version", ansi.Line(d.Version))
					c.printRow("connected", yesNo(d.Connected))
					c.printRow("state", d.Approval)
					c.printRow("commands", commandNames(d.Commands))
					if d.Pending != "" {
						c.printRow("request", d.Pending)
					}
				})
			})
		}})
}

func (c *commands) nodesPending() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "pending", Short: "List the nodes whose commands wait for approval",
		Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
			return query(cmd.Context(), c, wire.MethodNodePairList, wire.None{}, func(p wire.NodePairs) {
				if len(p.Pending) == 0 {
					fmt.Fprintln(c.stdout, "no node is pending approval")
					return
				}
				c.printNodes(nil, p.Pending)
			})
		}})
}

func (c *commands) nodesRename() *cobra.Command {
	return &cobra.Command{Use: "rename NODE NAME", Short: "Rename a node", Args: exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withLink(cmd.Context(), func(l *link) error {
				n, err := findNode(cmd.Context(), l, args[0], "")
				if err != nil {
					return err
				}
				return queryOn(cmd.Context(), l, wire.MethodNodeRename, wire.NodeRename{ID: n.ID, Name: args[1]},
					func(r wire.NodeRename) {
						fmt.Fprintf(c.stdout, "renamed %s to %s\n", shortID(r.ID), r.Name)
					})
			})
		}}
}

func (c *commands) nodesInvoke() *cobra.Command {
	var q nodeCall
	var command, params string
	cmd := &cobra.Command{
		Use: "invoke --command COMMAND", Short: "Call a command of a node and print its answer", Args: exactly(0),
		Example: "  chela nodes invoke --node phone --command device.status",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !json.Valid([]byte(params)) {
				return usage(withHint(errors.New("--params: not JSON"), `--params '{"limit": 1}'`))
			}
			return c.invoke(cmd.Context(), q, command, json.RawMessage(params),
				func(_ wire.Node, payload json.RawMessage) error {
					if len(payload) == 0 {
						payload = json.RawMessage("null")
					}
					return c.printJSON(payload)
				})
		},
	}
	q.flags(cmd, node.DefaultTimeout)
	cmd.Flags().StringVar(&command, "command", "", "name of the `COMMAND`, such as device.status")
	cmd.Flags().StringVar(&params, "params", "{}", "parameters as `JSON`")
	cmd.Flags().StringVar(&q.key, "idempotency-key", "", "the command runs once for each `KEY`")
	_ = cmd.MarkFlagRequired("command") // fails only for an unknown flag
	return cmd
}

func (c *commands) nodesRun() *cobra.Command {
	var q nodeCall
	var dir string
	cmd := &cobra.Command{
		Use:     "run COMMAND [ARGUMENT]...",
		Short:   "Run a program on a node, under the rules of the node",
		Args:    between(1, 100),
		Example: "  chela nodes run --node laptop -- uname -a",
		RunE: func(cmd *cobra.Command, args []string) error {
			p := wire.NodeRunParams{Command: args, Dir: dir, Timeout: q.timeout.Milliseconds()}
			if len(args) == 1 && strings.ContainsAny(args[0], " |;&<>$") {
				p.Command, p.RawCommand = []string{"/bin/sh", "-lc", args[0]}, args[0]
			}
			q.timeout += 15 * time.Second // for the answer
			return c.invoke(cmd.Context(), q, wire.NodeRun, p, func(n wire.Node, payload json.RawMessage) error {
				var r wire.NodeRunResult
				if err := json.Unmarshal(payload, &r); err != nil {
					return err
				}
				fmt.Fprint(c.stdout, r.Stdout)
				fmt.Fprint(c.stderr, r.Stderr)
				switch {
				case r.TimedOut:
					return errors.New("the command took too long and was ended")
				case r.ExitCode != nil && *r.ExitCode != 0:
					return fmt.Errorf("exit code %d", *r.ExitCode)
				case !r.Success:
					return fmt.Errorf("the command failed: %s", r.Error)
				}
				return nil
			})
		},
	}
	q.flags(cmd, node.DefaultTimeout)
	cmd.Flags().StringVar(&dir, "cwd", "", "start in the `FOLDER` of the node")
	return cmd
}

func (c *commands) nodesNotify() *cobra.Command {
	var q nodeCall
	p := map[string]*string{
		"title":    new(string),
		"body":     new(string),
		"sound":    new(string),
		"priority": new(string),
		"delivery": new(string),
	}
	cmd := &cobra.Command{Use: "notify", Short: "Show a notification on a node", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if *p["title"]+*p["body"] == "" {
				return usage(withHint(errors.New("a notification has --title or --body"),
					`nodes notify --title Chela --body "Dinner is ready"`))
			}
			params := map[string]string{}
			for name, value := range p {
				if *value != "" {
					params[name] = *value
				}
			}
			return c.invoke(cmd.Context(), q, wire.NodeNotify, params, func(n wire.Node, _ json.RawMessage) error {
				fmt.Fprintln(c.stdout, "shown on "+ansi.Line(n.DisplayName))
				return nil
			})
		}}
	q.flags(cmd, node.DefaultTimeout)
	for name, doc := range map[string]string{
		"title":    "`TEXT` of the first line",
		"body":     "`TEXT` below it",
		"sound":    "`NAME` of a sound",
		"priority": "`LEVEL`: passive, active or timeSensitive",
		"delivery": "`WAY`: system, overlay or auto",
	} {
		cmd.Flags().StringVar(p[name], name, "", doc)
	}
	return cmd
}

func (c *commands) nodesLocation() *cobra.Command {
	var q nodeCall
	var accuracy string
	var age time.Duration
	get := &cobra.Command{Use: "get", Short: "Print where a node is", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			params := map[string]any{}
			if accuracy != "" {
				params["desiredAccuracy"] = accuracy
			}
			if age > 0 {
				params["maxAgeMs"] = age.Milliseconds()
			}
			return c.invoke(cmd.Context(), q, "location.get", params,
				func(_ wire.Node, payload json.RawMessage) error { return c.printJSON(payload) })
		}}
	q.flags(get, node.DefaultTimeout)
	get.Flags().StringVar(&accuracy, "accuracy", "", "`ACCURACY`: coarse, balanced or precise")
	get.Flags().DurationVar(&age, "max-age", 0, "accept a position that is not older than `TIME`")
	return group("location", "Ask a node where it is", get)
}

func (c *commands) nodesCamera() *cobra.Command {
	var q nodeCall
	list := &cobra.Command{Use: "list", Short: "List the cameras of a node", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.invoke(cmd.Context(), q, "camera.list", struct{}{},
				func(_ wire.Node, payload json.RawMessage) error { return c.printJSON(payload) })
		}}
	q.flags(list, node.DefaultTimeout)
	return group("camera", "Use the cameras of a node", list,
		c.capture("snap", "Take a picture", "camera.snap",
			map[string]any{"facing": "front", "maxWidth": node.PictureWidth, "quality": node.PictureQuality, "format": "jpg"}),
		c.capture("clip", "Take a clip", "camera.clip",
			map[string]any{"facing": "front", "durationMs": node.ClipMS, "includeAudio": true, "format": "mp4"}))
}

func (c *commands) nodesScreen() *cobra.Command {
	return group("screen", "Use the screen of a node",
		c.capture("record", "Record the screen", "screen.record", map[string]any{
			"screenIndex":  0,
			"durationMs":   node.ScreenMS,
			"fps":          node.ScreenRate,
			"includeAudio": true,
			"format":       "mp4",
		}),
		c.capture("snapshot", "Take a picture of the screen", "screen.snapshot", map[string]any{"screenIndex": 0}))
}

// capture returns a command that writes a picture or a recording of a node to a file. Its
// flags are those of the parameters.
func (c *commands) capture(use, short, command string, params map[string]any) *cobra.Command {
	var q nodeCall
	var out, facing string
	var duration time.Duration
	var screen int
	cmd := &cobra.Command{Use: use, Short: short + " and write it to a file", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := cmd.Flags()
			if f.Changed("facing") {
				params["facing"] = facing
			}
			if f.Changed("screen") {
				params["screenIndex"] = screen
			}
			if f.Changed("duration") {
				params["durationMs"] = duration.Milliseconds()
			}
			q.timeout += duration
			return c.invoke(cmd.Context(), q, command, params,
				func(_ wire.Node, payload json.RawMessage) error { return c.writeCapture(out, command, payload) })
		}}
	q.flags(cmd, node.DefaultTimeout)
	cmd.Flags().StringVar(&out, "out", "", "write to `FILE` (default: one in this folder)")
	if _, ok := params["facing"]; ok {
		cmd.Flags().StringVar(&facing, "facing", "front", "`SIDE` of the camera: front or back")
	}
	if _, ok := params["screenIndex"]; ok {
		cmd.Flags().IntVar(&screen, "screen", 0, "`NUMBER` of the screen")
	}
	if ms, ok := params["durationMs"].(int); ok {
		cmd.Flags().DurationVar(&duration, "duration", time.Duration(ms)*time.Millisecond, "record for `TIME`")
	}
	return cmd
}

// writeCapture writes the content of an answer to a new file; "": one in this folder.
func (c *commands) writeCapture(file, command string, payload json.RawMessage) error {
	var p struct{ Format, Base64 string }
	if err := json.Unmarshal(payload, &p); err != nil || p.Base64 == "" {
		return fmt.Errorf("the answer to %s has no content", command)
	}
	data, err := base64.StdEncoding.DecodeString(p.Base64)
	if err != nil {
		return fmt.Errorf("the answer to %s: %w", command, err)
	}
	if file == "" {
		end := filepath.Base("x." + p.Format)[1:]
		file = strings.ReplaceAll(command, ".", "-") + time.Now().Format("-20060102-150405") + strings.ToLower(end)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	fmt.Fprintln(c.stdout, shell.Escape(file))
	return nil
}
