// Package openclaw reads the state folder of OpenClaw, without changing a byte of it.
//
// Two layouts are known, and both may be in one folder. Versions until the middle of 2026
// keep JSON files: sessions.json beside transcripts, cron/jobs.json, credentials. Later
// ones keep most of that in SQLite: state/openclaw.sqlite, and a database for each agent.
//
// A file that cannot be read is left out and becomes a [Problem]; everything else is still
// read. Files are opened through the folder, so that no link leads out of it.
package openclaw

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/kit/json5"
)

// Limits of what is read.
const (
	maxText   = 64 << 20  // bytes of a JSON file
	maxAgents = 256       // agents
	maxList   = 100_000   // sessions of an agent, jobs, people, devices
	maxLines  = 512 << 20 // bytes of a transcript
)

// Tables is a database that was opened for reading.
type Tables interface {
	// Columns returns the columns of a table; none: it does not exist.
	Columns(table string) ([]string, error)
	// Rows returns the rows in which the columns of where have the values, in the order
	// of columns. A value is a string, int64, float64, []byte or nil.
	Rows(table string, where map[string]any, order ...string) iter.Seq2[map[string]any, error]
	Close() error
}

// ErrDamaged says that a database is none, or is damaged.
var ErrDamaged = errors.New("the database is damaged")

// OpenTables opens a database in the folder root. It must not change it. An error that
// wraps [ErrDamaged] leaves the database out; any other one makes [Home.Err] fail.
type OpenTables func(ctx context.Context, root *os.Root, name string) (Tables, error)

// Problem is something that could not be read and is left out.
type Problem struct {
	File string `json:"file"` // path in the folder
	Text string `json:"text"`
}

// Home is a state folder.
type Home struct {
	Dir string // absolute

	root     *os.Root
	open     OpenTables
	tables   map[string]Tables // by the name of the file; nil: none, or not readable
	problems []Problem
	failed   error // why a database could not be copied
}

// ConfigFile is the name of the configuration.
const ConfigFile = "openclaw.json"

// stateDB is the database of what belongs to no agent.
const stateDB = "state/openclaw.sqlite"

// configNames are the names that the configuration had.
var configNames = [...]string{ConfigFile, "clawdbot.json", "moltbot.json"}

// Is reports whether a folder is a state folder.
func Is(dir string) bool {
	for _, name := range append(configNames[:], stateDB) {
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// Find returns the state folders in a home folder: that of the default profile first.
func Find(home string) []string {
	entries, err := os.ReadDir(home)
	if err != nil {
		return nil
	}
	var first, others []string
	for _, e := range entries {
		for _, base := range [...]string{".openclaw", ".clawdbot", ".moltbot"} {
			rest, ok := strings.CutPrefix(e.Name(), base)
			dir := filepath.Join(home, e.Name())
			switch {
			case !ok || rest != "" && rest[0] != '-' || !Is(dir):
			case e.Name() == ".openclaw":
				first = []string{dir}
			default:
				others = append(others, dir)
			}
		}
	}
	return append(first, others...)
}

// Open opens a state folder.
func Open(dir string, open OpenTables) (*Home, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if !Is(dir) {
		return nil, errors.Join(fmt.Errorf("%s is not a state folder of OpenClaw: it has neither %s nor %s", dir, ConfigFile,
			stateDB), root.Close())
	}
	return &Home{Dir: dir, root: root, open: open, tables: map[string]Tables{}}, nil
}

// Close closes the folder and the copies of its databases.
func (h *Home) Close() error {
	err := h.root.Close()
	for _, t := range h.tables {
		if t != nil {
			err = errors.Join(err, t.Close())
		}
	}
	return err
}

// Problems returns what could not be read so far.
func (h *Home) Problems() []Problem { return slices.Clone(h.problems) }

// Err returns why a database that is not damaged could not be read, such as a full disk:
// what was returned is then not complete.
func (h *Home) Err() error { return h.failed }

// problem records that a file is left out.
func (h *Home) problem(file string, err error) {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	p := Problem{file, err.Error()}
	if !slices.Contains(h.problems, p) {
		h.problems = append(h.problems, p)
	}
}

// db returns a database; nil: there is none, or it cannot be read.
func (h *Home) db(ctx context.Context, name string) Tables {
	if t, ok := h.tables[name]; ok {
		return t
	}
	h.tables[name] = nil
	if _, err := h.root.Lstat(name); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			h.problem(name, err)
		}
		return nil
	}
	t, err := h.open(ctx, h.root, name)
	switch {
	case errors.Is(err, ErrDamaged):
		h.problem(name, err)
		return nil
	case err != nil:
		h.failed = cmp.Or(h.failed, fmt.Errorf("%s: %w", filepath.Join(h.Dir, filepath.FromSlash(name)), err))
		return nil
	}
	h.tables[name] = t
	return t
}

