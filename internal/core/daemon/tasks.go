package daemon

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/text/encoding/unicode"
)

// tasks runs services as scheduled tasks that begin when the person logs in.
type tasks struct{ Env }

// task is the definition of a task. It has no time limit and is started again after a
// minute if it ends with an error.
const task = `<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo><Description>%s</Description></RegistrationInfo>
  <Triggers><LogonTrigger><Enabled>true</Enabled>%s</LogonTrigger></Triggers>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure><Interval>PT1M</Interval><Count>255</Count></RestartOnFailure>
    <Hidden>true</Hidden>
  </Settings>
  <Actions><Exec><Command>%s</Command><Arguments>%s</Arguments></Exec></Actions>
</Task>
`

func (m tasks) file(name string) string {
	return filepath.Join(m.Home, "AppData", "Local", "chela", name+".xml")
}

func (m tasks) text(s Spec) string {
	words := make([]string, len(s.Args))
	for i, a := range s.Args {
		words[i] = quoteWindows(a)
	}
	who := ""
	if user := m.Getenv("USERNAME"); user != "" {
		who = "<UserId>" + xmlText(user) + "</UserId>"
	}
	return fmt.Sprintf(task, xmlText(s.Title), who, xmlText(s.Program), xmlText(strings.Join(words, " ")))
}

// quoteWindows quotes an argument as programs of Windows read them.
func quoteWindows(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\"") {
		return s
	}
	var b strings.Builder
	slashes := 0
	for _, r := range s {
		switch r {
		case '\\':
			slashes++
			continue
		case '"':
			b.WriteString(strings.Repeat(`\`, 2*slashes+1))
		default:
			b.WriteString(strings.Repeat(`\`, slashes))
		}
		slashes = 0
		b.WriteRune(r)
	}
	return `"` + b.String() + strings.Repeat(`\`, 2*slashes) + `"`
}

// Install implements Manager. The Task Scheduler reads a file in UTF-16.
func (m tasks) Install(ctx context.Context, s Spec) error {
	text := m.text(s)
	if err := write(m.file(s.Name), text); err != nil {
		return err
	}
	wide, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(text)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp("", "chela-*.xml")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.WriteString(wide); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := m.tell(ctx, "schtasks", "/Create", "/F", "/TN", s.Name, "/XML", f.Name()); err != nil {
		return err
	}
	return m.Restart(ctx, s.Name)
}

// Uninstall implements Manager.
func (m tasks) Uninstall(ctx context.Context, name string) error {
	have, err := read(m.file(name))
	if err != nil || have == "" {
		return err
	}
	_ = m.Stop(ctx, name) // it may not run
	if err := m.tell(ctx, "schtasks", "/Delete", "/F", "/TN", name); err != nil {
		return err
	}
	return remove(m.file(name))
}

// Start implements Manager.
func (m tasks) Start(ctx context.Context, name string) error {
	return m.tell(ctx, "schtasks", "/Run", "/TN", name)
}

// Stop implements Manager.
func (m tasks) Stop(ctx context.Context, name string) error {
	return m.tell(ctx, "schtasks", "/End", "/TN", name)
}

// Restart implements Manager.
func (m tasks) Restart(ctx context.Context, name string) error {
	_ = m.Stop(ctx, name) // it may not run
	return m.Start(ctx, name)
}

// State implements Manager.
func (m tasks) State(ctx context.Context, name string) (State, error) {
	st := State{Manager: "Task Scheduler", File: m.file(name)}
	have, err := read(st.File)
	if err != nil || have == "" {
		return st, err
	}
	st.Installed = true
	out, err := m.Run(ctx, "schtasks", "/Query", "/TN", name, "/FO", "CSV", "/NH")
	if err != nil {
		st.Detail = "the task is gone"
		return st, nil //nolint:nilerr // the file is there
	}
	if rows, err := csv.NewReader(strings.NewReader(out)).ReadAll(); err == nil && len(rows) > 0 && len(rows[0]) > 2 {
		st.Detail = rows[0][2]
		st.Running = st.Detail == "Running"
	}
	return st, nil
}

// Stays implements Manager. The task belongs to the person's session.
func (tasks) Stays(context.Context) (bool, string) { return false, "" }
