package runner

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/plan"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
)

// request returns the request of a run that may use the tools, without its messages.
func (r *Runner) request(e *Execution, tools []llm.ToolSpec, open openWork) llm.Request {
	p, think := e.profile, e.profile.think(e.meta, e.run)
	return llm.Request{
		Model:     p.Model.ID,
		MaxTokens: p.MaxTokens,
		System:    r.system(e, tools, think),
		Note:      r.note(e, tools, open),
		Tools:     tools,
		Thinking:  think,
		Fast:      e.fast(),
		Cache:     p.Cache,
		Session:   e.meta.ForkOf(e.run).Transcript,
	}
}

// system returns the system prompt of a run that may use the tools. In a group it
// does not contain the files that are private to the person. The prompt of a forked
// session is that of the run that it was forked from.
func (r *Runner) system(e *Execution, tools []llm.ToolSpec, think llm.Level) []llm.Block {
	from, p := e.meta.ForkOf(e.run), e.profile
	in, to := p.Prompt, from.Address
	child := from.Bounds.IsChild()
	in.Mode = prompt.Mode(from.Overrides.PromptMode)
	if child && in.Mode != prompt.None {
		in.Mode = prompt.Minimal
	}
	if in.Files = e.hooked.files; in.Files == nil {
		in.Files = r.promptFiles(e)
	}
	if p.Types != nil && from.Bounds.Depth < p.MaxDepth {
		in.Types = typeLines(p.Types())
	}
	if p.Skills != nil && (in.Mode != prompt.Minimal || p.ChildSkills) {
		in.Skills = p.Skills()
	}
	if p.Hints != nil && !to.Local() {
		in.Hints = p.Hints(to.Channel)
	}
	in.Tools, in.Dir, in.Now = tools, p.Dir, time.Now()
	in.Heartbeat = in.Heartbeat || prompt.HasHeartbeat(in.Files)
	in.Group = to.Peer.Kind == chela.Group || to.Peer.Kind == chela.Room
	in.Title = from.Group
	in.Extra = strings.TrimSpace(from.Prompt + "\n\n" + from.Overrides.Prompt)
	if p.Chat != nil && !to.Local() && !child {
		in.Extra = strings.TrimSpace(p.Chat(to) + "\n\n" + in.Extra)
	}
	in.Agent, in.Model, in.Channel, in.Thinking = string(e.meta.Agent), p.Model.Ref(), to.Channel, think
	in.Reasoning = e.reasoningMode()
	blocks := e.withSystem(slices.Clone(r.prompts.Build(in))) // the files and hooks may repeat a secret
	for i := range blocks {
		blocks[i].Text = r.o.Executor.Redact(blocks[i].Text)
	}
	return blocks
}

// note returns what the model is told about what is open in the session.
func (r *Runner) note(e *Execution, tools []llm.ToolSpec, open openWork) string {
	plan, keeps := "", e.profile.Tools.Role(tool.KeepsPlan)
	if slices.ContainsFunc(tools, func(t llm.ToolSpec) bool { return t.Name == keeps }) {
		plan = open.plan.Prompt()
	}
	return r.o.Executor.Redact(prompt.Note(plan, subagent.Prompt(open.children)))
}

// promptFiles returns the files of the workspace in the system prompt of a run. With a
// light context, only heartbeats get one.
func (r *Runner) promptFiles(e *Execution) []prompt.File {
	from := e.meta.ForkOf(e.run)
	light := from.Overrides.Context.Light()
	if e.profile.Files == nil || from.Overrides.PromptMode == string(prompt.None) ||
		light && e.run.Origin.Kind != chela.OriginHeartbeat {
		return nil
	}
	child := from.Bounds.IsChild()
	files := e.profile.Files.Files(!child && from.Address.Private() && !e.meta.Shared(e.run))
	switch {
	case light:
		files = prompt.ForHeartbeats(files)
	case child:
		files = prompt.ForChildren(files)
	}
	return files
}

// openWork is what has not ended in a session: the model is told of it in each attempt, so that the
// model knows it even if the messages about it are no longer sent.
type openWork struct {
	plan     plan.Plan
	children []subagent.Running
}

// openWork returns what has not ended in the session of a run: what the commit that began
// or resumed the run read, or, in later attempts, what the rows say now.
func (r *Runner) openWork(ctx context.Context, e *Execution) (openWork, error) {
	if w := e.open; w != nil {
		e.open = nil
		return *w, nil
	}
	return store.Get(ctx, r.o.Store, func(rd store.Reader) (openWork, error) {
		m, err := session.Lookup(rd.Sessions(), e.run.Session)
		if err != nil {
			return openWork{}, err
		}
		return readOpenWork(m, rd.Children(), rd.Runs())
	})
}

// readOpenWork reads what has not ended in a session.
func readOpenWork(m session.Meta, children subagent.Reader, runs run.Reader) (openWork, error) {
	w := openWork{plan: m.Plan}
	open, err := children.Open(m.Key)
	for i := 0; i < len(open) && err == nil; i++ {
		var active []run.Run
		active, err = runs.Active(open[i].Session)
		w.children = append(w.children, subagent.Running{Child: open[i], State: subagent.StateOf(active)})
	}
	return w, err
}

// typeLines describes agent types, one line each.
func typeLines(types []subagent.Type) (lines []string) {
	for _, t := range types {
		if t.Problem == "" {
			lines = append(lines, t.Name+": "+t.Description)
		}
	}
	return lines
}
