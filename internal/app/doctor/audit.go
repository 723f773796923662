package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/tailscale"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// minToken is the least length of a token that cannot be guessed.
const minToken = 24

// audit collects weaknesses.
type audit struct {
	fix   bool // repair file modes
	found []cli.Weakness
}

func (a *audit) add(id, severity, hint, format string, args ...any) {
	a.found = append(a.found, cli.Weakness{ID: id, Severity: severity, Text: fmt.Sprintf(format, args...), Hint: hint})
}

// Audit lists what makes an installation easier to attack. With fix, files that
// are open to other users are closed to them.
func (d Doctor) Audit(ctx context.Context, s cli.Start, fix bool) ([]cli.Weakness, error) {
	a := &audit{fix: fix, found: []cli.Weakness{}}
	if err := a.files(s, d.databaseFile(s)); err != nil {
		return nil, err
	}
	tree, err := config.Options{LastGood: s.LastGood}.Load(s.Config)
	if err != nil {
		return nil, err
	}
	env := endpoint.Env{State: s.State, Env: settings.Environ(tree)}
	g, err := endpoint.Read(tree.Section("gateway"), endpoint.Listen{})
	if err != nil {
		return nil, err
	}
	a.gateway(&g, env, tree)
	a.hooks(&g, env, tree)
	if err := a.elevated(tree); err != nil {
		return nil, err
	}
	if err := a.commands(tree, s.State); err != nil {
		return nil, err
	}
	var wrong error
	if err := d.withBackends(env.Env,
		func(all map[string]sandbox.Backend) { wrong = a.sandboxes(ctx, s, tree, all) }); err != nil {
		return nil, err
	}
	return a.found, wrong
}

// databaseFile returns the name of the database in the state directory; "": it is not there,
// or the configuration cannot be read, which is reported elsewhere.
func (d Doctor) databaseFile(s cli.Start) string {
	st, err := d.store(s)
	if err != nil {
		return ""
	}
	return st.File
}

// store returns the store of an installation. A configuration that cannot be read is
// reported elsewhere.
func (d Doctor) store(s cli.Start) (standard.Store, error) {
	tree, err := config.Options{LastGood: s.LastGood}.Load(s.Config)
	if err != nil {
		return d.Registry.DefaultStore(), nil
	}
	return d.Registry.StoreOf(tree.Section, settings.Environ(tree), s.State)
}

// files checks the modes of the program's files.
func (a *audit) files(s cli.Start, database string) error {
	if runtime.GOOS == "windows" {
		return nil // modes have no meaning there
	}
	errs := []error{
		a.mode(s.State, "fs.state_dir", 0o700), a.mode(s.Config, "fs.config", 0o600),
		a.mode(filepath.Join(s.State, allowlist.FileName), "fs.exec_approvals", 0o600),
	}
	if info, err := os.Lstat(s.Config); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		a.add("fs.config.symlink", cli.SeverityWarn, "",
			"%s is a symbolic link: anybody who may write its target controls this installation", s.Config)
	}
	credentials := filepath.Join(s.State, "credentials")
	errs = append(errs, a.mode(credentials, "fs.credentials_dir", 0o700), a.inside(credentials, "fs.credentials"))
	for _, suffix := range [...]string{"", "-wal", "-shm"} {
		if database == "" {
			break
		}
		errs = append(errs, a.mode(filepath.Join(s.State, database+suffix), "fs.sessions_store", 0o600))
	}
	errs = append(errs, a.inside(filepath.Join(s.State, "logs"), "fs.log_file"))
	return errors.Join(errs...)
}

// inside checks the files of a directory.
func (a *audit) inside(dir, id string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range list {
		if e.Type().IsRegular() {
			errs = append(errs, a.mode(filepath.Join(dir, e.Name()), id, 0o600))
		}
	}
	return errors.Join(errs...)
}

