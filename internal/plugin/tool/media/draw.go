package media

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/drawing"
	pictures "github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// maxDrawing is the maximum number of requests at the same time.
const maxDrawing = 8

// Studio is where pictures are drawn after the call of the tool has returned. Use [NewStudio].
type Studio struct {
	ctx  context.Context
	stop context.CancelFunc

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
	jobs   []drawingJob // in progress
}

// drawingJob is a request in progress.
type drawingJob struct {
	call    string
	session chela.SessionKey
	prompt  string
	started time.Time
}

// NewStudio returns a Studio.
func NewStudio() *Studio {
	s := new(Studio)
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Close ends what is being drawn. The sessions are told at the next start.
func (s *Studio) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.wg.Wait()
}

// start registers a request. The caller calls end.
func (s *Studio) start(j drawingJob) (end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errors.New("the gateway is stopping")
	case len(s.jobs) >= maxDrawing:
		return nil, fmt.Errorf("%d pictures are being drawn; wait until some are ready", len(s.jobs))
	}
	s.jobs = append(s.jobs, j)
	s.wg.Add(1)
	return func() {
		s.mu.Lock()
		s.jobs = slices.DeleteFunc(s.jobs, func(o drawingJob) bool { return o.call == j.call })
		s.mu.Unlock()
		s.wg.Done()
	}, nil
}

// of returns what is being drawn for a session.
func (s *Studio) of(key chela.SessionKey) []drawingJob {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.jobs), func(j drawingJob) bool { return j.session != key })
}

// DrawOptions configure the tool that makes pictures. All fields are required.
type DrawOptions struct {
	Painter drawing.Painter
	Studio  *Studio
	Files   *pictures.Files
	Paths   pathpolicy.Rule // files that pictures may be made from
	Do      func(context.Context, action.Request) (action.Result, error)
	// Defer stores what a session is told if this process ends before resolve is called.
	Defer func(ctx context.Context, c tool.Call,
		text string) (resolve func(ctx context.Context, text string, r queue.Result) error, err error)
}

//go:embed draw.md
var drawDescription string

// NewDraw returns the tool that makes pictures.
func NewDraw(o DrawOptions) tool.Tool { return o.Paths.Guard(drawTool{o}, pathpolicy.Reads, drawFiles) }

type drawTool struct{ DrawOptions }

