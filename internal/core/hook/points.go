package hook

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Points is the points of a gateway, or the hooks of one group for them. It is safe
// for concurrent use, except that hooks are added before [Points.Use].
type Points struct {
	// Before a run.
	BeforeModelResolve Deciding[BeforeModelResolve, ModelChoice]
	BeforePromptBuild  Deciding[BeforePromptBuild, PromptChange]
	InboundClaim       Deciding[InboundClaim, Claim]
	BeforeDispatch     Deciding[InboundClaim, Claim]
	BeforeAgentRun     Deciding[RunStart, Block]
	BeforeAgentReply   Deciding[RunStart, Claim]
	AgentBootstrap     Deciding[AgentBootstrap, BootstrapFiles]

	// During and after a run.
	LLMInput            Observing[LLMInput, None]
	LLMOutput           Observing[LLMOutput, None]
	BeforeAgentFinalize Deciding[BeforeAgentFinalize, Revision]
	AgentEnd            Observing[AgentEnd, None]

	// Tool calls.
	BeforeToolCall    Deciding[Call, Verdict]
	AfterToolCall     Observing[Done, None]
	ToolCallFailed    Observing[Done, None]
	ToolResultPersist Deciding[ToolResultPersist, TextChange]
	ResolveExecEnv    Deciding[ResolveExecEnv, ExecEnv]

	// The transcript and the session.
	BeforeMessageWrite Deciding[BeforeMessageWrite, TextChange]
	BeforeCompaction   Observing[Compaction, Reply]
	AfterCompaction    Observing[Compaction, Reply]
	BeforeReset        Observing[BeforeReset, None]
	SessionStart       Observing[SessionStart, None]
	SessionEnd         Observing[SessionEnd, None]
	SessionPatch       Observing[SessionPatch, None]
	Command            Observing[Command, Reply]

	// Messages.
	MessageReceived     Observing[Message, None]
	MessageTranscribed  Observing[Message, None]
	MessagePreprocessed Observing[Message, None]
	ReplyPayloadSending Deciding[MessageSending, Send]
	MessageSending      Deciding[MessageSending, Send]
	MessageSent         Observing[MessageSent, None]

	// Subagents.
	SubagentSpawning       Deciding[SubagentSpawning, Spawning]
	SubagentSpawned        Observing[SubagentSpawned, None]
	SubagentDeliveryTarget Deciding[SubagentDeliveryTarget, DeliveryTarget]
	SubagentEnded          Observing[SubagentEnded, None]

	// The gateway.
	GatewayStart      Observing[Gateway, None]
	GatewayStop       Observing[Gateway, None]
	GatewayPreRestart Observing[Gateway, None]
	CronChanged       Observing[CronChanged, None]
	BeforeInstall     Deciding[BeforeInstall, Block]
	HeartbeatPrompt   Deciding[HeartbeatPrompt, HeartbeatContribution]

	log  *slog.Logger
	list []Point

	mu     sync.Mutex
	names  []string // of the groups, in the order of their first use
	groups []*Points
}

// The time limits of points that differ from Budget.
const (
	agentEndTime   = 30 * time.Second
	StopTime       = 5 * time.Second  // of all hooks when the gateway stops
	PreRestartTime = 10 * time.Second // of all hooks before a restart
	SessionEndTime = 2 * time.Second  // of all hooks about sessions that end because the gateway stops
)

