package tailscale_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/app/tailscale"
	"github.com/chela-ai/chela/internal/core/chela"
)

// fake is the program: its answers, by the beginning of the command line, and its calls.
type fake struct {
	answers map[string]string // "!text": the program fails with the text
	calls   []string
}

const running = `Warning: client version "1" != tailscaled server version "2"
{"BackendState": "Running", "Self": {"DNSName": "Box.tail1.ts.net."}}`

func (f *fake) run(_ context.Context, name string, args ...string) (string, error) {
	line := strings.Join(args, " ")
	if line != "status --json" {
		f.calls = append(f.calls, name+" "+line)
	}
	for begin, out := range f.answers {
		if strings.HasPrefix(line, begin) {
			if text, ok := strings.CutPrefix(out, "!"); ok {
				return text, errors.New("exit status 1")
			}
			return out, nil
		}
	}
	if args[0] == "status" {
		return running, nil
	}
	return "", nil
}

func TestForwarding(t *testing.T) {
	t.Parallel()
	const old = "!error: flag provided but not defined: -bg"
	for _, tc := range []struct {
		name    string
		o       tailscale.Options
		answers map[string]string
		want    []string
	}{
		{"serve", tailscale.Options{Mode: tailscale.Serve}, nil, []string{"serve --bg --yes 18789"}},
		{"serve, ended with the gateway", tailscale.Options{Mode: tailscale.Serve, Reset: true}, nil,
			[]string{"serve --bg --yes 18789", "serve --https=443 off"}},
		{"funnel", tailscale.Options{Mode: tailscale.Funnel, Reset: true}, nil,
			[]string{"funnel --bg --yes 18789", "funnel --https=443 off"}},
		{"a port with TLS", tailscale.Options{Mode: tailscale.Serve, TLS: true}, nil,
			[]string{"serve --bg --yes https+insecure://127.0.0.1:18789"}},
		{"serve before 1.52", tailscale.Options{Mode: tailscale.Serve, Reset: true}, map[string]string{"serve --bg": old},
			[]string{"serve --bg --yes 18789", "serve https / http://127.0.0.1:18789", "serve https / off"}},
		{"funnel before 1.52", tailscale.Options{Mode: tailscale.Funnel, Reset: true}, map[string]string{"funnel --bg": old},
			[]string{"funnel --bg --yes 18789", "serve https / http://127.0.0.1:18789", "funnel 443 on",
				"funnel 443 off", "serve https / off"}},
	} {
		t.Run("GW-09 "+tc.name, func(t *testing.T) {
			t.Parallel()
			p := &fake{answers: tc.answers}
			tc.o.Run, tc.o.Port = p.run, 18789
			f, err := tailscale.Start(t.Context(), tc.o)
			if err != nil {
				t.Fatal(err)
			}
			if f.Name() != "box.tail1.ts.net" || f.URL() != "https://box.tail1.ts.net" {
				t.Errorf("name %s, URL %s", f.Name(), f.URL())
			}
			if err := f.Close(t.Context()); err != nil {
				t.Error(err)
			}
			for i := range tc.want {
				tc.want[i] = "tailscale " + tc.want[i]
			}
			if diff := cmp.Diff(tc.want, p.calls); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	missing := func(context.Context, string, ...string) (string, error) {
		return "", fmt.Errorf("tailscale: %w", fs.ErrNotExist)
	}
	program := func(answers map[string]string) func(context.Context, string, ...string) (string, error) {
		return (&fake{answers: answers}).run
	}
	for _, tc := range []struct {
		name       string
		run        func(context.Context, string, ...string) (string, error)
		text, hint string
	}{
		{"the program is not there", missing, "the program tailscale is not installed",
			"chela config set gateway.tailscale.mode off"},
		{"not connected", program(map[string]string{"status": `{"BackendState": "NeedsLogin", "Self": {"DNSName": ""}}`}),
			"not connected to a Tailscale network", "tailscale up"},
		{"no rights", program(map[string]string{"serve": "!Access denied: serve config denied"}), "Access denied",
			"sudo tailscale set --operator=$USER"},
		{"another failure", program(map[string]string{"serve": "!HTTPS is not enabled:\nhttps://login.example/f"}),
			"HTTPS is not enabled: https://login.example/f", "tailscale serve --bg --yes 18789"},
		{"an answer that is no JSON", program(map[string]string{"status": "hello"}), "not JSON", ""},
	} {
		t.Run("GW-09 "+tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := tailscale.Start(t.Context(), tailscale.Options{Run: tc.run, Mode: tailscale.Serve, Port: 18789})
			if err == nil || !strings.Contains(err.Error(), tc.text) || !strings.Contains(chela.HintOf(err), tc.hint) {
				t.Errorf("%v; hint %q", err, chela.HintOf(err))
			}
		})
	}
	t.Run("GW-09 a program that does not end", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			hangs := func(ctx context.Context, _ string, args ...string) (string, error) {
				if args[0] == "status" {
					return running, nil
				}
				<-ctx.Done()
				return "To enable, visit: https://login.example/f", ctx.Err()
			}
			_, err := tailscale.Start(t.Context(), tailscale.Options{Run: hangs, Mode: tailscale.Serve, Port: 1})
			if err == nil || !strings.Contains(err.Error(), "did not end in time") ||
				!strings.Contains(err.Error(), "https://login.example/f") {
				t.Error(err)
			}
		})
	})
}

func TestWhoIs(t *testing.T) {
	t.Parallel()
	t.Run("GW-09 whose machine it is, remembered for a minute", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p := &fake{answers: map[string]string{
				"whois --json 100.64.0.9": `{"Node": {}, "UserProfile": {"LoginName": "ann@example.com"}}`,
				"whois --json 100.64.0.8": `{"Node": {"Tags": ["tag:server"]}, "UserProfile": {"LoginName": "tagged-devices"}}`,
				"whois --json 100.64.0.7": "!peer not found",
			}}
			f, err := tailscale.Start(t.Context(), tailscale.Options{Run: p.run, Mode: tailscale.Serve, Port: 1})
			if err != nil {
				t.Fatal(err)
			}
			p.calls = nil
			ask := func(addr string) string {
				login, err := f.WhoIs(t.Context(), netip.MustParseAddr(addr))
				return fmt.Sprint(login, " ", err != nil)
			}
			got := []string{ask("100.64.0.9"), ask("100.64.0.9"), ask("100.64.0.8"), ask("100.64.0.7")}
			if want := []string{"ann@example.com false", "ann@example.com false", " false", " true"}; !slices.Equal(got, want) {
				t.Errorf("%q", got)
			}
			if len(p.calls) != 3 {
				t.Errorf("asked %q", p.calls)
			}
			p.answers["whois --json 100.64.0.9"] = `{"UserProfile": {"LoginName": "bob@example.com"}}`
			time.Sleep(time.Minute)
			if got := ask("100.64.0.9"); got != "bob@example.com false" {
				t.Errorf("after a minute: %s", got)
			}
		})
	})
}
