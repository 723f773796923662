package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/canvas"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// nodesCanvas returns the commands that show something on the screen of a node.
func (c *commands) nodesCanvas() *cobra.Command {
	return group("canvas", "Show pages on the screen of a node",
		c.canvasPresent(), c.canvasNavigate(), c.canvasEval(), c.canvasSnapshot(),
		c.canvasCommand("hide", "Hide the canvas", "canvas.hide"),
		group("a2ui", "Show surfaces of A2UI on the screen of a node", c.canvasPush(),
			c.canvasCommand("reset", "Remove the surfaces", "canvas.a2ui.reset")))
}

// shown says that a command was carried out.
func (c *commands) shown(what string) func(wire.Node, json.RawMessage) error {
	return func(n wire.Node, _ json.RawMessage) error {
		fmt.Fprintf(c.stdout, "%s: done on %s\n", what, ansi.Line(n.DisplayName))
		return nil
	}
}

// canvasCommand returns a command without parameters.
func (c *commands) canvasCommand(use, short, command string) *cobra.Command {
	var q nodeCall
	cmd := &cobra.Command{Use: use, Short: short, Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		return c.invoke(cmd.Context(), q, command, struct{}{}, c.shown(use))
	}}
	q.flags(cmd, node.DefaultTimeout)
	return cmd
}

// checkTarget returns why a target cannot be shown.
func checkTarget(target string) error {
	if _, _, ok := canvas.PageOf(target); !ok {
		return usage(fmt.Errorf("%q is neither a file in the folder %s of the workspace nor an http or https address", target,
			canvas.Folder))
	}
	return nil
}

func (c *commands) canvasPresent() *cobra.Command {
	var q nodeCall
	var target string
	place := map[string]*float64{"x": new(float64), "y": new(float64), "width": new(float64), "height": new(float64)}
	cmd := &cobra.Command{
		Use: "present", Short: "Show the canvas", Args: exactly(0),
		Example: "  chela nodes canvas present --node phone --target report.html",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkTarget(target); err != nil {
				return err
			}
			params, at := map[string]any{}, map[string]float64{}
			if target != "" {
				params["url"] = target
			}
			for name, v := range place {
				if cmd.Flags().Changed(name) {
					at[name] = *v
				}
			}
			if len(at) > 0 {
				params["placement"] = at
			}
			return c.invoke(cmd.Context(), q, "canvas.present", params, c.shown("present"))
		},
	}
	q.flags(cmd, node.DefaultTimeout)
	cmd.Flags().StringVar(&target, "target", "", "`FILE` in the folder canvas of the workspace, or an address")
	for name, doc := range map[string]string{
		"x":      "from the left",
		"y":      "from the top",
		"width":  "width",
		"height": "height",
	} {
		cmd.Flags().Float64Var(place[name], name, 0, "`PIXELS`: "+doc)
	}
	return cmd
}

func (c *commands) canvasNavigate() *cobra.Command {
	var q nodeCall
	cmd := &cobra.Command{Use: "navigate URL", Short: "Go to a page of the workspace, or to an address", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkTarget(args[0]); err != nil {
				return err
			}
			return c.invoke(cmd.Context(), q, "canvas.navigate", map[string]string{"url": args[0]}, c.shown("navigate"))
		}}
	q.flags(cmd, node.DefaultTimeout)
	return cmd
}

func (c *commands) canvasEval() *cobra.Command {
	var q nodeCall
	var js string
	cmd := &cobra.Command{
		Use: "eval [SCRIPT]", Short: "Run a script in the page, and print its result", Args: between(0, 1),
		Example: "  chela nodes canvas eval 'document.title'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if js += strings.Join(args, ""); js == "" {
				return usage(withHint(errors.New("a script is missing"), "nodes canvas eval 'document.title'"))
			}
			return c.invoke(cmd.Context(), q, "canvas.eval", map[string]string{"javaScript": js},
				func(n wire.Node, payload json.RawMessage) error {
					var r struct {
						Result *string `json:"result"`
					}
					if json.Unmarshal(payload, &r) != nil || r.Result == nil {
						return c.shown("eval")(n, nil)
					}
					fmt.Fprintln(c.stdout, ansi.Line(*r.Result))
					return nil
				})
		},
	}
	q.flags(cmd, node.DefaultTimeout)
	cmd.Flags().StringVar(&js, "js", "", "`SCRIPT` to run, instead of the argument")
	return cmd
}

