package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/surface/mcpserver"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) plugins() *cobra.Command {
	return group("plugins", "Manage plug-ins: folders that add tools, hooks, skills and agent types",
		c.pluginsList(), c.pluginsInfo(), here(c.pluginsInstall()), here(c.pluginsUninstall()), here(c.pluginsEnable(true)),
		here(c.pluginsEnable(false)), c.pluginsDoctor())
}

// pluginList returns the plug-ins that exist.
func (c *commands) pluginList(ctx context.Context) (wire.PluginsList, error) {
	var l wire.PluginsList
	return l, c.call(ctx, wire.MethodPluginsList, wire.None{}, &l)
}

// pluginInfo returns a plug-in by its id.
func (c *commands) pluginInfo(ctx context.Context, id string) (wire.PluginInfo, error) {
	var p wire.PluginInfo
	err := c.call(ctx, wire.MethodPluginsInfo, wire.PluginGet{ID: id}, &p)
	if err != nil {
		return p, c.suggest(err, "plugins list")
	}
	return p, nil
}

// pluginState says in a few words whether a plug-in is used.
func pluginState(p wire.PluginEntry) string {
	switch p.State {
	case "enabled":
		return "on"
	case "error":
		return "cannot be used"
	}
	return "off"
}

func (c *commands) pluginsList() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "list", Short: "List plug-ins, and whether they are used", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := c.pluginList(cmd.Context())
			if err != nil {
				return err
			}
			return c.print(l, func() {
				if len(l.Plugins) == 0 {
					fmt.Fprintf(c.stdout, "there are no plug-ins; %s adds one\n", c.commandLine("plugins install FOLDER"))
				} else {
					rows := [][]string{{"PLUG-IN", "STATE", "VERSION", "ORIGIN", "DESCRIPTION"}}
					for _, p := range l.Plugins {
						rows = append(rows, []string{p.ID, pluginState(p), ansi.Line(p.Version), p.Origin,
							ansi.Truncate(ansi.Line(p.Description), 60)})
					}
					c.printTable(rows)
				}
				c.printPluginProblems(l)
			})
		}})
}

// printPluginProblems prints what is wrong with plug-ins.
func (c *commands) printPluginProblems(l wire.PluginsList) {
	for _, d := range l.Diagnostics {
		text := ansi.Line(d.Message)
		if d.Level != "error" {
			text = "warning: " + text
		}
		if d.PluginID != "" {
			text = ansi.Line(d.PluginID) + ": " + text
		}
		fmt.Fprintln(c.stdout, text)
	}
}

func (c *commands) pluginsInfo() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use: "info PLUGIN", Aliases: []string{"inspect"}, Short: "Show a plug-in and what it may do", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := c.pluginInfo(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return c.print(p, func() { c.printPlugin(p) })
		},
	})
}

// printPlugin prints a plug-in.
func (c *commands) printPlugin(p wire.PluginInfo) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(c.stdout, "%-12s %s\n", name, ansi.Line(value))
		}
	}
	line("plug-in", p.ID)
	if p.Name != p.ID {
		line("name", p.Name)
	}
	line("version", p.Version)
	line("description", p.Description)
	line("state", pluginState(p.PluginEntry))
	line("origin", p.Origin)
	line("agent", p.Agent)
	line("format", p.Format)
	line("folder", p.Dir)
	line("sha256", p.Hash)
	line("homepage", p.Homepage)
	line("settings", "plugins.entries."+p.ID)
	list := func(title string, texts []string) {
		if len(texts) > 0 {
			fmt.Fprintln(c.stdout, "\n"+title)
		}
		for _, t := range texts {
			fmt.Fprintln(c.stdout, "  "+ansi.Line(t))
		}
	}
	list("what it does:", p.Abilities)
	for _, s := range p.Servers {
		if s.Error != "" {
			p.Warnings = append(p.Warnings, s.Name+": "+s.Error)
		}
		for _, t := range s.Problems {
			p.Warnings = append(p.Warnings, s.Name+": "+t)
		}
	}
	list("not supported:", p.Unsupported)
	list("why it is not used:", p.Reasons)
	list("warnings:", p.Warnings)
}

