package media

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of the complete outputs of tools.
const (
	MaxOutput  = maxFile // bytes of one output; the end of a longer one is not stored
	MaxOutputs = 1 << 30 // bytes of all of them; Sweep removes the oldest ones beyond it
)

// outputKind is the end of the names of complete outputs, after the reference and a dash.
const outputKind = "output"

// ErrRemoved reports that a complete output is no longer stored.
var ErrRemoved = errors.New("this output is no longer stored; run the tool again")

// PutOutput stores the complete output of a tool and returns its reference after the
// output is on disk.
func (f *Files) PutOutput(text string) (ref string, err error) {
	data := []byte(text)
	if len(data) > MaxOutput {
		data = append(humanize.TrimPartial(data[:MaxOutput-200:MaxOutput-200]),
			fmt.Sprintf("\n[the end of the output is not stored: it has %s]\n", humanize.Bytes(int64(len(text))))...)
	}
	ref = refOf(data)
	name := ref + "-" + outputKind
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.has(name, data) {
		return ref, nil
	}
	if err := atomicfile.WriteIn(f.root, name, data, 0o600); err != nil {
		return "", fmt.Errorf("media: %w", err)
	}
	return ref, nil
}

// OpenOutput opens the complete output of a tool, or the attachment, that ref refers to.
func (f *Files) OpenOutput(ref string) (*os.File, error) {
	if !isRef(ref) {
		return nil, fmt.Errorf("media %q: %w", ref, fs.ErrNotExist)
	}
	file, err := f.root.Open(ref + "-" + outputKind)
	if err == nil {
		return file, nil
	}
	if file, err = f.Open(ref); err == nil {
		return file, nil
	}
	return nil, fmt.Errorf("%s%s: %w", Scheme, ref, ErrRemoved)
}

// sizeOf returns the size of a file; 0 if it does not exist.
func (f *Files) sizeOf(name string) int64 {
	info, err := f.root.Lstat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}

// newestFirst returns the names with those of outputs at the end, newest first.
func (f *Files) newestFirst(names []string) []string {
	var others []string
	changed := map[string]time.Time{}
	for _, name := range names {
		if !strings.HasSuffix(name, "-"+outputKind) {
			others = append(others, name)
		} else if info, err := f.root.Lstat(name); err == nil {
			changed[name] = info.ModTime()
		}
	}
	outputs := make([]string, 0, len(changed))
	for name := range changed {
		outputs = append(outputs, name)
	}
	slices.SortFunc(outputs, func(a, b string) int {
		if c := changed[b].Compare(changed[a]); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return append(others, outputs...)
}
