package doctor_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/app/doctor"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// weak runs the audit on an installation with the configuration and returns the
// findings by id.
func weak(t *testing.T, config string, fix bool, prepare func(s cli.Start)) (map[string]cli.Weakness, cli.Start) {
	t.Helper()
	dir := t.TempDir()
	s := cli.Start{State: filepath.Join(dir, "state"), Config: filepath.Join(dir, "chela.json"), Log: slog.New(slog.DiscardHandler)}
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
		if again := found(t, s, false); len(again) != 0 {
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
		if by["tools.exec.rules_invalid"].Severity != cli.SeverityWarn || by["fs.exec_approvals.perms_world_readable"].Severity != cli.SeverityCritical {
			t.Errorf("found %+v", by)
		}
	})
	for _, tt := range []struct{ name, config, id, severity string }{
		{"SE-12 an open bind without authentication", `{gateway:{bind:"lan", auth:{mode:"none"}}}`, "gateway.bind_no_auth", cli.SeverityCritical},
		{"SE-15 the hooks token is the gateway's token", `{gateway:{auth:{token:"` + token + `"}}, hooks:{token:"` + token + `"}}`, "hooks.token_reuse_gateway_token", cli.SeverityCritical},
		{"SE-15 the hooks token is the gateway's password", `{gateway:{auth:{mode:"password", password:"` + token + `"}}, hooks:{token:"` + token + `"}}`, "hooks.token_reuse_gateway_token", cli.SeverityCritical},
		{"a short hooks token", `{gateway:{auth:{token:"` + token + `"}}, hooks:{token:"short"}}`, "hooks.token_too_short", cli.SeverityWarn},
		{"a separate hooks token", `{gateway:{auth:{token:"` + token + `"}}, hooks:{token:"x` + token + `"}}`, "", ""},
		{"SE-16 everybody has elevated rights", `{tools:{elevated:{allowFrom:{telegram:["*"]}}}}`, "tools.elevated.allowFrom.telegram.wildcard", cli.SeverityCritical},
		{"SE-16 a few people have elevated rights", `{tools:{elevated:{allowFrom:{telegram:["1", 2]}}}}`, "", ""},
		{"many people have elevated rights", `{tools:{elevated:{allowFrom:{irc:[` + strings.Repeat(`"a",`, 26) + `]}}}}`, "tools.elevated.allowFrom.irc.large", cli.SeverityWarn},
		{"AP-07 an interpreter among the filters", `{tools:{exec:{safeBins:["python3", "cut"]}}}`, "tools.exec.safe_bins_interpreter_unprofiled", cli.SeverityWarn},
		{"AP-07 an interpreter among the filters of an agent", `{agents:{list:[{id:"a", tools:{exec:{safeBins:["node"]}}}]}}`, "tools.exec.safe_bins_interpreter_unprofiled", cli.SeverityWarn},
		{"AP-07 an interpreter with a profile", `{tools:{exec:{safeBins:["python3"], safeBinProfiles:{python3:{maxPositional:0}}}}}`, "", ""},
		{"a filter without a profile", `{tools:{exec:{safeBins:["mine"]}}}`, "tools.exec.safe_bins_unprofiled", cli.SeverityInfo},
		{"a refused filter", `{tools:{exec:{safeBins:["awk"], safeBinProfiles:{awk:{}}}}}`, "tools.exec.safe_bins_unprofiled", cli.SeverityInfo},
		{"every command runs", `{compat:"openclaw"}`, "tools.exec.security_full", cli.SeverityWarn},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			by, _ := weak(t, tt.config, false, nil)
			for id := range by {
				if tt.id == "" && (strings.HasPrefix(id, "hooks.") || strings.HasPrefix(id, "tools.")) {
					t.Errorf("found %s", id)
				}
			}
			if tt.id != "" && by[tt.id].Severity != tt.severity {
				t.Errorf("found %+v, want %s %s", by, tt.severity, tt.id)
			}
		})
	}
}
