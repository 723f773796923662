package fs

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"os"

	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
)

// Options configure the tools. The zero value is ready to use.
type Options struct {
	MaxImage int64 // size of the largest image shown to a model, in bytes; 0: 3.75 MB
	NoPatch  bool  // apply_patch is off

	// Output opens the complete output of a tool that media:<ref> refers to; nil: there
	// are none.
	Output func(ref string) (*os.File, error)
	Docs   fs.FS // pages of the documentation, see DocsPath; nil: none
	Skills fs.FS // bundled skills, see skill.BundledPath; nil: none

	Journal journal.Recorder // records changes; nil: nothing is recorded

	Paths        pathpolicy.Rule // files that the tools may use
	PatchOutside bool            // replaces Paths.Outside for apply_patch
}

//go:embed *.md
var texts embed.FS

// New returns the tools: read, write, edit, apply_patch, ls, find, grep.
func New(o Options) []tool.Tool {
	if o.Journal == nil {
		o.Journal = journal.Off{}
	}
	if o.MaxImage == 0 {
		o.MaxImage = 3_750_000 // limit of providers, allowing for base64
	}
	tools := []tool.Tool{newRead(o), newWrite(o), newEdit(o), newLs(o), newFind(o), newGrep(o)}
	o.Paths.Outside = o.PatchOutside
	if o.NoPatch {
		return append(tools, tool.Off(newPatch(o))...)
	}
	return append(tools, newPatch(o))
}

// filesOf returns the paths without references to complete outputs.
func filesOf(path string) []string {
	if _, ref := media.ParseRef(path); ref {
		return nil
	}
	return []string{path}
}

// paths are arguments that name files.
type paths interface{ paths() []string }

// fileTool is a tool with decoded arguments and an open workspace.
type fileTool[A paths] struct {
	spec tool.Spec
	run  func(ctx context.Context, w *workspace, args A) (tool.Result, error)
	rule pathpolicy.Rule
	jour journal.Recorder
}

// newTool returns a tool. Its description is embedded from the file NAME.md.
func newTool[A paths](o Options, s tool.Spec, run func(context.Context, *workspace, A) (tool.Result, error)) tool.Tool {
	text, err := texts.ReadFile(s.Name + ".md")
	if err != nil {
		panic(err)
	}
	s.Description = string(text)
	use := pathpolicy.Changes
	if s.Effect == tool.Reads {
		use = pathpolicy.Reads
	} else {
		o.Paths.Library = nil
	}
	return o.Paths.Guard(&fileTool[A]{s, run, o.Paths, o.Journal}, use, func(raw json.RawMessage) ([]string, error) {
		args, err := tool.Decode[A](raw)
		if err != nil {
			return nil, err
		}
		return args.paths(), nil
	})
}

func (t *fileTool[A]) Spec() tool.Spec { return t.spec }

func (t *fileTool[A]) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	args, err := tool.Decode[A](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	dir, err := t.rule.Open(c)
	if err != nil {
		return tool.Result{}, err
	}
	defer dir.Close()
	return t.run(ctx, &workspace{
		Dir:     dir,
		room:    c.Room,
		journal: t.jour,
		fixed:   !pathpolicy.MayChangeSelf(ctx, c.Private),
		asked:   t.rule.Outside && c.Sandbox == nil,
	}, args)
}

// workspace is the folder that a tool works in: the agent's workspace or, for
// tools that may leave it, a folder outside.
type workspace struct {
	*pathpolicy.Dir
	hidden int  // number of private files skipped by a search
	room   int  // see tool.Call.Room
	fixed  bool // the files of the assistant itself cannot be changed
	asked  bool // a person is asked about what makes other programs run something

	journal journal.Recorder
}

// resolve returns the folder through which a path is accessed, and the file's
// name in it.
func (w *workspace) resolve(path string) (*workspace, string, error) {
	dir, name, err := w.Resolve(path)
	switch {
	case err != nil:
		return nil, "", err
	case dir == w.Dir:
		return w, name, nil
	}
	return &workspace{Dir: dir, room: w.room, journal: w.journal, fixed: w.fixed, asked: w.asked}, name, nil
}
