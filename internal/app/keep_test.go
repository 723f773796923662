package app

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/app/inventory"
	"github.com/chela-ai/chela/internal/app/release"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// findings returns the findings that are not ok, by name.
func findings(t *testing.T, s cli.Start) map[string][]cli.Finding {
	t.Helper()
	out := map[string][]cli.Finding{}
	for _, f := range Build(standardBuild.registry).Check(t.Context(), s) {
		if f.Status != cli.StatusOK {
			out[f.Name] = append(out[f.Name], f)
		}
	}
	return out
}

func TestRepair(t *testing.T) {
	t.Run("DR-01 what can be repaired is, and the second look finds nothing", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("file modes have no meaning there")
		}
		s := home(t, `{"models": {"mode": "replace"}, "agents": {"list": [{"agentId": "main", "default": true}]}, "channels": {"telegram": {"enabled": false, "dm": {"policy": "open"}}}}`)
		if err := begun(t, s).Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		key := filepath.Join(s.State, "credentials", "spare.key")
		old := filepath.Join(s.State, ".space-1")
		write(t, old, "")
		if err := os.MkdirAll(filepath.Dir(key), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, key, "key")
		long := time.Now().Add(-48 * time.Hour)
		if err := errors.Join(os.Chtimes(old, long, long), os.Chmod(key, 0o644), os.Chmod(s.Config, 0o644),
			os.Chmod(s.State, 0o755)); err != nil {
			t.Fatal(err)
		}
		socket := filepath.Join(s.State, "chela.sock")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		l.Close()
		before, err := os.ReadFile(s.Config)
		if err != nil {
			t.Fatal(err)
		}
		found := findings(t, s)
		if len(found["state directory"]) != 1 || len(found["permissions"]) != 2 || len(found["leftovers"]) != 2 ||
			len(found["configuration"]) != 1 {
			t.Errorf("%+v", found)
		}
		if info, err := os.Stat(s.State); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("looking changed the mode: %v", err)
		}
		for _, name := range []string{"state directory", "permissions", "leftovers", "configuration"} {
			for _, f := range found[name] {
				if !f.Fixable {
					t.Errorf("%s cannot be repaired: %s", name, f.Text)
				} else if err := f.Repair(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		found = findings(t, s)
		for _, name := range []string{"state directory", "permissions", "leftovers", "configuration"} {
			if len(found[name]) > 0 {
				t.Errorf("afterwards: %+v", found[name])
			}
		}
		if kept, err := os.ReadFile(s.Config + ".bak"); err != nil || !bytes.Equal(kept, before) {
			t.Errorf("the configuration as it was: %s, %v", kept, err)
		}
		if now, err := os.ReadFile(s.Config); err != nil || !strings.Contains(string(now), `"id": "main"`) ||
			!strings.Contains(string(now), `"dmPolicy": "open"`) || strings.Contains(string(now), "agentId") {
			t.Errorf("%s, %v", now, err)
		}
	})
	t.Run("leftovers of now are not touched, nor those of a process that runs", func(t *testing.T) {
		s := home(t, offlineConf)
		e := begun(t, s)
		write(t, filepath.Join(s.State, ".space-1"), "")
		if found := findings(t, s); len(found["leftovers"]) > 0 {
			t.Errorf("%+v", found["leftovers"])
		}
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestInventory looks for files in a state directory of which nobody knows what they are.
func TestInventory(t *testing.T) {
	s := home(t, offlineConf)
	if err := begun(t, s).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	tree, err := load(s)
	if err != nil {
		t.Fatal(err)
	}
	in, err := inventory.Read(s, "chela.db", tree)
	if err != nil || len(in.Inside) < 4 {
		t.Fatalf("%+v, %v", in, err)
	}
	for _, p := range in.Inside {
		if p.Kind == inventory.Foreign {
			t.Errorf("%s has no kind", p.Path)
		}
	}
	write(t, filepath.Join(s.State, "mine"), "")
	in, err = inventory.Read(cli.Start{State: s.State, LastGood: s.LastGood}, "", nil)
	for _, p := range in.Inside {
		if name := filepath.Base(p.Path); (name == "mine") != (p.Kind == inventory.Foreign) &&
			!strings.HasPrefix(name, "chela.db") {
			t.Errorf("%s is %q", p.Path, p.Kind)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

func TestArchiveInterrupted(t *testing.T) {
	t.Run("BU-04 an interrupted archive leaves no file", func(t *testing.T) {
		s := home(t, offlineConf)
		if err := begun(t, s).Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		m := Build(standardBuild.registry).Store
		if _, err := m.Archive(ctx, s, filepath.Join(dir, "x.tar.gz"), cli.ArchiveOptions{}); err == nil {
			t.Error("it succeeded")
		}
		if _, err := m.Archive(t.Context(), s, filepath.Join(dir, "y.tar.gz"), cli.ArchiveOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := m.Archive(t.Context(), s, filepath.Join(dir, "y.tar.gz"), cli.ArchiveOptions{}); err == nil {
			t.Error("an archive was replaced")
		}
		list, err := os.ReadDir(dir)
		if err != nil || len(list) != 1 || list[0].Name() != "y.tar.gz" {
			t.Errorf("left: %v, %v", list, err)
		}
		if info, err := os.Stat(filepath.Join(dir, "y.tar.gz")); err != nil ||
			info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
	t.Run("a folder that a killed archive left is removed later", func(t *testing.T) {
		s := home(t, offlineConf)
		if err := begun(t, s).Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		stale, fresh := filepath.Join(dir, ".chela-backup-1"), filepath.Join(dir, ".chela-backup-2")
		for _, d := range []string{stale, fresh} {
			if err := os.Mkdir(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		long := time.Now().Add(-48 * time.Hour)
		if err := os.Chtimes(stale, long, long); err != nil {
			t.Fatal(err)
		}
		if _, err := Build(standardBuild.registry).Store.Archive(t.Context(), s, filepath.Join(dir, "x.tar.gz"),
			cli.ArchiveOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(stale); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the old one: %v", err)
		}
		if _, err := os.Stat(fresh); err != nil {
			t.Errorf("the one of another process: %v", err)
		}
	})
}

func TestDiagnostics(t *testing.T) {
	t.Run("DG-01 diagnostics contain nothing of people", func(t *testing.T) {
		s := home(t, `{
			"agents": {"defaults": {"workspace": "~/canary", "model": "offline/assistant"}, "entries": {"canary": {"identity": {"name": "Canary"}}}},
			"channels": {"telegram": {"enabled": false, "botToken": "canary:1", "allowFrom": ["canary", "5550canary"], "accounts": {"canary": {"botToken": "canary:2"}}}},
			"gateway": {"auth": {"token": "canary-canary-canary-canary"}}, "env": {"CANARY": "canary"}, "hooks": {"token": "canarycanarycanarycanary"}
		}`)
		e := begun(t, s)
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		logs := filepath.Join(s.State, "logs", "chela.log")
		if err := os.MkdirAll(filepath.Dir(logs), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, logs, `{"time":"2026-01-02T03:04:05Z","level":"WARN","msg":"deliver","to":"canary","err":"canary","status":"canary","attempt":3,"canary":1}`+"\n"+
			"panic: canary\n"+`{"time":"2026-01-02T03:04:05Z","level":"canary","msg":"x"}`+"\n")
		for _, dir := range []string{"canary", "plugins/canary"} {
			if err := os.MkdirAll(filepath.Join(s.State, filepath.FromSlash(dir)), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		a := Build(standardBuild.registry)
		found := append(a.Check(t.Context(), s), cli.Finding{Name: "plug-in canary", Status: cli.StatusWarn, Text: "canary",
			Hint: "canary"})
		var b bytes.Buffer
		names, err := a.Diagnostics.Export(t.Context(), s, found, &b)
		if err != nil || len(names) < 5 {
			t.Fatalf("%q, %v", names, err)
		}
		z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			all[f.Name] = string(text)
			if low := strings.ToLower(string(text)); strings.Contains(low, "canary") ||
				strings.Contains(low, strings.ToLower(s.State)) {
				t.Errorf("%s: %s", f.Name, text)
			}
		}
		for name, want := range map[string]string{
			"config.json":  `"telegram"`,
			"log.jsonl":    `"attempt":3`,
			"doctor.json":  `"plug-in"`,
			"counts.json":  `"entries"`,
			"version.json": Version,
		} {
			if !strings.Contains(all[name], want) {
				t.Errorf("%s lacks %s: %s", name, want, all[name])
			}
		}
		if !strings.Contains(all["log.jsonl"], `{"other":2}`) {
			t.Error(all["log.jsonl"])
		}
	})
}

func TestUpdate(t *testing.T) {
	t.Run("UP-01 an update is looked for when asked, and nothing is replaced", func(t *testing.T) {
		s := home(t, offlineConf)
		var asked []string
		answer := `{"Version":"v9.1.0"}`
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.Method+" "+r.URL.Path)
			_, _ = io.WriteString(w, answer)
		}))
		env := map[string]string{"GOPROXY": "off, direct"}
		r := release.Releases{Version: "0.1.0", Env: func(name string) string { return env[name] }}
		if _, err := r.Check(t.Context(), s, true); err == nil || len(asked) > 0 {
			t.Errorf("GOPROXY=off: %v, %q", err, asked)
		}
		env["GOPROXY"] = "http://127.0.0.1:1," + srv.URL + ",direct"
		got, err := r.Check(t.Context(), s, false)
		if err != nil || !got.Newer || got.Newest != "9.1.0" ||
			!strings.HasSuffix(got.Command, "go install github.com/chela-ai/chela/cmd/chela@v9.1.0") {
			t.Errorf("%+v, %v", got, err)
		}
		if got, err := r.Status(s); err != nil || got.Newest != "" {
			t.Errorf("--dry-run kept the answer: %+v, %v", got, err)
		}
		if _, err := r.Check(t.Context(), s, true); err != nil {
			t.Error(err)
		}
		if want := "GET /github.com/chela-ai/chela/@latest"; len(asked) != 2 || asked[0] != want || asked[1] != want {
			t.Errorf("asked %q", asked)
		}
		answer = `{"Version":"v1; rm -rf /"}`
		if _, err := r.Check(t.Context(), s, true); err == nil || !strings.Contains(err.Error(), "no version") {
			t.Errorf("an answer that is no version: %v", err)
		}
		srv.Close()
		if _, err := r.Check(t.Context(), s, true); err == nil ||
			!strings.Contains(err.Error(), "the newest version is not known") {
			t.Errorf("without the network: %v", err)
		}
		if got, err := r.Status(s); err != nil || !got.Newer || got.Newest != "9.1.0" || got.Checked == nil {
			t.Errorf("status without the network: %+v, %v", got, err)
		}
		r.Version = "9.1.0"
		if got, err := r.Status(s); err != nil || got.Newer || got.Command != "" {
			t.Errorf("after the update: %+v, %v", got, err)
		}
	})
}
