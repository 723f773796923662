package session

import (
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
)

// StopOf returns why the model ended the last answer of a run that began at a time and
// wrote to a transcript; "": it gave no answer. If Chela said that the model gave none, it
// is StopUnable. It searches from the end, since most callers ask about a recent run.
func StopOf(r Reader, transcript string, id chela.RunID, began time.Time) (llm.StopReason, error) {
	for n := 8; ; n *= 8 {
		last, err := r.Last(transcript, n)
		if err != nil {
			return "", err
		}
		for _, e := range slices.Backward(last) {
			switch {
			case e.Run == id && e.Kind == KindNotice && e.Message != nil && IsFailed(e.Message): // Chela answered for the model
				return llm.StopUnable, nil
			case e.Kind != KindMessage || e.Message.Role != llm.RoleAssistant:
			case e.Run == id:
				return e.Message.Stop, nil
			case e.Time.Before(began): // of an earlier run
				return "", nil
			}
		}
		if len(last) < n {
			return "", nil
		}
	}
}
