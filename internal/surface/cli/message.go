package cli

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) message() *cobra.Command {
	return group("message", "Act on chats of messaging channels",
		c.messageSend(), c.messageBroadcast(), c.messagePoll(), c.messageReact(), c.messageEdit(),
		c.messageChange("delete", "Delete a message"), c.messageChange("pin", "Pin a message"),
		c.messageChange("unpin", "Unpin a message"),
		c.messageRead(), group("thread", "Create threads", c.messageThread()))
}

// chatAction is an action of a command, as its flags describe it.
type chatAction struct {
	action string
	in     wire.MessageParams
	files  []string
	button []string
}

// chatCommand adds the flags of every action to a command, and has it carry the action out.
// prepare completes the parameters; nil: they are complete.
func (c *commands) chatCommand(cmd *cobra.Command, a *chatAction, prepare func() error) *cobra.Command {
	cmd.Args = exactly(0)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if prepare != nil {
			if err := prepare(); err != nil {
				return err
			}
		}
		return c.act(cmd, a)
	}
	f := cmd.Flags()
	f.StringVar(&a.in.Channel, "channel", "", "the `CHANNEL`, if the chat does not name it and there are several")
	f.StringVar(&a.in.Account, "account", "", "the account `ID` of the channel (default: that of the chat)")
	if a.action != "broadcast" {
		f.StringVar(&a.in.To, "to", "",
			"the `CHAT`: user:ID, group:ID, channel:ID, CHANNEL:ID, or a name (see: chela directory)")
		f.StringVar(&a.in.Thread, "thread", "", "the `ID` of a topic or thread of the chat")
	}
	f.BoolVar(&a.in.DryRun, "dry-run", false, "print what would be done, and do nothing")
	// OpenClaw's names.
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if other := map[string]string{
			"target":                "to",
			"thread-id":             "thread",
			"thread-name":           "name",
			"poll-question":         "question",
			"poll-option":           "option",
			"poll-multi":            "multiple",
			"poll-public":           "public",
			"poll-duration-hours":   "hours",
			"poll-duration-seconds": "seconds",
			"targets":               "to",
		}[name]; other != "" {
			name = other
		}
		return pflag.NormalizedName(name)
	})
	return c.withJSON(cmd)
}

// maxStdin is the size of a text from standard input that is read. The gateway refuses
// shorter ones already.
const maxStdin = 1 << 20

// act carries out an action on the running gateway. The exit code is 1 unless it was done.
func (c *commands) act(cmd *cobra.Command, a *chatAction) error {
	if a.in.Message == "-" {
		b, err := io.ReadAll(io.LimitReader(c.stdin, maxStdin))
		if err != nil {
			return fmt.Errorf("message: %w", err)
		}
		a.in.Message = strings.TrimRight(string(b), "\n")
	}
	var err error
	if a.in.Files, err = readFiles(a.files); err != nil {
		return err
	}
	for _, s := range a.button {
		b, err := parseButton(s)
		if err != nil {
			return usage(err)
		}
		a.in.Buttons = append(a.in.Buttons, []wire.MessageButton{b})
	}
	params, err := json.Marshal(a.in)
	if err != nil {
		return err
	}
	var out wire.MessageResult
	err = c.withGateway(cmd.Context(), func(l *client.Client) error {
		return l.Call(cmd.Context(), wire.MethodMessageAction,
			wire.MessageAction{Channel: a.in.Channel, Action: a.action, Params: params, Key: rand.Text()}, &out)
	})
	if err != nil {
		return c.chatHint(err)
	}
	if err := c.print(out, func() { c.printMessageResult(out) }); err != nil || out.OK {
		return err
	}
	return errReported
}

// chatHint adds what to type to an error about channels.
func (c *commands) chatHint(err error) error {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err
	}
	switch {
	case strings.Contains(e.Message, "no channel is configured"),
		strings.Contains(e.Message, "no channels are configured"):
		return c.suggest(err, "config set channels.telegram.botToken TOKEN")
	case strings.Contains(e.Message, "channel is missing"):
		return withHint(err, "--channel CHANNEL, or --to CHANNEL:ID")
	case strings.Contains(e.Message, "accountId is missing"):
		return withHint(err, "--account ID")
	case strings.Contains(e.Message, "to is missing"):
		return withHint(err, "--to CHAT")
	case strings.Contains(e.Message, "messageId is missing"):
		return withHint(err, "--message-id ID")
	case strings.Contains(e.Message, "is not running"):
		return c.suggest(err, "logs")
	}
	return err
}

