package doctor_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/app/doctor"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/sandbox/docker"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// weak runs the audit on an installation with the configuration and returns the
// findings by id.
func weak(t *testing.T, config string, fix bool, prepare func(s cli.Start)) (map[string]cli.Weakness, cli.Start) {
	t.Helper()
	dir := t.TempDir()
	s := cli.Start{State: filepath.Join(dir, "state"), Config: filepath.Join(dir, "chela.json"),
		Log: slog.New(slog.DiscardHandler)}
	if err := os.Mkdir(s.State, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(s)
	}
	return found(t, s, fix), s
}

func found(t *testing.T, s cli.Start, fix bool) map[string]cli.Weakness {
	t.Helper()
	list, err := doctor.Doctor{Registry: standard.New()}.Audit(context.Background(), s, fix)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]cli.Weakness{}
	for _, w := range list {
		by[w.ID] = w
	}
	return by
}

func TestAudit(t *testing.T) {
	t.Parallel()
	t.Run("SE-11 files open to others are found and fixed", func(t *testing.T) {
		t.Parallel()
		by, s := weak(t, "{}", true, func(s cli.Start) {
			if err := os.Chmod(s.State, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(s.Config, 0o644); err != nil {
				t.Fatal(err)
			}
		})
		for _, id := range []string{"fs.state_dir.perms_world_writable", "fs.config.perms_world_readable"} {
			if w := by[id]; w.Severity != cli.SeverityCritical || !w.Fixed {
				t.Errorf("%s: %+v", id, w)
			}
		}
		for path, want := range map[string]os.FileMode{s.State: 0o700, s.Config: 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has mode %v, %v; want %v", path, info.Mode().Perm(), err, want)
			}
		}
		again := found(t, s, false)
		delete(again, "sandbox.unavailable") // this registry has no launcher
		if len(again) != 0 {
			t.Errorf("after the fix: %+v", again)
		}
	})
	const token = "0123456789abcdef0123456789abcdef"
	t.Run("AP-16 invalid rules", func(t *testing.T) {
		t.Parallel()
		by, _ := weak(t, "{}", false, func(s cli.Start) {
			if err := os.WriteFile(filepath.Join(s.State, allowlist.FileName), []byte("{"), 0o644); err != nil {
				t.Fatal(err)
			}
		})
		if by["tools.exec.rules_invalid"].Severity != cli.SeverityWarn ||
			by["fs.exec_approvals.perms_world_readable"].Severity != cli.SeverityCritical {
			t.Errorf("found %+v", by)
		}
	})
	for _, tt := range []struct{ name, config, id, severity string }{
		{"SE-12 an open bind without authentication", `{gateway:{bind:"lan", auth:{mode:"none"}}}`,
			"gateway.bind_no_auth", cli.SeverityCritical},
		{"SE-15 the hooks token is the gateway's token", `{gateway:{auth:{token:"` + token + `"}}, hooks:{token:"` + token +
			`"}}`, "hooks.token_reuse_gateway_token", cli.SeverityCritical},
		{"SE-15 the hooks token is the gateway's password", `{gateway:{auth:{mode:"password", password:"` + token +
			`"}}, hooks:{token:"` + token + `"}}`, "hooks.token_reuse_gateway_token", cli.SeverityCritical},
		{"a short token", `{gateway:{auth:{token:"` + token[:23] + `"}}}`, "gateway.token_too_short", cli.SeverityWarn},
		{"a token of sufficient length", `{gateway:{auth:{token:"` + token[:24] + `"}}}`, "", ""},
		{"a password in the configuration", `{gateway:{auth:{password:"` + token + `"}}}`,
			"config.secrets.gateway_password_in_config", cli.SeverityWarn},
		{"a password in a variable", `{gateway:{auth:{password:"${PASSWORD}"}}}`, "", ""},
		{"Tailscale's funnel", `{gateway:{tailscale:{mode:"funnel"}, auth:{mode:"password", password:"of-some-length-1"}}}`,
			"gateway.tailscale_funnel", cli.SeverityCritical},
		{"Tailscale's serve", `{gateway:{tailscale:{mode:"serve"}}}`, "gateway.tailscale_serve", cli.SeverityInfo},
		{"loopback without authentication", `{gateway:{auth:{mode:"none"}}}`,
			"gateway.loopback_no_auth", cli.SeverityCritical},
		{"the network without TLS", `{gateway:{bind:"lan"}}`, "gateway.bind_no_tls", cli.SeverityCritical},
		{"the network with TLS", `{gateway:{bind:"lan", tls:{enabled:true}}}`, "", ""},
		{"a bind without its address", `{gateway:{bind:"custom"}}`, "gateway.bind_invalid", cli.SeverityWarn},
		{"web pages of all origins", `{gateway:{controlUi:{allowedOrigins:["https://a.example", "*"]}}}`,
			"gateway.control_ui.allowed_origins_wildcard", cli.SeverityCritical},
		{"no trusted proxy", `{gateway:{auth:{mode:"trusted-proxy"}}}`,
			"gateway.trusted_proxies_missing", cli.SeverityCritical},
		{"every address is a trusted proxy",
			`{gateway:{auth:{mode:"trusted-proxy"}, trustedProxies:["10.0.0.1", "0.0.0.0/0"]}}`,
			"gateway.trusted_proxies_everybody", cli.SeverityCritical},
		{"one trusted proxy", `{gateway:{auth:{mode:"trusted-proxy"}, trustedProxies:["10.0.0.1"]}}`, "", ""},
		{"a short hooks token", `{gateway:{auth:{token:"` + token + `"}}, hooks:{token:"short"}}`,
			"hooks.token_too_short", cli.SeverityWarn},
		{"a separate hooks token", `{gateway:{auth:{token:"` + token + `"}}, hooks:{token:"x` + token + `"}}`, "", ""},
		{"SE-16 everybody has elevated rights", `{tools:{elevated:{allowFrom:{telegram:["*"]}}}}`,
			"tools.elevated.allowFrom.telegram.wildcard", cli.SeverityCritical},
		{"SE-16 a few people have elevated rights", `{tools:{elevated:{allowFrom:{telegram:["1", 2]}}}}`, "", ""},
		{"many people have elevated rights", `{tools:{elevated:{allowFrom:{irc:[` + strings.Repeat(`"a",`, 26) + `]}}}}`,
			"tools.elevated.allowFrom.irc.large", cli.SeverityWarn},
		{"AP-07 an interpreter among the filters", `{tools:{exec:{safeBins:["python3", "cut"]}}}`,
			"tools.exec.safe_bins_interpreter_unprofiled", cli.SeverityWarn},
		{"AP-07 an interpreter among the filters of an agent", `{agents:{list:[{id:"a", tools:{exec:{safeBins:["node"]}}}]}}`,
			"tools.exec.safe_bins_interpreter_unprofiled", cli.SeverityWarn},
		{"AP-07 an interpreter with a profile",
			`{tools:{exec:{safeBins:["python3"], safeBinProfiles:{python3:{maxPositional:0}}}}}`, "", ""},
		{"a filter without a profile", `{tools:{exec:{safeBins:["mine"]}}}`,
			"tools.exec.safe_bins_unprofiled", cli.SeverityInfo},
		{"a refused filter", `{tools:{exec:{safeBins:["awk"], safeBinProfiles:{awk:{}}}}}`,
			"tools.exec.safe_bins_unprofiled", cli.SeverityInfo},
		{"every command runs", `{compat:"openclaw"}`, "tools.exec.security_full", cli.SeverityWarn},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			by, _ := weak(t, tt.config, false, nil)
			for id := range by {
				if tt.id == "" && (strings.HasPrefix(id, "hooks.") || strings.HasPrefix(id, "tools.") ||
					strings.HasPrefix(id, "gateway.") || strings.HasPrefix(id, "config.")) {
					t.Errorf("found %s", id)
				}
			}
			if tt.id != "" && by[tt.id].Severity != tt.severity {
				t.Errorf("found %+v, want %s %s", by, tt.severity, tt.id)
			}
		})
	}
}

