package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// Releases knows the version that runs, and finds the newest one.
type Releases interface {
	// Status returns what is known without the network.
	Status(s Start) (Release, error)
	// Check asks for the newest version. With keep, Status knows it from then on.
	Check(ctx context.Context, s Start, keep bool) (Release, error)
}

// Release is the version that runs and the newest one.
type Release struct {
	Version string     `json:"version"`
	Install string     `json:"install"` // InstallGo, InstallFile
	Program string     `json:"program"`
	Newest  string     `json:"newest,omitempty"`  // "": nobody has asked
	Newer   bool       `json:"updateAvailable"`   // the newest one is newer
	Checked *time.Time `json:"checked,omitempty"` // when it was asked for and kept
	Command string     `json:"command,omitempty"` // that installs it
}

// How a program was installed.
const (
	InstallGo   = "go install"
	InstallFile = "file"
)

func (c *commands) update() *cobra.Command {
	dry := false
	cmd := c.withJSON(&cobra.Command{
		Use: "update", Short: "Look for a newer version and say how to install it", Args: noArgs,
		Long: "Ask the module proxy of Go, or that of GOPROXY, for the newest version, and say what to type to\n" +
			"install it. Chela does not replace itself, and never asks unless you do.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.start()
			if err != nil {
				return err
			}
			r, err := c.app.Releases.Check(cmd.Context(), s, !dry)
			if err != nil {
				return err
			}
			return c.print(r, func() { c.printRelease(r) })
		},
	})
	cmd.Flags().BoolVar(&dry, "dry-run", false, "write nothing: do not keep the answer for chela update status")
	cmd.AddCommand(c.updateStatus())
	return cmd
}

func (c *commands) updateStatus() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "status",
		Short: "Show the version and what the last look found, without the network", Args: exactly(0),
		RunE: func(*cobra.Command, []string) error {
			s, err := c.start()
			if err != nil {
				return err
			}
			r, err := c.app.Releases.Status(s)
			if err != nil {
				return err
			}
			return c.print(r, func() { c.printRelease(r) })
		}})
}

func (c *commands) printRelease(r Release) {
	c.printRow("version", r.Version)
	c.printRow("program", r.Program)
	how := "a file that was put there"
	if r.Install == InstallGo {
		how = "by go install"
	}
	c.printRow("installed", how)
	newest := r.Newest
	switch {
	case newest == "":
		newest = "not known; " + c.commandLine("update") + " asks for it"
	case r.Checked != nil:
		newest += ", asked for " + ago(*r.Checked)
	}
	c.printRow("newest", newest)
	switch {
	case r.Newer:
		fmt.Fprintln(c.stdout, "\nTo update: "+r.Command)
		fmt.Fprintln(c.stdout, "Before: "+c.commandLine("backup create")+"; after: "+c.commandLine("gateway restart"))
	case r.Newest != "":
		fmt.Fprintln(c.stdout, "\nThis is the newest version.")
	}
}
