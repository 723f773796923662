package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// The types of the rows that a trajectory has in addition to those of a transcript.
const (
	rowSession = "chela.session" // the first one
	rowPrompt  = "chela.system_prompt"
	rowTools   = "chela.tools"
	rowRequest = "chela.request" // behind the message that answers the request
	rowRun     = "chela.run"     // behind all entries
	rowCall    = "chela.call"    // behind the row of its run
)

// trajectoryVersion is the version of those rows.
const trajectoryVersion = 1

// sessionRow describes the session and the export.
type sessionRow struct {
	Version  int               `json:"version"`
	Program  string            `json:"program"`
	Exported time.Time         `json:"exportedAt"`
	Key      chela.SessionKey  `json:"key"`
	Agent    chela.AgentID     `json:"agentId"`
	Label    string            `json:"label,omitempty"`
	Created  time.Time         `json:"createdAt"`
	Started  time.Time         `json:"sessionStartedAt"`
	Active   time.Time         `json:"lastInteractionAt,omitzero"`
	Model    string            `json:"model,omitempty"`
	Settings map[string]string `json:"settings,omitempty"` // that the session overrides
	Entries  int               `json:"entries"`
	Calls    int64             `json:"modelCalls"`
	Usage    llm.Usage         `json:"usage"`
	CostUSD  float64           `json:"costUSD"`
	Priced   bool              `json:"priced"` // every model call had a price
	Compacts int               `json:"compactionCount,omitempty"`
}

// promptRow is the system prompt of the session's next request.
type promptRow struct {
	Error  string     `json:"error,omitempty"` // why it is not known
	Blocks []blockRow `json:"blocks,omitempty"`
	Note   string     `json:"note,omitempty"` // sent behind the last message
}

type blockRow struct {
	Text   string `json:"text"`
	Cached bool   `json:"cached,omitempty"` // the prompt up to the end of the block is stable
}

type toolRow struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// requestRow summarizes a model request.
type requestRow struct {
	Entry    string      `json:"entry"` // id of the row of its answer
	Run      chela.RunID `json:"runId,omitempty"`
	Provider string      `json:"provider,omitempty"`
	Model    string      `json:"model,omitempty"`
	Stop     string      `json:"stopReason,omitempty"`
	Partial  bool        `json:"partial,omitempty"`
	Usage    *llm.Usage  `json:"usage,omitempty"`
	CostUSD  *float64    `json:"costUSD,omitempty"` // nil: unknown
	// SinceMS is the time since the entry before the answer: the duration of the request,
	// with what the program did before it.
	SinceMS int64 `json:"sincePreviousMs,omitempty"`
	Calls   int   `json:"toolCalls,omitempty"`
}

// runRow describes a run.
type runRow struct {
	ID       chela.RunID      `json:"runId"`
	Kind     run.Kind         `json:"kind,omitempty"`
	State    run.State        `json:"state,omitempty"` // empty: its row was removed
	Waits    run.Waits        `json:"waits,omitempty"`
	Origin   chela.OriginKind `json:"origin,omitempty"`
	Parent   chela.RunID      `json:"parent,omitempty"`
	Replaces chela.RunID      `json:"replaces,omitempty"`
	Model    string           `json:"model,omitempty"`
	Attempts int              `json:"attempts,omitempty"`
	Error    string           `json:"error,omitempty"`
	Silent   bool             `json:"silent,omitempty"`
	Started  time.Time        `json:"startedAt,omitzero"`
	Ended    time.Time        `json:"endedAt,omitzero"`
	TookMS   int64            `json:"tookMs,omitempty"`
	ToolRows int              `json:"toolCalls,omitempty"`
}

// callRow describes a tool call.
type callRow struct {
	ID       string            `json:"id"`
	Run      chela.RunID       `json:"runId"`
	Call     string            `json:"toolCallId"` // in the messages
	Tool     string            `json:"toolName"`
	State    session.CallState `json:"state"`
	Effect   string            `json:"effect,omitempty"`
	Approval string            `json:"approval,omitempty"`
	Rights   []string          `json:"rights,omitempty"`
	Detached bool              `json:"detached,omitempty"`
	Who      string            `json:"who,omitempty"`
	Ran      string            `json:"ran,omitempty"`
	Decision session.Decision  `json:"decision,omitempty"`
	Rule     string            `json:"rule,omitempty"`
	Outcome  session.Result    `json:"outcome,omitempty"`
	TookMS   int64             `json:"tookMs,omitempty"`
	Updated  time.Time         `json:"updatedAt,omitzero"`
}

