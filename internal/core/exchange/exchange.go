// Package exchange defines exchanges between sessions. An exchange begins with a message
// that the agent of one session, the sender, sends to another one, the target. The
// answer of the target is the reply. After it, the two sessions may answer each other,
// in turns, and at the end the target may announce the outcome in its own chat.
//
// Each step is one queue item whose origin says which step it is. Its id depends only on
// the exchange and the number of the step, so that a step exists at most once: see [Step].
package exchange

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Config is session.agentToAgent. Nil fields are unset.
type Config struct {
	MaxTurns *int `json:"maxPingPongTurns"` // after the reply, 0 to 5
}

// maxTurns is the default of Config.MaxTurns and its maximum.
const maxTurns = 5

// Check returns an error that names a value out of its range. key is the path of the
// section.
func (c Config) Check(key string) error {
	if n := c.MaxTurns; n != nil && (*n < 0 || *n > maxTurns) {
		path := key + ".maxPingPongTurns"
		return &chela.Error{
			Code: chela.CodeInvalid, Message: fmt.Sprintf("%s: %d is out of range, it must be between 0 and %d",
				path, *n, maxTurns),
			Hint: fmt.Sprintf("chela config set %s %d", path, max(0, min(maxTurns, *n))),
		}
	}
	return nil
}

// Turns returns the greatest number of turns after the reply.
func (c Config) Turns() int {
	if c.MaxTurns == nil {
		return maxTurns
	}
	return *c.MaxTurns
}

// Request is a message to another session, which begins an exchange. Exactly one of Key,
// Label and Agent is needed; Agent may be set besides the others.
type Request struct {
	ID        string           // of the exchange; a second request with the same id changes nothing
	From      chela.SessionKey // the sender
	Run       chela.RunID      // the run that sends; empty: none
	Principal chela.Principal  // without a run: whose rights the message carries

	Key   string        // of the target
	Label string        // of the target
	Agent chela.AgentID // of the target; without Key and Label, its main session is the target
	Text  string
	Wait  time.Duration // how long to wait for the reply; 0: not at all
}

// The limits of a request.
const (
	MaxText = 32 << 10 // bytes of a message
	MaxWait = 10 * time.Minute
)

// Check returns what is wrong with the request, and cleans it.
func (q *Request) Check() error {
	q.Key, q.Label, q.Text = strings.TrimSpace(q.Key), strings.TrimSpace(q.Label), strings.TrimSpace(q.Text)
	switch {
	case q.Key != "" && q.Label != "":
		return chela.Errorf(chela.CodeInvalid, "sessionKey and label: give one of them")
	case q.Key == "" && q.Label == "" && q.Agent == "":
		return chela.Errorf(chela.CodeInvalid,
			"sessionKey, label or agentId is required: say to which session the message goes")
	case q.Text == "":
		return chela.Errorf(chela.CodeInvalid, "message is required")
	case len(q.Text) > MaxText:
		return chela.Errorf(chela.CodeInvalid, "message has %s, at most %s are allowed", humanize.Bytes(int64(len(q.Text))),
			humanize.Bytes(MaxText))
	case q.Wait < 0 || q.Wait > MaxWait:
		return chela.Errorf(chela.CodeInvalid, "timeoutSeconds must be between 0 and %d", int(MaxWait.Seconds()))
	}
	return nil
}

// Status is the state of an exchange as its sender sees it.
type Status string

// The statuses. Those after Late are the outcomes of the run that answers.
const (
	Accepted Status = "accepted" // the sender does not wait
	Late     Status = "timeout"  // no reply has come in time; it is sent to the sender when it comes
	OK       Status = "ok"
	NoReply  Status = "no_reply" // the run ended without a visible text; final
	Failed   Status = "error"
)

// Receipt is what the sender is told.
type Receipt struct {
	Run     chela.RunID // that answers
	Session chela.SessionKey
	Result
}

// Result is a status with the reply of [OK], or the reason of [Failed].
type Result struct {
	Status Status `json:"status"`
	Reply  string `json:"reply,omitempty"`
	Error  string `json:"error,omitempty"`
}

// namespace is the namespace of the ids of exchanges.
var namespace = uuid.MustParse("0f0b7d34-6a5f-4f0e-9a57-6f1d2c1e8b52")

// IDOf returns the id of the exchange of a tool call. It depends only on the id of the
// call, so that a repeated call finds the exchange that exists.
func IDOf(call string) string { return uuid.NewSHA1(namespace, []byte(call)).String() }

// Step is a position in an exchange.
type Step struct {
	Exchange string
	Turn     int // 0: the message; odd: an answer to the sender, even: to the target; or [Announce]
}

// Announce is the Turn of the last step: the target announces the outcome.
const Announce = -1

// StepOf returns the step of a queue item, or of the run that it starts. It reports false
// for all others.
func StepOf(o chela.Origin) (Step, bool) { return Step{o.Exchange, o.Turn}, o.Exchange != "" }

// Origin returns the origin of the item of the step, which is a message of a session.
func (s Step) Origin(from chela.SessionKey) chela.Origin {
	return chela.Origin{Kind: chela.OriginAgent, ID: string(from), Exchange: s.Exchange, Turn: s.Turn}
}

// ID returns the id and the key of the queue item of the step.
func (s Step) ID() string {
	if s.Turn == Announce {
		return prefix + s.Exchange + ":announce"
	}
	return prefix + s.Exchange + ":" + strconv.Itoa(s.Turn)
}

// prefix begins the ids and keys of the items of an exchange.
const prefix = "exchange:"

// Next returns the next turn.
func (s Step) Next() Step { return Step{Exchange: s.Exchange, Turn: s.Turn + 1} }

// First returns the first step of the exchange.
func (s Step) First() Step { return Step{Exchange: s.Exchange} }

// Last returns the last step of the exchange.
func (s Step) Last() Step { return Step{Exchange: s.Exchange, Turn: Announce} }

// LateKey returns the key of the item that brings a late reply to the sender.
func (s Step) LateKey() string { return prefix + s.Exchange + ":late" }