func (t drawTool) Spec() tool.Spec {
	return tool.Spec{
		Name: "image_generate", Label: "Make a picture", Description: strings.TrimSpace(drawDescription),
		Effect: tool.Acts, Groups: []string{"group:media"}, Profiles: []string{"coding"},
		Aliases: map[string]string{
			"text":        "prompt",
			"description": "prompt",
			"n":           "count",
			"aspect":      "aspectRatio",
			"format":      "outputFormat",
		},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"action":{"type":"string","enum":["generate","list","status"]},
			"prompt":{"type":"string"},
			"model":{"type":"string","description":"PROVIDER/MODEL, only if the person names one"},
			"image":{"type":"string"},
			"images":{"type":"array","items":{"type":"string"},"maxItems":5},
			"count":{"type":"integer","minimum":1,"maximum":4},
			"size":{"type":"string","description":"such as 1024x1536"},
			"aspectRatio":{"type":"string","description":"such as 16:9"},
			"resolution":{"type":"string","enum":["1K","2K","4K"]},
			"quality":{"type":"string","enum":["low","medium","high","auto"]},
			"outputFormat":{"type":"string","enum":["png","jpeg","webp"]},
			"background":{"type":"string","enum":["transparent","opaque","auto"]},
			"filename":{"type":"string"}},
			"additionalProperties":false}`),
	}
}

type drawArgs struct {
	Action     string   `json:"action"`
	Prompt     string   `json:"prompt"`
	Model      string   `json:"model"`
	Image      string   `json:"image"`
	Images     []string `json:"images"`
	Count      int      `json:"count"`
	Size       string   `json:"size"`
	Aspect     string   `json:"aspectRatio"`
	Resolution string   `json:"resolution"`
	Quality    string   `json:"quality"`
	Format     string   `json:"outputFormat"`
	Background string   `json:"background"`
	Name       string   `json:"filename"`
}

// sources returns the pictures that a call starts from.
func (a drawArgs) sources() []string {
	if a.Image == "" {
		return a.Images
	}
	return append([]string{a.Image}, a.Images...)
}

// drawFiles returns those pictures of a call that are files.
func drawFiles(raw json.RawMessage) ([]string, error) {
	a, err := tool.Decode[drawArgs](raw)
	return slices.DeleteFunc(a.sources(), func(path string) bool { return !pictures.IsFile(path) }), err
}

// Plan implements [tool.Planner]: some actions only read.
func (t drawTool) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	a, err := tool.Decode[drawArgs](c.Args)
	if err == nil && (a.Action == "list" || a.Action == "status") {
		return tool.Plan{Effect: tool.Reads}, nil
	}
	return tool.Plan{Effect: tool.Acts}, err
}

func (t drawTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := tool.Decode[drawArgs](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	switch a.Action {
	case "list":
		return tool.Text("Models that draw, in the order in which they are asked: " + strings.Join(t.Painter.Models(), ", ")),
			nil
	case "status":
		return t.status(c), nil
	case "", "generate":
	default:
		return tool.Result{}, fmt.Errorf("there is no action %q", a.Action)
	}
	r, err := t.request(c, a)
	if err != nil {
		return tool.Result{}, err
	}
	return t.begin(ctx, c, a, r)
}

// status says what is being drawn for the session.
func (t drawTool) status(c tool.Call) tool.Result {
	var out []string
	for _, j := range t.Studio.of(c.Session) {
		out = append(out, fmt.Sprintf("task %s, for %s: %s", j.call, humanize.Span(time.Since(j.started)),
			humanize.Truncate(j.prompt, 200)))
	}
	if out == nil {
		return tool.Text("Nothing is being drawn for this conversation.")
	}
	return tool.Text(strings.Join(out, "\n"))
}

// request returns what is asked of the painter.
func (t drawTool) request(c tool.Call, a drawArgs) (drawing.Request, error) {
	r := drawing.Request{
		Prompt:     strings.TrimSpace(a.Prompt),
		Model:      a.Model,
		Count:      max(a.Count, 1),
		Size:       a.Size,
		Aspect:     a.Aspect,
		Resolution: a.Resolution,
		Quality:    a.Quality,
		Format:     a.Format,
		Background: a.Background,
	}
	sources := a.sources()
	switch {
	case r.Prompt == "":
		return r, errors.New("prompt is missing: say what the picture shows")
	case len(r.Prompt) > drawing.MaxPrompt:
		return r, fmt.Errorf("prompt: %d bytes, at most %d are possible", len(r.Prompt), drawing.MaxPrompt)
	case r.Count > drawing.MaxCount:
		return r, fmt.Errorf("count: at most %d pictures at once", drawing.MaxCount)
	case len(sources) > drawing.MaxSources:
		return r, fmt.Errorf("images: at most %d", drawing.MaxSources)
	case a.Model != "" && !slices.Contains(t.Painter.Models(), a.Model):
		return r, fmt.Errorf("model: %q is not among those that draw: %s", a.Model, strings.Join(t.Painter.Models(), ", "))
	}
	look := imageTool{Options{Files: t.Files, Paths: t.Paths, Side: 2048}}
	for _, path := range sources {
		data, kind, err := look.picture(c, path)
		if err != nil {
			return r, err
		}
		r.Sources = append(r.Sources, drawing.Source{Data: data, Type: kind})
	}
	return r, nil
}

// begin starts the drawing, and returns its task.
func (t drawTool) begin(ctx context.Context, c tool.Call, a drawArgs, r drawing.Request) (tool.Result, error) {
	end, err := t.Studio.start(drawingJob{c.ID, c.Session, r.Prompt, time.Now()})
	if err != nil {
		return tool.Result{}, err
	}
	resolve, err := t.Defer(ctx, c, fmt.Sprintf(
		"Chela stopped while a picture was being drawn (task %s). It may not have been sent, and may have cost money. What was asked for: %s", c.ID, humanize.Truncate(r.Prompt, 200)))
	if err != nil {
		end()
		return tool.Result{}, err
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(t.Studio.ctx, cancel)
	go func() {
		defer end()
		defer cancel()
		defer stop()
		text, failed := t.draw(work, c, a, r)
		if work.Err() != nil {
			return // the next start tells the session
		}
		res := queue.Result{Outcome: chela.OutcomeOK, Ended: time.Now(), Text: text}
		if failed {
			res.Outcome = chela.OutcomeError
		}
		_ = resolve(work, text, res) // it stays deferred, and the next start tells the session
	}()
	return tool.Detailed(
		fmt.Sprintf("Task %s: the picture is being drawn, and will be sent to the chat when it is ready. You will be told.",
			c.ID), map[string]any{"taskId": c.ID}), nil
}

// draw draws and sends the pictures, and returns what the assistant is told. The last line,
// in brackets, is for it alone.
func (t drawTool) draw(ctx context.Context, c tool.Call, a drawArgs, r drawing.Request) (text string, failed bool) {
	res, err := t.Painter.Draw(ctx, drawing.Buyer{Run: c.Run, Session: c.Session, Agent: c.Agent}, r)
	if err != nil {
		return fmt.Sprintf("The picture could not be drawn: %v.\n\n[task %s: tell the person]", err, c.ID), true
	}
	var list []chela.Media
	var names []string
	for _, data := range res.Pictures {
		m, err := t.Files.Store(chela.Media{Name: nameOf(a.Name), Data: data})
		if err != nil {
			return fmt.Sprintf("The picture was drawn by %s, but cannot be kept: %v.\n\n[task %s: tell the person]",
				res.By, err, c.ID), true
		}
		if _, end, ok := strings.Cut(m.Type, "/"); ok && !strings.Contains(m.Name, ".") {
			m.Name += "." + end
		}
		list, names = append(list, m), append(names, pictures.Scheme+m.Ref)
	}
	what := fmt.Sprintf("task %s, %s", c.ID, strings.Join(names, ", "))
	if _, err := t.Do(ctx, action.Request{
		Action: action.Send, Media: list, Key: c.ID, From: action.Origin{Run: c.Run, Session: c.Session, Agent: c.Agent},
	}); err != nil {
		return fmt.Sprintf("The picture was drawn by %s, but not sent: %v.\n\n[%s]", res.By, err, what), true
	}
	if len(res.Ignored) > 0 {
		what += "; it does not know " + strings.Join(res.Ignored, ", ")
	}
	return fmt.Sprintf(
		"The picture was drawn by %s.\n\n[%s: it was sent to the chat, so the person sees it; do not send it again]",
		res.By, what), false
}

// nameOf returns the name of a picture for people.
func nameOf(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '-'
		}
		return r
	}, strings.TrimSpace(name))
	if name == "" || len(name) > 80 {
		return "picture"
	}
	return name
}
