package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/repl"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) mcpLogin() *cobra.Command {
	var code string
	var stay bool
	cmd := &cobra.Command{
		Use: "login SERVER", Short: "Log in at a server that asks for it, with a browser", Args: exactly(1),
		Long: "Log in at a server on the network with OAuth. A browser opens; after you agreed there, it\n" +
			"returns to this command. On a machine without a browser, open the address on another one,\n" +
			"and paste the address that the browser shows afterwards, also if it shows an error page.",
		Example: "  chela mcp login docs\n  chela mcp login docs --no-browser\n  chela mcp login docs --code 'http://127.0.0.1:4711/callback?code=…&state=…'",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, done := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer done()
			if code != "" {
				return c.endLogin(ctx, args[0], code)
			}
			return c.logIn(ctx, args[0], stay)
		},
	}
	f := cmd.Flags()
	f.StringVar(&code, "code", "",
		"end a login that was begun before, with the `ADDRESS` that the browser shows or the code in it")
	f.BoolVar(&stay, "no-browser", false,
		"print the address instead of opening it, and read the answer from standard input")
	return c.withJSON(cmd)
}

// answer is what a browser returned with, and how it is told the result.
type answer struct {
	address string
	result  chan error // nil: nobody waits for it
}

// logIn begins a login, waits for the person, and ends it.
func (c *commands) logIn(ctx context.Context, name string, stay bool) error {
	l, err := c.app.LocalPort(ctx, "")
	if err != nil {
		return fmt.Errorf("open a port for the browser: %w", err)
	}
	own := "http://" + l.Addr().String() + "/callback"
	var b wire.MCPLoginStarted
	if err := c.call(ctx, wire.MethodMCPLoginStart, wire.MCPLoginStart{Name: name, Redirect: own}, &b); err != nil {
		l.Close()
		return c.noServer(err)
	}
	if b.Redirect != own { // the configuration says where
		l.Close()
		l = nil
		if u, err := url.Parse(b.Redirect); err == nil && u.Scheme == "http" && thisMachine(u.Hostname()) && u.Port() != "" {
			if l, err = c.app.LocalPort(ctx, u.Port()); err != nil {
				return fmt.Errorf("mcp.servers.%s.oauth.redirectUrl: open the port for the browser: %w", name, err)
			}
		}
	}
	answers := make(chan answer, 1)
	if l != nil {
		stop := receive(l, b, answers)
		defer stop()
	}
	var why error
	if !stay {
		why = c.app.OpenPage(b.URL)
		stay = why != nil
	}
	c.printLogin(b, stay || l == nil, why)
	var lines <-chan string
	if stay || isTerminal(c.stdin) {
		lines = repl.Lines(c.stdin)
	}
	late := time.NewTimer(time.Until(b.Expires.Time()))
	defer late.Stop()
	for {
		select {
		case a := <-answers:
			err := c.endLogin(ctx, name, a.address)
			a.result <- err
			return err
		case line, ok := <-lines:
			switch {
			case !ok && l == nil, !ok && stay:
				fmt.Fprintf(c.stderr, "To end the login: %s\n", c.commandLine("mcp login "+name+" --code ADDRESS"))
				return nil
			case !ok:
				lines = nil
			case strings.TrimSpace(line) != "":
				return c.endLogin(ctx, name, line)
			}
		case <-late.C:
			return c.suggest(errors.New("nobody agreed to the login in time"), "mcp login "+name)
		case <-ctx.Done():
			return errInterrupted
		}
	}
}

// printLogin tells the person where to agree.
func (c *commands) printLogin(b wire.MCPLoginStarted, paste bool, why error) {
	if why != nil {
		fmt.Fprintln(c.stderr, "No browser was opened: "+why.Error())
	}
	rights := ""
	if len(b.Scopes) > 0 {
		rights = ", and asks for: " + ansi.Line(strings.Join(b.Scopes, " "))
	}
	fmt.Fprintf(c.stderr, "%s lets you log in%s\nOpen this address within %s:\n\n", ansi.Line(b.Issuer), rights,
		humanize.Span(time.Until(b.Expires.Time()).Round(time.Minute)))
	fmt.Fprintln(c.stderr, ansi.Line(b.URL)+"\n")
	if paste {
		fmt.Fprintln(c.stderr, "After you agreed, the browser goes to "+ansi.Line(b.Redirect)+
			", and may say that it cannot be reached.\nPaste the whole address that it shows:")
	} else {
		fmt.Fprintln(c.stderr, "Waiting for the browser. If it cannot return here, paste the address that it shows:")
	}
}

// thisMachine reports whether a host is this machine.
func thisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || strings.EqualFold(host, "localhost")
}

