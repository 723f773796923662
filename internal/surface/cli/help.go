package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// help returns the help text of a command.
func help(cmd *cobra.Command) string {
	var b strings.Builder
	description := cmd.Long
	if description == "" {
		description = cmd.Short + "."
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n", ansi.Wrap(lineBreak().ReplaceAllString(description, "$1 $2"), helpWidth))
	if !cmd.HasAvailableSubCommands() || strings.Contains(cmd.Use, " ") {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s <command>\n", cmd.CommandPath())
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", narrow(cmd.Example))
	}
	var rows [][2]string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			rows = append(rows, [2]string{sub.Name(), sub.Short})
		}
	}
	slices.SortFunc(rows, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	section(&b, "Commands", rows)
	section(&b, "Flags", flags(cmd.LocalNonPersistentFlags()))
	persistent := cmd.InheritedFlags()
	if !cmd.HasParent() {
		persistent = cmd.PersistentFlags()
	}
	section(&b, "Global flags", flags(persistent))
	return b.String()
}

// flags returns the names and descriptions of the visible flags, sorted by name.
func flags(set *pflag.FlagSet) [][2]string {
	zeros := []string{"", "false", "0", "0s", "[]"} // default values that are not shown
	var rows [][2]string
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "    --" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", --" + f.Name
		}
		if f.Value.Type() != "bool" {
			name += " " + kind
		}
		if !slices.Contains(zeros, f.DefValue) {
			usage += " (default " + f.DefValue + ")"
		}
		rows = append(rows, [2]string{name, usage})
	})
	return rows
}

// helpWidth is the columns of a help text.
const helpWidth = 80

// lineBreak is one inside of a paragraph: the next line does not begin with a blank.
var lineBreak = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\S)\n(\S)`) })

// narrow breaks long command lines before a flag, so that they can still be copied.
func narrow(examples string) string {
	lines := strings.Split(examples, "\n")
	for i, line := range lines {
		if len(line) <= helpWidth || !strings.HasPrefix(line, "  chela ") {
			continue
		}
		if at := strings.LastIndex(line[:helpWidth-2], " -"); at > 0 {
			lines[i] = line[:at] + " \\\n   " + line[at:]
		}
	}
	return strings.Join(lines, "\n")
}

// section writes a title and rows of two columns.
func section(b *strings.Builder, title string, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	width := 0
	for _, r := range rows {
		width = max(width, len(r[0]))
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, r := range rows {
		lines := strings.Split(ansi.Wrap(r[1], max(helpWidth-width-4, 30)), "\n")
		fmt.Fprintf(b, "  %-*s  %s\n", width, r[0], lines[0])
		for _, l := range lines[1:] {
			fmt.Fprintf(b, "  %-*s  %s\n", width, "", l)
		}
	}
}