// mode checks a file or directory that only its owner may use. A missing file is
// no weakness.
func (a *audit) mode(path, id string, want fs.FileMode) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	have := info.Mode().Perm()
	kind, severity := wide(have)
	if kind == "" {
		return nil
	}
	a.add(id+".perms_"+kind, severity, fmt.Sprintf("chmod %o %s", want, path),
		"%s is open to other users (%s)", path, have)
	if !a.fix {
		return nil
	}
	if err := os.Chmod(path, want); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	a.found[len(a.found)-1].Fixed = true
	return nil
}

// wide returns the most that a mode allows other users, and how serious it is.
func wide(m fs.FileMode) (kind, severity string) {
	switch {
	case m&0o002 != 0:
		return "world_writable", cli.SeverityCritical
	case m&0o004 != 0:
		return "world_readable", cli.SeverityCritical
	case m&0o020 != 0:
		return "group_writable", cli.SeverityWarn
	case m&0o077 != 0:
		return "group_readable", cli.SeverityWarn
	}
	return "", ""
}

// gateway checks who may connect.
func (a *audit) gateway(g *endpoint.Options, env endpoint.Env, tree settings.Sections) {
	host, err := g.Host()
	if err != nil {
		a.add("gateway.bind_invalid", cli.SeverityWarn, "chela config validate", "%v", err)
		return
	}
	local := host.IsLoopback()
	switch {
	case g.Auth.Mode == access.ModeNone && !local:
		a.add("gateway.bind_no_auth", cli.SeverityCritical, "chela config set gateway.auth.mode token",
			"the gateway would listen on %s without authentication; it refuses to start", host)
	case g.Auth.Mode == access.ModeNone:
		a.add("gateway.loopback_no_auth", cli.SeverityCritical, "chela config set gateway.auth.mode token",
			"every program of this machine, of every user, may connect to the gateway")
	}
	if !local && !g.TLS.Enabled && g.Auth.Mode != access.ModeProxy {
		a.add("gateway.bind_no_tls", cli.SeverityCritical, "set gateway.tls.enabled, certPath and keyPath",
			"the gateway would listen on %s without TLS: its credential could be read on the network", host)
	}
	switch g.Tailscale.Mode {
	case tailscale.Funnel:
		a.add("gateway.tailscale_funnel", cli.SeverityCritical, "chela config set gateway.tailscale.mode serve",
			"the gateway is on the internet, by Tailscale's funnel: its password is all that is in between")
	case tailscale.Serve:
		a.add("gateway.tailscale_serve", cli.SeverityInfo,
			"chela config set gateway.tailscale.mode off, if that is not wanted",
			"machines in the Tailscale network reach the gateway")
	}
	a.secrets(g, env, tree)
	if slices.Contains(g.UI.Origins, "*") {
		a.add("gateway.control_ui.allowed_origins_wildcard", cli.SeverityCritical,
			"name the origins in gateway.controlUi.allowedOrigins",
			"any web page may open a connection to the gateway")
	}
	if g.Auth.Mode == access.ModeProxy && len(g.Proxies) == 0 {
		a.add("gateway.trusted_proxies_missing", cli.SeverityCritical, "set gateway.trustedProxies",
			"gateway.auth.mode is trusted-proxy, but no proxy is trusted")
	}
	if slices.ContainsFunc(g.Proxies, func(p string) bool { return strings.HasSuffix(p, "/0") }) {
		a.add("gateway.trusted_proxies_everybody", cli.SeverityCritical, "name the proxy's address in gateway.trustedProxies",
			"every address may claim to be any user")
	}
}

// secrets checks the credential of the gateway.
func (a *audit) secrets(g *endpoint.Options, env endpoint.Env, tree settings.Sections) {
	switch g.Auth.Mode {
	case access.ModeToken:
		v, err := g.Known(env)
		if err == nil && !v.IsZero() && len(v.Reveal()) < minToken {
			a.add("gateway.token_too_short", cli.SeverityWarn, "openssl rand -hex 24",
				"the gateway's token has fewer than %d characters", minToken)
		}
	case access.ModePassword:
		var raw struct {
			Auth struct{ Password any }
		}
		if b := tree.Section("gateway"); b != nil && json.Unmarshal(b, &raw) == nil {
			if s, ok := raw.Auth.Password.(string); ok && !strings.HasPrefix(s, "${") {
				a.add("config.secrets.gateway_password_in_config", cli.SeverityWarn, "use a variable: ${CHELA_GATEWAY_PASSWORD}",
					"the configuration contains the gateway's password")
			}
		}
	}
}

