// Package release finds out which version of the program runs, how it was installed, and,
// when a person asks, which version is the newest. It replaces nothing.
package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// module is the module of the program, and command the path of the program in it.
const (
	module  = "github.com/chela-ai/chela"
	command = module + "/cmd/chela"
)

// proxy is where the newest version is asked for, unless GOPROXY says otherwise.
const proxy = "https://proxy.golang.org"

// timeout and limit bound an answer.
const (
	timeout = 20 * time.Second
	limit   = 1 << 16
)

// Releases implements cli.Releases.
type Releases struct {
	Version string
	Env     func(string) string
	HTTP    func(host string) *http.Client // that reaches the host even in the local network; nil: the egress-checked one
}

var _ cli.Releases = Releases{}

// seen is what was found out last.
type seen struct {
	Newest  string    `json:"newest"`
	Checked time.Time `json:"checked"`
}

func file(s cli.Start) string { return filepath.Join(s.State, "cache", "release.json") }

// Status implements cli.Releases.
func (r Releases) Status(s cli.Start) (cli.Release, error) {
	out := cli.Release{Version: r.Version}
	program, err := os.Executable()
	if err != nil {
		return out, err
	}
	out.Program = program
	out.Install = r.install(program)
	b, err := os.ReadFile(file(s))
	var last seen
	if err == nil && json.Unmarshal(b, &last) == nil && semver.IsValid(last.Newest) {
		out.Checked = &last.Checked
		r.compare(&out, last.Newest)
	}
	return out, nil
}

// install returns how the program was installed.
func (r Releases) install(program string) string {
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Path == module && semver.IsValid(info.Main.Version) && info.Main.Sum != "" {
		return cli.InstallGo
	}
	dir := filepath.Dir(program)
	for _, bin := range r.bins() {
		if dir == bin {
			return cli.InstallGo
		}
	}
	return cli.InstallFile
}

// bins returns the folders into which go install writes.
func (r Releases) bins() []string {
	var out []string
	if bin := r.Env("GOBIN"); bin != "" {
		out = append(out, filepath.Clean(bin))
	}
	for _, dir := range filepath.SplitList(r.Env("GOPATH")) {
		out = append(out, filepath.Join(dir, "bin"))
	}
	if home := r.Env("HOME"); home != "" && r.Env("GOPATH") == "" {
		out = append(out, filepath.Join(home, "go", "bin"))
	}
	return out
}

// compare says whether a version is newer, and what to type then.
func (r Releases) compare(out *cli.Release, newest string) {
	out.Newest = strings.TrimPrefix(newest, "v")
	if out.Newer = semver.Compare(newest, "v"+r.Version) > 0; !out.Newer {
		return
	}
	out.Command = "go install " + command + "@" + newest
	if out.Install == cli.InstallFile {
		out.Command = "GOBIN=" + shell.Quote(filepath.Dir(out.Program)) + " " + out.Command
	}
}

// Check implements cli.Releases.
func (r Releases) Check(ctx context.Context, s cli.Start, keep bool) (cli.Release, error) {
	out, err := r.Status(s)
	if err != nil {
		return out, err
	}
	newest, err := r.newest(ctx)
	if err != nil {
		return out, err
	}
	out.Newest, out.Newer, out.Command, out.Checked = "", false, "", nil
	r.compare(&out, newest)
	if _, err := os.Stat(s.State); err != nil || !keep {
		return out, nil // nothing is kept where nothing is yet
	}
	now := time.Now().UTC().Truncate(time.Second)
	out.Checked = &now
	b, err := json.Marshal(seen{newest, now})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file(s)), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(file(s), b, 0o600)
	}
	return out, err
}

// proxies returns the addresses of GOPROXY in their order. direct, which would run programs,
// is left out.
func (r Releases) proxies() ([]*url.URL, error) {
	list := r.Env("GOPROXY")
	if list == "" {
		list = proxy
	}
	var out []*url.URL
	for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == '|' }) {
		name = strings.TrimSpace(name)
		if name == "off" {
			break
		}
		if u, err := url.Parse(name); err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" {
			out = append(out, u)
		}
	}
	if len(out) == 0 {
		return nil, &chela.Error{Code: chela.CodeInvalid, Message: "GOPROXY names no address that can be asked for versions",
			Hint: "GOPROXY=" + proxy + " chela update"}
	}
	return out, nil
}

// newest asks the proxies for the newest version, one after the other.
func (r Releases) newest(ctx context.Context) (string, error) {
	all, err := r.proxies()
	if err != nil {
		return "", err
	}
	var errs []error
	for _, u := range all {
		v, err := r.ask(ctx, u)
		if err == nil {
			return v, nil
		}
		errs = append(errs, err)
	}
	return "", &chela.Error{Code: chela.CodeUnavailable, Message: "the newest version is not known",
		Hint: "chela update status, which needs no network", Err: errors.Join(errs...)}
}

// ask asks a module proxy.
func (r Releases) ask(ctx context.Context, base *url.URL) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	at := base.JoinPath(module, "@latest")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return "", fmt.Errorf("%s: %w", base.Host, err)
	}
	get := r.HTTP
	if get == nil {
		get = func(host string) *http.Client {
			return egress.Client(egress.Options{Policy: egress.Policy{Hosts: []string{host}}, Proxy: egress.Proxies(r.Env),
				ProxyResolves: true})
		}
	}
	res, err := get(hostPort(at)).Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the address may contain a password
		}
		return "", fmt.Errorf("%s: %w", base.Host, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: status %s", base.Host, res.Status)
	}
	var latest struct{ Version string }
	b, err := io.ReadAll(io.LimitReader(res.Body, limit))
	if err == nil {
		err = json.Unmarshal(b, &latest)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", base.Host, err)
	}
	if !semver.IsValid(latest.Version) {
		return "", fmt.Errorf("%s: no version in its answer", base.Host)
	}
	return latest.Version, nil
}

// hostPort returns the host of an address with its port.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	if u.Scheme == "http" {
		return u.Host + ":80"
	}
	return u.Host + ":443"
}