// writeTrajectory writes a session with what is known about its requests, runs and calls.
func (x *Exporter) writeTrajectory(ctx context.Context, w io.Writer, s *source, p preview) error {
	refs, err := s.refs(ctx)
	if err != nil {
		return err
	}
	out, err := session.NewExporter(w, s.meta, refs)
	if err != nil {
		return err
	}
	if err := x.writeHead(out, s, p); err != nil {
		return err
	}
	var runs []chela.RunID
	var before time.Time // of the last entry
	seen := map[chela.RunID]bool{"": true}
	err = s.each(ctx, func(e *session.Entry) error {
		if !seen[e.Run] {
			seen[e.Run], runs = true, append(runs, e.Run)
		}
		shown := x.redacted(e)
		withoutPictures(shown.Message)
		if err := out.Entry(&shown); err != nil {
			return err
		}
		since := e.Time.Sub(before)
		if before.IsZero() {
			since = 0
		}
		before = e.Time
		if e.Kind != session.KindMessage || e.Message == nil || e.Message.Role != llm.RoleAssistant {
			return nil
		}
		return out.Custom(rowRequest, e.Time, requestOf(e, out.Last(), since))
	})
	for i := 0; i < len(runs) && err == nil; i++ {
		err = x.writeRun(ctx, out, s.meta.Key, runs[i])
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// writeHead writes the rows about the session, its system prompt and its tools.
func (x *Exporter) writeHead(out *session.Exporter, s *source, p preview) error {
	m, redact := &s.meta, x.o.Redact
	settings := map[string]string{}
	for k, v := range map[string]string{
		"model":      m.Model,
		"thinking":   m.Think,
		"verbose":    m.Verbose,
		"reasoning":  m.Reasoning,
		"elevated":   m.Elevated,
		"usage":      m.Usage,
		"send":       m.Send,
		"activation": m.Activation,
		"queue":      m.Queue.Mode,
	} {
		if v != "" {
			settings[k] = v
		}
	}
	head := sessionRow{
		Version:  trajectoryVersion,
		Program:  "chela " + x.o.Version,
		Exported: p.now.UTC(),
		Key:      m.Key,
		Agent:    m.Agent,
		Label:    redact(m.Label),
		Created:  m.Created.UTC(),
		Started:  m.Started.UTC(),
		Active:   m.Active.UTC(),
		Model:    p.modelName(),

		Settings: settings,
		Entries:  s.count,
		Calls:    m.Calls,
		Usage:    m.Tokens,
		CostUSD:  dollars(m.NanoUSD),
		Priced:   m.Priced,
		Compacts: m.Compactions,
	}
	prompt := promptRow{Note: redact(p.request.Note)}
	if p.err != nil {
		prompt.Error = redact(p.err.Error())
	}
	for _, b := range p.request.System {
		prompt.Blocks = append(prompt.Blocks, blockRow{redact(b.Text), b.Cache})
	}
	tools := []toolRow{}
	for _, t := range p.request.Tools {
		tools = append(tools, toolRow{t.Name, redact(t.Description), x.redactedJSON(t.Schema)})
	}
	return errors.Join(out.Custom(rowSession, p.now, head), out.Custom(rowPrompt, p.now, prompt),
		out.Custom(rowTools, p.now, map[string]any{"tools": tools}))
}

// modelName returns the full name of the model; "": unknown.
func (p *preview) modelName() string {
	if p.model.ID == "" {
		return ""
	}
	return p.model.Ref()
}

func dollars(nano int64) float64 { return float64(nano) / 1e9 }

func requestOf(e *session.Entry, row string, since time.Duration) requestRow {
	m := e.Message
	r := requestRow{
		Entry:    row,
		Run:      e.Run,
		Provider: m.Provider,
		Model:    m.Model,
		Stop:     string(m.Stop),
		Partial:  e.Partial,
		Usage:    e.Usage,
		SinceMS:  since.Milliseconds(),
		Calls:    len(m.Calls()),
	}
	if e.NanoUSD >= 0 && e.Usage != nil {
		r.CostUSD = new(dollars(e.NanoUSD))
	}
	return r
}

// withoutPictures replaces the pictures of a message by texts.
func withoutPictures(m *llm.Message) {
	if m == nil {
		return
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == llm.PartImage {
			m.Parts[i] = llm.Text(fmt.Sprintf("[picture: %s, %d bytes]", p.MIME, p.Size()))
		}
	}
}

// callPage is the number of calls that are read at once.
const callPage = 200

// writeRun writes the rows of a run and its tool calls.
func (x *Exporter) writeRun(ctx context.Context, out *session.Exporter, key chela.SessionKey, id chela.RunID) error {
	var r run.Run
	var calls []session.Call // newest first
	err := x.o.Store.View(ctx, func(rd store.Reader) error {
		var err error
		if r, err = rd.Runs().Get(id); err != nil && !errors.Is(err, chela.ErrNotFound) {
			return err
		}
		calls = nil
		for before := int64(0); ; {
			page, err := rd.Calls().Recent(session.CallQuery{Session: key, Run: id, Before: before, Limit: callPage})
			if err != nil {
				return err
			}
			calls = append(calls, page...)
			if len(page) < callPage {
				return nil
			}
			before = page[len(page)-1].Seq
		}
	})
	if err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	row := runRow{
		ID:       id,
		Kind:     r.Kind,
		State:    r.State,
		Waits:    r.Waits,
		Origin:   r.Origin.Kind,
		Parent:   r.Parent,
		Replaces: r.Replaces,
		Model:    r.Model,
		Attempts: r.Attempts,
		Error:    x.o.Redact(r.Error),
		Silent:   r.Silent,
		Started:  r.Started.UTC(),

		Ended:    r.Ended.UTC(),
		ToolRows: len(calls),
	}
	if !r.Ended.IsZero() {
		row.TookMS = r.Ended.Sub(r.Started).Milliseconds()
	}
	if err := out.Custom(rowRun, r.Started, row); err != nil {
		return err
	}
	for _, c := range slices.Backward(calls) {
		row := callRow{
			ID:       c.ID,
			Run:      c.Run,
			Call:     c.Wire.ID,
			Tool:     c.Wire.Name,
			State:    c.State,
			Effect:   c.Effect,
			Approval: c.Approval,
			Rights:   c.Rights,
			Detached: c.Detached,
			Who:      c.Outcome.Who,
			Ran:      x.o.Redact(c.Outcome.Ran),

			Decision: c.Outcome.Decision,
			Rule:     c.Outcome.Rule,
			Outcome:  c.Outcome.Result,
			TookMS:   c.Outcome.Took.Milliseconds(),
			Updated:  c.Updated.UTC(),
		}
		for i := range row.Rights {
			row.Rights[i] = x.o.Redact(row.Rights[i])
		}
		if err := out.Custom(rowCall, c.Updated, row); err != nil {
			return err
		}
	}
	return nil
}
