package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/wire"
)

// withRules connects and calls f with the command rules.
func (c *commands) withRules(ctx context.Context, f func(*link, wire.ExecPolicySnapshot) error) error {
	return c.withLink(ctx, func(l *link) error {
		return callOn(ctx, l, wire.MethodExecPolicy, wire.None{}, func(s wire.ExecPolicySnapshot) error { return f(l, s) })
	})
}

// changeRules edits the command rules with f.
func (c *commands) changeRules(ctx context.Context, f func(*wire.ExecPolicy) error) error {
	return c.withRules(ctx, func(l *link, s wire.ExecPolicySnapshot) error {
		if s.File.Agents == nil { // OpenClaw leaves it out if there are no rules of agents
			s.File.Agents = map[string]wire.ExecAgent{}
		}
		if err := f(&s.File); err != nil {
			return err
		}
		return l.Call(ctx, wire.MethodExecPolicySet, wire.ExecPolicySet{File: s.File, BaseHash: s.Hash}, nil)
	})
}

func (c *commands) approvalsSet() *cobra.Command {
	var file string
	var stdin bool
	cmd := &cobra.Command{
		Use: "set FILE", Short: "Replace the command rules", Args: between(0, 1),
		Long: "Replace the command rules with those in FILE, or in standard input if FILE is -. The format is\n" +
			"the one that `approvals get --rules` prints. A command that was always allowed and is not in\n" +
			"the new rules needs approval again.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if stdin {
				args = append(args, "-")
			}
			if file != "" {
				args = append(args, file)
			}
			if len(args) != 1 {
				return usage(withHint(errors.New("want exactly one file"), cmd.UseLine()))
			}
			b, err := c.readFile(args[0], allowlist.MaxDocument)
			if err != nil {
				return err
			}
			var next wire.ExecPolicy
			dec := json.NewDecoder(bytes.NewReader(b))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&next); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			err = c.changeRules(cmd.Context(), func(p *wire.ExecPolicy) error { *p = next; return nil })
			if err == nil {
				fmt.Fprintln(c.stdout, "The rules take effect with the next command.")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "read the rules from `FILE`")
	cmd.Flags().BoolVar(&stdin, "stdin", false, "read the rules from standard input")
	return cmd
}

func (c *commands) approvalsImport() *cobra.Command {
	return &cobra.Command{
		Use: "import [FILE]", Short: "Import command rules from OpenClaw", Args: between(0, 1),
		Long: "Import the command rules in FILE, by default ~/.openclaw/exec-approvals.json: the policy and the\n" +
			"entries that a person added. Entries that OpenClaw created for commands that were always allowed\n" +
			"are skipped: they contain OpenClaw's own encoding of a command.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				home, err := os.UserHomeDir()
				if err != nil {
					return err
				}
				args = []string{filepath.Join(home, ".openclaw", allowlist.FileName)}
			}
			b, err := c.readFile(args[0], allowlist.MaxDocument)
			if errors.Is(err, fs.ErrNotExist) {
				return c.suggest(fmt.Errorf("%s does not exist", args[0]), "approvals import FILE")
			}
			if err != nil {
				return err
			}
			d, err := allowlist.Parse(b)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			var added, skipped int
			err = c.changeRules(cmd.Context(), func(p *wire.ExecPolicy) error {
				added, skipped = mergeRules(p, d)
				return nil
			})
			if err == nil {
				fmt.Fprintf(c.stdout, "Imported %s, skipped %d.\n", humanize.Many(added, "entry"), skipped)
				fmt.Fprintln(c.stderr, "to check: "+c.commandLine("exec-policy show"))
			}
			return err
		},
	}
}

// mergeRules adds the entries of a document to p. The policy of the document
// overrides the policy of p.
func mergeRules(p *wire.ExecPolicy, d *allowlist.Document) (added, skipped int) {
	settings := func(s *wire.ExecSettings, from allowlist.Settings) {
		for _, v := range [...]struct {
			to   *string
			from string
		}{{&s.Security, string(from.Security)}, {&s.Ask, string(from.Ask)}, {&s.Fallback, string(from.Fallback)}} {
			if v.from != "" {
				*v.to = v.from
			}
		}
	}
	settings(&p.Defaults, d.Defaults)
	for id, from := range d.Agents {
		a := p.Agents[id]
		settings(&a.ExecSettings, from.Settings)
		for _, e := range from.Allowlist {
			same := func(o wire.ExecEntry) bool { return o.Pattern == e.Pattern && o.Args == e.Args }
			switch {
			case e.Source == wire.AllowAlways:
				skipped++
			case !slices.ContainsFunc(a.Allowlist, same):
				a.Allowlist = append(a.Allowlist, wire.ExecEntry{ID: e.ID, Pattern: e.Pattern, Args: e.Args})
				added++
			}
		}
		p.Agents[id] = a
	}
	return added, skipped
}

func (c *commands) allowlist() *cobra.Command {
	return group("allowlist", "Manage programs that run without approval", c.allowlistList(),
		c.allowlistAdd(), c.allowlistRemove())
}

