package standard

import (
	"context"
	"os"
	"path/filepath"

	"github.com/chela-ai/chela/internal/surface/cli"
)

// Doctors registers the checks of chela doctor.
func Doctors(r *Registry) {
	r.Doctor("programs", func(context.Context, DoctorEnv) []cli.Finding { return programs() })
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
