package hook

import (
	"encoding/json"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
)

// Context says where an event happened. The JSON names of events and answers are
// those of OpenClaw.
type Context struct {
	Agent     chela.AgentID    `json:"agentId,omitempty"`
	Session   chela.SessionKey `json:"sessionKey,omitempty"` // empty: outside any session
	SessionID string           `json:"sessionId,omitempty"`  // of the transcript
	Run       chela.RunID      `json:"runId,omitempty"`
	Workspace string           `json:"workspaceDir,omitempty"`
	Requester *Requester       `json:"requester,omitempty"` // nil: no person
}

// Requester is the person that something is done for.
type Requester struct {
	Channel string          `json:"channel,omitempty"`
	Account chela.AccountID `json:"accountId,omitempty"`
	To      string          `json:"to,omitempty"`
	Thread  string          `json:"threadId,omitempty"`
	Sender  string          `json:"senderId,omitempty"`
	IsOwner bool            `json:"senderIsOwner"`
	Roles   []string        `json:"roleIds,omitempty"`
}

// RequesterAt returns the requester at an address.
func RequesterAt(a chela.Address, sender string, owner bool) *Requester {
	return &Requester{
		Channel: a.Channel,
		Account: a.Account,
		To:      a.Peer.ID,
		Thread:  a.Thread,
		Sender:  sender,
		IsOwner: owner,
	}
}

// BeforeModelResolve happens before the model of a run is resolved.
type BeforeModelResolve struct {
	Context
	Model  string `json:"model,omitempty"` // that was asked for; empty: the default
	Prompt string `json:"prompt,omitempty"`
}

// ModelChoice overrides the model of a run. The first hook that answers decides.
type ModelChoice struct {
	Provider string `json:"providerOverride,omitempty"`
	Model    string `json:"modelOverride,omitempty"` // provider/model, or a model of Provider
}

// Ref returns the model as provider/model; "": no choice.
func (c ModelChoice) Ref() string {
	if c.Provider != "" && c.Model != "" {
		return c.Provider + "/" + c.Model
	}
	return c.Model
}

// BeforePromptBuild happens once for each run, before its system prompt is built.
type BeforePromptBuild struct {
	Context
	Prompt string   `json:"prompt,omitempty"` // of the person
	Tools  []string `json:"tools,omitempty"`  // that the run may use
}

// PromptChange changes the system prompt of a run. The texts of several hooks are
// joined; of several system prompts, the first is used; a tool must be allowed by all.
type PromptChange struct {
	PrependContext string   `json:"prependContext,omitempty"` // precedes the prompt of the person
	System         string   `json:"systemPrompt,omitempty"`   // replaces the system prompt
	PrependSystem  string   `json:"prependSystemContext,omitempty"`
	AppendSystem   string   `json:"appendSystemContext,omitempty"`
	ToolsAllow     []string `json:"toolsAllow,omitempty"` // nil: no restriction
}

// InboundClaim happens when a run for a message of a person begins.
type InboundClaim struct {
	Context
	Content string `json:"content"`
	Channel string `json:"channel,omitempty"`
	Sender  string `json:"senderId,omitempty"`
	IsGroup bool   `json:"isGroup"`
}

// Claim answers a message instead of the model. Without a text there is no answer.
type Claim struct {
	Handled bool   `json:"handled"`
	Text    string `json:"text,omitempty"`
	Reply   struct {
		Text string `json:"text,omitempty"`
	} `json:"reply,omitzero"`
	Reason string `json:"reason,omitempty"`
}

// RunStart happens before the model is called for the first time in a run.
type RunStart struct {
	Context
	Prompt string `json:"prompt"`
	Origin string `json:"trigger,omitempty"` // person, cron, …
	Model  string `json:"model,omitempty"`
}

// Block forbids something. Reason is shown to the person.
type Block struct {
	Block  bool   `json:"block"`
	Reason string `json:"blockReason,omitempty"`
}

// AgentBootstrap happens when the system prompt of a run is built.
type AgentBootstrap struct {
	Context
	Files []BootstrapFile `json:"bootstrapFiles"`
}

// BootstrapFile is a file in the system prompt.
type BootstrapFile struct {
	Name    string `json:"name"`
	Text    string `json:"content"`
	Missing bool   `json:"missing,omitempty"`
}

// BootstrapFiles replaces the files in the system prompt; nil: they are unchanged.
type BootstrapFiles struct {
	Files []BootstrapFile `json:"bootstrapFiles,omitempty"`
}

// LLMInput happens before a call of a model.
type LLMInput struct {
	Context
	Model    string         `json:"model"`
	System   []llm.Block    `json:"systemPrompt"`
	Messages []*llm.Message `json:"historyMessages"`
}

// LLMOutput happens after a call of a model.
type LLMOutput struct {
	Context
	Model   string       `json:"model"`
	Message *llm.Message `json:"lastAssistant"`
	Usage   llm.Usage    `json:"usage"`
}

// BeforeAgentFinalize happens when a run is about to end with an answer, once for
// each run.
type BeforeAgentFinalize struct {
	Context
	Text string `json:"lastAssistantMessage"`
}

