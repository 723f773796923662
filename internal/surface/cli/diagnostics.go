package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// Diagnostics collects what helps to understand a fault.
type Diagnostics interface {
	// Export writes a zip file without messages, names, addresses, paths and secrets. It
	// returns the names of the files in it.
	Export(ctx context.Context, s Start, found []Finding, out io.Writer) ([]string, error)
}

func (c *commands) gatewayDiagnostics() *cobra.Command {
	return here(group("diagnostics", "Collect what helps to understand a fault", c.withJSON(&cobra.Command{
		Use:   "export [FILE]",
		Short: "Write a zip file for a bug report, without messages, names and keys",
		Args:  between(0, 1),
		Long: "Write a zip file with the version, what chela doctor finds, the settings without texts, numbers about\n" +
			"the database, metrics, and the log without texts of people. It contains no messages, names,\n" +
			"addresses, paths or keys. An existing file is never replaced.",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := c.start()
			if err != nil {
				return err
			}
			file := "chela-diagnostics-" + time.Now().Format("2006-01-02T15-04-05") + ".zip"
			if len(args) > 0 {
				file = args[0]
			}
			if file, err = filepath.Abs(file); err != nil {
				return err
			}
			root, err := os.OpenRoot(filepath.Dir(file))
			if err != nil {
				return fmt.Errorf("diagnostics: %w", err)
			}
			defer root.Close()
			var names []string
			found := c.findings(cmd.Context(), s)
			err = atomicfile.CreateIn(root, filepath.Base(file), 0o600, func(w io.Writer) (err error) {
				names, err = c.app.Diagnostics.Export(cmd.Context(), s, found, w)
				return err
			})
			if errors.Is(err, fs.ErrExist) {
				return c.suggest(fmt.Errorf("diagnostics: %s already exists", file), "gateway diagnostics export FILE")
			} else if err != nil {
				return fmt.Errorf("diagnostics: %w", err)
			}
			return c.print(map[string]any{"file": file, "contains": names}, func() {
				for _, n := range names {
					fmt.Fprintln(c.stdout, "  "+n)
				}
				fmt.Fprintln(c.stdout, file+": look through it before you give it to others")
			})
		},
	})))
}
