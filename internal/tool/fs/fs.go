package fs

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"

	"github.com/chela-ai/chela/internal/reach"
	"github.com/chela-ai/chela/internal/tool"
)

// Options are what the tools may do. The zero value is ready.
type Options struct {
	MaxImage int64 // largest image that a model is shown, in bytes; 0: 3.75 MB
	NoPatch  bool  // leaves out apply_patch

	Reach        reach.Rule // what they may reach
	PatchOutside bool       // what holds for apply_patch in the place of Reach.Outside
}

//go:embed *.md
var texts embed.FS

// New returns the tools: read, write, edit, apply_patch, ls, find, grep.
func New(o Options) []tool.Tool {
	if o.MaxImage == 0 {
		o.MaxImage = 3_750_000 // what providers take, once it is base64
	}
	tools := []tool.Tool{newRead(o), newWrite(o), newEdit(o), newLs(o), newFind(o), newGrep(o)}
	if !o.NoPatch {
		o.Reach.Outside = o.PatchOutside
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
	rule reach.Rule
}

// newTool returns the tool with the description that is beside its source.
func newTool[A paths](o Options, s tool.Spec, run func(context.Context, *workspace, A) (tool.Result, error)) tool.Tool {
	text, err := texts.ReadFile(s.Name + ".md")
	if err != nil {
		panic(err)
	}
	s.Description = string(text)
	use := reach.Changes
	if s.Effect == tool.Reads {
		use = reach.Reads
	}
	return o.Reach.Guard(&fileTool[A]{s, run, o.Reach}, use, func(raw json.RawMessage) ([]string, error) {
		var args A
		if err := json.Unmarshal(raw, &args); err != nil {
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
	var args A
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return tool.Result{}, fmt.Errorf("arguments: %w", err)
	}
	dir, err := t.rule.Open(c.Dir)
	if err != nil {
		return tool.Result{}, err
	}
	defer dir.Close()
	return t.run(ctx, &workspace{Dir: dir}, args)
}
