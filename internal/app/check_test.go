package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/cli"
)

func TestCheck(t *testing.T) {
	found := func(t *testing.T, s cli.Start) (status map[string]string, all string) {
		t.Helper()
		status = map[string]string{}
		for _, f := range check(t.Context(), s) {
			if f.Name != "bash" && f.Name != "git" {
				status[f.Name] = f.Status
			}
			all += f.Name + ": " + f.Text + " " + f.Hint + "\n"
		}
		return status, all
	}
	const ok, warn, fail = cli.StatusOK, cli.StatusWarn, cli.StatusFail
	t.Run("an engine that runs", func(t *testing.T) {
		s := home(t, `{agents: {defaults: {model: "offline/assistant"}}}`)
		begun(t, s)
		got, all := found(t, s)
		want := map[string]string{"state directory": ok, "lock": ok, "configuration": ok, "database": ok, "model": warn, "workspace": ok}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", diff, all)
		}
	})
	t.Run("one that has ended", func(t *testing.T) {
		s := home(t, offlineConf)
		begun(t, s).Close(t.Context())
		got, all := found(t, s)
		want := map[string]string{"state directory": ok, "lock": ok, "space": ok, "configuration": ok, "database": ok, "model": warn, "workspace": warn}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", diff, all)
		}
		if !strings.Contains(all, "database: whole") {
			t.Error(all)
		}
	})
	t.Run("what is wrong, and no key", func(t *testing.T) {
		s := home(t, `{agents: {defaults: {model: "openai/gpt-5"}}, models: {providers: {groq: {apiKey: "sk-canary"}}}, nonsense: 1}`)
		write(t, filepath.Join(s.State, databaseName), strings.Repeat("this is no database. ", 300))
		if err := os.Chmod(s.State, 0o750); err != nil {
			t.Fatal(err)
		}
		t.Setenv("OPENAI_API_KEY", "")
		got, all := found(t, s)
		want := map[string]string{"state directory": warn, "lock": ok, "space": ok, "configuration": warn, "database": fail, "model": fail, "workspace": ok}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", diff, all)
		}
		for _, want := range []string{"chela backup salvage", "models.providers.openai.apiKey", "nonsense", "chmod 700"} {
			if !strings.Contains(all, want) {
				t.Errorf("no %q in\n%s", want, all)
			}
		}
		if strings.Contains(all, "canary") {
			t.Error("a key was printed")
		}
	})
	t.Run("a place where no directory can be made", func(t *testing.T) {
		if _, err := os.Stat("/proc/self"); err != nil {
			t.Skip("no such place here")
		}
		s := home(t, "{}")
		s.State = "/proc/none/chela"
		if got, all := found(t, s); got["state directory"] != fail || !strings.Contains(all, "/proc/none/chela cannot be made") {
			t.Error(all)
		}
	})
	t.Run("a key is said to be there, not what it is", func(t *testing.T) {
		s := home(t, `{agents: {defaults: {model: "openai/gpt-5"}}}`)
		t.Setenv("OPENAI_API_KEY", "")
		os.Unsetenv("OPENAI_API_KEY")
		if err := saveKey(s, "openai", "", "sk-canary"); err != nil {
			t.Fatal(err)
		}
		got, all := found(t, s)
		if got["model"] != ok || !strings.Contains(all, "key from the saved keys") || strings.Contains(all, "canary") {
			t.Error(all)
		}
	})
}
