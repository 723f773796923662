package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/cert"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// testEnv returns an installation whose environment has SECRET and no EMPTY.
func testEnv(t *testing.T) Env {
	return Env{Log: slog.New(slog.DiscardHandler), State: t.TempDir(), Env: func(name string) string {
		return map[string]string{"SECRET": "s3-of-some-length"}[name]
	}}
}

// TestRead checks the defaults of the section, and what overrides it.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		section string
		l       Listen
		port    int // -1: an error
		bind    string
		mode    string
	}{
		{"", Listen{}, 18789, "", "token"},
		{`{}`, Listen{}, 18789, "", "token"},
		{`{"port":1,"bind":"lan","auth":{"mode":"none"}}`, Listen{}, 1, "lan", "none"},
		{`{"port":1,"bind":"lan"}`, Listen{Port: 2, Bind: "loopback"}, 2, "loopback", "token"},
		{`{"port":1}`, Listen{Port: -1}, 0, "", "token"},
		{`{"port":0}`, Listen{}, 0, "", "token"},
		{`{"port":65535}`, Listen{}, 65535, "", "token"},
		{`{"port":65536}`, Listen{}, -1, "", ""},
		{`{"port":-1}`, Listen{}, -1, "", ""},
		{`{"port":"1"}`, Listen{}, -1, "", ""},
		{``, Listen{Port: 65536}, -1, "", ""},
		{`{"auth":{"password":"p"}}`, Listen{}, 18789, "", "password"},
		{`{"auth":{"password":"p","token":"t"}}`, Listen{}, 18789, "", "token"},
		{`{"auth":{"password":"p","mode":"token"}}`, Listen{}, 18789, "", "token"},
	} {
		var section json.RawMessage
		if tt.section != "" {
			section = json.RawMessage(tt.section)
		}
		g, err := Read(section, tt.l)
		if (err != nil) != (tt.port < 0) {
			t.Errorf("%s with %+v: %v", tt.section, tt.l, err)
		}
		if err == nil && (*g.Port != tt.port || g.Bind != tt.bind || g.Auth.Mode != tt.mode) {
			t.Errorf("%s with %+v: port %d, bind %q, mode %q; want %d, %q, %q", tt.section, tt.l, *g.Port, g.Bind, g.Auth.Mode,
				tt.port, tt.bind, tt.mode)
		}
	}
}

