package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/daemon"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// serviceName is the name of the service of the gateway; those of profiles have their name
// behind it.
const serviceName = "chela-gateway"

// services returns the service manager, and the name of the service of this installation.
func (c *commands) services(s Start) (daemon.Manager, string, error) {
	name := serviceName
	if s.Profile != "" {
		name += "-" + s.Profile
	}
	m, err := c.app.Services()
	return m, name, c.withoutManager(err)
}

// service returns the service of the gateway as it is to be.
func (c *commands) service(s Start, name string, port int) (daemon.Spec, error) {
	program := c.app.Program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return daemon.Spec{}, err
		}
	}
	if c.app.Program == "" && strings.Contains(program, string(filepath.Separator)+"go-build") {
		return daemon.Spec{}, withHint(errors.New("this chela was started by go run and is gone afterwards"),
			"go install ./cmd/chela")
	}
	args := []string{"gateway", "run"}
	if s.Profile != "" {
		args = append(args, "--profile", s.Profile)
	}
	if c.chosen("STATE_DIR") {
		args = append(args, "--state-dir", s.State)
	}
	if c.chosen("CONFIG_PATH") {
		args = append(args, "--config", s.Config)
	}
	if port != 0 {
		args = append(args, "--port", strconv.Itoa(port))
	}
	title := "Chela gateway"
	if s.Profile != "" {
		title += " (" + s.Profile + ")"
	}
	return daemon.Spec{
		Name:    name,
		Title:   title,
		Program: program,
		Args:    args,
		Path:    c.getenv("PATH"),
		Logs:    filepath.Join(s.State, "logs"),
	}, nil
}

// chosen reports whether a variable or a flag selects a path of the installation.
func (c *commands) chosen(name string) bool {
	return c.env("CHELA_"+name) != "" || c.env("OPENCLAW_"+name) != ""
}

func (c *commands) gatewayInstall() *cobra.Command {
	port := 0
	cmd := c.withJSON(&cobra.Command{
		Use: "install", Short: "Run the gateway as a service: now, and whenever you log in", Args: exactly(0),
		Long: "Have the service manager of this computer run the gateway: systemd on Linux, launchd\n" +
			"on macOS, the Task Scheduler on Windows. It starts now and whenever you log in, and\n" +
			"again if it ends. Done again, it takes over a changed port or a moved program.",
		RunE: func(cmd *cobra.Command, _ []string) error { return c.install(cmd.Context(), port) },
	})
	cmd.Flags().IntVar(&port, "port", 0, "listen on port `N` instead of gateway.port")
	return cmd
}

func (c *commands) install(ctx context.Context, port int) error {
	s, err := c.start()
	if err != nil {
		return err
	}
	m, name, err := c.services(s)
	if err != nil {
		return err
	}
	spec, err := c.service(s, name, port)
	if err != nil {
		return err
	}
	before, err := m.State(ctx, name)
	if err != nil {
		return err
	}
	if _, err := c.app.Attach(ctx, s); err == nil && !before.Running {
		return withHint(errors.New("a gateway runs already, not as a service"), "stop it first: Ctrl-C in its terminal")
	}
	if err := m.Install(ctx, spec); err != nil {
		return c.withoutManager(fmt.Errorf("install the service: %w", err))
	}
	return c.awaitService(ctx, s, m, name)
}

// withoutManager adds to an error that the machine has no service manager what to do.
func (c *commands) withoutManager(err error) error {
	if errors.Is(err, daemon.ErrNone) {
		return withHint(err, c.commandLine("gateway run")+", in the foreground or under a supervisor of your own")
	}
	return err
}

// Times of waiting for the gateway of a service to answer.
const (
	serviceWait  = 30 * time.Second
	servicePause = 200 * time.Millisecond
)