// Revision asks the model to go on. Action is "revise"; anything else is no
// decision.
type Revision struct {
	Action string `json:"action,omitempty"`
	Reason string `json:"reason,omitempty"` // for the model
}

// AgentEnd happens after a run has ended.
type AgentEnd struct {
	Context
	Success  bool           `json:"success"`
	Error    string         `json:"error,omitempty"`
	Text     string         `json:"text,omitempty"` // the answer
	Messages []*llm.Message `json:"messages"`
	Took     int64          `json:"durationMs"`
}

// Call describes a tool call.
type Call struct {
	Context
	ID   string          `json:"toolCallId"`
	Tool string          `json:"toolName"`
	Args json.RawMessage `json:"params"` // the arguments that the tool gets
	// Valid checks arguments that a hook returned; a call with invalid ones is
	// blocked. nil: all are valid.
	Valid func(json.RawMessage) error `json:"-"`
}

// Verdict is the answer of a hook before a tool call. The zero Verdict lets the call
// pass unchanged.
type Verdict struct {
	Block  bool            `json:"block"`
	Ask    bool            `json:"-"`           // a person must approve the call; without a decision it is denied
	Reason string          `json:"blockReason"` // for Block or Ask; shown to the model and the person
	Args   json.RawMessage `json:"params"`      // replaces the arguments; nil: unchanged
	Wait   time.Duration   `json:"-"`           // of an approval, after which the call is denied; 0: the usual time
	Asks   []Ask           `json:"-"`           // in an outcome: the requests of all hooks
}

// Ask is the request of one hook for an approval.
type Ask struct {
	Hook   string
	Reason string
	Wait   time.Duration // 0: the usual time
}

// Done is a tool call that has ended.
type Done struct {
	Call
	Content []llm.Part      `json:"result,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
	IsError bool            `json:"isError"`
	Err     error           `json:"-"`               // returned by the tool
	Error   string          `json:"error,omitempty"` // its text
	Took    time.Duration   `json:"-"`
	Millis  int64           `json:"durationMs"`
}

// ToolResultPersist happens before the result of a tool is stored and shown to the
// model.
type ToolResultPersist struct {
	Context
	ID      string `json:"toolCallId"`
	Tool    string `json:"toolName"`
	Text    string `json:"text"`
	IsError bool   `json:"isError"`
}

// TextChange replaces a text.
type TextChange struct {
	Text  *string `json:"text,omitempty"`
	Block bool    `json:"block,omitempty"` // nothing is stored in its place
}

// ResolveExecEnv happens before a command of the model is run.
type ResolveExecEnv struct {
	Context
	Tool    string `json:"toolName"`
	Command string `json:"command,omitempty"`
	Dir     string `json:"workdir,omitempty"`
}

// ExecEnv is variables for a command.
type ExecEnv struct {
	Env map[string]string `json:"env,omitempty"`
}

// BeforeMessageWrite happens before a message is added to the transcript.
type BeforeMessageWrite struct {
	Context
	Role string `json:"role"`
	Text string `json:"text"`
}

// Compaction happens before and after the history of a session is summarized.
type Compaction struct {
	Context
	Messages  int `json:"messageCount"`
	Tokens    int `json:"tokenCount,omitempty"`
	Compacted int `json:"compactedCount,omitempty"` // messages that the summary replaces

	SummaryLength int `json:"summaryLength,omitempty"` // in characters
	TokensBefore  int `json:"tokensBefore,omitempty"`  // of the messages; estimates
	TokensAfter   int `json:"tokensAfter,omitempty"`

	Address chela.Address `json:"-"` // of the chat
}

// Reply is texts for the chat of an event.
type Reply struct {
	Messages []string `json:"messages,omitempty"`
}

// The reasons for the end of a session.
const (
	EndNew        = "new"
	EndReset      = "reset"
	EndIdle       = "idle"
	EndDaily      = "daily"
	EndCompaction = "compaction"
	EndDeleted    = "deleted"
	EndShutdown   = "shutdown"
	EndRestart    = "restart"
	EndUnknown    = "unknown"
)

// BeforeReset happens when a session gets another transcript. SessionID is that of
// the one it had, which remains readable.
type BeforeReset struct {
	Context
	Reason string `json:"reason"`
}

// SessionStart happens when a session has a new transcript.
type SessionStart struct {
	Context
	Previous string `json:"resumedFrom,omitempty"` // id of the transcript before; empty: the session is new
}

// SessionEnd happens when a transcript of a session ends.
type SessionEnd struct {
	Context
	Reason string `json:"reason"`
	Next   string `json:"nextSessionId,omitempty"`
}

// SessionPatch happens when the settings of a session were changed.
type SessionPatch struct {
	Context
	Patch json.RawMessage `json:"patch,omitempty"`
}

// Command happens after a slash command was carried out.
type Command struct {
	Context
	Name     string        `json:"action"`
	Args     string        `json:"args,omitempty"`
	Sender   string        `json:"senderId"`
	Source   string        `json:"commandSource"`               // the channel
	Previous string        `json:"previousSessionId,omitempty"` // of new and reset
	Address  chela.Address `json:"-"`
	Item     string        `json:"-"` // id of the command
	Time     time.Time     `json:"-"`
}

// Message happens when a message was accepted.
type Message struct {
	Context
	ID      string        `json:"messageId,omitempty"`
	From    string        `json:"from"`
	Content string        `json:"content"`
	Channel string        `json:"channelId,omitempty"`
	Address chela.Address `json:"-"`
	Time    time.Time     `json:"timestamp"`
	Media   []string      `json:"mediaTypes,omitempty"`
	// Transcript is what was said in recordings; of MessageTranscribed and, then, of
	// MessagePreprocessed.
	Transcript string `json:"transcript,omitempty"`
}

// MessageSending happens before the answer of a run is sent to a chat.
type MessageSending struct {
	Context
	Content string `json:"content"`
	Channel string `json:"channelId,omitempty"`
	To      string `json:"to,omitempty"`
	Kind    string `json:"kind,omitempty"` // final
}

// Send changes or cancels what is sent.
type Send struct {
	Content *string `json:"content,omitempty"`
	Cancel  bool    `json:"cancel"`
	Reason  string  `json:"cancelReason,omitempty"`
}

// MessageSent happens when a message was sent to a chat, or was given up.
type MessageSent struct {
	Context
	Content string `json:"content"`
	Channel string `json:"channelId,omitempty"`
	To      string `json:"to,omitempty"`
	Success bool   `json:"success"`
	Error   string `json:"error,omitempty"`
}

// Subagent identifies a subagent. Session, Agent and Run of the Context are those of
// the subagent.
type Subagent struct {
	Context
	Child  chela.SessionKey `json:"childSessionKey"`
	Parent chela.SessionKey `json:"requesterSessionKey"`
	Label  string           `json:"label,omitempty"`
	Mode   string           `json:"mode,omitempty"`
}

// SubagentSpawning happens before a subagent is started.
type SubagentSpawning struct {
	Subagent
	Task   string `json:"task,omitempty"`
	Thread bool   `json:"threadRequested"`
}

// Spawning is the permission to start a subagent. Status is ok, error or empty,
// which is no decision.
type Spawning struct {
	Status string `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
	Ready  bool   `json:"threadBindingReady,omitempty"`
	Thread string `json:"threadId,omitempty"`
}

