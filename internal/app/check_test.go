package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/app/doctor"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/surface/cli"
)

func TestCheck(t *testing.T) {
	found := func(t *testing.T, s cli.Start) (status map[string]string, all string) {
		t.Helper()
		status = map[string]string{}
		for _, f := range (doctor.Doctor{Registry: standard.New()}).Check(t.Context(), s) {
			if f.Name != "bash" && f.Name != "git" && f.Name != "browser" { // programs of this machine
				status[f.Name] = f.Status
			}
			all += f.Name + ": " + f.Text + " " + f.Hint + "\n"
		}
		return status, all
	}
	const ok, warn, fail = cli.StatusOK, cli.StatusWarn, cli.StatusFail
	t.Run("with a running engine", func(t *testing.T) {
		s := home(t, `{agents: {defaults: {model: "offline/assistant"}}}`)
		begun(t, s)
		got, all := found(t, s)
		want := map[string]string{
			"state directory": ok,
			"lock":            ok,
			"configuration":   ok,
			"database":        ok,
			"model":           warn,
			"workspace":       ok,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", diff, all)
		}
	})
	t.Run("after the engine has ended", func(t *testing.T) {
		s := home(t, offlineConf)
		begun(t, s).Close(t.Context())
		got, all := found(t, s)
		want := map[string]string{
			"state directory": ok,
			"lock":            ok,
			"space":           ok,
			"configuration":   ok,
			"database":        ok,
			"model":           warn,
			"workspace":       warn,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", diff, all)
		}
		if !strings.Contains(all, "database: undamaged") {
			t.Error(all)
		}
	})
	t.Run("a file that defines no agent type", func(t *testing.T) {
		s := home(t, offlineConf)
		write(t, filepath.Join(s.State, "workspace", "agents", "pilot.md"), "---\ndescription: [\n---\n")
		if got, all := found(t, s); got["agent types"] != warn ||
			!strings.Contains(all, filepath.Join("agents", "pilot.md")+": front matter: line 2: ") {
			t.Errorf("%v: %s", got, all)
		}
		write(t, filepath.Join(s.State, "workspace", "agents", "helper.md.txt"), "---\ndescription: helps\n---\n")
		if _, all := found(t, s); !strings.Contains(all,
			"agents/helper.md.txt: it is not used: is it helper.md with the wrong ending?") {
			t.Error(all)
		}
	})
	t.Run("folders that do not exist", func(t *testing.T) {
		s := home(t, `{skills: {load: {extraDirs: ["/no/skills"]}}, hooks: {transformsDir: "/no/transforms", internal: {load: {extraDirs: ["more"]}}}}`)
		_, all := found(t, s)
		for _, want := range []string{"folders: skills.load.extraDirs: stat /no/skills: ",
			"hooks.transformsDir: stat /no/transforms: ", "hooks.internal.load.extraDirs: stat " +
				filepath.Join(s.State, "more")} {
			if !strings.Contains(all, want) {
				t.Errorf("no %q in\n%s", want, all)
			}
		}
	})
	t.Run("a skill that cannot be read", func(t *testing.T) {
		s := home(t, offlineConf)
		file := filepath.Join(s.State, "workspace", "skills", "water", "SKILL.md")
		write(t, file, "---\nname: [\n---\n")
		if got, all := found(t, s); got["skills"] != warn || strings.Count(all, file) != 1 ||
			!strings.Contains(all, "chela skills check") {
			t.Errorf("%v: %s", got, all)
		}
	})
	for _, text := range []string{"", "[]", "{"} {
		t.Run(fmt.Sprintf("rules for commands that are %q", text), func(t *testing.T) {
			s := home(t, offlineConf)
			write(t, filepath.Join(s.State, allowlist.FileName), text)
			got, all := found(t, s)
			if got["command rules"] != fail || !strings.Contains(all, "so no command is run") ||
				strings.Contains(all, "Go value") {
				t.Errorf("%v: %s", got, all)
			}
		})
	}
	t.Run("a workspace file that is not in the prompt", func(t *testing.T) {
		s := home(t, offlineConf)
		ws := filepath.Join(s.State, "workspace")
		write(t, filepath.Join(ws, "AGENTS.md"), "rules")
		if err := os.Symlink(".env", filepath.Join(ws, "SOUL.md")); err != nil {
			needtest.Missing(t, "symbolic links")
		}
		write(t, filepath.Join(ws, ".env"), "KEY=canary")
		if got, all := found(t, s); got["workspace"] != warn ||
			!strings.Contains(all, "SOUL.md is not in the prompt: it is a private file") || strings.Contains(all, "canary") {
			t.Error(all)
		}
	})
	t.Run("HEARTBEAT.md with a secret and a task without a prompt", func(t *testing.T) {
		s := home(t, offlineConf)
		write(t, filepath.Join(s.State, "workspace", "HEARTBEAT.md"),
			"log in with PASSWORD=hunter2hunter2\ntasks:\n- name: mail\n  interval: 1h\n")
		got, all := found(t, s)
		if got["heartbeat"] != warn || !strings.Contains(all, "seems to contain a secret") ||
			!strings.Contains(all, `task "mail": name and prompt are required`) || strings.Contains(all, "hunter2") {
			t.Error(all)
		}
	})
	t.Run("notes with secrets", func(t *testing.T) {
		s := home(t, offlineConf)
		ws := filepath.Join(s.State, "workspace")
		write(t, filepath.Join(ws, "MEMORY.md"), "- likes tea\n- the Wi-Fi password is hunter2hunter2\n")
		write(t, filepath.Join(ws, "memory", "2026-11-20.md"), "# Keys\n\nsk-hunter2hunter2hunter2\n")
		write(t, filepath.Join(ws, "memory", "cn.md"), "路由器密码是hunter2hunter2\n")
		write(t, filepath.Join(ws, "memory", "plain.md"), "I forgot the password of the router. Keys are under the mat.\n")
		got, all := found(t, s)
		if got["notes"] != warn || !strings.Contains(all, "MEMORY.md:2, memory/2026-11-20.md:3, memory/cn.md:1") ||
			strings.Contains(all, "hunter2") || strings.Contains(all, "plain.md") {
			t.Error(all)
		}
		write(t, filepath.Join(ws, "MEMORY.md"), "- likes tea\n")
		if err := os.RemoveAll(filepath.Join(ws, "memory")); err != nil {
			t.Fatal(err)
		}
		if got, all := found(t, s); got["notes"] != "" {
			t.Error(all)
		}
	})
	t.Run("problems are found without showing a key", func(t *testing.T) {
		s := home(t,
			`{agents: {defaults: {model: "openai/gpt-5"}}, models: {providers: {groq: {apiKey: "sk-canary"}}}, nonsense: 1}`)
		write(t, filepath.Join(s.State, standard.New().DefaultStore().File), strings.Repeat("this is no database. ", 300))
		if err := os.Chmod(s.State, 0o750); err != nil {
			t.Fatal(err)
		}
		t.Setenv("OPENAI_API_KEY", "")
		got, all := found(t, s)
		want := map[string]string{
			"state directory": warn,
			"lock":            ok,
			"space":           ok,
			"configuration":   warn,
			"database":        fail,
			"model":           fail,
			"workspace":       ok,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", diff, all)
		}
		for _, want := range []string{"chela backup salvage", "chela models auth openai", "nonsense", "chmod 700"} {
			if !strings.Contains(all, want) {
				t.Errorf("no %q in\n%s", want, all)
			}
		}
		if strings.Contains(all, "canary") {
			t.Error("a key was printed")
		}
	})
	t.Run("a directory that cannot be created", func(t *testing.T) {
		if _, err := os.Stat("/proc/self"); err != nil {
			needtest.Missing(t, "/proc")
		}
		s := home(t, "{}")
		s.State = "/proc/none/chela"
		if got, all := found(t, s); got["state directory"] != fail ||
			!strings.Contains(all, "/proc/none/chela cannot be created") {
			t.Error(all)
		}
	})
	t.Run("the source of a key is shown, but not the key", func(t *testing.T) {
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
