package session

import (
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
)

// Beginnings of the messages that stand for what a failed run left unanswered.
const (
	failedHeading  = "[This request was not completed: "
	refusedHeading = "[A message was left out here: "
)

// FailedMessage is what a model is told at the end of a run that ended without an answer,
// so that it does not take the run's messages for requests that are still to be answered.
// why says in a few words why the run ended.
func FailedMessage(why string) *llm.Message {
	return &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text(
		failedHeading + why + ". Nothing more is done for it. It is not pending: act on it only if it is asked for again.]",
	)}}
}

// RefusedMessage replaces messages that the service of a model refuses, so that it does
// not refuse the later ones, too.
func RefusedMessage() *llm.Message {
	return llm.User(refusedHeading +
		"the service of the model refused it as invalid. It was not carried out and is not pending.]")
}

// IsFailed reports whether a message is one of [FailedMessage].
func IsFailed(m *llm.Message) bool {
	return m.Role == llm.RoleAssistant && strings.HasPrefix(m.PlainText(), failedHeading)
}

// sent reports whether the entry is one whose message is sent to a model.
func (e *Entry) sent() bool {
	return e.Message != nil && e.Message.Role != "" &&
		(e.Kind == KindMessage || e.Kind == KindNotice || e.Kind == KindAgain)
}
