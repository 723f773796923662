package agents

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Limits of one answer.
const (
	defaultEntries = 200
	maxEntries     = 500
	maxText        = 256 << 10 // bytes
	maxPicture     = 5 << 20   // bytes
)

// open returns the agent's workspace and the path within it. Neither paths nor
// links can leave the workspace.
func (m methods) open(agent, p string) (Agent, *os.Root, string, error) {
	a, err := m.find(agent, "")
	if err != nil {
		return a, nil, "", err
	}
	if strings.ContainsAny(p, "\\\x00") || slices.Contains(strings.Split(p, "/"), "..") {
		return a, nil, "", rpc.Invalid("at /path: must be a path below the workspace")
	}
	root, err := os.OpenRoot(a.Files.Dir())
	if err != nil {
		return a, nil, "", missing(err)
	}
	return a, root, strings.TrimPrefix(path.Clean("/"+p), "/"), nil
}

// missing hides the details of a file system error.
func missing(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return wire.Errorf(wire.InvalidRequest, "workspace path not found")
	}
	return wire.Errorf(wire.InvalidRequest, "workspace path cannot be read")
}

func (m methods) entries(_ context.Context, _ rpc.Peer, in wire.WorkspaceList) (wire.WorkspaceEntries, error) {
	if in.Offset < 0 || in.Limit < 0 {
		return wire.WorkspaceEntries{}, rpc.Invalid("at /offset: must be >= 0, and /limit >= 1")
	}
	a, root, dir, err := m.open(in.AgentID, in.Path)
	if err != nil {
		return wire.WorkspaceEntries{}, err
	}
	defer root.Close()
	all, err := fs.ReadDir(root.FS(), fsName(dir))
	if err != nil {
		return wire.WorkspaceEntries{}, missing(err)
	}
	out := wire.WorkspaceEntries{AgentID: string(a.ID), Path: dir, Entries: []wire.WorkspaceEntry{}, Offset: in.Offset}
	if dir != "" {
		up := strings.TrimPrefix(path.Dir("/"+dir), "/")
		out.Parent = &up
	}
	var shown []wire.WorkspaceEntry
	for _, e := range all {
		if w, ok := entry(root, path.Join(dir, e.Name())); ok {
			shown = append(shown, w)
		}
	}
	// "directory" < "file"
	slices.SortStableFunc(shown, func(x, y wire.WorkspaceEntry) int { return strings.Compare(x.Kind, y.Kind) })
	out.Total = len(shown)
	limit := rpc.Limit(in.Limit, defaultEntries, maxEntries)
	from := min(in.Offset, len(shown))
	out.Entries = append(out.Entries, shown[from:min(from+limit, len(shown))]...)
	return out, nil
}

// fsName returns "." for the root.
func fsName(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// entry returns the entry at a path; false for anything but files and folders,
// and for links that leave the workspace.
func entry(root *os.Root, p string) (wire.WorkspaceEntry, bool) {
	fi, err := root.Stat(p)
	if err != nil || !fi.Mode().IsRegular() && !fi.IsDir() {
		return wire.WorkspaceEntry{}, false
	}
	w := wire.WorkspaceEntry{Path: p, Name: path.Base(p), Kind: "file", Size: fi.Size(), UpdatedAt: wire.At(fi.ModTime())}
	if fi.IsDir() {
		w.Kind, w.Size = "directory", 0
	}
	return w, true
}

func (m methods) content(_ context.Context, _ rpc.Peer, in wire.WorkspaceGet) (wire.WorkspaceGot, error) {
	a, root, p, err := m.open(in.AgentID, in.Path)
	if err != nil {
		return wire.WorkspaceGot{}, err
	}
	defer root.Close()
	e, ok := entry(root, fsName(p))
	if !ok || e.Kind != "file" {
		return wire.WorkspaceGot{}, missing(fs.ErrNotExist)
	}
	f, err := root.Open(p)
	if err != nil {
		return wire.WorkspaceGot{}, missing(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPicture+1))
	if err != nil {
		return wire.WorkspaceGot{}, missing(err)
	}
	out := wire.WorkspaceFile{
		Path:      p,
		Name:      e.Name,
		Size:      int64(len(b)),
		UpdatedAt: e.UpdatedAt,
		MIME:      http.DetectContentType(b),
		Encoding:  "utf8",
		Content:   string(b),
	}
	most := maxText
	if strings.HasPrefix(out.MIME, "image/") {
		most, out.Encoding, out.Content = maxPicture, "base64", base64.StdEncoding.EncodeToString(b)
	}
	switch {
	case len(b) > most:
		return wire.WorkspaceGot{}, wire.Errorf(wire.InvalidRequest, "workspace file exceeds the preview limit")
	case out.Encoding == "utf8" && !utf8.Valid(b):
		return wire.WorkspaceGot{}, wire.Errorf(wire.InvalidRequest, "workspace file is neither text nor an image")
	}
	return wire.WorkspaceGot{AgentID: string(a.ID), File: out}, nil
}
