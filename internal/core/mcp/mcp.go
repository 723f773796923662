package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
)

// Config is the section mcp.
type Config struct {
	Servers map[string]Server `json:"servers"`
	IdleMS  int               `json:"sessionIdleTtlMs"` // a server without calls is stopped after it; 0: after [IdleTime]
}

// IdleTime is the time after which a server without calls is stopped.
const IdleTime = 10 * time.Minute

// Idle returns the time after which a server without calls is stopped.
func (c Config) Idle() time.Duration {
	return cmp.Or(time.Duration(max(0, c.IdleMS))*time.Millisecond, IdleTime)
}

// Server says how a server is reached: a program has Command, one on the network has
// URL. The keys are those of OpenClaw's mcp.servers.<name>.
type Server struct {
	Command string            `json:"command"` // name of the program in PATH, or its path
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"` // variables, in addition to those that all programs get
	Dir     string            `json:"cwd"` // empty: the state directory
	WorkDir string            `json:"workingDirectory"`

	URL       string            `json:"url"`
	Transport string            `json:"transport"` // stdio, streamable-http or sse; empty: by Command and URL
	Type      string            `json:"type"`      // another name of Transport, in the files of other programs
	Headers   map[string]string `json:"headers"`
	// [OAuthLogin], or empty: a login is used if there is one and Headers has no Authorization
	Auth  string `json:"auth"`
	OAuth OAuth  `json:"oauth"`

	Enabled   *bool      `json:"enabled"` // nil: true
	Parallel  bool       `json:"supportsParallelToolCalls"`
	ConnectMS int        `json:"connectionTimeoutMs"`
	RequestMS int        `json:"requestTimeoutMs"`
	Filter    ToolFilter `json:"toolFilter"`

	// Set for the servers of plug-ins.
	Plugin string          `json:"-"` // its id; empty: the configuration has the server
	Rights *sandbox.Rights `json:"-"` // what the program may use; nil: everything
	Check  func() error    `json:"-"` // returns why the program must not be started; nil: it may be
	Own    []Declared      `json:"-"` // the tools, which have names without a prefix; nil: those that the server lists
}

// OAuthLogin is the value of Auth for a server that nobody uses without a login. Its
// header Authorization is not sent.
const OAuthLogin = "oauth"

// OAuth says how one logs in at a server, where it does not say so itself.
type OAuth struct {
	// rights to ask for, separated by blanks; empty: those that the server names
	Scope       string `json:"scope"`
	RedirectURL string `json:"redirectUrl"` // where the browser goes afterwards; empty: a free port of this machine
	// https address of a description of this program, which is its id at services that accept that
	MetadataURL  string `json:"clientMetadataUrl"`
	ClientID     string `json:"clientId"` // of this program at the service; empty: it registers itself
	ClientSecret string `json:"-"`
}

// Variables returns Env without the variables that make a program run other code than its
// own, whose names it returns too, sorted.
func (s Server) Variables() (vars map[string]string, dropped []string) {
	vars = maps.Clone(s.Env)
	maps.DeleteFunc(vars, func(name, _ string) bool {
		up := strings.ToUpper(name)
		loads := slices.ContainsFunc([]string{"LD_", "DYLD_", "BASH_FUNC_"},
			func(p string) bool { return strings.HasPrefix(up, p) }) ||
			slices.Contains([]string{"NODE_OPTIONS", "PYTHONSTARTUP", "BASH_ENV", "PERL5OPT", "RUBYOPT"}, up)
		if loads {
			dropped = append(dropped, name)
		}
		return loads
	})
	slices.Sort(dropped)
	return vars, dropped
}

// Declared is a tool that a plug-in declares in its manifest.
type Declared struct {
	Name     string
	Optional bool // the policy must name it
}

// ToolFilter selects tools by their names at the server, or by patterns with *.
type ToolFilter struct {
	Include []string `json:"include"` // none: all
	Exclude []string `json:"exclude"`
}