// New returns points without hooks. log may be nil.
func New(log *slog.Logger) *Points {
	p := &Points{log: discard(log)}
	const content, prompt = true, true
	p.list = []Point{
		deciding(p, &p.BeforeModelResolve, "before_model_resolve", options{content: content}, foldModel, nil),
		deciding(p, &p.BeforePromptBuild, "before_prompt_build", options{content: content, prompt: prompt}, foldPrompt, nil),
		deciding(p, &p.InboundClaim, "inbound_claim", options{content: content}, foldClaim[InboundClaim], nil),
		deciding(p, &p.BeforeDispatch, "before_dispatch", options{content: content}, foldClaim[InboundClaim], nil),
		deciding(p, &p.BeforeAgentRun, "before_agent_run", options{content: content}, foldBlock[RunStart], refuseBlock),
		deciding(p, &p.BeforeAgentReply, "before_agent_reply", options{content: content}, foldClaim[RunStart], nil),
		deciding(p, &p.AgentBootstrap, "agent:bootstrap", options{prompt: prompt}, foldBootstrap, nil),

		observing(p, &p.LLMInput, "llm_input", options{content: content}),
		observing(p, &p.LLMOutput, "llm_output", options{content: content}),
		deciding(p, &p.BeforeAgentFinalize, "before_agent_finalize", options{content: content}, foldRevision, nil),
		observing(p, &p.AgentEnd, "agent_end", options{limit: agentEndTime, content: content}),

		deciding(p, &p.BeforeToolCall, "before_tool_call", options{}, foldVerdict, refuseCall),
		observing(p, &p.AfterToolCall, "after_tool_call", options{}),
		observing(p, &p.ToolCallFailed, "tool_call_failed", options{}),
		deciding(p, &p.ToolResultPersist, "tool_result_persist", options{},
			foldText(func(e *ToolResultPersist) *string { return &e.Text }), nil),
		deciding(p, &p.ResolveExecEnv, "resolve_exec_env", options{}, foldEnv, nil),

		deciding(p, &p.BeforeMessageWrite, "before_message_write", options{content: content},
			foldText(func(e *BeforeMessageWrite) *string { return &e.Text }), nil),
		observing(p, &p.BeforeCompaction, "before_compaction", options{}),
		observing(p, &p.AfterCompaction, "after_compaction", options{}),
		observing(p, &p.BeforeReset, "before_reset", options{}),
		observing(p, &p.SessionStart, "session_start", options{}),
		observing(p, &p.SessionEnd, "session_end", options{}),
		observing(p, &p.SessionPatch, "session:patch", options{}),
		observing(p, &p.Command, "command", options{}),

		observing(p, &p.MessageReceived, "message_received", options{}),
		observing(p, &p.MessageTranscribed, "message:transcribed", options{}),
		observing(p, &p.MessagePreprocessed, "message:preprocessed", options{}),
		deciding(p, &p.ReplyPayloadSending, "reply_payload_sending", options{}, foldSend, nil),
		deciding(p, &p.MessageSending, "message_sending", options{}, foldSend, refuseSend),
		observing(p, &p.MessageSent, "message_sent", options{}),

		deciding(p, &p.SubagentSpawning, "subagent_spawning", options{}, foldSpawning, refuseSpawning),
		observing(p, &p.SubagentSpawned, "subagent_spawned", options{}),
		deciding(p, &p.SubagentDeliveryTarget, "subagent_delivery_target", options{}, foldTarget, nil),
		observing(p, &p.SubagentEnded, "subagent_ended", options{}),

		observing(p, &p.GatewayStart, "gateway_start", options{}),
		observing(p, &p.GatewayStop, "gateway_stop", options{limit: StopTime}),
		observing(p, &p.GatewayPreRestart, "gateway:pre-restart", options{limit: PreRestartTime}),
		observing(p, &p.CronChanged, "cron_changed", options{}),
		deciding(p, &p.BeforeInstall, "before_install", options{}, foldBlock[BeforeInstall], refuseBlock),
		deciding(p, &p.HeartbeatPrompt, "heartbeat_prompt_contribution", options{prompt: prompt}, foldHeartbeat, nil),
	}
	return p
}

// options is what distinguishes a point from others of its kind.
type options struct {
	limit           time.Duration
	content, prompt bool
}

func deciding[E, R any](p *Points, d *Deciding[E, R], name string, o options, fold func(*E, *R, R, string) effect,
	refuse func(*R, string)) Point {
	d.info = info{name: name, limit: o.limit, content: o.content, prompt: o.prompt, log: p.log}
	d.fold, d.refuse = fold, refuse
	return d
}

