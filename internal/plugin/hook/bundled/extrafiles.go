package bundled

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/tool"
)

const (
	maxExtra     = 20        // files that are added
	maxExtraSize = 200 << 10 // bytes of one
)

// addExtraFiles adds the hook bootstrap-extra-files. Its entry has the patterns of the
// files, relative to the workspace, in paths, patterns or files. Only files with the
// name of a bootstrap file are added.
func addExtraFiles(env Env, entry json.RawMessage, to *hook.Points) error {
	var o struct{ Paths, Patterns, Files []string }
	if err := decode(entry, &o); err != nil {
		return err
	}
	patterns := slices.Concat(o.Paths, o.Patterns, o.Files)
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", p, err)
		}
	}
	rule := pathpolicy.Rule{NoSecrets: true, Private: env.Private}
	to.AgentBootstrap.Add(hook.Hook[hook.AgentBootstrap, hook.BootstrapFiles]{Name: "bootstrap-extra-files",
		Func: func(_ context.Context, e hook.AgentBootstrap) (hook.BootstrapFiles, error) {
			if e.Workspace == "" {
				return hook.BootstrapFiles{}, nil
			}
			root, err := os.OpenRoot(e.Workspace)
			if err != nil {
				return hook.BootstrapFiles{}, err
			}
			defer root.Close()
			files, added := slices.Clone(e.Files), 0
			for _, p := range patterns {
				names, err := fs.Glob(root.FS(), p)
				if err != nil {
					return hook.BootstrapFiles{}, fmt.Errorf("pattern %q: %w", p, err)
				}
				for _, name := range names {
					known := slices.ContainsFunc(files, func(f hook.BootstrapFile) bool { return f.Name == name })
					if known || added >= maxExtra || !slices.Contains(prompt.Names(), path.Base(name)) {
						continue
					}
					b, err := rule.Read(tool.Call{Dir: e.Workspace}, name, maxExtraSize)
					if err != nil {
						env.Log.Warn("bootstrap-extra-files: file skipped", "file", name, "err", err)
						continue
					}
					files, added = append(files, hook.BootstrapFile{Name: name, Text: string(b)}), added+1
				}
			}
			if added == 0 {
				return hook.BootstrapFiles{}, nil
			}
			return hook.BootstrapFiles{Files: files}, nil
		}})
	return nil
}