// awaitService waits until the gateway of a service answers, and prints its state.
func (c *commands) awaitService(ctx context.Context, s Start, m daemon.Manager, name string) error {
	for begun := time.Now(); ; time.Sleep(servicePause) {
		st, err := m.State(ctx, name)
		if err != nil {
			return err
		}
		if _, err := c.app.Attach(ctx, s); err == nil {
			break
		}
		if ended := !st.Running && st.PID == 0 && time.Since(begun) > time.Second; ended ||
			time.Since(begun) > serviceWait || ctx.Err() != nil {
			return c.suggest(fmt.Errorf("the service was started, but its gateway does not answer (%s)", st.Detail), "logs")
		}
	}
	st, err := c.gatewayState(ctx)
	if err != nil {
		return err
	}
	err = c.print(st, func() { c.printGateway(st) })
	if ok, how := m.Stays(ctx); err == nil && !ok && !c.json {
		c.printHint(stays(how))
	}
	return err
}

// stays says when a service ends, and what keeps it.
func stays(how string) string {
	if how == "" {
		return "it runs while you are logged in"
	}
	return "it runs while you are logged in; for ever: " + how
}

func (c *commands) gatewayUninstall() *cobra.Command {
	return &cobra.Command{Use: "uninstall", Short: "Stop the service and remove it; nothing else is removed",
		Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.start()
			if err != nil {
				return err
			}
			m, name, err := c.services(s)
			if err != nil {
				return err
			}
			st, err := m.State(cmd.Context(), name)
			if err != nil {
				return err
			}
			if !st.Installed {
				fmt.Fprintln(c.stdout, "there is no service")
				return nil
			}
			if err := m.Uninstall(cmd.Context(), name); err != nil {
				return fmt.Errorf("remove the service: %w", err)
			}
			fmt.Fprintln(c.stdout, "removed "+ansi.Line(st.File))
			return nil
		}}
}

// gatewayService returns a command that starts or stops the service.
func (c *commands) gatewayService(use, short string, do func(daemon.Manager, context.Context, string) error,
	runs bool) *cobra.Command {
	return c.withJSON(&cobra.Command{Use: use, Short: short, Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			s, err := c.start()
			if err != nil {
				return err
			}
			m, name, err := c.services(s)
			if err != nil {
				return err
			}
			st, err := m.State(ctx, name)
			if err != nil {
				return err
			}
			if !st.Installed {
				err := errors.New("the gateway is not a service here")
				if _, attached := c.app.Attach(ctx, s); attached == nil {
					return withHint(errors.New("the gateway is not a service here; it runs in a terminal"), "Ctrl-C in that terminal")
				}
				return c.suggest(err, "gateway install")
			}
			if err := do(m, ctx, name); err != nil {
				return err
			}
			if runs {
				return c.awaitService(ctx, s, m, name)
			}
			now, err := c.gatewayState(ctx)
			if err != nil {
				return err
			}
			return c.print(now, func() { c.printGateway(now) })
		}})
}

// exists reports whether there is a file.
func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// checkService returns what doctor says about the service, if there is one.
func (c *commands) checkService(ctx context.Context, s Start) []Finding {
	m, name, err := c.services(s)
	if err != nil {
		return nil // there can be no service
	}
	st, err := m.State(ctx, name)
	switch {
	case err != nil:
		return []Finding{{Name: "service", Status: StatusWarn, Text: err.Error()}}
	case !st.Installed:
		return nil
	case len(st.Command) > 0 && !exists(st.Command[0]):
		f := Finding{Name: "service", Status: StatusFail, Text: fmt.Sprintf("%s runs %s, which does not exist: %s",
			st.Manager, st.Command[0], st.File), Hint: c.commandLine("gateway install")}
		if spec, err := c.service(s, name, 0); err == nil {
			spec.Args, spec.Path = st.Command[1:], st.Path // as they were chosen
			f.Fixable, f.Repair = true, func(ctx context.Context) error { return m.Install(ctx, spec) }
		}
		return []Finding{f}
	case !st.Running:
		return []Finding{{Name: "service", Status: StatusWarn, Text: fmt.Sprintf("%s does not run it (%s): %s", st.Manager,
			st.Detail, st.File), Hint: c.commandLine("gateway start")}}
	}
	return []Finding{{Name: "service", Status: StatusOK, Text: st.Manager + " runs the gateway: " + st.File}}
}
