package nodes

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// file is a picture or a recording of a node.
type file struct {
	Format   string  `json:"format"`
	Base64   string  `json:"base64"`
	URL      string  `json:"url"`
	Width    int     `json:"width"`
	Height   int     `json:"height"`
	Duration float64 `json:"durationMs"`
	Created  string  `json:"createdAt"`
}

// single returns the picture or recording of an answer.
func single(payload json.RawMessage) ([]file, error) {
	var f file
	err := json.Unmarshal(payload, &f)
	return []file{f}, err
}

// photos returns the pictures of an answer to photos.latest.
func photos(payload json.RawMessage) ([]file, error) {
	var list struct {
		Photos []file `json:"photos"`
	}
	err := json.Unmarshal(payload, &list)
	return list.Photos, err
}

// maxPhotos is the number of pictures of one answer.
const maxPhotos = 20

// detail describes a stored file for clients.
type detail struct {
	Node   string `json:"nodeId"`
	File   string `json:"file"`
	Type   string `json:"type,omitempty"`
	Bytes  int    `json:"bytes"`
	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`
}

// media stores the files of an answer, and shows the pictures to the model.
func (t nodesTool) media(c tool.Call, n *node.Node, act action, payload json.RawMessage) (tool.Result, error) {
	files, err := act.media(payload)
	if err != nil {
		return tool.Result{}, fmt.Errorf("the answer to %s is not what it should be: %w", act.command, err)
	}
	if len(files) == 0 {
		return tool.Text("There are no photos on " + n.Title() + "."), nil
	}
	var r tool.Result
	var details []detail
	for _, f := range files[:min(len(files), maxPhotos)] {
		data, err := f.content(act)
		if err != nil {
			return tool.Result{}, err
		}
		d := detail{Node: n.ID, Bytes: len(data), Width: f.Width, Height: f.Height}
		var shown []llm.Part
		if _, err := media.Probe(data); err == nil {
			m, err := t.Files.Store(chela.Media{Name: act.name, Data: data})
			if err != nil {
				return tool.Result{}, err
			}
			d.File, d.Type, shown = media.Scheme+m.Ref, m.Type, []llm.Part{media.Part(m)}
		} else if d.File, err = keep(c.Dir, act, f, data); err != nil {
			return tool.Result{}, err
		}
		text := fmt.Sprintf("%s of %s: %s (%s)", strings.ReplaceAll(act.name, "_", " "), n.Title(), d.File,
			humanize.Bytes(int64(d.Bytes)))
		r.Content = append(append(r.Content, llm.Text(text)), shown...)
		details = append(details, d)
	}
	r.Details, err = json.Marshal(map[string]any{"files": details})
	return r, err
}

// content returns the bytes of a file.
func (f file) content(act action) ([]byte, error) {
	if f.Base64 == "" {
		if f.URL != "" {
			return nil, errors.New("the node gives a link instead of the file; links of nodes are not followed")
		}
		return nil, fmt.Errorf("the answer to %s has no content", act.command)
	}
	data, err := base64.StdEncoding.DecodeString(f.Base64)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer to %s: %w", act.command, err)
	case len(data) > media.MaxFile:
		return nil, fmt.Errorf("it has %s; at most %s are kept", humanize.Bytes(int64(len(data))),
			humanize.Bytes(media.MaxFile))
	}
	return data, nil
}

// folder is where recordings are kept in the workspace.
const folder = "media/inbound"

// format matches the formats of recordings, which become the ends of the names of files.
var format = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]{1,8}$`) })

// keep writes a recording to the workspace and returns its name there.
func keep(workspace string, act action, f file, data []byte) (string, error) {
	end := strings.ToLower(f.Format)
	if !format().MatchString(end) {
		end = "bin"
	}
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return "", fmt.Errorf("workspace: %w", err)
	}
	defer root.Close()
	sum := sha256.Sum256(data)
	name := fmt.Sprintf("%s/%s-%x.%s", folder, act.name, sum[:6], end)
	if err := root.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("keep the recording: %w", err)
	}
	if err := atomicfile.WriteIn(root, name, data, 0o600); err != nil {
		return "", fmt.Errorf("keep the recording: %w", err)
	}
	return name, nil
}
