package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/core/memory"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// inChinese matches secrets as people write them down in Chinese.
const inChinese = `(?:密码|口令|密钥|令牌)(?:是|为|：|:|=)\s*(\S{6,})`

// Limits of the notes that are checked.
const (
	maxNotes   = 5_000 // files of an agent
	maxSecrets = 5     // places that are named
)

// notes looks for secrets in the notes of each agent, which models read.
func (c *checkup) notes(opts *settings.Settings, state, home string, private func() []string) {
	masker, err := secret.NewMasker(inProse, inChinese)
	if err != nil {
		c.fail("notes", "", "%v", err)
		return
	}
	for _, id := range opts.Roster() {
		dir := opts.Workspace(id, state, home)
		names, err := noteFiles(dir)
		if err != nil {
			c.warn("notes", "", "the notes of the agent %s are not read: %v", id, err)
		}
		var places []string
		for _, name := range names {
			for i, line := range strings.Split(prompt.Open(dir, private).File(name).Text, "\n") {
				if string(masker.Mask([]byte(line))) != line {
					places = append(places, fmt.Sprintf("%s:%d", name, i+1))
				}
			}
		}
		switch n := len(places); {
		case n > maxSecrets:
			places = append(places[:maxSecrets], fmt.Sprintf("and %d more", n-maxSecrets))
			fallthrough
		case n > 0:
			c.warn("notes", "", "notes of the agent %s in %s seem to contain secrets, which models read: %s", id, dir,
				strings.Join(places, ", "))
		}
	}
}

// noteFiles returns the names of the private notes in a workspace. Links are not among
// them.
func noteFiles(dir string) (names []string, err error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, name := range memory.PrivateNames() {
		if name == "memory.md" && slices.Contains(names, "MEMORY.md") { // they are one file where case is ignored
			continue
		}
		err := fs.WalkDir(root.FS(), name, func(name string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case len(names) >= maxNotes:
				return fs.SkipAll
			case d.Type().IsRegular() && strings.EqualFold(path.Ext(name), ".md"):
				names = append(names, name)
			}
			return nil
		})
		if err != nil {
			return names, err
		}
	}
	return names, nil
}