func (c *commands) allowlistList() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "list", Short: "List the allowlist", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withRules(cmd.Context(), func(_ *link, s wire.ExecPolicySnapshot) error {
				rows := allowlistRows(s.File)
				switch {
				case c.json:
					return c.printJSON(s.File.Agents)
				case len(rows) == 0:
					fmt.Fprintln(c.stdout, "The allowlist is empty.")
					return nil
				}
				c.printTable(append([][]string{{"ID", "AGENT", "PROGRAM", "ARGUMENTS", "RUNS", "LAST USED"}}, rows...))
				return nil
			})
		}})
}

func (c *commands) allowlistAdd() *cobra.Command {
	var agent, args string
	var host bool
	cmd := &cobra.Command{
		Use: "add PATTERN", Short: "Let a program run without approval", Args: exactly(1),
		Long: "Let a program run without approval. PATTERN is the path of its file, which may contain *, ** and ?,\n" +
			"or its name; a name matches only commands that are called by that name. Without --args, the program\n" +
			"may run with any arguments. Where there is a sandbox, it runs there; with --host it runs outside of it.\n" +
			"If it can run other programs, --host allows everything.",
		Example: "  chela approvals allowlist add make\n" +
			"  chela approvals allowlist add --host --args 'ps|images' docker\n" +
			"  chela approvals allowlist add --args 'test( .*)?' /usr/local/go/bin/go",
		RunE: func(cmd *cobra.Command, names []string) error {
			e := wire.ExecEntry{Pattern: names[0], Args: args, Host: host}
			err := c.withLink(cmd.Context(), func(l *link) error { return c.checkPattern(cmd.Context(), l, agent, names[0]) })
			if err != nil {
				return err
			}
			err = c.changeRules(cmd.Context(), func(p *wire.ExecPolicy) error {
				a := p.Agents[agent]
				if slices.ContainsFunc(a.Allowlist,
					func(o wire.ExecEntry) bool { return o.Pattern == e.Pattern && o.Args == e.Args }) {
					return fmt.Errorf("%s is already on the allowlist", e.Pattern)
				}
				a.Allowlist = append(a.Allowlist, e)
				p.Agents[agent] = a
				return nil
			})
			if err == nil {
				fmt.Fprintln(c.stdout, "added "+e.Pattern)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&agent, "agent", allowlist.AllAgents, "only for the agent `ID`")
	cmd.Flags().BoolVar(&host, "host", false, "run it outside of the sandbox")
	cmd.Flags().StringVar(&args, "args", "", "allow only arguments that match `REGEXP` in full, joined by spaces")
	return cmd
}

// checkPattern returns an error if an entry with a pattern would never allow anything.
func (c *commands) checkPattern(ctx context.Context, l *link, agent, pattern string) error {
	if !strings.ContainsAny(pattern, `/\`) {
		return nil
	}
	if !filepath.IsAbs(pattern) && !slices.ContainsFunc([]string{"/", "~/", "*", "?"}, func(start string) bool {
		return strings.HasPrefix(pattern, start)
	}) {
		abs, err := filepath.Abs(pattern)
		if err != nil {
			return err
		}
		return c.suggest(fmt.Errorf("%s is not an absolute path, and programs are compared by theirs", pattern),
			"approvals allowlist add "+shell.Escape(abs))
	}
	home, _ := os.UserHomeDir() // "": no path is in it
	return callOn(ctx, l, wire.MethodAgentsList, wire.None{}, func(list wire.AgentsList) error {
		workspace := ""
		for _, a := range list.Agents {
			switch {
			case agent != allowlist.AllAgents && agent != a.ID:
			case a.Workspace == "" || !(allowlist.Env{Workspace: a.Workspace, Home: home}).Never(pattern):
				return nil // it may match for this agent
			default:
				workspace = a.Workspace
			}
		}
		if workspace == "" {
			return nil
		}
		err := fmt.Errorf("%s is in the workspace %s, where the assistant can change it, so an entry does not allow it; put the program into another folder", pattern, workspace)
		if strings.ContainsAny(pattern, "*?") {
			return err
		}
		return withHint(err, "cp "+shell.Escape(pattern)+" ~/.local/bin/")
	})
}

func (c *commands) allowlistRemove() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use: "remove PATTERN|ID", Short: "Remove an entry, so that the program needs approval again", Args: exactly(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			n := 0
			err := c.changeRules(cmd.Context(), func(p *wire.ExecPolicy) error {
				for id, a := range p.Agents {
					if agent != "" && agent != id {
						continue
					}
					before := len(a.Allowlist)
					a.Allowlist = slices.DeleteFunc(a.Allowlist,
						func(e wire.ExecEntry) bool { return e.Pattern == names[0] || e.ID == names[0] })
					n += before - len(a.Allowlist)
					if p.Agents[id] = a; len(a.Allowlist) == 0 && len(a.MCPTools) == 0 && a.ExecSettings == (wire.ExecSettings{}) {
						delete(p.Agents, id)
					}
				}
				if n == 0 {
					return c.suggest(errors.New(names[0]+" is not on the allowlist"), "approvals allowlist list")
				}
				return nil
			})
			if err == nil {
				fmt.Fprintf(c.stdout, "removed %s (%d)\n", names[0], n)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "only for the agent `ID`")
	return cmd
}
