package daemon

import (
	"context"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// launchd runs services as agents of the user's session.
type launchd struct{ Env }

func (m launchd) label(name string) string  { return "ai.chela." + name }
func (m launchd) domain() string            { return "gui/" + strconv.Itoa(m.UID) }
func (m launchd) target(name string) string { return m.domain() + "/" + m.label(name) }
func (m launchd) file(name string) string {
	return filepath.Join(m.Home, "Library", "LaunchAgents", m.label(name)+".plist")
}

func (m launchd) text(s Spec) string {
	var b strings.Builder
	b.WriteString(xml.Header +
		`<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">` +
		"\n<plist version=\"1.0\">\n<dict>\n")
	member := func(key, value string) { fmt.Fprintf(&b, "\t<key>%s</key>\n\t%s\n", key, value) }
	member("Label", xmlString(m.label(s.Name)))
	args := xmlString(s.Program)
	for _, a := range s.Args {
		args += xmlString(a)
	}
	member("ProgramArguments", "<array>"+args+"</array>")
	member("RunAtLoad", "<true/>")
	member("KeepAlive", "<true/>")
	member("ThrottleInterval", "<integer>5</integer>")
	member("ExitTimeOut", "<integer>30</integer>")
	if s.Path != "" {
		member("EnvironmentVariables", "<dict><key>PATH</key>"+xmlString(s.Path)+"</dict>")
	}
	out := filepath.Join(s.Logs, s.Name+".out")
	member("StandardOutPath", xmlString(out))
	member("StandardErrorPath", xmlString(out))
	b.WriteString("</dict>\n</plist>\n")
	return b.String()
}

func xmlString(s string) string { return "<string>" + xmlText(s) + "</string>" }

func xmlText(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder never fails
	return b.String()
}

// parsePlist returns the command and the PATH of an agent that this program wrote.
func parsePlist(text string) (command []string, path string) {
	var p struct {
		Dict struct {
			Array struct {
				Strings []string `xml:"string"`
			} `xml:"array"`
			Dict struct {
				Strings []string `xml:"string"`
			} `xml:"dict"`
		} `xml:"dict"`
	}
	if xml.Unmarshal([]byte(text), &p) != nil {
		return nil, ""
	}
	if env := p.Dict.Dict.Strings; len(env) == 1 {
		path = env[0]
	}
	return p.Dict.Array.Strings, path
}

// Install implements Manager. An agent that is loaded keeps its old settings until it is
// unloaded.
func (m launchd) Install(ctx context.Context, s Spec) error {
	m.unload(ctx, s.Name)
	if err := write(m.file(s.Name), m.text(s)); err != nil {
		return err
	}
	return m.Start(ctx, s.Name)
}

// unload stops an agent. While it ends, it cannot be loaded again.
func (m launchd) unload(ctx context.Context, name string) {
	if m.tell(ctx, "launchctl", "bootout", m.target(name)) != nil {
		return // it was not loaded
	}
	for wait := time.Duration(0); wait < timeout && m.tell(ctx, "launchctl", "print", m.target(name)) == nil &&
		ctx.Err() == nil; wait += 200 * time.Millisecond {
		time.Sleep(200 * time.Millisecond)
	}
}

// Uninstall implements Manager.
func (m launchd) Uninstall(ctx context.Context, name string) error {
	m.unload(ctx, name)
	return remove(m.file(name))
}

// Start implements Manager.
func (m launchd) Start(ctx context.Context, name string) error {
	if m.tell(ctx, "launchctl", "print", m.target(name)) == nil { // it is loaded
		return m.tell(ctx, "launchctl", "kickstart", m.target(name))
	}
	return m.tell(ctx, "launchctl", "bootstrap", m.domain(), m.file(name))
}

// Stop implements Manager. An agent that stays loaded would be started again.
func (m launchd) Stop(ctx context.Context, name string) error {
	m.unload(ctx, name)
	return nil
}

// Restart implements Manager.
func (m launchd) Restart(ctx context.Context, name string) error {
	m.unload(ctx, name)
	return m.Start(ctx, name)
}

var printed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*(state|pid) = (.+)$`) })

// State implements Manager.
func (m launchd) State(ctx context.Context, name string) (State, error) {
	st := State{Manager: "launchd", File: m.file(name)}
	have, err := read(st.File)
	if err != nil || have == "" {
		return st, err
	}
	st.Installed, st.Detail = true, "not loaded"
	st.Command, st.Path = parsePlist(have)
	out, err := m.Run(ctx, "launchctl", "print", m.target(name))
	if err != nil {
		return st, nil //nolint:nilerr // it is not loaded
	}
	for _, f := range printed().FindAllStringSubmatch(out, -1) {
		switch f[1] {
		case "state":
			st.Detail, st.Running = f[2], f[2] == "running"
		case "pid":
			st.PID, _ = strconv.Atoi(f[2])
		}
	}
	return st, nil
}

// Stays implements Manager. An agent ends with the person's session.
func (launchd) Stays(context.Context) (bool, string) { return false, "" }
