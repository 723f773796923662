package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// writeFailure writes the notice, text, of a run that has ended without having done what it
// was to do. If its messages have no answer, the notice tells the next runs so. cause is the
// error that ended the run: if a service refused a request for its contents, what it had
// not accepted yet is not sent again.
func writeFailure(tx store.Tx, row run.Run, text, why string, cause error) ([]*session.Entry, error) {
	notice := &session.Entry{ID: uuid.NewString(), Kind: session.KindNotice, Time: row.Ended, Run: row.ID, Text: text}
	entries := []*session.Entry{notice}
	if row.Kind == run.Turn && row.State != run.Superseded { // a superseded run is answered by the one that replaces it
		open, last, err := unanswered(tx, row)
		if err != nil {
			return nil, err
		}
		asked, err := hasRequest(tx, row.ID)
		switch {
		case err != nil:
			return nil, err
		case len(open) > 0 && refusesContents(cause, last != nil):
			switch {
			case !slices.ContainsFunc(open, isUser): // results of calls, which have ended
				notice.Message = session.FailedMessage(why)
			case last != nil || asked && row.Origin.Kind != chela.OriginHeartbeat: // else it is as if nothing had been
				notice.Message = session.RefusedMessage()
			}
			for _, e := range open {
				entries = append(entries, &session.Entry{
					ID:    uuid.NewString(),
					Kind:  session.KindVoid,
					Time:  row.Ended,
					Run:   row.ID,
					Voids: session.Ref{Entry: e.ID},
				})
			}
		case asked && (last == nil || len(last.Calls()) > 0):
			notice.Message = session.FailedMessage(why)
		}
	}
	return entries, tx.Sessions().Append(row.SessionID, entries...)
}

// unanswered returns the messages and results of a run after its last model answer, and
// that answer; nil: the model gave none.
func unanswered(tx store.Tx, row run.Run) (open []session.Entry, answer *llm.Message, err error) {
	for n := 16; ; n *= 8 {
		last, err := tx.Sessions().Last(row.SessionID, n)
		if err != nil {
			return nil, nil, err
		}
		open = nil
		for _, e := range slices.Backward(last) {
			switch {
			case e.Kind != session.KindMessage && e.Kind != session.KindAgain:
			case e.Run != row.ID && e.Time.Before(row.Started): // of an earlier run
				return open, nil, nil
			case e.Run != row.ID:
			case e.Message.Role == llm.RoleAssistant:
				return open, e.Message, nil
			default:
				open = append(open, e)
			}
		}
		if len(last) < n {
			return open, nil, nil
		}
	}
}

func isUser(e session.Entry) bool { return e.Message.Role == llm.RoleUser }

// hasRequest reports whether a run was to carry out a message. Events give information
// only, which stays of use after a failure.
func hasRequest(tx store.Tx, id chela.RunID) (bool, error) {
	it, err := tx.Queue().Get(string(id))
	if errors.Is(err, chela.ErrNotFound) {
		return true, nil
	}
	return it.Kind == queue.Message, err
}

// isTask reports whether somebody waits for the end of a run.
func isTask(tx store.Tx, id chela.RunID) (bool, error) {
	it, err := tx.Queue().Get(string(id))
	if errors.Is(err, chela.ErrNotFound) {
		return false, nil
	}
	return it.Inbound.Task, err
}

// failureReason says in a few words, for the model of a later run, why a run has failed. It
// repeats no text of a service.
func (e *Execution) failureReason() string {
	class := llm.ClassOf(e.cause)
	switch {
	case e.run.State == run.Aborted:
		return "it was stopped"
	case e.run.State == run.TimedOut:
		return fmt.Sprintf("it took longer than %s", e.timeout().Round(time.Second))
	case e.run.Failure == run.Limit:
		return "it reached one of its limits"
	case e.run.Failure == run.Interrupted:
		return "the process was interrupted again and again while it was worked on"
	case e.unsaid != "":
		return "the model said nothing after a tool had failed"
	case class != "":
		return "the model gave no answer (" + string(class) + ")"
	}
	return "an error ended it"
}

// refusesContents reports whether a service refused a request because of what its messages
// contain. passed says that it accepted an earlier request of the run, in which the newest
// messages were the only difference. Otherwise, an error that names a setting is not the
// fault of a message, and neither is a status of another kind, such as that of a wrong
// address. Everything else counts as the fault of the messages: if it is not, a message is
// left out that could have stayed, and the person can send it again; but a message that is
// refused and stays would make each later request fail.
func refusesContents(err error, passed bool) bool {
	if x, ok := errors.AsType[*llm.Exhausted](err); ok {
		return slices.ContainsFunc(x.Attempts, func(a llm.Attempt) bool { return refusesContents(a.Err, passed) })
	}
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Class != llm.ClassFormat || e.Status != 400 && e.Status != 422 {
		return false
	}
	says := func(words []string) bool {
		text := strings.ToLower(e.Message)
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	return passed || says(contentWords[:]) || !says(settingWords[:])
}

// settingWords identify refusals of a parameter or a tool, which would be refused with any
// message.
var settingWords = [...]string{
	"max_tokens", "max_completion_tokens", "max_output_tokens", "temperature", "top_p", "top_k",
	"reasoning_effort", "budget_tokens",
	"stream_options", "tool_choice", "parallel_tool_calls", "response_format", "service_tier", "api-version",
	"input_schema", "function.parameters",
	"unknown parameter", "unsupported parameter", "unrecognized request argument", "unknown name",
	"extra inputs are not permitted",
}

// contentWords begin the place of a message in a request.
var contentWords = [...]string{"messages.", "messages[", "contents[", "input["}
