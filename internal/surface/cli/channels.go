package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/kit/logfile"
	"github.com/chela-ai/chela/internal/kit/spelling"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) channels() *cobra.Command {
	cmd := group("channels", "Show and set up chat apps")
	cmd.AddCommand(here(c.channelsList()), c.channelsStatus(), c.channelsCapabilities(), here(c.channelsAdd()),
		here(c.channelsRemove()), here(c.channelsLogout()), here(c.channelsLogs()))
	return cmd
}

// factory returns a chat app of this build by its name or an alias.
func (c *commands) factory(name string) (*channel.Factory, error) {
	all := slices.DeleteFunc(slices.Clone(c.app.Channels), func(f channel.Factory) bool { return f.Internal })
	if f := channel.Find(all, strings.ToLower(name)); f != nil {
		return f, nil
	}
	var names []string
	for _, f := range all {
		names = append(names, f.Name)
	}
	if like := spelling.DidYouMean(name, names); like != "" {
		return nil, usage(fmt.Errorf("there is no chat app %q%s", name, like))
	}
	return nil, usage(fmt.Errorf("there is no chat app %q; there are %s", name, strings.Join(names, ", ")))
}

// accounts returns the sections of the configured accounts of a chat app, by id.
func (c *commands) accounts(f *channel.Factory) (map[string]json.RawMessage, error) {
	raw, err := c.section("channels." + f.Name)
	if err != nil || raw == nil {
		return nil, err
	}
	found, err := f.AccountSections(raw)
	if err != nil {
		return nil, fmt.Errorf("channels.%s: %w", f.Name, err)
	}
	return found, nil
}

// listed is a chat app in the output of `chela channels list`.
type listed struct {
	Name     string   `json:"name"`
	Aliases  []string `json:"aliases"`
	Accounts []string `json:"accounts"` // configured and not disabled
}

func (c *commands) channelsList() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use: "list", Short: "List the chat apps and their configured accounts", Args: exactly(0),
		RunE: func(*cobra.Command, []string) error {
			var out []listed
			rows := [][]string{{"NAME", "ALIASES", "ACCOUNTS"}}
			for i := range c.app.Channels {
				f := &c.app.Channels[i]
				if f.Internal {
					continue
				}
				accounts, err := c.accounts(f)
				if err != nil {
					return err
				}
				l := listed{f.Name, append([]string{}, f.Aliases...), append([]string{}, slices.Sorted(maps.Keys(accounts))...)}
				out = append(out, l)
				rows = append(rows, []string{l.Name, strings.Join(l.Aliases, ", "), strings.Join(l.Accounts, ", ")})
			}
			return c.print(out, func() { c.printTable(rows) })
		},
	})
}

func (c *commands) channelsStatus() *cobra.Command {
	var in wire.ChannelsGet
	cmd := c.withJSON(&cobra.Command{
		Use: "status [NAME]", Short: "Show whether the accounts work", Args: between(0, 1),
		Long: "Show whether the configured accounts work. With --probe, their platforms are asked.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				in.Channel = args[0]
			}
			return query(cmd.Context(), c, wire.MethodChannelsStatus, in, c.printChannels)
		},
	})
	cmd.Flags().BoolVar(&in.Probe, "probe", false, "ask the platforms")
	return cmd
}

func (c *commands) printChannels(s wire.ChannelsStatus) {
	if len(s.Order) == 0 {
		fmt.Fprintf(c.stdout, "there are no chat apps; %s adds one\n", c.commandLine("channels add NAME"))
		return
	}
	rows := [][]string{{"CHANNEL", "ACCOUNT", "STATE"}}
	for _, name := range s.Order {
		for _, a := range s.Accounts[name] {
			rows = append(rows, []string{name, ansi.Line(a.ID), ansi.Line(accountState(a))})
		}
	}
	c.printTable(rows)
}

// accountState returns whether an account works, for people.
func accountState(a wire.ChannelAccount) string {
	switch {
	case a.Error != nil:
		return *a.Error
	case a.Probe != nil:
		return fmt.Sprintf("works, answered in %d ms", a.Probe.Elapsed)
	case a.Connected:
		return "works"
	}
	return "connecting"
}

func (c *commands) channelsCapabilities() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use: "capabilities [NAME]", Short: "Show what the chat apps can do", Args: between(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			out := map[string][]string{}
			rows := [][]string{{"NAME", "CAPABILITIES"}}
			for _, f := range c.app.Channels {
				if f.Internal {
					continue
				}
				out[f.Name] = capabilities(f)
				rows = append(rows, []string{f.Name, strings.Join(out[f.Name], ", ")})
			}
			if len(args) > 0 {
				f, err := c.factory(args[0])
				if err != nil {
					return err
				}
				return c.print(map[string][]string{f.Name: out[f.Name]},
					func() { fmt.Fprintln(c.stdout, strings.Join(out[f.Name], "\n")) })
			}
			return c.print(out, func() { c.printTable(rows) })
		},
	})
}

// capabilities returns what a chat app can do: the actions, and what the gateway uses.
func capabilities(f channel.Factory) []string {
	var out []string
	for _, a := range action.Of(f.Can) {
		out = append(out, string(a))
	}
	has := func(name string, ok bool) {
		if ok {
			out = append(out, name)
		}
	}
	has("buttons", f.Limits.Buttons)
	_, typing := channel.As[channel.Typer](f.Can)
	has("typing", typing)
	_, menu := channel.As[channel.Menuer](f.Can)
	has("menu", menu)
	_, fetch := channel.As[channel.Fetcher](f.Can)
	has("attachments", fetch)
	_, posts := channel.As[channel.Poster](f.Can)
	has("webhook", posts)
	_, probes := channel.As[channel.Prober](f.Can)
	has("probe", probes)
	return out
}