func (c *commands) pluginsInstall() *cobra.Command {
	var enable, replace bool
	cmd := &cobra.Command{
		Use:   "install PATH",
		Short: "Copy a plug-in from a folder or an archive on this machine, without running it",
		Args:  exactly(1),
		Long: "Copy a folder with a manifest, or such a folder in a .zip, .tar or .tgz archive, into the\n" +
			"plug-ins of the state directory. Nothing of it is run, and it is off until it is enabled.\n" +
			"Its content is fixed by a hash: a plug-in that was changed is not used.",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			var out wire.PluginChanged
			if err := c.call(cmd.Context(), wire.MethodPluginsAdd, wire.PluginsAdd{Path: path, Replace: replace},
				&out); err != nil {
				return err
			}
			p, err := c.pluginInfo(cmd.Context(), out.Plugin.ID)
			if err != nil {
				return err
			}
			if err := c.print(p, func() {
				c.printPlugin(p)
				if !enable {
					fmt.Fprintf(c.stdout, "\ninstalled, and off; to use it: %s\n", c.commandLine("plugins enable "+p.ID))
				}
			}); err != nil || !enable {
				return err
			}
			return c.enablePlugin(cmd.Context(), p)
		},
	}
	cmd.Flags().BoolVar(&enable, "enable", false, "use the plug-in immediately")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace an installed plug-in with the same id")
	return c.withJSON(cmd)
}

// enablePlugin uses a plug-in with its present content.
func (c *commands) enablePlugin(ctx context.Context, p wire.PluginInfo) error {
	edits := []config.Edit{pluginEdit(p.ID, "enabled", true)}
	if p.Hash != "" {
		edits = append(edits, pluginEdit(p.ID, "sha256", p.Hash))
	}
	return c.change(ctx, edits...)
}

// pluginEdit is a change of a setting of a plug-in.
func pluginEdit(id, name string, value any) config.Edit {
	return setting(value, "plugins", "entries", id, name)
}

// pluginsEnable is plugins enable, or plugins disable.
func (c *commands) pluginsEnable(on bool) *cobra.Command {
	use, short := "enable PLUGIN", "Use a plug-in, with its present content"
	if !on {
		use, short = "disable PLUGIN", "Stop using a plug-in"
	}
	return &cobra.Command{Use: use, Short: short, Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		p, err := c.pluginInfo(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if !on {
			return c.change(cmd.Context(), pluginEdit(p.ID, "enabled", false))
		}
		if err := c.enablePlugin(cmd.Context(), p); err != nil {
			return err
		}
		if p, err = c.pluginInfo(cmd.Context(), p.ID); err != nil {
			return err
		}
		for _, r := range p.Reasons {
			fmt.Fprintf(c.stderr, "%s cannot be used yet: %s\n", p.ID, ansi.Line(r))
		}
		return nil
	}}
}

func (c *commands) pluginsUninstall() *cobra.Command {
	cmd := &cobra.Command{Use: "uninstall PLUGIN", Aliases: []string{"remove"},
		Short: "Remove an installed plug-in and its files", Args: exactly(1)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := c.pluginInfo(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if !p.Removable {
			return chela.Errorf(chela.CodeInvalid, "%s was not installed by chela; it is in %s", p.ID, p.Dir)
		}
		if err := c.confirm("remove "+p.Dir, "plugins uninstall "+p.ID+" --yes"); err != nil {
			return err
		}
		var out wire.PluginRemoved
		if err := c.call(cmd.Context(), wire.MethodPluginsRemove, wire.PluginGet{ID: p.ID}, &out); err != nil {
			return err
		}
		return c.print(out, func() { fmt.Fprintf(c.stdout, "removed %s\n", strings.Join(out.Removed, ", ")) })
	}
	return c.withJSON(c.withYes(cmd))
}

func (c *commands) pluginsDoctor() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "doctor", Short: "Show what is wrong with plug-ins", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := c.pluginList(cmd.Context())
			if err != nil {
				return err
			}
			bad := 0
			for _, d := range l.Diagnostics {
				if d.Level == "error" {
					bad++
				}
			}
			err = c.print(l, func() {
				c.printPluginProblems(l)
				if len(l.Diagnostics) == 0 {
					fmt.Fprintln(c.stdout, "no problems")
				}
			})
			if err == nil && bad > 0 {
				err = errReported
			}
			return err
		}})
}

