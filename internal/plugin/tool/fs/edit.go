package fs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// maxEdit is the size of the largest file that can be edited. The file is
// held in memory.
const maxEdit = 32 << 20

type editArgs struct {
	Path string `json:"path"`
	Old  string `json:"oldText"`
	New  string `json:"newText"`
}

func (a editArgs) paths() []string { return []string{a.Path} }

func newEdit(o Options) tool.Tool {
	return newTool(o, tool.Spec{
		Name:   "edit",
		Label:  "Edit file",
		Effect: tool.Writes,
		Groups: []string{"group:fs"}, Sandboxed: tool.Inside, Roles: []tool.Role{tool.TakesNotes},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"path":{"type":"string","minLength":1},
			"oldText":{"type":"string","minLength":1},
			"newText":{"type":"string"}},
			"required":["path","oldText","newText"],"additionalProperties":false}`),
	}, edit)
}

func edit(ctx context.Context, w *workspace, a editArgs) (tool.Result, error) {
	if a.Old == "" {
		return tool.Result{}, errors.New("oldText is empty; use write for a new file")
	}
	if a.Old == a.New {
		return tool.Result{}, errors.New("oldText and newText are the same")
	}
	w, name, err := w.target(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	unlock, err := w.journal.Lock(ctx, w.real(name))
	if err != nil {
		return tool.Result{}, err
	}
	defer unlock()
	data, info, err := w.readForEdit(a.Path, name)
	if err != nil {
		return tool.Result{}, err
	}
	raw := data
	plain, err := openText(a.Path, w.ResolveLinks(name), raw)
	if err != nil {
		return tool.Result{}, err
	}
	data = plain.text
	old, repl := []byte(plain.typed(a.Old)), []byte(plain.typed(a.New))
	if crlf(data) && !bytes.Contains(old, []byte("\r\n")) {
		old, repl = toCRLF(old), toCRLF(repl)
	}
	switch n := occurrences(data, old); {
	case n == 0 && (strings.Contains(a.Old, pathpolicy.Mask) && pathpolicy.Secret(plain.name) ||
		strings.Contains(a.Old, secret.Redacted) || plain.hides() && strings.Contains(a.Old, "\ufffd")):
		return tool.Result{}, fmt.Errorf("oldText contains what stands for hidden parts of %s; take a text without them",
			pathpolicy.Show(a.Path))
	case n == 0 && plain.ambiguous(a.Old) != "":
		return tool.Result{},
			fmt.Errorf("oldText contains %s, which also stands for a control character in %s; take a text without it",
				plain.ambiguous(a.Old), pathpolicy.Show(a.Path))
	case n == 0:
		return tool.Result{}, fmt.Errorf("oldText does not occur in %s; read the file again and copy the text exactly",
			pathpolicy.Show(a.Path))
	case n > 1:
		return tool.Result{},
			fmt.Errorf("oldText occurs %d times in %s; nothing was changed: give a longer text that occurs once", n,
				pathpolicy.Show(a.Path))
	}
	at := bytes.Index(data, old)
	out, err := plain.encode(bytes.Join([][]byte{data[:at], repl, data[at+len(old):]}, nil))
	if err != nil {
		return tool.Result{}, err
	}
	if err := w.unchanged(a.Path, name, info); err != nil {
		return tool.Result{}, err
	}
	e := w.edit(name, content(raw, info), out, 0o644)
	if err := w.record(ctx, []journal.Edit{e}, func(int) error { return w.write(a.Path, name, out, 0o644) }); err != nil {
		return tool.Result{}, err
	}
	line := 1 + bytes.Count(data[:at], []byte("\n"))
	return tool.Text(fmt.Sprintf("Edited %s at line %d (%s removed, %d added).", pathpolicy.Show(a.Path), line,
		humanize.Many(lineCount(old), "line"), lineCount(repl))), nil
}

// readForEdit reads a file that will be replaced.
func (w *workspace) readForEdit(path, name string) ([]byte, fs.FileInfo, error) {
	f, info, err := w.OpenFile(path, name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > maxEdit {
		return nil, nil, fmt.Errorf("%s is too large to edit (%s; the limit is %s)", pathpolicy.Show(path),
			humanize.Bytes(info.Size()), humanize.Bytes(maxEdit))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxEdit+1))
	if err != nil {
		return nil, nil, w.PathError(path, err)
	}
	return data, info, nil
}

// crlf reports whether all lines of a text end with CR LF.
func crlf(data []byte) bool {
	n := bytes.Count(data, []byte("\n"))
	return n > 0 && n == bytes.Count(data, []byte("\r\n"))
}

func toCRLF(b []byte) []byte {
	b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))
}

// occurrences counts overlapping occurrences too: aa occurs twice in aaa.
func occurrences(data, sub []byte) int {
	n := 0
	for {
		i := bytes.Index(data, sub)
		if i < 0 {
			return n
		}
		n++
		data = data[i+1:]
	}
}

func lineCount(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	return 1 + bytes.Count(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
}