// SubagentSpawned happens after a subagent was started.
type SubagentSpawned struct {
	Subagent
	Task string `json:"task,omitempty"`
}

// SubagentDeliveryTarget happens before the result of a subagent is announced.
type SubagentDeliveryTarget struct {
	Subagent
	Origin Target `json:"requesterOrigin"`
}

// Target is an address as hooks get and return it.
type Target struct {
	Channel string          `json:"channel,omitempty"`
	Account chela.AccountID `json:"accountId,omitempty"`
	Kind    chela.PeerKind  `json:"kind,omitempty"` // direct, group, channel
	To      string          `json:"to,omitempty"`
	Thread  string          `json:"threadId,omitempty"`
}

// TargetOf returns an address as a Target.
func TargetOf(a chela.Address) Target {
	return Target{a.Channel, a.Account, a.Peer.Kind, a.Peer.ID, a.Thread}
}

// Address returns the address.
func (t Target) Address() chela.Address {
	kind := t.Kind
	if kind == "" && t.To != "" {
		kind = chela.Direct
	}
	return chela.Address{Channel: t.Channel, Account: t.Account, Peer: chela.Peer{Kind: kind, ID: t.To}, Thread: t.Thread}
}

// DeliveryTarget is where the result of a subagent is announced. The first hook that
// answers decides; nil: no decision.
type DeliveryTarget struct {
	Origin *Target `json:"origin,omitempty"`
}

// SubagentEnded happens when a subagent has ended.
type SubagentEnded struct {
	Subagent
	Kind    string    `json:"targetKind"` // subagent
	Outcome string    `json:"outcome"`    // ok, error, timeout, killed, reset, deleted
	Reason  string    `json:"reason,omitempty"`
	Ended   time.Time `json:"endedAt"`
}

// Gateway happens when the gateway starts or stops.
type Gateway struct {
	Context
	Port   int    `json:"port,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// CronChanged happens when a scheduled job was added, changed, removed, started or
// finished.
type CronChanged struct {
	Context
	Action string          `json:"action"`
	Job    string          `json:"jobId"`
	Data   json.RawMessage `json:"job,omitempty"`
}

// BeforeInstall happens before a skill, hook or plug-in is installed.
type BeforeInstall struct {
	Context
	Kind   string `json:"targetType"` // skill, hook, plugin
	Name   string `json:"targetName"`
	Source string `json:"sourcePath"`
}

// HeartbeatPrompt happens before a heartbeat run.
type HeartbeatPrompt struct{ Context }

// HeartbeatContribution is texts around the prompt of a heartbeat.
type HeartbeatContribution struct {
	Prepend string `json:"prependContext,omitempty"`
	Append  string `json:"appendContext,omitempty"`
}