func (c *commands) canvasSnapshot() *cobra.Command {
	var q nodeCall
	var out, format string
	var width int
	var quality float64
	cmd := &cobra.Command{Use: "snapshot", Short: "Take a picture of the canvas and write it to a file", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			params := map[string]any{"format": "jpeg"}
			switch format {
			case "png":
				params["format"] = "png"
			case "jpg", "jpeg":
			default:
				return usage(fmt.Errorf("--format: %q is not one of png, jpg, jpeg", format))
			}
			if width > 0 {
				params["maxWidth"] = width
			}
			if cmd.Flags().Changed("quality") {
				if quality < 0 || quality > 1 {
					return usage(errors.New("--quality: a number from 0 to 1 is needed"))
				}
				params["quality"] = quality
			}
			return c.invoke(cmd.Context(), q, "canvas.snapshot", params, func(_ wire.Node, payload json.RawMessage) error {
				return c.writeCapture(out, "canvas.snapshot", payload)
			})
		}}
	q.flags(cmd, node.DefaultTimeout)
	cmd.Flags().StringVar(&out, "out", "", "write to `FILE` (default: one in this folder)")
	cmd.Flags().StringVar(&format, "format", "jpg", "`FORMAT`: png, jpg or jpeg")
	cmd.Flags().IntVar(&width, "max-width", 0, "scale down to `PIXELS`")
	cmd.Flags().Float64Var(&quality, "quality", 0, "`QUALITY` of a JPEG, from 0 to 1")
	return cmd
}

func (c *commands) canvasPush() *cobra.Command {
	var q nodeCall
	var file, text string
	cmd := &cobra.Command{
		Use: "push", Short: "Show A2UI messages, one JSON object a line", Args: exactly(0),
		Example: "  chela nodes canvas a2ui push --jsonl surface.jsonl\n  chela nodes canvas a2ui push --text 'Dinner is ready'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (file == "") == !cmd.Flags().Changed("text") {
				return usage(errors.New("one of --jsonl and --text is needed"))
			}
			lines := canvas.Text(text)
			if file != "" {
				b, err := c.readLines(file)
				if err != nil {
					return err
				}
				lines = string(b)
			}
			messages, err := canvas.Parse(lines)
			if err != nil {
				return err
			}
			return c.push(cmd.Context(), q, messages)
		},
	}
	q.flags(cmd, node.DefaultTimeout)
	cmd.Flags().StringVar(&file, "jsonl", "", "read the messages from `FILE`; -: the standard input")
	cmd.Flags().StringVar(&text, "text", "", "show a `TEXT`")
	return cmd
}

// readLines reads a file of messages.
func (c *commands) readLines(file string) ([]byte, error) {
	in := c.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, canvas.MaxLines+1))
}

// push shows messages on a node. Older apps have only one of the two commands.
func (c *commands) push(ctx context.Context, q nodeCall, messages []canvas.Message) error {
	p := map[string]any{}
	list, text := []json.RawMessage{}, []string{}
	for _, m := range messages {
		list, text = append(list, m.Raw), append(text, string(m.Raw))
	}
	p["jsonl"], p["messages"] = strings.Join(text, "\n"), list
	command := canvas.PushLines
	err := c.withLink(ctx, func(l *link) error {
		n, err := findNode(ctx, l, q.node, "")
		if err == nil && !slices.Contains(n.Commands, command) && slices.Contains(n.Commands, canvas.PushMessages) {
			command = canvas.PushMessages
		}
		return nil // the call itself says what is wrong
	})
	if err != nil {
		return err
	}
	return c.invoke(ctx, q, command, p, c.shown("a2ui push"))
}