func (c *commands) printMessageResult(out wire.MessageResult) {
	switch {
	case len(out.Messages) > 0:
		c.printMessages(out.Messages)
		return
	case out.Action == "read" && out.OK && !out.DryRun:
		fmt.Fprintln(c.stdout, "there are no messages")
		return
	case len(out.Targets) > 0 && !out.DryRun:
		for _, t := range out.Targets {
			c.printMessageResult(t)
		}
		return
	}
	to := c.stdout
	if !out.OK {
		to = c.stderr
	}
	for line := range strings.Lines(out.Text) {
		fmt.Fprintln(to, ansi.Clean(strings.TrimRight(line, "\n")))
	}
}

func (c *commands) printMessages(list []wire.ChannelMessage) {
	rows := [][]string{{"ID", "TIME", "FROM", "TEXT"}}
	for _, m := range list {
		who := m.Name
		switch {
		case m.Own:
			who = "(this account)"
		case who == "":
			who = m.Sender
		}
		rows = append(rows, []string{ansi.Line(m.ID), m.Time.Time().Format(time.DateTime), ansi.Truncate(ansi.Line(who), 24),
			ansi.Truncate(ansi.Line(m.Text), 100)})
	}
	c.printTable(rows)
}

func (c *commands) messageSend() *cobra.Command {
	a := &chatAction{action: "send"}
	cmd := &cobra.Command{
		Use: "send --to CHAT -m TEXT", Short: "Send a message to a chat",
		Long:    "Send a message to a chat. TEXT is Markdown; with -m -, it is read from standard input.",
		Example: "  chela message send --to telegram:123456 -m 'The backup is done.'\n  df -h | chela message send --channel slack --to '#ops' -m -\n  chela message send --to telegram:123456 --media chart.png \\\n    --button Good=good --button Help=https://example.org",
	}
	c.addText(cmd, a)
	f := cmd.Flags()
	f.StringVar(&a.in.ReplyTo, "reply-to", "", "the `ID` of the message to reply to")
	f.StringArrayVar(&a.button, "button", nil, "a button below the text, as `LABEL=DATA` or LABEL=URL; may be repeated")
	return c.chatCommand(cmd, a, nil)
}

// addText adds the flags of what is sent.
func (c *commands) addText(cmd *cobra.Command, a *chatAction) {
	cmd.Flags().StringVarP(&a.in.Message, "message", "m", "", "`TEXT` of the message; - reads it from standard input")
	cmd.Flags().StringArrayVar(&a.files, "media", nil, "attach the `FILE`; may be repeated")
}

func (c *commands) messageBroadcast() *cobra.Command {
	a := &chatAction{action: "broadcast"}
	cmd := &cobra.Command{
		Use: "broadcast --to CHAT -m TEXT", Short: "Send a message to several chats",
		Example: "  chela message broadcast --to telegram:123456 --to slack:channel:C0123ABCD -m 'Maintenance at six.'",
	}
	c.addText(cmd, a)
	cmd.Flags().StringArrayVar(&a.in.Targets, "to", nil, "a `CHAT`, as in chela message send; may be repeated")
	return c.chatCommand(cmd, a, nil)
}

func (c *commands) messagePoll() *cobra.Command {
	a := &chatAction{action: "poll"}
	cmd := &cobra.Command{
		Use: "poll --to CHAT --question TEXT --option TEXT --option TEXT", Short: "Send a poll to a chat",
		Example: "  chela message poll --to telegram:-1001234 --question Lunch? \\\n    --option pizza --option sushi --multiple\n  chela message poll --to discord:channel:1234 --question Lunch? \\\n    --option pizza --option sushi --hours 2",
	}
	f := cmd.Flags()
	f.StringVar(&a.in.Question, "question", "", "the question")
	f.StringArrayVar(&a.in.Options, "option", nil, "an answer to choose; 2 to 12 of them")
	f.BoolVar(&a.in.Multiple, "multiple", false, "several answers may be chosen")
	f.BoolVar(&a.in.Public, "public", false, "everybody sees who chose what")
	f.Float64Var(&a.in.Hours, "hours", 0,
		"close the poll after `N` hours (default: it stays open as long as the platform permits)")
	f.IntVar(&a.in.Seconds, "seconds", 0, "close the poll after `N` seconds")
	return c.chatCommand(cmd, a, nil)
}

