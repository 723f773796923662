package approvals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/wire"
)

// rules calls f with the rules about commands.
func (c commands) rules(ctx context.Context, f func(*client.Client, wire.ExecPolicySnapshot) error) error {
	return c.Dial(ctx, func(l *client.Client) error {
		var s wire.ExecPolicySnapshot
		if err := l.Call(ctx, wire.MethodExecPolicy, wire.None{}, &s); err != nil {
			return err
		}
		return f(l, s)
	})
}

// change replaces the rules by what f makes of them.
func (c commands) change(ctx context.Context, f func(*wire.ExecPolicy) error) error {
	return c.rules(ctx, func(l *client.Client, s wire.ExecPolicySnapshot) error {
		if err := f(&s.File); err != nil {
			return err
		}
		return l.Call(ctx, wire.MethodExecPolicySet, wire.ExecPolicySet{File: s.File, BaseHash: s.Hash}, nil)
	})
}

func (c commands) set() *cobra.Command {
	var file string
	var stdin bool
	cmd := &cobra.Command{
		Use: "set FILE", Short: "Replace the rules about commands", Args: console.Between(0, 1),
		Long: "Replace the rules about commands by those in FILE, or in standard input for -, as `approvals get --rules` writes them.\n" +
			"A command that was allowed always and is not in them is asked about again.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if stdin {
				args = append(args, "-")
			}
			if file != "" {
				args = append(args, file)
			}
			if len(args) != 1 {
				return console.Usage(console.Hint(errors.New("which file?"), cmd.UseLine()))
			}
			b, err := c.read(args[0])
			if err != nil {
				return err
			}
			var next wire.ExecPolicy
			dec := json.NewDecoder(bytes.NewReader(b))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&next); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			err = c.change(cmd.Context(), func(p *wire.ExecPolicy) error { *p = next; return nil })
			if err == nil {
				fmt.Fprintln(c.Out, "The rules hold from the next command on.")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the same as `FILE`")
	cmd.Flags().BoolVar(&stdin, "stdin", false, "the same as -")
	return cmd
}

// read returns what is in a file, or in standard input.
func (c commands) read(name string) ([]byte, error) {
	var from io.Reader = c.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	b, err := io.ReadAll(io.LimitReader(from, allowlist.MaxDocument+1))
	if err == nil && len(b) > allowlist.MaxDocument {
		err = fmt.Errorf("%s: it has more than %d bytes", name, allowlist.MaxDocument)
	}
	return b, err
}

func (c commands) bring() *cobra.Command {
	return &cobra.Command{
		Use: "import [FILE]", Short: "Take over the rules of OpenClaw", Args: console.Between(0, 1),
		Long: "Take over the rules about commands in FILE, by default ~/.openclaw/exec-approvals.json: the policy, and the entries that a person\n" +
			"made. Entries that OpenClaw made for commands allowed always are bound to its own form of them, and are left out.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				home, err := os.UserHomeDir()
				if err != nil {
					return err
				}
				args = []string{filepath.Join(home, ".openclaw", allowlist.FileName)}
			}
			b, err := c.read(args[0])
			if errors.Is(err, fs.ErrNotExist) {
				return c.Hint(fmt.Errorf("there is no %s", args[0]), "approvals import FILE")
			}
			if err != nil {
				return err
			}
			d, err := allowlist.Parse(b)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			var n, left int
			err = c.change(cmd.Context(), func(p *wire.ExecPolicy) error {
				n, left = merge(p, d)
				return nil
			})
			if err == nil {
				fmt.Fprintf(c.Out, "Taken over: %s; left out: %d.\n", figure.Many(n, "entry"), left)
				fmt.Fprintln(c.Err, "what holds now: "+c.Command("exec-policy show"))
			}
			return err
		},
	}
}

// merge adds the rules of a document; what it says of the policy goes before.
func merge(p *wire.ExecPolicy, d *allowlist.Document) (added, left int) {
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
				left++
			case !slices.ContainsFunc(a.Allowlist, same):
				a.Allowlist = append(a.Allowlist, wire.ExecEntry{ID: e.ID, Pattern: e.Pattern, Args: e.Args})
				added++
			}
		}
		p.Agents[id] = a
	}
	return added, left
}

func (c commands) allowlist() *cobra.Command {
	return console.Group("allowlist", "Programs that run without a question", c.listEntries(), c.addEntry(), c.removeEntry())
}

func (c commands) listEntries() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "list", Short: "List them", Args: console.Exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		return c.rules(cmd.Context(), func(_ *client.Client, s wire.ExecPolicySnapshot) error {
			rows := entries(s.File)
			switch {
			case asJSON:
				return c.JSON(s.File.Agents)
			case len(rows) == 0:
				fmt.Fprintln(c.Out, "The allowlist is empty.")
				return nil
			}
			c.Table(append([][]string{{"ID", "AGENT", "RUNS", "WITH", "LAST USED"}}, rows...))
			return nil
		})
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c commands) addEntry() *cobra.Command {
	var agent, args string
	cmd := &cobra.Command{
		Use: "add PATTERN", Short: "Let a program run", Args: console.Exactly(1),
		Long: "Let a program run without a question. PATTERN is the path of its file, with *, ** and ?, or its name, which then holds only where\n" +
			"it is found by that name. Without --args it runs with any arguments: of a program that runs others, that is everything.",
		Example: "  chela approvals allowlist add make\n" +
			"  chela approvals allowlist add --args 'test( .*)?' /usr/local/go/bin/go",
		RunE: func(cmd *cobra.Command, names []string) error {
			e := wire.ExecEntry{Pattern: names[0], Args: args}
			err := c.change(cmd.Context(), func(p *wire.ExecPolicy) error {
				a := p.Agents[agent]
				if slices.ContainsFunc(a.Allowlist, func(o wire.ExecEntry) bool { return o.Pattern == e.Pattern && o.Args == e.Args }) {
					return fmt.Errorf("%s is on the allowlist", e.Pattern)
				}
				a.Allowlist = append(a.Allowlist, e)
				p.Agents[agent] = a
				return nil
			})
			if err == nil {
				fmt.Fprintln(c.Out, "added "+e.Pattern)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&agent, "agent", allowlist.AllAgents, "only for the agent `ID`")
	cmd.Flags().StringVar(&args, "args", "", "only with arguments that `REGEXP` matches as a whole, joined by spaces")
	return cmd
}

func (c commands) removeEntry() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use: "remove PATTERN|ID", Short: "Ask about it again", Args: console.Exactly(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			n := 0
			err := c.change(cmd.Context(), func(p *wire.ExecPolicy) error {
				for id, a := range p.Agents {
					if agent != "" && agent != id {
						continue
					}
					was := len(a.Allowlist)
					a.Allowlist = slices.DeleteFunc(a.Allowlist, func(e wire.ExecEntry) bool { return e.Pattern == names[0] || e.ID == names[0] })
					n += was - len(a.Allowlist)
					if p.Agents[id] = a; len(a.Allowlist) == 0 && len(a.MCPTools) == 0 && a.ExecSettings == (wire.ExecSettings{}) {
						delete(p.Agents, id)
					}
				}
				if n == 0 {
					return c.Hint(errors.New(names[0]+" is not on the allowlist"), "approvals allowlist list")
				}
				return nil
			})
			if err == nil {
				fmt.Fprintf(c.Out, "removed %s (%d)\n", names[0], n)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "only for the agent `ID`")
	return cmd
}