// TestAuditSandbox checks what is said about the sandbox.
func TestAuditSandbox(t *testing.T) {
	t.Parallel()
	// missing is a program for containers that is not installed.
	missing := func(env standard.SandboxEnv) sandbox.Backend {
		return docker.New(docker.Options{Log: env.Log, Program: "none-such", Getenv: func(string) string { return "" },
			State: env.State})
	}
	start := func(t *testing.T, conf, approvals string) (doctor.Doctor, cli.Start) {
		t.Helper()
		dir := t.TempDir()
		s := cli.Start{State: filepath.Join(dir, "state"), Config: filepath.Join(dir, "chela.json"),
			Log: slog.New(slog.DiscardHandler)}
		if strings.Contains(conf, "HERE") {
			conf = strings.ReplaceAll(conf, "HERE", dir)
		}
		if approvals == "" {
			approvals = `{"version": 1}`
		}
		for path, text := range map[string]string{s.Config: conf, filepath.Join(s.State, allowlist.FileName): approvals} {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		r := new(standard.Registry)
		r.Launches = true
		r.Sandbox("test", standard.Sandbox{Confine: missing})
		standard.Register(r)
		return doctor.Doctor{Registry: r}, s
	}
	const all = `{agents: {defaults: {sandbox: {mode: "all", `
	for _, tt := range []struct{ name, conf, approvals, id, severity, text, hint string }{
		{"no sandbox", `{}`, "", "sandbox.unavailable", cli.SeverityWarn, "none-such is not installed", "none-such version"},
		{"mode full", `{tools: {exec: {mode: "full"}}}`, "", "tools.exec.security_full", cli.SeverityWarn,
			"without a sandbox", "chela exec-policy"},
		{"elevated on", `{agents: {defaults: {elevatedDefault: "on"}}}`, "", "agents.defaults.elevated", cli.SeverityWarn,
			"outside of the sandbox", "elevatedDefault off"},
		{"elevated full", `{agents: {defaults: {elevatedDefault: "full"}}}`, "", "agents.defaults.elevated",
			cli.SeverityCritical, "without approval", "elevatedDefault off"},
		{"host entries", `{}`, `{"version": 1, "agents": {"*": {"allowlist": [{"pattern": "git", "argPattern": "^push$", "host": true}, {"pattern": "ls"}]}}}`, "tools.exec.allowlist_host", cli.SeverityInfo, "outside of the sandbox: git ^push$", "allowlist list"},
		{"a backend that does not work", all + `}}}}`, "", ".backend_missing", cli.SeverityWarn,
			"none-such is not installed", "none-such version"},
		{"a backend that does not exist", all + `backend: "ssh"}}}}`, "", ".backend_missing", cli.SeverityWarn,
			"backend ssh does not exist", "backend native"},
		{"a dangerous bind", all + `docker: {binds: ["/etc:/x"]}}}}}`, "", ".refused", cli.SeverityCritical,
			"/etc", "config validate"},
		{"the network of the host", all + `docker: {network: "host"}}}}}`, "", ".refused", cli.SeverityCritical,
			"network host is refused", "config validate"},
		{"another network", all + `docker: {network: "bridge"}}}}}`, "", ".network", cli.SeverityWarn,
			"bridge", "network none"},
		{"a dangerous option", all + `docker: {dangerouslyAllowExternalBindSources: true}}}}}`, "",
			".dangerouslyAllowExternalBindSources", cli.SeverityWarn, "opens the containers", "Sources false"},
		{"write access", all + `workspaceAccess: "rw"}}}}`, "", ".workspace_rw", cli.SeverityInfo,
			"workspaceAccess rw", "workspaceAccess ro"},
		{"the configuration in a workspace", `{agents: {defaults: {workspace: "HERE"}}}`, "", "fs.config.in_workspace",
			cli.SeverityWarn, "workspace of the agent main", "CHELA_CONFIG_PATH"},
	} {
		t.Run("E2 SE-16 "+tt.name, func(t *testing.T) {
			t.Parallel()
			d, s := start(t, tt.conf, tt.approvals)
			list, err := d.Audit(t.Context(), s, false)
			if err != nil {
				t.Fatal(err)
			}
			ok := false
			for _, w := range list {
				ok = ok || strings.HasSuffix(w.ID, tt.id) && w.Severity == tt.severity && strings.Contains(w.Text, tt.text) &&
					strings.Contains(w.Hint, tt.hint)
			}
			if !ok {
				t.Errorf("%+v", list)
			}
			said := false
			for _, f := range d.Check(t.Context(), s) {
				said = said || f.Name == "sandbox" && f.Status == cli.StatusWarn && strings.Contains(f.Text, tt.text)
			}
			if want := tt.severity != cli.SeverityInfo && !strings.HasPrefix(tt.id, "tools."); said != want {
				t.Errorf("doctor says it: %v", said)
			}
		})
	}
	t.Run("what does not weaken it is not reported", func(t *testing.T) {
		t.Parallel()
		d, s := start(t, `{agents: {defaults: {sandbox: {mode: "off", workspaceAccess: "rw", docker: {network: "bridge"}}}}}`,
			`{"version": 1, "agents": {"*": {"allowlist": [{"pattern": "ls"}]}}}`)
		list, err := d.Audit(t.Context(), s, false)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != 1 || list[0].ID != "sandbox.unavailable" {
			t.Errorf("%+v", list)
		}
	})
}
