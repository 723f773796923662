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
}

//go:embed *.md
var texts embed.FS

// New returns the tools: read, write, edit, apply_patch, ls, find, grep.
func New(o Options) []tool.Tool {
	if o.MaxImage == 0 {
		o.MaxImage = 3_750_000 // what providers take, once it is base64
	}
	tools := []tool.Tool{newRead(o), newWrite(), newEdit(), newLs(), newFind(), newGrep()}
	if !o.NoPatch {
		tools = append(tools, newPatch())
	}
	return tools
}

// fileTool is a tool with decoded arguments and an open workspace.
type fileTool[A any] struct {
	spec tool.Spec
	run  func(ctx context.Context, w *workspace, args A) (tool.Result, error)
}

// newTool returns the tool with the description that is beside its source.
func newTool[A any](s tool.Spec, run func(context.Context, *workspace, A) (tool.Result, error)) tool.Tool {
	text, err := texts.ReadFile(s.Name + ".md")
	if err != nil {
		panic(err)
	}
	s.Description = string(text)
	return &fileTool[A]{s, run}
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
	defer func() { _ = w.root.Close() }()
	return t.run(ctx, w, args)
}