func (c *commands) mcp() *cobra.Command {
	return group("mcp", "Manage servers of the Model Context Protocol, whose tools the assistant gets",
		c.mcpList(), c.mcpShow(), here(c.mcpAdd()), here(c.mcpUnset()), c.mcpProbe(), c.mcpLogin(), c.mcpLogout(),
		c.mcpDoctor(), c.mcpServe())
}

func (c *commands) mcpServe() *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Let another program use the conversations of the chat apps over MCP", Args: exactly(0),
		Long: "Speak the Model Context Protocol on standard input and output, as a server. A program such as\n" +
			"Claude Code starts this command; it can read the conversations, write to their chats, wait for\n" +
			"messages, and decide about permissions. In Claude Code: claude mcp add chela -- chela mcp serve",
		Example: "  chela mcp serve",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withLink(cmd.Context(), func(l *link) error {
				s, err := c.start()
				if err != nil {
					return err
				}
				return mcpserver.Serve(cmd.Context(), mcpserver.Options{
					Client:  l.Client,
					In:      c.stdin,
					Out:     c.stdout,
					Log:     s.Log,
					Version: c.app.Version,
				})
			})
		},
	}
}

func (c *commands) mcpList() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:     "list",
		Aliases: []string{"status"},
		Short:   "List the servers, their state and the number of their tools",
		Args:    exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s wire.MCPStatus
			if err := c.call(cmd.Context(), wire.MethodMCPStatus, wire.None{}, &s); err != nil {
				return err
			}
			return c.print(s, func() {
				if len(s.Servers) == 0 {
					fmt.Fprintf(c.stdout, "there are no servers; %s adds one\n", c.commandLine("mcp add NAME -- COMMAND ARGUMENTS"))
					return
				}
				rows := [][]string{{"SERVER", "STATE", "TRANSPORT", "TOOLS", "OWNER"}}
				for _, v := range s.Servers {
					state, owner := v.State, "configuration"
					if !v.Enabled {
						state = "off"
					}
					if v.Plugin != "" {
						owner = "plug-in " + v.Plugin
					}
					rows = append(rows, []string{ansi.Line(v.Name), state, v.Transport, fmt.Sprint(len(v.Tools)), owner})
				}
				c.printTable(rows)
				for _, v := range s.Servers {
					c.printServerProblems(v)
				}
			})
		},
	})
}

// printServerProblems prints what is wrong with a server.
func (c *commands) printServerProblems(v wire.MCPServer) {
	if v.Error != "" {
		fmt.Fprintf(c.stdout, "%s: %s\n", ansi.Line(v.Name), ansi.Line(v.Error))
	}
	for _, p := range v.Problems {
		fmt.Fprintf(c.stdout, "%s: warning: %s\n", ansi.Line(v.Name), ansi.Line(p))
	}
}

func (c *commands) mcpShow() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "show SERVER", Short: "Show a server and its tools", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var s wire.MCPStatus
			if err := c.call(cmd.Context(), wire.MethodMCPStatus, wire.None{}, &s); err != nil {
				return err
			}
			for _, v := range s.Servers {
				if v.Name != args[0] {
					continue
				}
				return c.print(v, func() {
					fmt.Fprintf(c.stdout, "server       %s\nstate        %s\ntransport    %s\n",
						ansi.Line(v.Name), v.State, v.Transport)
					if v.Login != nil {
						fmt.Fprintf(c.stdout, "login        %s\n", loginText(*v.Login))
					}
					for _, t := range v.Tools {
						fmt.Fprintln(c.stdout, "  "+ansi.Line(t))
					}
					c.printServerProblems(v)
				})
			}
			return c.suggest(chela.Errorf(chela.CodeNotFound, "there is no server %q", args[0]), "mcp list")
		}})
}