func (c *commands) messageReact() *cobra.Command {
	a := &chatAction{action: "react"}
	cmd := &cobra.Command{
		Use: "react --to CHAT --message-id ID --emoji EMOJI", Short: "React to a message, or remove the reaction",
		Example: "  chela message react --to telegram:123456 --message-id 78 --emoji 👍\n  chela message react --to telegram:123456 --message-id 78 --remove",
	}
	c.addMessageID(cmd, a)
	cmd.Flags().StringVar(&a.in.Emoji, "emoji", "", "the reaction")
	cmd.Flags().BoolVar(&a.in.Remove, "remove", false, "remove the reaction of the account")
	return c.chatCommand(cmd, a, func() error {
		if a.in.Emoji == "" && !a.in.Remove {
			return usage(withHint(errors.New("which reaction?"), "--emoji 👍, or --remove"))
		}
		return nil
	})
}

func (c *commands) addMessageID(cmd *cobra.Command, a *chatAction) {
	cmd.Flags().StringVar(&a.in.MessageID, "message-id", "", "the `ID` of the message, see: chela message read")
}

func (c *commands) messageEdit() *cobra.Command {
	a := &chatAction{action: "edit"}
	cmd := &cobra.Command{Use: "edit --to CHAT --message-id ID -m TEXT",
		Short: "Change the text of a message of the account"}
	c.addMessageID(cmd, a)
	cmd.Flags().StringVarP(&a.in.Message, "message", "m", "", "the new `TEXT`; - reads it from standard input")
	return c.chatCommand(cmd, a, nil)
}

// messageChange returns a command that needs only the id of a message.
func (c *commands) messageChange(name, short string) *cobra.Command {
	a := &chatAction{action: name}
	cmd := &cobra.Command{Use: name + " --to CHAT --message-id ID", Short: short}
	c.addMessageID(cmd, a)
	return c.chatCommand(cmd, a, nil)
}

func (c *commands) messageRead() *cobra.Command {
	a := &chatAction{action: "read"}
	cmd := &cobra.Command{Use: "read --to CHAT", Short: "Show the last messages of a chat"}
	cmd.Flags().IntVar(&a.in.Limit, "limit", 20, "at most `N` messages, up to 100")
	return c.chatCommand(cmd, a, nil)
}

func (c *commands) messageThread() *cobra.Command {
	a := &chatAction{action: "thread-create"}
	cmd := &cobra.Command{Use: "create --to CHAT --name NAME", Short: "Create a topic or thread in a chat"}
	cmd.Flags().StringVar(&a.in.Name, "name", "", "the `NAME` of the thread")
	return c.chatCommand(cmd, a, nil)
}

// maxFiles is the size of the files of a message that fit into a request.
const maxFiles = (wire.MaxPayload - 256<<10) / 4 * 3

// readFiles reads the files of a message.
func readFiles(names []string) (out []wire.MessageFile, err error) {
	size := 0
	for _, name := range names {
		if strings.Contains(name, "://") {
			return nil, usage(fmt.Errorf("--media %s: only files can be sent; download it first", name))
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(f, maxFiles+1))
		f.Close()
		if err != nil {
			return nil, err
		}
		if size += len(data); size > maxFiles {
			return nil, fmt.Errorf("--media %s: the files have more than %d MB", name, maxFiles>>20)
		}
		out = append(out, wire.MessageFile{Name: filepath.Base(name), Data: data})
	}
	return out, nil
}

// parseButton parses LABEL=DATA or LABEL=URL.
func parseButton(s string) (wire.MessageButton, error) {
	label, data, ok := strings.Cut(s, "=")
	if !ok || label == "" || data == "" {
		return wire.MessageButton{}, fmt.Errorf("--button %q: want LABEL=DATA or LABEL=URL", s)
	}
	if strings.HasPrefix(data, "https://") || strings.HasPrefix(data, "http://") {
		return wire.MessageButton{Label: label, URL: data}, nil
	}
	return wire.MessageButton{Label: label, Data: data}, nil
}
