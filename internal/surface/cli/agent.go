package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/attach"
	"github.com/chela-ai/chela/internal/surface/tui/repl"
	"github.com/chela-ai/chela/wire"
)

// agentFlags are the flags of `chela agent`.
type agentFlags struct {
	message string
	images  []string
	session sessionFlags
	think   string
	timeout time.Duration
	yes     bool
}

func (c *commands) agent() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "agent -m TEXT",
		Short: "Send one message and print the answer",
		Long: "Send one message and print the answer. The exit code is 0 only if there is an\n" +
			"answer. With -m -, the message is read from standard input.",
		Example: "  chela agent -m 'what is in this directory?'\n  git diff | chela agent -m - --json\n  chela agent --agent ops -m 'how full is the disk?'\n  chela agent --image photo.jpg -m 'what is this?'",
		Args:    exactly(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.ask(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.message, "message", "m", "", "`TEXT` of the message; - reads it from standard input")
	fs.StringArrayVar(&f.images, "image", nil, "attach the picture in `FILE`; may be repeated")
	c.addSessionFlags(cmd, &f.session)
	fs.StringVar(&f.think, "think", "", "thinking `LEVEL` of the model: off, low, medium or high")
	fs.DurationVar(&f.timeout, "timeout", 0, "stop the run after `DURATION`; 0: no limit")
	fs.BoolVar(&c.json, "json", false, "print the result as JSON")
	fs.BoolVarP(&f.yes, "yes", "y", false, "allow every action that needs approval")
	return cmd
}

// ask sends a message and prints the answer.
func (c *commands) ask(ctx context.Context, f agentFlags) error {
	if f.message == "-" {
		b, err := io.ReadAll(c.stdin)
		if err != nil {
			return fmt.Errorf("message: %w", err)
		}
		f.message = string(b)
	}
	files, err := pictures(f.images)
	if err != nil {
		return usage(err)
	}
	if strings.TrimSpace(f.message) == "" && len(files) == 0 {
		return usage(c.suggest(errors.New("no message given"), "agent -m 'hello'"))
	}
	return c.withLink(ctx, func(l *link) error {
		key, err := f.session.key(ctx, c, l)
		if err != nil {
			return err
		}
		o := c.talk(l, key, f.yes)
		o.Printer.Quiet = !isTerminal(c.stderr)
		if o.Interactive = o.Interactive && !o.Printer.Quiet; o.Interactive {
			o.Input = repl.Lines(c.stdin)
		}
		chat := repl.New(o)
		defer func() {
			l.remindOfCommands(context.WithoutCancel(ctx), key)
			l.remindOfJobs(context.WithoutCancel(ctx))
		}()
		q := repl.Question{Message: f.message, Files: files, Think: f.think, Timeout: f.timeout}
		for {
			out, err := chat.Once(ctx, q)
			err = c.printResult(out, err)
			more, ok := chat.Kept() // typed while a question was open
			if ok && err == nil && !c.json {
				q.Message, q.Files = more, nil
				fmt.Fprintln(c.stderr, "› "+ansi.Line(more))
				continue
			}
			for ; ok; more, ok = chat.Kept() { // after a failure, or with --json, whose result is one object
				fmt.Fprintln(c.stderr, "not sent: "+ansi.Line(more))
			}
			return err
		}
	})
}

// pictures reads picture files as attachments.
func pictures(paths []string) (out []wire.Attachment, err error) {
	for _, path := range paths {
		f, err := attach.ReadFile(path)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// printResult prints the answer; as JSON, it also prints the error. An answer that only
// says what could not be done counts as a failure.
func (c *commands) printResult(out repl.Answer, err error) error {
	if err == nil && out.Stop == wire.StopUnable {
		err = errReported
	}
	if !c.json {
		if (err == nil || errors.Is(err, errReported)) && out.Text != "" {
			fmt.Fprintln(c.stdout, strings.TrimRight(ansi.Clean(out.Text), "\n"))
		}
		return err
	}
	if err != nil && out.Stop != wire.StopUnable {
		out.Error = errorText(err)
	}
	if perr := c.printJSON(out); perr != nil {
		return perr
	}
	if err != nil && !errors.Is(err, errInterrupted) {
		return errReported
	}
	return err
}