func (c *commands) mcpAdd() *cobra.Command {
	var url, transport, dir, auth, scope, client string
	var env, headers, include, exclude []string
	var noProbe, replace bool
	cmd := &cobra.Command{
		Use:     "add NAME [-- COMMAND [ARGUMENT]...]",
		Short:   "Add a server: a program, or one on the network",
		Args:    between(1, 200),
		Example: "  chela mcp add files -- npx -y @modelcontextprotocol/server-filesystem /srv/docs\n  chela mcp add docs --url https://example.com/mcp --header 'Authorization=Bearer ${DOCS_TOKEN}'",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, argv := args[0], args[1:]
			s := map[string]any{}
			switch {
			case (url == "") == (len(argv) == 0):
				return usage(errors.New("want either --url or a command after --"))
			case url != "":
				s["url"] = url
				if transport == "" {
					transport = "streamable-http"
				}
				s["transport"] = transport
			default:
				s["command"] = argv[0]
				if len(argv) > 1 {
					s["args"] = argv[1:]
				}
			}
			for _, part := range [...]struct {
				key  string
				list []string
			}{{"env", env}, {"headers", headers}} {
				m, err := assignments(part.list)
				if err != nil {
					return usage(err)
				}
				if len(m) > 0 {
					s[part.key] = m
				}
			}
			if dir != "" {
				s["cwd"] = dir
			}
			if auth != "" {
				s["auth"] = auth
			}
			login := map[string]string{}
			if scope != "" {
				login["scope"] = scope
			}
			if client != "" {
				login["clientId"] = client
			}
			if len(login) > 0 {
				s["oauth"] = login
			}
			filter := map[string][]string{}
			if len(include) > 0 {
				filter["include"] = include
			}
			if len(exclude) > 0 {
				filter["exclude"] = exclude
			}
			if len(filter) > 0 {
				s["toolFilter"] = filter
			}
			b, err := json.Marshal(s)
			if err != nil {
				return err
			}
			path := config.FormatPath([]string{"mcp", "servers", name})
			var old json.RawMessage
			err = c.changeBy(cmd.Context(), func(section func(path string) json.RawMessage) ([]config.Edit, error) {
				if old = section(path); old != nil && !replace {
					return nil, c.suggest(chela.Errorf(chela.CodeConflict, "there is a server %q already", name),
						"mcp add --replace "+name+" …")
				}
				return []config.Edit{{Path: path, Value: b}}, nil
			})
			if err != nil || noProbe {
				return err
			}
			if err = c.probe(cmd.Context(), name); err == nil {
				return nil
			}
			if e, ok := errors.AsType[*wire.Error](err); ok && e.Detail() == wire.DetailNeedsLogin {
				fmt.Fprintln(c.stdout, "added; it wants you to log in: "+c.commandLine("mcp login "+name))
				return nil
			}
			undo := c.changeBy(cmd.Context(), func(func(string) json.RawMessage) ([]config.Edit, error) {
				return []config.Edit{{Path: path, Value: old}}, nil
			})
			if undo != nil {
				return errors.Join(err, fmt.Errorf("remove the server from the configuration again: %w", undo))
			}
			fmt.Fprintln(c.stderr, "the configuration is as it was before")
			return withHint(err, c.commandLine("mcp add --no-probe "+name+" …")+" adds it all the same")
		},
	}
	f := cmd.Flags()
	f.StringVar(&url, "url", "", "the `URL` of a server on the network")
	f.StringVar(&transport, "transport", "", "streamable-http (the default) or sse, with --url")
	f.StringArrayVar(&env, "env", nil, "a variable `NAME=VALUE` of the program (may be repeated)")
	f.StringArrayVar(&headers, "header", nil, "a header `NAME=VALUE` of requests (may be repeated)")
	f.StringVar(&auth, "auth", "", "oauth: use the server with a login only, see mcp login")
	f.StringVar(&scope, "oauth-scope", "",
		"the rights `SCOPES` that a login asks for, instead of those that the server names")
	f.StringVar(&client, "oauth-client-id", "", "the `ID` of a client that you registered at the service")
	f.StringVar(&dir, "cwd", "", "the working `FOLDER` of the program")
	f.StringSliceVar(&include, "include", nil, "offer only these `TOOLS`; * stands for any text")
	f.StringSliceVar(&exclude, "exclude", nil, "do not offer these `TOOLS`")
	f.BoolVar(&noProbe, "no-probe", false, "do not start it to list its tools")
	f.BoolVar(&replace, "replace", false, "replace a server with the same name")
	return cmd
}

