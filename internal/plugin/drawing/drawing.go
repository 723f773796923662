// Package drawing makes pictures: with services of OpenAI's format, with Gemini, and with a
// program of this machine.
package drawing

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/drawing"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/folder"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// Options configure a painter. All fields are required.
type Options struct {
	Log      *slog.Logger
	Config   drawing.Config
	Programs sandbox.Programs
	// Endpoint returns how a provider of models is called, with its key, and whether it is
	// called as Gemini is.
	Endpoint func(provider string) (o dialect.Options, gemini bool, err error)
	// Pay returns a provider whose calls are paid by the buyer.
	Pay func(drawing.Buyer, llm.Model, llm.Provider) (llm.Provider, error)
}

// New returns a painter.
func New(o Options) drawing.Painter { return &painter{o} }

type painter struct{ o Options }

// Models implements drawing.Painter.
func (p *painter) Models() (out []string) {
	if p.o.Config.Command != "" {
		out = append(out, drawing.Program)
	}
	return append(out, p.o.Config.Models()...)
}

// Draw implements drawing.Painter.
func (p *painter) Draw(ctx context.Context, by drawing.Buyer, r drawing.Request) (drawing.Result, error) {
	models := p.Models()
	if r.Model != "" {
		models = []string{r.Model}
	}
	if len(models) == 0 {
		return drawing.Result{}, &chela.Error{
			Code: chela.CodeUnavailable, Message: "nothing that draws is configured",
			Hint: "chela config set agents.defaults.imageGenerationModel openai/gpt-image-1",
		}
	}
	var errs []error
	for _, name := range models {
		one, cancel := context.WithTimeout(ctx, p.o.Config.Patience())
		start := time.Now()
		res, err := p.ask(one, name, by, r)
		if err != nil && ctx.Err() == nil && errors.Is(one.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %v", p.o.Config.Patience())
		}
		cancel()
		if err == nil {
			err = check(res)
		}
		if err == nil {
			res.By = name
			p.o.Log.Info("picture", "model", name, "pictures", len(res.Pictures), "took", time.Since(start))
			return res, nil
		}
		if ctx.Err() != nil {
			return drawing.Result{}, ctx.Err()
		}
		p.o.Log.Warn("picture", "model", name, "err", err)
		errs = append(errs, fmt.Errorf("%s: %w", name, err))
	}
	return drawing.Result{}, errors.Join(errs...)
}

// check returns why an answer cannot be used.
func check(res drawing.Result) error {
	if len(res.Pictures) == 0 {
		return errors.New("the answer has no picture")
	}
	for _, b := range res.Pictures {
		if len(b) > drawing.MaxPicture {
			return errors.New("the picture is too large")
		}
		if _, err := media.Probe(b); err != nil {
			return fmt.Errorf("the answer is no picture: %w", err)
		}
	}
	return nil
}

// ask asks the program or a model.
func (p *painter) ask(ctx context.Context, name string, by drawing.Buyer, r drawing.Request) (drawing.Result, error) {
	if name == drawing.Program && p.o.Config.Command != "" {
		return p.program(ctx, r)
	}
	provider, model, ok := strings.Cut(name, "/")
	if !ok {
		return drawing.Result{}, chela.Errorf(chela.CodeInvalid, "%q is not PROVIDER/MODEL", name)
	}
	to, gemini, err := p.o.Endpoint(provider)
	if err != nil {
		return drawing.Result{}, err
	}
	s := newService(to, model)
	call := &call{draw: s.openAI, r: r}
	if gemini {
		call.draw = s.gemini
	}
	info := llm.Model{Provider: provider, ID: model}
	if to.Model != nil {
		if known := to.Model(model); known.ID != "" {
			info = known
		}
	}
	paid, err := p.o.Pay(by, info, call)
	if err != nil {
		return drawing.Result{}, err
	}
	_, err = llm.Complete(ctx, paid, &llm.Request{
		Model: model, MaxTokens: tokens * max(r.Count, 1),
		Messages: []*llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{llm.Text(r.Prompt)}}},
	})
	return call.res, err
}

// tokens is more than a picture takes.
const tokens = 8192

// call is one drawing in the form of a call of a model, so that it is paid like one.
type call struct {
	draw func(context.Context, drawing.Request) (drawing.Result, llm.Usage, error)
	r    drawing.Request
	res  drawing.Result
}

// Stream implements llm.Provider.
func (c *call) Stream(ctx context.Context, q *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		res, used, err := c.draw(ctx, c.r)
		if err != nil {
			yield(llm.Event{}, err)
			return
		}
		c.res = res
		yield(llm.Event{Kind: llm.Done, Usage: used, Message: &llm.Message{Role: llm.RoleAssistant, Model: q.Model}}, nil)
	}
}

// program runs a program that draws. The picture is the file that it leaves at
// {{OutputPath}}, or else what it prints.
func (p *painter) program(ctx context.Context, r drawing.Request) (res drawing.Result, err error) {
	if len(r.Sources) > 0 {
		return res, errors.New("the program draws from a description only")
	}
	for range max(r.Count, 1) {
		err := p.o.Programs.In(func(dir string) error {
			path := filepath.Join(dir, "picture.png")
			fill := strings.NewReplacer("{{Prompt}}", r.Prompt, "{{OutputPath}}", path, "{{OutputDir}}", dir)
			args := []string{r.Prompt}
			if len(p.o.Config.Args) > 0 {
				args = nil
			}
			for _, a := range p.o.Config.Args {
				args = append(args, fill.Replace(a))
			}
			printed, err := p.o.Programs.Run(ctx, dir, p.o.Config.Command, args, p.o.Config.Env, drawing.MaxPicture)
			if err != nil {
				return err
			}
			data, err := folder.ReadLeft(path, drawing.MaxPicture+1)
			if errors.Is(err, os.ErrNotExist) && len(printed) > 0 {
				data, err = printed, nil
			}
			res.Pictures = append(res.Pictures, data)
			return err
		})
		if err != nil {
			return res, err
		}
	}
	res.Ignored = r.Named()
	return res, nil
}
