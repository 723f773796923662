package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Limits of a preview.
const (
	maxText    = 256 << 10
	maxPicture = 5 << 20
)

func (o Options) get(ctx context.Context, _ rpc.Peer, in wire.FileGet) (wire.FileGot, error) {
	if in.Path == "" {
		return wire.FileGot{}, rpc.Invalid("at /path: must NOT have fewer than 1 characters")
	}
	p, err := o.openExisting(ctx, in.SessionKey, in.AgentID, in.Path)
	if err != nil {
		return wire.FileGot{}, err
	}
	defer p.close()
	f, text, err := p.read(in.Path)
	if err != nil {
		return wire.FileGot{}, err
	}
	if err := show(&f, text); err != nil {
		return wire.FileGot{}, err
	}
	return wire.FileGot{SessionKey: in.SessionKey, Root: p.dir, File: f}, nil
}

// openExisting opens the workspace of a session. It returns an error if the
// session does not exist.
func (o Options) openExisting(ctx context.Context, session, agent, name string) (*workspace, error) {
	p, err := o.open(ctx, session, agent)
	if err == nil && p == nil {
		err = notFound(name)
	}
	return p, err
}

// read returns a file of the workspace and its content, which may exceed the
// preview limit.
func (p *workspace) read(name string) (wire.File, []byte, error) {
	rel, ok := p.below(name)
	if !ok {
		return wire.File{}, nil, notFound(name)
	}
	kind := cmp.Or(p.kindOf(rel, false), wire.FileRead)
	if kind == wire.FileMixed { // used in both ways
		kind = wire.FileModified
	}
	f := p.file(use{name, kind}, rel)
	if f.Missing {
		return f, nil, notFound(name)
	}
	r, err := p.root.Open(rel)
	if err != nil {
		return f, nil, notFound(name)
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxPicture+1))
	if err != nil {
		return f, nil, fmt.Errorf("file %s: %w", rel, err)
	}
	f.Hash = hash(b)
	return f, b, nil
}

// show sets the content of a file: text or an image.
func show(f *wire.File, b []byte) error {
	f.MIME = http.DetectContentType(b)
	text, most := string(b), maxText
	f.Preview, f.Encoding = wire.PreviewText, "utf8"
	switch {
	case strings.HasPrefix(f.MIME, "image/"):
		f.Preview, f.Encoding = wire.PreviewImage, "base64"
		text, most = base64.StdEncoding.EncodeToString(b), maxPicture
	case len(b) <= most && !utf8.Valid(b), strings.HasPrefix(f.MIME, "application/octet-stream"):
		f.Preview, f.Encoding, f.Hash = wire.PreviewUnsupported, "", ""
		return nil
	}
	if len(b) > most {
		return fileError("session_file_too_large", "session file is too large to preview", map[string]any{
			"path": f.Path, "size": f.Size, "maxPreviewBytes": most,
		})
	}
	f.Content = &text
	return nil
}

// validHash matches a valid hash.
var validHash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-f0-9]{64}$`) })

func (o Options) set(ctx context.Context, _ rpc.Peer, in wire.FileSet) (wire.FileGot, error) {
	switch {
	case in.Path == "":
		return wire.FileGot{}, rpc.Invalid("at /path: must NOT have fewer than 1 characters")
	case !validHash().MatchString(in.Hash):
		return wire.FileGot{}, rpc.Invalid("at /expectedHash: must match pattern %q", validHash())
	case len(in.Content) > maxText:
		return wire.FileGot{}, fileError("session_file_too_large", "session file content is too large", map[string]any{
			"path": in.Path, "size": len(in.Content), "maxPreviewBytes": maxText,
		})
	case strings.ContainsRune(in.Content, 0) || !utf8.ValidString(in.Content):
		return wire.FileGot{}, unsafe(in.Path)
	}
	p, err := o.openExisting(ctx, in.SessionKey, in.AgentID, in.Path)
	if err != nil {
		return wire.FileGot{}, err
	}
	defer p.close()
	f, _, err := p.read(in.Path)
	if err != nil {
		return wire.FileGot{}, err
	}
	if f.Hash != in.Hash {
		return wire.FileGot{}, fileError("session_file_conflict", "session file changed since it was read", map[string]any{
			"path": in.Path, "currentHash": f.Hash,
		})
	}
	if fi, err := p.root.Lstat(f.Workspace); err != nil || !fi.Mode().IsRegular() {
		return wire.FileGot{}, unsafe(in.Path) // the file would replace the link
	}
	if err := atomicfile.WriteIn(p.root, f.Workspace, []byte(in.Content), 0o600); err != nil {
		return wire.FileGot{}, fmt.Errorf("file %s: %w", f.Workspace, err)
	}
	f = p.file(use{in.Path, wire.FileModified}, f.Workspace)
	f.Hash = hash([]byte(in.Content))
	return wire.FileGot{SessionKey: in.SessionKey, Root: p.dir, File: f}, nil
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func notFound(path string) error {
	return fileError("session_file_not_found", "session file not found", map[string]any{"path": path})
}

func unsafe(path string) error {
	return fileError("session_file_unsafe", "session file could not be written safely", map[string]any{"path": path})
}

// fileError returns an error with a type in its details.
func fileError(kind, text string, details map[string]any) error {
	details["type"] = kind
	return wire.Errorf(wire.InvalidRequest, "%s", text).With(details)
}