// loginText describes the login of a server in one line.
func loginText(l wire.MCPLogin) string {
	text := l.State
	if l.Issuer != "" {
		text += ", at " + ansi.Line(l.Issuer)
	}
	if len(l.Scopes) > 0 {
		text += ", rights: " + ansi.Line(strings.Join(l.Scopes, " "))
	}
	switch {
	case l.State != "in":
	case l.Renews:
		text += ", renewed by itself"
	case l.Expires != 0:
		text += ", until " + l.Expires.Time().Local().Format(time.DateTime)
	}
	if l.Problem != "" {
		text += ": " + ansi.Line(l.Problem)
	}
	return text
}

// assignments parses texts like NAME=VALUE.
func assignments(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q: want NAME=VALUE", name)
		}
		out[name] = value
	}
	return out, nil
}

func (c *commands) mcpUnset() *cobra.Command {
	return &cobra.Command{
		Use:     "unset SERVER",
		Aliases: []string{"remove"},
		Short:   "Remove a server from the configuration",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := config.FormatPath([]string{"mcp", "servers", args[0]})
			err := c.changeBy(cmd.Context(), func(section func(path string) json.RawMessage) ([]config.Edit, error) {
				if section(path) == nil {
					return nil, c.suggest(chela.Errorf(chela.CodeNotFound, "the configuration has no server %q", args[0]), "mcp list")
				}
				return []config.Edit{{Path: path}}, nil
			})
			if err != nil {
				return err
			}
			var out wire.MCPLoggedOut
			if err := c.call(cmd.Context(), wire.MethodMCPLogout, wire.MCPLogout{Name: args[0]}, &out); err != nil {
				return fmt.Errorf("the server is removed, its login is not: %w", err)
			}
			if out.Removed {
				fmt.Fprintln(c.stderr, "its login is removed too")
			}
			return nil
		},
	}
}

func (c *commands) mcpProbe() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "probe SERVER", Short: "Start a server once and list its tools",
		Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
			return c.probe(cmd.Context(), args[0])
		}})
}

// probe starts a server once and prints what it offers.
func (c *commands) probe(ctx context.Context, name string) error {
	var out wire.MCPProbed
	if err := c.call(ctx, wire.MethodMCPProbe, wire.MCPProbe{Name: name}, &out); err != nil {
		return c.suggest(err, "mcp list")
	}
	return c.print(out, func() {
		fmt.Fprintf(c.stdout, "%s answered after %d ms: %s\n", ansi.Line(name), out.TookMS, ansi.Line(out.Server))
		rows := [][]string{{"TOOL", "NAME FOR MODELS", "DESCRIPTION"}}
		for _, t := range out.Tools {
			exposed := t.Exposed
			if exposed == "" {
				exposed = "(not offered)"
			}
			rows = append(rows, []string{ansi.Line(t.Name), ansi.Line(exposed), ansi.Truncate(ansi.Line(t.Description), 60)})
		}
		c.printTable(rows)
		for _, p := range out.Problems {
			fmt.Fprintln(c.stdout, ansi.Line(p))
		}
	})
}