// receive waits for the browser at a port. Requests that do not belong to the login are
// refused. stop waits until the browser was answered.
func receive(l net.Listener, b wire.MCPLoginStarted, answers chan<- answer) (stop func()) {
	redirect, _ := url.Parse(b.Redirect) // it was made here, or parsed
	agree, err := url.Parse(b.URL)
	if err != nil {
		agree = &url.URL{}
	}
	state := agree.Query().Get("state")
	first := make(chan struct{}, 1)
	srv := &http.Server{ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Content-Type", "text/plain; charset=utf-8")
			h.Set("Cache-Control", "no-store")
			h.Set("Referrer-Policy", "no-referrer")
			h.Set("X-Content-Type-Options", "nosniff")
			switch {
			case r.URL.Path != redirect.Path && (redirect.Path != "" || r.URL.Path != "/"):
				http.Error(w, "There is no such page.", http.StatusNotFound)
				return
			case r.Method != http.MethodGet || state == "" || !secret.New(r.URL.Query().Get("state")).Equal(secret.New(state)):
				http.Error(w, "This page does not belong to the login that is waiting.", http.StatusBadRequest)
				return
			}
			select {
			case first <- struct{}{}:
			default:
				http.Error(w, "The login has ended already.", http.StatusConflict)
				return
			}
			a := answer{"http://" + l.Addr().String() + r.URL.RequestURI(), make(chan error, 1)}
			answers <- a
			select {
			case err := <-a.result:
				if err != nil {
					http.Error(w, "The login failed; the terminal says why. You can close this page.", http.StatusBadRequest)
					return
				}
				fmt.Fprintln(w, "You are logged in. You can close this page.")
			case <-r.Context().Done():
			}
		})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // it ends with stop
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if srv.Shutdown(ctx) != nil {
			srv.Close()
		}
		<-done
	}
}

// endLogin ends a login with the answer of its service.
func (c *commands) endLogin(ctx context.Context, name, answer string) error {
	var out wire.MCPLoginFinished
	if err := c.call(ctx, wire.MethodMCPLoginEnd, wire.MCPLoginFinish{Name: name, Answer: answer}, &out); err != nil {
		return c.noServer(err)
	}
	return c.print(out, func() {
		text := "logged in at " + ansi.Line(out.Login.Issuer)
		if len(out.Login.Scopes) > 0 {
			text += " with the rights " + ansi.Line(strings.Join(out.Login.Scopes, " "))
		}
		if !out.Login.Renews {
			text += "; the service gave nothing to renew the login with"
		}
		fmt.Fprintln(c.stdout, text)
		fmt.Fprintln(c.stdout, "Its tools: "+c.commandLine("mcp probe "+name))
	})
}

func (c *commands) mcpLogout() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "logout SERVER",
		Short: "Remove the login of a server, and make it invalid where the service lets programs do that", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var out wire.MCPLoggedOut
			if err := c.call(cmd.Context(), wire.MethodMCPLogout, wire.MCPLogout{Name: args[0]}, &out); err != nil {
				return err
			}
			if !out.Removed {
				return c.suggest(chela.Errorf(chela.CodeNotFound, "there is no login of the server %q", args[0]), "mcp list")
			}
			return c.print(out, func() {
				if out.Problem == "" {
					fmt.Fprintln(c.stdout, "logged out; the service was told")
					return
				}
				fmt.Fprintln(c.stdout, "logged out here; the service was not told: "+ansi.Line(out.Problem))
			})
		},
	})
}

// serverCheck is what `mcp doctor` says about a server.
type serverCheck struct {
	Name     string   `json:"name"`
	State    string   `json:"state"`
	Problems []string `json:"problems"`
}

func (c *commands) mcpDoctor() *cobra.Command {
	var probe bool
	cmd := &cobra.Command{
		Use: "doctor [SERVER]", Short: "Say what is wrong with the servers, and what to type", Args: between(0, 1),
		Example: "  chela mcp doctor\n  chela mcp doctor docs --probe",
		RunE: func(cmd *cobra.Command, args []string) error {
			var bad bool
			var out []serverCheck
			err := c.withLink(cmd.Context(), func(l *link) error {
				var s wire.MCPStatus
				if err := l.Call(cmd.Context(), wire.MethodMCPStatus, wire.None{}, &s); err != nil {
					return err
				}
				out = []serverCheck{}
				for _, v := range s.Servers {
					if len(args) == 1 && v.Name != args[0] {
						continue
					}
					check := serverCheck{v.Name, v.State, append([]string{}, v.Problems...)}
					if !v.Enabled {
						check.State = "off"
					} else if probe {
						var p wire.MCPProbed
						if err := l.Call(cmd.Context(), wire.MethodMCPProbe, wire.MCPProbe{Name: v.Name}, &p); err != nil {
							check.Problems = append(check.Problems, err.Error())
						} else {
							check.State = "answers"
							check.Problems = append(check.Problems, p.Problems...)
						}
					} else if v.Error != "" {
						check.Problems = append(check.Problems, v.Error)
					}
					if v.Login != nil && v.Login.Problem != "" && v.State != "needs-auth" {
						check.Problems = append(check.Problems, fmt.Sprintf("%s. To log in: chela mcp login %s", v.Login.Problem, v.Name))
					}
					bad = bad || len(check.Problems) > 0
					out = append(out, check)
				}
				if len(args) == 1 && len(out) == 0 {
					return c.suggest(chela.Errorf(chela.CodeNotFound, "there is no server %q", args[0]), "mcp list")
				}
				return nil
			})
			if err != nil {
				return err
			}
			err = c.print(out, func() {
				if len(out) == 0 {
					fmt.Fprintln(c.stdout, "there are no servers")
				}
				for _, check := range out {
					if len(check.Problems) == 0 {
						fmt.Fprintf(c.stdout, "%s: %s, no problems\n", ansi.Line(check.Name), check.State)
					}
					for _, p := range check.Problems {
						fmt.Fprintf(c.stdout, "%s: %s\n", ansi.Line(check.Name), ansi.Line(p))
					}
				}
			})
			if err == nil && bad {
				err = errReported
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&probe, "probe", false, "start each server once and list its tools")
	return c.withJSON(cmd)
}

// noServer adds a hint to the error about a server that does not exist.
func (c *commands) noServer(err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok && e.Detail() == wire.DetailNotFound {
		return c.suggest(err, "mcp list")
	}
	return err
}
