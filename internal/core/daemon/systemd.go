package daemon

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// systemd runs services as units of the user's manager.
type systemd struct{ Env }

// unit is the text of a unit. It is restarted unless its configuration is wrong (78); after
// five starts within a minute, systemd gives up.
const unit = `# Written by chela gateway install. systemctl --user edit %[1]s adds settings.
[Unit]
Description=%[2]s
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
ExecStart=%[3]s
%[4]sRestart=always
RestartSec=5
RestartPreventExitStatus=78
SuccessExitStatus=143
TimeoutStopSec=30

[Install]
WantedBy=default.target
`

func (m systemd) file(name string) string {
	dir := m.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(m.Home, ".config")
	}
	return filepath.Join(dir, "systemd", "user", name+".service")
}

func (m systemd) text(s Spec) string {
	words := []string{quoteUnit(s.Program)}
	for _, a := range s.Args {
		words = append(words, quoteUnit(a))
	}
	command := strings.ReplaceAll(strings.Join(words, " "), "$", "$$") // a dollar sign begins a variable there
	env := ""
	if s.Path != "" {
		env = "Environment=" + quoteUnit("PATH="+s.Path) + "\n"
	}
	return fmt.Sprintf(unit, s.Name, strings.ReplaceAll(s.Title, "%", "%%"), command, env)
}

// quoteUnit quotes a word of a unit, where a percent sign begins a specifier.
func quoteUnit(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, "\n", `\n`).Replace(s) + `"`
}

// parseUnit returns the command and the PATH of a unit that this program wrote.
func parseUnit(text string) (command []string, path string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "ExecStart="); ok {
			for _, w := range unitWords(rest) {
				command = append(command, strings.ReplaceAll(w, "$$", "$"))
			}
		}
		if rest, ok := strings.CutPrefix(line, "Environment="); ok {
			for _, w := range unitWords(rest) {
				if value, ok := strings.CutPrefix(w, "PATH="); ok {
					path = value
				}
			}
		}
	}
	return command, path
}

// unitWords returns words that quoteUnit quoted; nil: they are written in another way.
func unitWords(s string) (words []string) {
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		if s[0] != '"' {
			return nil
		}
		end := 1
		for end < len(s) && s[end] != '"' {
			if s[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(s) {
			return nil
		}
		words = append(words, strings.NewReplacer(`\\`, `\`, `\"`, `"`, `%%`, `%`, `\n`, "\n").Replace(s[1:end]))
		s = s[end+1:]
	}
	return words
}

// reached returns why the user's manager cannot be asked.
func (m systemd) reached(ctx context.Context) error {
	if err := m.tell(ctx, "systemctl", "--user", "show-environment"); err != nil {
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	return nil
}

// Install implements Manager.
func (m systemd) Install(ctx context.Context, s Spec) error {
	if err := m.reached(ctx); err != nil {
		return err
	}
	if err := write(m.file(s.Name), m.text(s)); err != nil {
		return err
	}
	return m.all(ctx, []string{"daemon-reload"}, []string{"enable", s.Name + ".service"},
		[]string{"restart", s.Name + ".service"})
}

// all gives the manager commands until one fails.
func (m systemd) all(ctx context.Context, commands ...[]string) error {
	for _, args := range commands {
		if err := m.tell(ctx, "systemctl", append([]string{"--user"}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// Uninstall implements Manager.
func (m systemd) Uninstall(ctx context.Context, name string) error {
	have, err := read(m.file(name))
	if err != nil || have == "" {
		return err
	}
	if m.reached(ctx) == nil { // otherwise nothing runs
		if err := m.all(ctx, []string{"disable", "--now", name + ".service"}); err != nil {
			return err
		}
	}
	if err := remove(m.file(name)); err != nil {
		return err
	}
	_ = m.all(ctx, []string{"daemon-reload"}, []string{"reset-failed", name + ".service"}) // it is gone in any case
	return nil
}

// Start implements Manager.
func (m systemd) Start(ctx context.Context, name string) error {
	_ = m.all(ctx, []string{"reset-failed", name + ".service"}) // a person starts it, however often it failed
	return m.all(ctx, []string{"start", name + ".service"})
}

// Stop implements Manager.
func (m systemd) Stop(ctx context.Context, name string) error {
	return m.all(ctx, []string{"stop", name + ".service"})
}

// Restart implements Manager.
func (m systemd) Restart(ctx context.Context, name string) error {
	return m.all(ctx, []string{"restart", name + ".service"})
}

// State implements Manager.
func (m systemd) State(ctx context.Context, name string) (State, error) {
	st := State{Manager: "systemd", File: m.file(name)}
	have, err := read(st.File)
	if err != nil || have == "" {
		return st, err
	}
	st.Installed = true
	st.Command, st.Path = parseUnit(have)
	out, err := m.Run(ctx, "systemctl", "--user", "show", "--property=ActiveState,SubState,MainPID,Result",
		name+".service")
	if err != nil {
		st.Detail = "systemd does not answer"
		return st, nil //nolint:nilerr // the file is there
	}
	values := map[string]string{}
	for line := range strings.Lines(out) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[k] = v
	}
	st.Running = values["ActiveState"] == "active"
	st.Detail = values["ActiveState"]
	if values["SubState"] == "auto-restart" || values["ActiveState"] == "failed" {
		st.Detail += ", " + values["Result"]
	}
	st.PID, _ = strconv.Atoi(values["MainPID"])
	return st, nil
}

// Stays implements Manager.
func (m systemd) Stays(ctx context.Context) (bool, string) {
	out, err := m.Run(ctx, "loginctl", "show-user", strconv.Itoa(m.UID), "--property=Linger")
	if err != nil {
		return true, "" // nobody can tell
	}
	return strings.TrimSpace(out) == "Linger=yes", "loginctl enable-linger"
}
