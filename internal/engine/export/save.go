package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// File is a file that was written.
type File struct {
	Name string // relative to the workspace
	Size int64  // in bytes
}

// maxNames is how many names are tried if no path is given.
const maxNames = 1000

// Save writes a session to a file in the workspace of its agent. The path is relative to
// the workspace; its extension may be omitted. With an empty path the file gets a name of
// its own. An existing file is not replaced.
func (x *Exporter) Save(ctx context.Context, f Format, t Target, path string) (File, error) {
	s, err := x.open(ctx, t.Key)
	if err != nil {
		return File{}, err
	}
	rule, workspace := x.o.Files(t.Key.Agent())
	rule.Outside, rule.Library, rule.NoSecrets = false, nil, true
	dir, err := rule.Open(tool.Call{Dir: workspace})
	if err != nil {
		return File{}, err
	}
	defer dir.Close()
	x.mu.Lock()
	defer x.mu.Unlock()
	name, err := place(dir, f, path, s.meta)
	if err != nil {
		return File{}, err
	}
	if err := dir.Root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return File{}, dir.PathError(name, err)
	}
	parent, base, err := dir.Enter(name)
	if err != nil {
		return File{}, dir.PathError(name, err)
	}
	defer parent.Close()
	var size counter
	err = atomicfile.CreateIn(parent, base, 0o600, func(w io.Writer) error {
		return x.write(ctx, io.MultiWriter(w, &size), f, t, s)
	})
	switch {
	case errors.Is(err, fs.ErrExist):
		return File{}, exists(name)
	case err != nil:
		return File{}, err
	}
	return File{filepath.ToSlash(name), int64(size)}, nil
}

// place returns the name of a file that does not exist.
func place(dir *pathpolicy.Dir, f Format, path string, m session.Meta) (string, error) {
	if path == "" {
		return unused(dir, f, m)
	}
	if filepath.IsAbs(path) || strings.HasPrefix(path, "~") {
		return "", chela.Errorf(chela.CodeInvalid,
			"%s is not a path in the workspace: use a relative path, for example exports/chat%s",
			pathpolicy.Show(path), f.Extension())
	}
	if !strings.EqualFold(filepath.Ext(path), f.Extension()) {
		path += f.Extension()
	}
	_, name, err := dir.Resolve(path)
	if err != nil {
		return "", err
	}
	name = dir.ResolveLinks(name)
	switch _, err := dir.Root.Lstat(name); {
	case err == nil:
		return "", exists(name)
	case !errors.Is(err, fs.ErrNotExist):
		return "", dir.PathError(path, err)
	}
	return name, nil
}

// exists is the error about a file that would be replaced.
func exists(name string) error {
	return chela.Errorf(chela.CodeConflict, "%s already exists: name another file",
		pathpolicy.Show(filepath.ToSlash(name)))
}

// unused returns a name that is not used yet.
func unused(dir *pathpolicy.Dir, f Format, m session.Meta) (string, error) {
	kind := "session-"
	if f == Trajectory {
		kind = "trajectory-"
	}
	label := slug(m.Label)
	if label == "" {
		label = slug(m.ID)
	}
	base := kind + label + "-" + time.Now().Format(time.DateOnly)
	for i := 1; i <= maxNames; i++ {
		name := base + f.Extension()
		if i > 1 {
			name = fmt.Sprintf("%s-%d%s", base, i, f.Extension())
		}
		if _, err := dir.Root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", dir.PathError(name, err)
		}
	}
	return "", chela.Errorf(chela.CodeConflict, "%s: too many exports of this day: name a file", base)
}

// maxSlug is the maximum length of the part of a name that is from the session.
const maxSlug = 40

// slug returns a text as a part of a file name: lower-case letters, digits and hyphens.
func slug(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == maxSlug {
			break
		}
	}
	return strings.Trim(b.String(), "-")
}

// counter counts bytes.
type counter int64

// Write counts p.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