// hooks checks the token of hooks, which must not be the gateway's credential.
func (a *audit) hooks(g *endpoint.Options, env endpoint.Env, tree settings.Sections) {
	token := endpoint.HooksToken(tree.Section("hooks"), env.Env)
	switch {
	case token.IsZero():
		return
	case g.Opens(env, token):
		a.add("hooks.token_reuse_gateway_token", cli.SeverityCritical, "openssl rand -hex 24",
			"hooks.token is the gateway's credential: anybody who may call a hook has full access")
	case len(token.Reveal()) < minToken:
		a.add("hooks.token_too_short", cli.SeverityWarn, "openssl rand -hex 24",
			"hooks.token has fewer than %d characters", minToken)
	}
}

// maxElevated is the largest number of people with elevated rights that is not
// reported.
const maxElevated = 25

// elevated checks who may run commands outside of the sandbox.
func (a *audit) elevated(s settings.Sections) error {
	raw := s.Section("tools.elevated.allowFrom")
	if raw == nil {
		return nil
	}
	var from map[string][]settings.Person
	if err := json.Unmarshal(raw, &from); err != nil {
		return fmt.Errorf("configuration, tools.elevated.allowFrom: %w", err)
	}
	for _, channel := range slices.Sorted(maps.Keys(from)) {
		id := "tools.elevated.allowFrom." + channel
		if slices.Contains(from[channel], "*") {
			a.add(id+".wildcard", cli.SeverityCritical, "name the people in "+id,
				"every sender on %s may run commands outside of the sandbox", channel)
		} else if n := len(from[channel]); n > maxElevated {
			a.add(id+".large", cli.SeverityWarn, "", "%d people on %s may run commands outside of the sandbox", n, channel)
		}
	}
	return nil
}

// commands checks which commands run without approval.
func (a *audit) commands(s settings.Sections, state string) error {
	opts, err := settings.Read(s)
	if err != nil {
		return err
	}
	rules := opts.CommandRules(allowlist.NewFile(filepath.Join(state, allowlist.FileName)), "")
	a.filters("tools.exec", opts.Tools.Exec.Config)
	for i, agent := range opts.Agents.List {
		a.filters(fmt.Sprintf("agents.list[%d].tools.exec", i), agent.Tools.Exec)
	}
	for _, id := range slices.Sorted(maps.Keys(opts.Agents.Entries)) {
		a.filters("agents.entries."+id+".tools.exec", opts.Agents.Entries[id].Tools.Exec)
	}
	r, err := rules.Rules(chela.DefaultAgent)
	if err != nil {
		a.add("tools.exec.rules_invalid", cli.SeverityWarn, "", "%v", err)
		return nil
	}
	if err := r.Check(); err != nil {
		a.add("tools.exec.allowlist_invalid", cli.SeverityWarn, "chela approvals allowlist list",
			"an invalid entry allows nothing: %v", err)
	}
	if r.Policy.Security == allowlist.Full && r.Policy.Ask == allowlist.Off {
		a.add("tools.exec.security_full", cli.SeverityWarn, "chela exec-policy preset default",
			"every command runs without approval and without a sandbox (tools.exec.mode full)")
	}
	return nil
}

// filters checks safe bins that have no profile.
func (a *audit) filters(path string, c allowlist.Config) {
	interpreters, others := c.Bins().Unprofiled()
	if len(interpreters) > 0 {
		a.add("tools.exec.safe_bins_interpreter_unprofiled", cli.SeverityWarn, "remove them from "+path+".safeBins",
			"%s.safeBins contains interpreters without a profile: %s; they need approval", path,
			strings.Join(interpreters, ", "))
	}
	if len(others) > 0 {
		a.add("tools.exec.safe_bins_unprofiled", cli.SeverityInfo, "add them to "+path+".safeBinProfiles",
			"%s.safeBins contains programs without a profile: %s; they need approval", path, strings.Join(others, ", "))
	}
}
