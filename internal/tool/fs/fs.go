package fs

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"

	"github.com/chela-ai/chela/internal/tool"
)

// Options are what the tools may do. The zero value is ready.
type Options struct {
	MaxImage int64 // largest image that a model is shown, in bytes; 0: 3.75 MB
	NoPatch  bool  // leaves out apply_patch

	// Outside lets the tools reach the person's files outside of the workspace,
	// and PatchOutside apply_patch. A person is asked about what changes files
	// there, and about what is private.
	Outside, PatchOutside bool
	Own                   []string // Chela's own files and folders, which are private too
}

// further is what the description of a tool that may leave the workspace says
// beside the rest.
const further = "Other files of this machine are reached by absolute paths, or from ~. The person is asked before they are changed, and before private ones are read."

//go:embed *.md
var texts embed.FS

// New returns the tools: read, write, edit, apply_patch, ls, find, grep.
func New(o Options) []tool.Tool {
	if o.MaxImage == 0 {
		o.MaxImage = 3_750_000 // what providers take, once it is base64
	}
	tools := []tool.Tool{newRead(o), newWrite(o), newEdit(o), newLs(o), newFind(o), newGrep(o)}
	if !o.NoPatch {
		o.Outside = o.PatchOutside
		tools = append(tools, newPatch(o))
	}
	return tools
}

// paths is arguments that name files.
type paths interface{ paths() []string }

// fileTool is a tool with decoded arguments and an open workspace.
type fileTool[A paths] struct {
	spec tool.Spec
	run  func(ctx context.Context, w *workspace, args A) (tool.Result, error)
	far  bool     // it may leave the workspace
	own  []string // Chela's own
}

// newTool returns the tool with the description that is beside its source.
func newTool[A paths](o Options, s tool.Spec, run func(context.Context, *workspace, A) (tool.Result, error)) tool.Tool {
	text, err := texts.ReadFile(s.Name + ".md")
	if err != nil {
		panic(err)
	}
	s.Description = string(text)
	t := &fileTool[A]{s, run, o.Outside, o.Own}
	if !o.Outside {
		return t
	}
	t.spec.Description += "\n" + further
	return farTool[A]{t}
}

func (t *fileTool[A]) Spec() tool.Spec { return t.spec }

func (t *fileTool[A]) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	var args A
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return tool.Result{}, fmt.Errorf("arguments: %w", err)
	}
	w, err := open(c.Dir)
	if err != nil {
		return tool.Result{}, err
	}
	defer w.close()
	if t.far {
		if w.reach, err = newReach(c.Dir, t.own); err != nil {
			return tool.Result{}, err
		}
	}
	return t.run(ctx, w, args)
}