// TestAuthenticator checks which configurations of the authentication are refused,
// and which proxies are trusted.
func TestAuthenticator(t *testing.T) {
	t.Parallel()
	const proxy = `"trustedProxies":["10.0.0.1"],"auth":{"mode":"trusted-proxy","trustedProxy":{"userHeader":"X-User"}}`
	for _, tt := range []struct{ section, want string }{
		{`{}`, "token made"},
		{`{"auth":{"token":"t"}}`, "token"},
		{`{"auth":{"token":"env:SECRET"}}`, "token"},
		{`{"auth":{"token":"env:EMPTY"}}`, "gateway.auth.token"},
		{`{"auth":{"mode":"none"}}`, "none"},
		{`{"auth":{"mode":"password","password":"env:SECRET"}}`, "password"},
		{`{"auth":{"mode":"password"}}`, "gateway.auth.password is not set"},
		{`{"auth":{"mode":"password","token":"t"}}`, "gateway.auth.password is not set"},
		{`{"auth":{"mode":"password","password":"env:EMPTY"}}`, "gateway.auth.password"},
		{`{` + proxy + `}`, "trusted-proxy"},
		{strings.Replace(`{`+proxy+`}`, "X-User", "", 1), "set gateway.auth.trustedProxy.userHeader"},
		{strings.Replace(`{`+proxy+`}`, `"10.0.0.1"`, "", 1), "set gateway.auth.trustedProxy.userHeader"},
		{`{"trustedProxies":["10.0.0.0/33"]}`, "gateway.trustedProxies"},
	} {
		g, err := Read(json.RawMessage(tt.section), Listen{})
		if err != nil {
			t.Fatal(err)
		}
		env := testEnv(t)
		env.Secrets = new(secret.Redactor)
		a, token, made, err := g.Authenticator(env, nil, nil)
		var got string
		switch {
		case err != nil:
			got = err.Error()
			if a != nil {
				t.Errorf("%s: an Authenticator and the error %v", tt.section, err)
			}
		case made:
			got = a.Mode() + " made"
		default:
			got = a.Mode()
		}
		if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
			t.Errorf("%s: %s, want %s", tt.section, got, tt.want)
		}
		if err == nil && token.IsZero() == (a.Mode() == "token") {
			t.Errorf("%s: a token: %v", tt.section, !token.IsZero())
		}
		if got := env.Secrets.Redact("the secret s3-of-some-length"); (tt.want == "password") !=
			(got != "the secret s3-of-some-length") {
			t.Errorf("%s: the password is redacted as %q", tt.section, got)
		}
	}

	g := Options{Proxies: []string{"10.0.0.1", "::ffff:10.0.0.2", "fd00::1", "192.168.0.0/16"}}
	a, err := g.Guard(testEnv(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range a.Proxies {
		got = append(got, p.String())
	}
	if diff := cmp.Diff([]string{"10.0.0.1/32", "10.0.0.2/32", "fd00::1/128", "192.168.0.0/16"}, got); diff != "" {
		t.Errorf("proxies (-want +got):\n%s", diff)
	}
}

// TestLocal checks the address and the credential that programs on this machine use,
// and which secrets open the gateway.
func TestLocal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ section, url, token, password, opens string }{
		{`{}`, "ws://127.0.0.1:18789", "made", "", "made"},
		{`{"port":1,"bind":"lan","auth":{"token":"t"}}`, "ws://127.0.0.1:1", "t", "", "t"},
		{`{"bind":"custom","customBindHost":"10.0.0.1","auth":{"token":"env:SECRET"}}`, "ws://10.0.0.1:18789",
			"s3-of-some-length", "", "s3-of-some-length"},
		{`{"bind":"custom","customBindHost":"::1","auth":{"mode":"none","token":"t"}}`, "ws://[::1]:18789", "", "", "t"},
		{`{"auth":{"password":"p"}}`, "ws://127.0.0.1:18789", "", "p", "p"},
		{`{"auth":{"token":"t","password":"p","mode":"password"}}`, "ws://127.0.0.1:18789", "", "p", "p"},
	} {
		env := testEnv(t)
		if err := os.MkdirAll(filepath.Dir(tokenPath(env.State)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(tokenPath(env.State), []byte("made\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := Local(json.RawMessage(tt.section), env)
		if err != nil || p.URL != tt.url || p.Auth.Token != tt.token || p.Auth.Password != tt.password {
			t.Errorf("%s: %+v, %v; want %s with %q, %q", tt.section, p, err, tt.url, tt.token, tt.password)
		}
		g, err := Read(json.RawMessage(tt.section), Listen{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{"made", "t", "p", "s3-of-some-length", "other"} {
			if got := g.Opens(env, secret.New(s)); got != (s == tt.opens) {
				t.Errorf("%s: %q opens the gateway: %v", tt.section, s, got)
			}
		}
	}
	if v := HooksToken(json.RawMessage(`{"token":"env:SECRET"}`), testEnv(t).Env); v.IsZero() ||
		v.Reveal() != "s3-of-some-length" {
		t.Errorf("the token of the hooks is %q", v.Reveal())
	}
	for _, none := range []string{`{}`, `{"token":"env:EMPTY"}`, `[]`} {
		if v := HooksToken(json.RawMessage(none), testEnv(t).Env); !v.IsZero() {
			t.Errorf("%s: the hooks have the token %q", none, v.Reveal())
		}
	}
}

// TestCertificate checks when a certificate is made, and that programs on this
// machine pin it.
func TestCertificate(t *testing.T) {
	t.Parallel()
	env, host := testEnv(t), netip.MustParseAddr("127.0.0.1")
	open := func(section string) (string, error) {
		g, err := Read(json.RawMessage(section), Listen{Port: -1})
		if err != nil {
			t.Fatal(err)
		}
		l, fingerprint, err := g.Open(context.Background(), env, host)
		if err == nil {
			l.Close()
		}
		return fingerprint, err
	}
	if _, err := open(`{"tls":{"enabled":true}}`); err == nil {
		t.Error("a missing certificate was made without autoGenerate")
	}
	const section = `{"tls":{"enabled":true,"autoGenerate":true}}`
	first, err := open(section)
	if err != nil || first == "" {
		t.Fatalf("fingerprint %q, %v", first, err)
	}
	if again, err := open(section); err != nil || again != first {
		t.Errorf("the second start has the certificate %q, %v, want %q", again, err, first)
	}
	if p, err := Local(json.RawMessage(section), env); err != nil || p.URL != "wss://127.0.0.1:18789" ||
		p.Fingerprint != first {
		t.Errorf("programs on this machine use %+v, %v", p, err)
	}
	if none, err := open(`{}`); err != nil || none != "" {
		t.Errorf("without TLS: fingerprint %q, %v", none, err)
	}
}

// TestCertificateOfPerson lacks a file of a configured pair, or has one that expired.
func TestCertificateOfPerson(t *testing.T) {
	for name, c := range map[string]struct {
		section func(certPath, keyPath string) string
		lose    func(certPath, keyPath string) error
	}{
		"no key": {func(c, k string) string {
			return `"certPath": "` + c + `", "keyPath": "` + k + `"`
		}, func(_, k string) error { return os.Remove(k) }},
		"no certificate": {func(c, k string) string {
			return `"certPath": "` + c + `", "keyPath": "` + k + `"`
		}, func(c, _ string) error { return os.Remove(c) }},
		"a key that is not one": {func(c, k string) string {
			return `"certPath": "` + c + `", "keyPath": "` + k + `"`
		}, func(_, k string) error { return os.WriteFile(k, nil, 0o600) }},
		"the key is where chela has its own": {func(c, _ string) string { return `"certPath": "` + c + `"` },
			func(_, k string) error { return os.Remove(k) }},
		"only the key is configured": {func(_, k string) string { return `"keyPath": "` + k + `"` },
			func(c, _ string) error { return os.Remove(c) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			certPath, keyPath := filepath.Join(dir, "mine.pem"), filepath.Join(dir, "mine-key.pem")
			if err := errors.Join(cert.Make(certPath, keyPath, []string{"me"}), c.lose(certPath, keyPath)); err != nil {
				t.Fatal(err)
			}
			read := func() string {
				a, _ := os.ReadFile(certPath)
				b, _ := os.ReadFile(keyPath)
				return string(a) + "|" + string(b)
			}
			before := read()
			g, err := Read([]byte(`{"tls": {"enabled": true, "autoGenerate": true, `+c.section(certPath, keyPath)+`}}`),
				Listen{Port: -1})
			if err != nil {
				t.Fatal(err)
			}
			l, _, err := g.Open(t.Context(), Env{State: t.TempDir()}, netip.MustParseAddr("127.0.0.1"))
			if err == nil {
				l.Close()
				t.Error("it listens with another certificate")
			} else if !strings.Contains(chela.HintOf(err), "restore the files") {
				t.Errorf("%v (%s)", err, chela.HintOf(err))
			}
			if read() != before {
				t.Error("a file of the person was replaced")
			}
		})
	}
}
