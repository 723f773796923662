package secret

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Source is the kind of location of a secret.
type Source string

// Sources of secrets.
const (
	Plain Source = "plain" // in the reference itself
	Env   Source = "env"   // in an environment variable
	File  Source = "file"  // in a file of its own
)

// maxFile is the maximum size of a secret's file in bytes.
const maxFile = 64 << 10

// Ref is a reference to a secret: "env:NAME", "file:/path" or the secret
// itself. In JSON it may also be {"source": "env", "id": "NAME"}.
type Ref struct {
	Source Source
	ID     string // name of the variable, or path of the file
	plain  Value
}

// ParseRef parses a reference. It never fails: text without a known source is
// the secret itself.
func ParseRef(s string) Ref {
	if name, ok := strings.CutPrefix(s, "env:"); ok && envName(name) {
		return Ref{Source: Env, ID: name}
	}
	if path, ok := strings.CutPrefix(s, "file:"); ok && path != "" {
		return Ref{Source: File, ID: path}
	}
	return Ref{Source: Plain, plain: New(s)}
}

func envName(s string) bool {
	ok, _ := regexp.MatchString(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`, s)
	return ok
}

// IsZero reports whether the reference is empty.
func (r Ref) IsZero() bool { return r.ID == "" && r.plain.IsZero() }

// String returns the reference without the secret.
func (r Ref) String() string {
	if r.Source == Plain || r.Source == "" {
		return r.plain.String()
	}
	return string(r.Source) + ":" + r.ID
}

// MarshalJSON returns the reference without the secret.
func (r Ref) MarshalJSON() ([]byte, error) { return json.Marshal(r.String()) }

// UnmarshalJSON accepts a string or {"source", "id"}.
func (r *Ref) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*r = ParseRef(s)
		return nil
	}
	var o struct{ Source, ID string }
	if json.Unmarshal(b, &o) != nil {
		return errors.New("secret: want a string or {source, id}")
	}
	switch {
	case o.Source == "env" && envName(o.ID):
		*r = Ref{Source: Env, ID: o.ID}
	case o.Source == "file" && o.ID != "":
		*r = Ref{Source: File, ID: o.ID}
	default:
		return fmt.Errorf("secret: source %q with id %q: want source env or file", o.Source, o.ID)
	}
	return nil
}

// Resolve returns the secret. Errors name its source but never contain it.
func (r Ref) Resolve(env func(string) string) (Value, error) {
	switch r.Source {
	case Env:
		v := New(env(r.ID))
		if v.IsZero() {
			return v, fmt.Errorf("secret env:%s: the variable is not set", r.ID)
		}
		return v, nil
	case File:
		return readFile(r.ID)
	}
	return r.plain, nil
}

// readFile reads a file that contains one secret, without the trailing newline.
func readFile(path string) (Value, error) {
	if !filepath.IsAbs(path) {
		return Value{}, fmt.Errorf("secret file:%s: want an absolute path", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return Value{}, fmt.Errorf("secret file: %w", err)
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxFile {
		return Value{}, fmt.Errorf("secret file:%s: want a file of at most %d bytes", path, maxFile)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return Value{}, fmt.Errorf("secret file: %w", err)
	}
	v := New(strings.TrimRight(string(b), "\r\n"))
	if v.IsZero() {
		return v, fmt.Errorf("secret file:%s: the file is empty", path)
	}
	return v, nil
}
