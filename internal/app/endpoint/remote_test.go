package endpoint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/surface/cli"
	"github.com/chela-ai/chela/wire"
)

func TestRemote(t *testing.T) {
	t.Parallel()
	env := endpoint.Env{Env: func(name string) string {
		return map[string]string{"HOME_TOKEN": "secret", "CHELA_GATEWAY_TOKEN": "general"}[name]
	}}
	general := wire.Auth{Token: "general"}
	for _, tc := range []struct {
		name, section string
		want          *cli.Remote
		err           string
	}{
		{"no section", ``, nil, ""},
		{"mode local", `{"mode": "local", "remote": {"url": "nonsense"}}`, nil, ""},
		{"a URL", `{"mode": "remote", "remote": {"url": "wss://home:1", "tlsFingerprint": "ab", "token": "env:HOME_TOKEN"}}`,
			&cli.Remote{Port: cli.Port{URL: "wss://home:1", Fingerprint: "ab", Auth: wire.Auth{Token: "secret"}}}, ""},
		{"the address of a page", `{"mode": "remote", "remote": {"url": "https://home", "password": "p"}}`,
			&cli.Remote{Port: cli.Port{URL: "wss://home", Auth: wire.Auth{Password: "p"}}}, ""},
		{"ssh", `{"mode": "remote", "remote": {"transport": "ssh", "sshTarget": "me@home"}}`,
			&cli.Remote{Port: cli.Port{URL: "ws://127.0.0.1:18789", Auth: general},
				SSH: &cli.SSH{Target: "me@home", Port: 18789}}, ""},
		{"ssh to the host of the URL",
			`{"mode": "remote", "remote": {"transport": "ssh", "url": "wss://home:7", "sshIdentity": "/k"}}`,
			&cli.Remote{Port: cli.Port{URL: "wss://127.0.0.1:7", Auth: general},
				SSH: &cli.SSH{Target: "home", Identity: "/k", Port: 7}}, ""},
		{"OpenClaw's URL for ssh", `{"mode": "remote", "remote": {"transport": "ssh", "url": "ws://127.0.0.1:18789", "sshTarget": "me@home", "remotePort": 9}}`,
			&cli.Remote{Port: cli.Port{URL: "ws://127.0.0.1:9", Auth: general}, SSH: &cli.SSH{Target: "me@home", Port: 9}}, ""},
		{"no URL", `{"mode": "remote"}`, nil, "gateway.mode is remote, but gateway.remote.url is not set"},
		{"no target", `{"mode": "remote", "remote": {"transport": "ssh", "url": "ws://localhost:1"}}`, nil,
			"gateway.remote.transport is ssh, but gateway.remote.sshTarget is not set"},
		{"a password in the URL is not printed", `{"mode": "remote", "remote": {"url": "wss://me:pw@home"}}`, nil,
			"gateway.remote.url is not an address such as wss://HOST:18789"},
		{"a port that there is not",
			`{"mode": "remote", "remote": {"transport": "ssh", "sshTarget": "h", "remotePort": 70000}}`, nil,
			"gateway.remote.remotePort: 70000 is not a port number"},
		{"a variable that is not set", `{"mode": "remote", "remote": {"url": "wss://home", "token": "env:NOTHING"}}`, nil,
			"gateway.remote.token: secret env:NOTHING: the variable is not set"},
	} {
		var section []byte
		if tc.section != "" {
			section = []byte(tc.section)
		}
		got, err := endpoint.Remote(section, env)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || text != tc.err {
			t.Errorf("%s: %q\n%s", tc.name, text, diff)
		}
	}
}
