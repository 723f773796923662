package standard

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/chela-ai/chela/internal/core/plugindir"
	"github.com/chela-ai/chela/internal/plugin/tool/browser"
	"github.com/chela-ai/chela/internal/plugin/tool/web"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// Doctors registers the checks of chela doctor.
func Doctors(r *Registry) {
	r.Doctor("programs", func(context.Context, DoctorEnv) []cli.Finding { return programs() })
	r.Doctor("browser", func(_ context.Context, env DoctorEnv) []cli.Finding { return browsers(env) })
	r.Doctor("plugins", func(_ context.Context, env DoctorEnv) []cli.Finding { return plugins(env) })
}

// browsers looks for what the tool browser needs.
func browsers(env DoctorEnv) []cli.Finding {
	c, err := browser.ParseConfig(env.Section("browser"))
	if err != nil || !c.On() {
		return nil // off, or the configuration is invalid, which another check says
	}
	f := cli.Finding{Name: "browser", Status: cli.StatusOK}
	text, err := browser.Check(&c, os.Environ())
	switch {
	case err == nil:
		f.Text = text
	case len(env.Section("browser")) > 0:
		f.Status, f.Text = cli.StatusWarn, err.Error()
	default: // nobody asked for it
		f.Text = "the tool browser cannot be used: " + err.Error()
	}
	return []cli.Finding{f}
}

// plugins looks for plug-ins that are enabled and cannot be used, except in workspaces.
func plugins(env DoctorEnv) []cli.Finding {
	var c plugindir.Config
	if raw := env.Section("plugins"); len(raw) > 0 && json.Unmarshal(raw, &c) != nil {
		return nil // the configuration is invalid, which another check says
	}
	var out []cli.Finding
	for _, p := range plugindir.Find(plugindir.Options{
		Config: c,
		State:  env.State,
		Home:   env.Getenv("HOME"),
		Known:  web.Providers(),
		Getenv: env.Getenv,
	}) {
		switch {
		case p.Loadable():
			out = append(out, cli.Finding{Name: "plug-in " + p.ID, Status: cli.StatusOK, Text: p.Dir})
		case p.Enabled && len(p.Reasons) > 0 && p.Source != plugindir.Missing:
			out = append(out, cli.Finding{Name: "plug-in " + p.ID, Status: cli.StatusWarn, Text: p.Reasons[0],
				Hint: "chela plugins info " + p.ID})
		}
	}
	return out
}

// programs looks for the programs that commands use.
func programs() []cli.Finding {
	var out []cli.Finding
	for _, name := range [...]string{"bash", "git"} {
		f := cli.Finding{Name: name, Status: cli.StatusOK, Text: lookPath(name)}
		if f.Text == "" {
			f.Status, f.Text = cli.StatusWarn, "not found; commands that use it fail"
		}
		out = append(out, f)
	}
	return out
}

// lookPath finds a program in PATH; "": not found.
func lookPath(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		for _, ext := range [...]string{"", ".exe"} {
			path := filepath.Join(dir, name+ext)
			if info, err := os.Stat(path); err == nil && !info.IsDir() {
				return path
			}
		}
	}
	return ""
}