func observing[E, R any](p *Points, ob *Observing[E, R], name string, o options) Point {
	ob.info = info{name: name, limit: o.limit, content: o.content, prompt: o.prompt, log: p.log}
	return ob
}

// Point is a point of any type.
type Point interface {
	Name() string
	Any() bool
	addProgram(Program, event)
	merge(from []*Points, at int)
	wait(ctx context.Context)
	drain(ctx context.Context)
	stop(cause error)
	start(ready <-chan struct{})
	details() *info
}

// All returns the points.
func (p *Points) All() []Point { return p.list }

// Use puts the hooks of a group in force, instead of those that the group had. next
// may be nil. Running observers of the old hooks are cancelled; those of the new ones
// begin when they have ended, at the latest after StopTime.
func (p *Points) Use(group string, next *Points) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if next == nil {
		next = New(p.log)
	}
	ready := make(chan struct{})
	for _, pt := range next.list {
		pt.start(ready)
	}
	var old *Points
	if i := slices.Index(p.names, group); i >= 0 {
		old, p.groups[i] = p.groups[i], next
	} else {
		p.names, p.groups = append(p.names, group), append(p.groups, next)
	}
	for i, pt := range p.list {
		pt.merge(p.groups, i)
	}
	if old == nil {
		close(ready)
		return
	}
	for _, pt := range old.list {
		pt.stop(context.Canceled)
	}
	go func() {
		defer close(ready)
		ctx, cancel := context.WithTimeout(context.Background(), StopTime)
		defer cancel()
		old.drain(ctx)
	}()
}

// Close removes all hooks, cancels the observers that run, and waits for them until ctx
// ends.
func (p *Points) Close(ctx context.Context) {
	p.mu.Lock()
	groups := p.groups
	p.groups, p.names = nil, nil
	for i, pt := range p.list {
		pt.merge(nil, i)
	}
	p.mu.Unlock()
	for _, g := range groups {
		for _, pt := range g.list {
			pt.stop(context.Canceled)
		}
		g.drain(ctx)
	}
}

// drain waits until no observer runs any more, or until ctx ends.
func (p *Points) drain(ctx context.Context) {
	for _, pt := range p.list {
		pt.drain(ctx)
	}
}

// Wait returns when the observers have processed all events, or when ctx ends.
func (p *Points) Wait(ctx context.Context) {
	for _, pt := range p.list {
		pt.wait(ctx)
	}
}

func (d *Deciding[E, R]) details() *info            { return &d.info }
func (d *Deciding[E, R]) wait(context.Context)      {}
func (d *Deciding[E, R]) drain(context.Context)     {}
func (d *Deciding[E, R]) stop(error)                {}
func (d *Deciding[E, R]) start(<-chan struct{})     {}
func (o *Observing[E, R]) details() *info           { return &o.info }
func (o *Observing[E, R]) wait(ctx context.Context) { o.Wait(ctx) }

func (d *Deciding[E, R]) merge(from []*Points, at int) {
	var all []Hook[E, R]
	for _, p := range from {
		all = append(all, p.list[at].(*Deciding[E, R]).list()...)
	}
	d.set(all)
}

func (o *Observing[E, R]) merge(from []*Points, at int) {
	var all []*observer[E, R]
	for _, p := range from {
		all = append(all, p.list[at].(*Observing[E, R]).list()...)
	}
	o.set(all)
}

func (o *Observing[E, R]) drain(ctx context.Context) {
	for _, l := range o.list() {
		l.drain(ctx)
	}
}

// stop cancels the hooks of a group that is no longer in force.
func (o *Observing[E, R]) stop(cause error) {
	for _, l := range o.list() {
		l.cancel(cause)
	}
}

func (o *Observing[E, R]) start(ready <-chan struct{}) { o.ready = ready }