func (c *commands) channelsAdd() *cobra.Command {
	o := onboarding{commands: c, account: "default"}
	cmd := &cobra.Command{
		Use:     "add [NAME]",
		Aliases: []string{"login"},
		Short:   "Set up an account of a chat app, or enter its credentials again",
		Args:    between(0, 1),
		Long: "Set up an account of a chat app. In a terminal, it asks for what is missing, also for the app; else --set\n" +
			"answers. The settings are kept if the account connects.",
		Example: "  chela channels add telegram\n  chela channels add telegram --account work --set botToken=123456:ABC",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.again = cmd.CalledAs() == "login"
			o.quiet = !isTerminal(c.stdin) || !isTerminal(c.stderr)
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			if len(args) > 0 {
				o.channel = args[0]
			}
			if o.quiet && o.channel == "" {
				return usage(withHint(errors.New("missing argument: NAME of the chat app"), cmd.CommandPath()+" "+
					strings.Join(o.channelNames(), "|")))
			}
			f, err := o.chooseChannel(ctx)
			if err != nil || f == nil {
				return err
			}
			return o.setUpChannel(ctx, f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.account, "account", "default", "`ID` of the account, if there are several")
	fs.StringArrayVar(&o.settings, "set", nil, "a setting, `KEY=VALUE`; repeatable")
	fs.BoolVar(&o.skip.check, "no-check", false, "keep the settings without connecting")
	return cmd
}

// accountPath returns the path of the section of an account. The account default of a
// channel without accounts is the section of the channel.
func (c *commands) accountPath(f *channel.Factory, account string) ([]string, error) {
	named, err := c.section("channels." + f.Name + ".accounts")
	if err != nil {
		return nil, err
	}
	if account == "default" && named == nil {
		return []string{"channels", f.Name}, nil
	}
	return []string{"channels", f.Name, "accounts", account}, nil
}

// configuredAccount returns the chat app and the path of an account that is configured.
func (c *commands) configuredAccount(name, account string) (*channel.Factory, []string, error) {
	f, err := c.factory(name)
	if err != nil {
		return nil, nil, err
	}
	path, err := c.accountPath(f, account)
	if err != nil {
		return nil, nil, err
	}
	raw, err := c.section(config.FormatPath(path))
	if err == nil && raw == nil {
		err = c.suggest(fmt.Errorf("%s has no account %s", f.Name, account), "channels list")
	}
	return f, path, err
}

func (c *commands) channelsRemove() *cobra.Command {
	var account string
	cmd := c.withYes(&cobra.Command{
		Use: "remove NAME", Short: "Remove an account of a chat app from the configuration", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, path, err := c.configuredAccount(args[0], account)
			if err != nil {
				return err
			}
			if err := c.confirm(fmt.Sprintf("remove the account %s of %s with its settings", account, f.Name),
				"channels remove "+f.Name+" --account "+account+" --yes"); err != nil {
				return err
			}
			return c.change(cmd.Context(), config.Edit{Path: config.FormatPath(path)})
		},
	})
	cmd.Flags().StringVar(&account, "account", "default", "`ID` of the account")
	return cmd
}

func (c *commands) channelsLogout() *cobra.Command {
	var account string
	cmd := &cobra.Command{
		Use:   "logout NAME",
		Short: "Remove the credentials of an account from the configuration, and switch it off",
		Args:  exactly(1),
		Long: "Remove the credentials of an account from the configuration, and switch it off. What is in environment\n" +
			"variables stays there. `chela channels login NAME` is the opposite.",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, path, err := c.configuredAccount(args[0], account)
			if err != nil {
				return err
			}
			edits := []config.Edit{setting(false, append(slices.Clone(path), "enabled")...)}
			for _, s := range f.Setup {
				at := config.FormatPath(append(slices.Clone(path), strings.Split(s.Key, ".")...))
				raw, err := c.section(at)
				if err != nil {
					return err
				}
				if s.Secret && raw != nil {
					edits = append(edits, config.Edit{Path: at})
				}
			}
			return c.change(cmd.Context(), edits...)
		},
	}
	cmd.Flags().StringVar(&account, "account", "default", "`ID` of the account")
	return cmd
}

func (c *commands) channelsLogs() *cobra.Command {
	var follow bool
	var limit int
	cmd := &cobra.Command{
		Use: "logs [NAME]", Short: "Show what the log says about chat apps", Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				f, err := c.factory(args[0])
				if err != nil {
					return err
				}
				name = f.Name
			}
			return c.showChannelLog(cmd.Context(), name, limit, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing new lines")
	cmd.Flags().IntVarP(&limit, "limit", "n", 2000, "look at the last `N` lines")
	return cmd
}

// showChannelLog prints the lines of the log about a channel; "": about all.
func (c *commands) showChannelLog(ctx context.Context, name string, limit int, follow bool) error {
	s, err := c.start()
	if err != nil {
		return err
	}
	t := logfile.NewTail(filepath.Join(s.State, "logs", "chela.log"), func(line []byte) {
		var about struct {
			Channel string `json:"channel"`
		}
		if json.Unmarshal(line, &about) != nil || about.Channel == "" {
			return
		}
		if short, _, _ := strings.Cut(about.Channel, "/"); name == "" || short == name {
			c.printLog(line, false)
		}
	})
	defer t.Close()
	if _, err := t.Last(limit); err != nil || !follow {
		return err
	}
	if err := t.Follow(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
