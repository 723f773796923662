// Package openclawtest makes small state folders of OpenClaw in both of its layouts. They
// are written by hand in the shape that real ones have.
package openclawtest

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

//go:embed all:testdata
var folders embed.FS

// Device is the id of the paired device in both folders, and Token is its token.
const (
	Device = "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd"
	Token  = "device-token-of-the-phone"
)

// Secrets are the secrets in both folders. None of them may be printed.
func Secrets() []string {
	return []string{
		"sk-house-0123456789abcdef", "123456:not-a-real-token", "gateway-token-of-ada",
		"sk-ant-test-aaaaaaaaaaaaaaaaaaaa", "refresh-aaaaaaa",
		"gsk-test-bbbbbbbbbbbbbbbb", "sk-mars-cccccccccccccccc", "sk-test-work-dddddddddddddddd",
		"sk-test-eeeeeeeeeeeeeeeeeeee", Token, "socket-token",
	}
}

// Files returns a new folder of the layout with JSON files.
func Files(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), ".openclaw")
	copied(t, "testdata/files", dir)
	return dir
}

// Tables returns a new folder of the layout with databases. The last rows of the agent's
// database are only in its log.
func Tables(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), ".openclaw")
	copied(t, "testdata/tables", dir)
	for _, db := range []struct{ script, file string }{{"state.sql", "state/openclaw.sqlite"},
		{"agent.sql", "agents/main/agent/openclaw-agent.sqlite"}} {
		script := filepath.Join(dir, db.script)
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		Run(t, filepath.Join(dir, db.file), string(text))
		if err := os.Remove(script); err != nil {
			t.Fatal(err)
		}
	}
	addCompressed(t, filepath.Join(dir, "agents/main/agent/openclaw-agent.sqlite"))
	return dir
}

// Run runs a script on a database, which is created if it does not exist.
func Run(t testing.TB, file, script string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := sqlite.OpenConn(file, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err == nil {
		err = sqlitex.ExecuteScript(c, script, nil)
	}
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// addCompressed adds a long answer, compressed, and copies the database while it has a
// log.
func addCompressed(t testing.TB, file string) {
	t.Helper()
	text := `{"type":"message","id":"m4","parentId":"m3","timestamp":"2026-11-30T19:45:49.909Z","message":{"role":"assistant","content":[{"type":"text","text":"` +
		strings.Repeat("long ", 500) + `end"}],"provider":"house","model":"m1","stopReason":"stop"}}`
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	packed := enc.EncodeAll([]byte(text), nil)
	if err := enc.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := sqlite.OpenConn(file, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	err = sqlitex.ExecuteTransient(c, "PRAGMA journal_mode = WAL", nil)
	if err == nil {
		err = sqlitex.ExecuteTransient(c,
			fmt.Sprintf(`INSERT INTO transcript_events (session_id, seq, created_at, event_zstd, event_utf8_bytes)
VALUES ('55555555-aaaa-4aaa-8aaa-000000000001', 5, 0, x'%x', %d)`, packed, len(text)), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string][]byte{}
	for _, suffix := range []string{"", "-wal"} {
		if kept[suffix], err = os.ReadFile(file + suffix); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil { // it moves the log into the database
		t.Fatal(err)
	}
	for suffix, b := range kept {
		if err := os.WriteFile(file+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// copied copies a folder of testdata.
func copied(t testing.TB, from, to string) {
	t.Helper()
	sub, err := fs.Sub(folders, from)
	if err == nil {
		err = os.CopyFS(to, sub)
	}
	if err == nil {
		err = os.Chmod(to, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Snapshot returns the paths, modes, times and contents of everything in a folder.
func Snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprint(info.Mode(), info.ModTime())
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %x", b)
		}
		all[name] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