// rows calls f for the rows of a table that has all the columns. It reports whether it
// has; a table without one of them is of an unknown version.
func (h *Home) rows(ctx context.Context, db, table string, where map[string]any, order, columns []string,
	f func(row) error) bool {
	t := h.db(ctx, db)
	if t == nil {
		return false
	}
	have, err := t.Columns(table)
	if err != nil {
		h.problem(db, err)
		return false
	}
	if len(have) == 0 {
		return false
	}
	for _, c := range columns {
		if !slices.Contains(have, c) {
			h.problem(db, fmt.Errorf("the table %s has no column %s: it is of an unknown version", table, c))
			return false
		}
	}
	n := 0
	for r, err := range t.Rows(table, where, order...) {
		if err == nil {
			err = ctx.Err()
		}
		if n++; err == nil && n > maxList {
			err = fmt.Errorf("the table %s has more than %d rows; the others are left out", table, maxList)
		}
		if err == nil {
			err = f(r)
		}
		if err != nil {
			h.problem(db, err)
			return true
		}
	}
	return true
}

// row is a row of a table.
type row map[string]any

func (r row) text(column string) string {
	s, _ := r[column].(string)
	return s
}

func (r row) int(column string) int64 {
	n, _ := r[column].(int64)
	return n
}

func (r row) bytes(column string) []byte {
	b, _ := r[column].([]byte)
	return b
}

// read returns the content of a regular file of limited size.
func (h *Home) read(name string, most int64) ([]byte, error) {
	info, err := h.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := h.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("larger than %d bytes", most)
	}
	return b, err
}

// readJSON decodes a JSON5 file into v. It reports whether there is one that is valid.
func (h *Home) readJSON(name string, v any) bool {
	b, err := h.read(name, maxText)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err == nil {
		err = decode(b, v)
	}
	if err != nil {
		h.problem(name, err)
	}
	return err == nil
}

// decode decodes JSON5; the numbers of untyped values are json.Number.
func decode(text []byte, v any) error {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if !json.Valid(text) {
		var err error
		if text, err = json5.ToJSON(text); err != nil {
			return err
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

// list returns the entries of a folder; none: it does not exist.
func (h *Home) list(dir string) []fs.DirEntry {
	entries, err := fs.ReadDir(h.root.FS(), dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.problem(dir, err)
	}
	return entries
}

// Agents returns the ids of the agents that have a folder.
func (h *Home) Agents() []string {
	var ids []string
	for _, e := range h.list("agents") {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			ids = append(ids, e.Name())
		}
	}
	if len(ids) > maxAgents {
		h.problem("agents", fmt.Errorf("%d agents, at most %d are read", len(ids), maxAgents))
		ids = ids[:maxAgents]
	}
	return ids
}

// agentDB returns the name of the database of an agent.
func agentDB(agent string) string {
	return path.Join("agents", agent, "agent", "openclaw-agent.sqlite")
}

// Running returns a sign that OpenClaw is running; empty: there is none.
func (h *Home) Running(temp string, alive func(pid int) bool) string {
	locks, _ := fs.Glob(h.root.FS(), "tmp/openclaw-*/gateway*.lock")
	for _, name := range locks {
		if b, err := h.read(name, 1<<16); err == nil {
			if pid := lockOf(b, ""); pid != 0 && alive(pid) {
				return fmt.Sprintf("process %d has the lock of its gateway", pid)
			}
		}
	}
	others, _ := filepath.Glob(filepath.Join(temp, "openclaw*", "gateway*.lock"))
	for _, file := range others {
		if b, err := os.ReadFile(file); err == nil {
			if pid := lockOf(b, h.Dir); pid != 0 && alive(pid) {
				return fmt.Sprintf("process %d has the lock of its gateway", pid)
			}
		}
	}
	return ""
}

// lockOf returns the process that wrote a lock file, if it is of the folder; 0: none.
func lockOf(text []byte, dir string) int {
	var l struct {
		PID    int    `json:"pid"`
		Config string `json:"configPath"`
	}
	if json.Unmarshal(text, &l) != nil || dir != "" && filepath.Dir(l.Config) != dir {
		return 0
	}
	return l.PID
}
