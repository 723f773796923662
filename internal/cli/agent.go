package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/attach"
	"github.com/chela-ai/chela/internal/tui/talk"
	"github.com/chela-ai/chela/wire"
)

// agentFlags is what `chela agent` is told.
type agentFlags struct {
	message string
	images  []string
	place   place
	think   string
	timeout time.Duration
	json    bool
	yes     bool
}

func (c *commands) agent() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "agent -m TEXT",
		Short: "Have one message answered",
		Long: "Have one message answered and print the answer. The exit code is 0 only when\n" +
			"there is one. With -m - the message is read from standard input.",
		Example: "  chela agent -m 'what is in this directory?'\n  git diff | chela agent -m - --json\n  chela agent --agent ops -m 'how full is the disk?'\n  chela agent --image photo.jpg -m 'what is this?'",
		Args:    console.Exactly(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.ask(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.message, "message", "m", "", "the message `TEXT`; -: read it from standard input")
	fs.StringArrayVar(&f.images, "image", nil, "send the picture `FILE` with it; may be given several times")
	c.placeFlags(cmd, &f.place)
	fs.StringVar(&f.think, "think", "", "how much the model thinks: `LEVEL` off, low, medium or high")
	fs.DurationVar(&f.timeout, "timeout", 0, "stop after `DURATION`; 0: as long as it takes")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	fs.BoolVarP(&f.yes, "yes", "y", false, "allow everything that asks")
	return cmd
}

// ask has a message answered.
func (c *commands) ask(ctx context.Context, f agentFlags) error {
	if f.message == "-" {
		b, err := io.ReadAll(c.In)
		if err != nil {
			return fmt.Errorf("message: %w", err)
		}
		f.message = string(b)
	}
	files, err := pictures(f.images)
	if err != nil {
		return console.Usage(err)
	}
	if strings.TrimSpace(f.message) == "" && len(files) == 0 {
		return console.Usage(c.Hint(errors.New("there is no message"), "agent -m 'hello'"))
	}
	return c.with(ctx, func(l *link) error {
		key, err := f.place.key(ctx, c, l)
		if err != nil {
			return err
		}
		o := c.talk(l, key, f.yes)
		o.Print.Quiet = !console.IsTerminal(c.Err)
		if o.Person = o.Person && !o.Print.Quiet; o.Person {
			o.Lines = talk.Lines(c.In)
		}
		out, err := talk.New(o).Once(ctx, talk.Question{Message: f.message, Files: files, Think: f.think, Timeout: f.timeout})
		return c.answer(out, err, f.json)
	})
}

func pictures(paths []string) (out []wire.Attachment, err error) {
	for _, path := range paths {
		f, err := attach.File(path)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// answer prints what was answered.
func (c *commands) answer(out talk.Answer, err error, asJSON bool) error {
	if !asJSON {
		if err == nil && out.Text != "" {
			fmt.Fprintln(c.Out, strings.TrimRight(ansi.Clean(out.Text), "\n"))
		}
		return err
	}
	if err != nil {
		out.Error = console.Said(err)
	}
	if perr := c.JSON(out); perr != nil {
		return perr
	}
	if err != nil && !errors.Is(err, console.ErrInterrupted) {
		return console.ErrReported
	}
	return err
}