// Allows reports whether a tool is selected.
func (f ToolFilter) Allows(name string) bool {
	matches := func(p string) bool { return matchStar(p, name) }
	return (len(f.Include) == 0 || slices.ContainsFunc(f.Include, matches)) && !slices.ContainsFunc(f.Exclude, matches)
}

// matchStar reports whether a name matches a pattern in which * stands for any text.
func matchStar(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, p := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, p)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// The transports.
const (
	Stdio = "stdio"
	HTTP  = "streamable-http"
	SSE   = "sse"
)

// On reports whether the server is used.
func (s Server) On() bool { return s.Enabled == nil || *s.Enabled }

// Kind returns the transport.
func (s Server) Kind() string {
	switch t := cmp.Or(s.Transport, s.Type); {
	case t == "http":
		return HTTP
	case t != "":
		return t
	case s.Command != "":
		return Stdio
	}
	return SSE
}

// Validate returns the error in the description of a server.
func (s Server) Validate() error {
	kind := s.Kind()
	switch {
	case s.Command == "" && s.URL == "":
		return errors.New(`want command, as in {"command": "npx", "args": ["-y", "some-server"]}, or url`)
	case s.Command != "" && s.URL != "":
		return errors.New("want either command or url")
	case kind != Stdio && kind != HTTP && kind != SSE:
		return fmt.Errorf("transport %q: want %s, %s or %s", kind, Stdio, HTTP, SSE)
	case (kind == Stdio) != (s.Command != ""):
		return fmt.Errorf("transport %s: want %s", kind, map[bool]string{true: "command", false: "url"}[kind == Stdio])
	case s.Auth != "" && s.Auth != OAuthLogin:
		return fmt.Errorf("auth %q: want oauth", s.Auth)
	case s.Auth != "" && s.URL == "":
		return errors.New("auth: only servers with url have logins")
	case s.URL == "":
		return nil
	}
	if u, err := url.Parse(s.URL); err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("url: want http:// or https:// and a host")
	}
	return nil
}

// Time limits of servers that set none.
const (
	ConnectTime = 30 * time.Second
	RequestTime = 60 * time.Second
	maxTime     = 30 * time.Minute
)

// ConnectTimeout returns the time limit of a start.
func (s Server) ConnectTimeout() time.Duration { return limit(s.ConnectMS, ConnectTime) }

// RequestTimeout returns the time limit of a call.
func (s Server) RequestTimeout() time.Duration { return limit(s.RequestMS, RequestTime) }

func limit(ms int, normal time.Duration) time.Duration {
	return min(cmp.Or(time.Duration(max(0, ms))*time.Millisecond, normal), maxTime)
}

// Folder returns the working directory, below base if it is relative.
func (s Server) Folder(base string) string {
	dir := cmp.Or(s.Dir, s.WorkDir, base)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(base, dir)
	}
	return dir
}

// Limits of names.
const (
	maxPrefix = 30
	maxName   = 64
)

// Prefix returns the beginning of the names of a server's tools.
func Prefix(server string) string {
	return prefix(cmp.Or(server, "mcp"), maxPrefix)
}

// Names returns the names that tools of a server have for models: SERVER__TOOL.
// Names that are equal after unsuitable characters are replaced get a number.
func Names(server string, tools []string) []string {
	used := map[string]bool{}
	out := make([]string, len(tools))
	for i, t := range tools {
		name := clip(Prefix(server)+"__"+suitable(t), maxName)
		for n := 2; used[strings.ToLower(name)]; n++ {
			number := "-" + strconv.Itoa(n)
			name = clip(Prefix(server)+"__"+suitable(t), maxName-len(number)) + number
		}
		used[strings.ToLower(name)] = true
		out[i] = name
	}
	return out
}

// prefix returns a name that model services accept as the beginning of a tool's.
func prefix(name string, n int) string {
	name = suitable(name)
	if c := name[0] | 0x20; c < 'a' || c > 'z' {
		name = "m" + name
	}
	return clip(name, n)
}

// suitable replaces the characters that names of tools cannot have.
func suitable(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '-'
	}, name)
	return cmp.Or(name, "-")
}

func clip(s string, n int) string { return s[:min(len(s), n)] }
