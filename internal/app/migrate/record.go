package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// dirName is the folder of the records in the state directory.
const dirName = "migrations"

// Files in the folder of a record.
const (
	recordName = "record.json"
	reportName = "report.txt"
	beforeName = "before" // copies of replaced files, by their hashes
)

// States of a record.
const (
	applying = "applying"
	applied  = "applied"
	undoing  = "undoing"
	undone   = "undone"
)

// Kinds of steps.
const (
	kindFile    = "file"
	kindConfig  = "config"
	kindSession = "session"
	kindJob     = "job"
	kindPerson  = "person"
	kindDevice  = "device"
)

// record is what an Apply made, or was about to make.
type record struct {
	Version int       `json:"version"` // 1
	From    string    `json:"from"`
	Home    string    `json:"stateDir"` // where the state directory was
	Started time.Time `json:"started"`
	State   string    `json:"state"`
	Steps   []step    `json:"steps"`
	Dirs    []string  `json:"dirs,omitempty"` // folders that were missing, outer ones first

	dir string
	at  map[string]int // in Steps, by step.id
}

// step is one thing that is made.
type step struct {
	Kind   string  `json:"kind"`
	Name   string  `json:"name"`             // of a file: its absolute path; else the id
	After  string  `json:"after"`            // tells whether it is as it was made
	Before string  `json:"before,omitempty"` // of a file that is replaced: its hash
	Values []value `json:"values,omitempty"` // of the configuration
	// Transcripts are those of a session, the current one first, and Entries is the
	// number of entries of that one.
	Transcripts []string        `json:"transcripts,omitempty"`
	Entries     int             `json:"entries,omitempty"`
	Old         json.RawMessage `json:"old,omitempty"` // the row that is replaced
}

// value is a value of the configuration that is set.
type value struct {
	Path  string          `json:"path"`
	After string          `json:"after"`         // hash
	Old   json.RawMessage `json:"old,omitempty"` // absent: it was not set
}

// id identifies what a step is about.
func (s step) id() string { return s.Kind + "\x00" + s.Name }

// find returns the step about a thing; nil: there is none.
func (r *record) find(kind, name string) *step {
	if r == nil {
		return nil
	}
	if r.at == nil {
		r.at = make(map[string]int, len(r.Steps))
		for i, s := range r.Steps {
			r.at[s.id()] = i
		}
	}
	if i, ok := r.at[step{Kind: kind, Name: name}.id()]; ok {
		return &r.Steps[i]
	}
	return nil
}

// add adds a step, or replaces that about the same thing. Settings that an earlier step
// has made stay in it.
func (r *record) add(s step) {
	old := r.find(s.Kind, s.Name)
	if old == nil {
		r.at[s.id()] = len(r.Steps)
		r.Steps = append(r.Steps, s)
		return
	}
	for _, v := range old.Values {
		if !slices.ContainsFunc(s.Values, func(n value) bool { return n.Path == v.Path }) {
			s.Values = append(s.Values, v)
		}
	}
	*old = s
}

// newRecord returns the record of an Apply that begins now.
func newRecord(state, from string, now time.Time) *record {
	dir := filepath.Join(state, dirName, "openclaw-"+now.UTC().Format("20060102-150405.000"))
	return &record{Version: 1, From: from, Home: state, Started: now.UTC(), State: applying, dir: dir}
}

// save writes the record.
func (r *record) save() error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(r.dir, recordName), append(b, '\n'), 0o600)
}

// lastRecord returns the newest record that was not taken back; nil: there is none.
func lastRecord(state string) (*record, error) {
	root := filepath.Join(state, dirName)
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range slices.Backward(entries) {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), "openclaw-") {
			continue
		}
		r := &record{dir: filepath.Join(root, e.Name())}
		b, err := os.ReadFile(filepath.Join(r.dir, recordName))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = json.Unmarshal(b, r)
		}
		if err == nil && r.Version != 1 {
			err = fmt.Errorf("it is of the unknown version %d", r.Version)
		}
		if err != nil {
			return nil, fmt.Errorf("the record %s cannot be read: %w", filepath.Join(r.dir, recordName), err)
		}
		if r.State != undone {
			r.move(state)
			return r, nil
		}
	}
	return nil, nil
}

// move makes the record one of the state directory in which it is now, which was moved or
// copied: what is in the other place is not touched.
func (r *record) move(state string) {
	if r.Home == "" || r.Home == state {
		return
	}
	here := func(path string) string {
		if rest, ok := strings.CutPrefix(path, r.Home); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
			return state + rest
		}
		return path
	}
	for i, s := range r.Steps {
		if s.Kind == kindFile || s.Kind == kindConfig {
			r.Steps[i].Name = here(s.Name)
		}
	}
	for i := range r.Dirs {
		r.Dirs[i] = here(r.Dirs[i])
	}
	r.Home = state
}

// keep makes a copy of a file before it is replaced.
func (r *record) keep(file, hash string) error {
	dir := filepath.Join(r.dir, beforeName)
	to := filepath.Join(dir, hash)
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	return create(dir, hash, 0o600, hash, func(w io.Writer) error { _, err := io.Copy(w, in); return err })
}

// kept returns the copy of a replaced file.
func (r *record) kept(hash string) string { return filepath.Join(r.dir, beforeName, hash) }

// create creates a file with what write writes, which must have the hash.
func create(dir, name string, perm fs.FileMode, hash string, write func(io.Writer) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return createIn(root, name, perm, hash, write)
}

func createIn(root *os.Root, name string, perm fs.FileMode, hash string, write func(io.Writer) error) error {
	return atomicfile.CreateIn(root, name, perm, func(w io.Writer) error {
		sum := sha256.New()
		if err := write(io.MultiWriter(w, sum)); err != nil {
			return err
		}
		if hex.EncodeToString(sum.Sum(nil)) != hash {
			return errors.New("it was changed while it was copied; try again")
		}
		return nil
	})
}

// sweep removes the files that were not complete when a process was killed. Nobody else
// writes in these folders: no engine runs.
func (r *record) sweep() error {
	dirs := map[string]bool{r.dir: true, filepath.Join(r.dir, beforeName): true}
	for _, s := range r.Steps {
		if s.Kind == kindFile || s.Kind == kindConfig {
			dirs[filepath.Dir(s.Name)] = true
		}
	}
	for dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return err
		}
		for _, e := range entries {
			if e.Type().IsRegular() && atomicfile.IsTemp(e.Name()) {
				if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// hashOf returns the hash of a text.
func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// hashReader returns the hash of what a file has.
func hashReader(r io.Reader) (string, error) {
	sum := sha256.New()
	_, err := io.Copy(sum, r)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// errIrregular says that a path is a folder, a link or a device.
var errIrregular = errors.New("not a regular file")

// hashFile returns the hash of a file; "": there is none.
func hashFile(path string) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: %w", path, errIrregular)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return hashReader(f)
}
