package skill

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// BundledPath is the beginning of the paths of bundled skills, which are no files on the
// disk: the tool read has them.
const BundledPath = "skills:"

// ParseBundled returns the skills of a file system, whose folders have their names,
// sorted by name.
func ParseBundled(fsys fs.FS) ([]*Skill, error) {
	files, err := fs.Glob(fsys, "*/"+FileName)
	if err != nil {
		return nil, err
	}
	var out []*Skill
	for _, file := range files {
		text, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, err
		}
		s, warning, err := Parse(path.Dir(file), text)
		if err == nil && warning != "" {
			err = fmt.Errorf("%s", warning)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		s.Source, s.Dir, s.File = Bundled, BundledPath+path.Dir(file), BundledPath+file
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *Skill) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
