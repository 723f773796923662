package inbound

import (
	"errors"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// retryWithin is how many entries of the transcript are searched for a message that failed.
const retryWithin = 1000

// retry is /retry: it sends the last message that has failed or was stopped again. A run that waits for
// another try begins it now.
func (k *call) retry() (string, error) {
	active, err := k.tx.Runs().Active(k.key)
	if err != nil {
		return "", err
	}
	for _, r := range active {
		if r.Waits != run.WaitsRetry {
			continue
		}
		if err := store.Enqueue(k.tx, queue.NewResume("retry:"+string(r.ID)+":"+k.in.ID, r, k.now, k.now)); err != nil {
			return "", err
		}
		return "Trying again now.", nil
	}
	last, err := k.tx.Sessions().Last(k.meta.ID, retryWithin)
	if err != nil {
		return "", err
	}
	failed := lastFailed(last, func(id chela.RunID) bool {
		r, gerr := k.tx.Runs().Get(id)
		if gerr != nil && !errors.Is(gerr, chela.ErrNotFound) {
			err = gerr
		}
		return r.State == run.Aborted || r.State == run.TimedOut || r.State == run.Failed
	})
	if err != nil {
		return "", err
	}
	if len(failed) == 0 {
		return "", refusef("Nothing to send again: no message has failed or was stopped here.")
	}
	k.in.Media, k.follow = nil, true
	var texts []string
	for _, e := range failed {
		text := e.Message.PlainText()
		it, err := k.tx.Queue().Get(e.ItemID)
		switch {
		case err == nil:
			text, k.in.Media, k.overrides = it.Inbound.Text, append(k.in.Media, it.Inbound.Media...), it.Overrides
		case !errors.Is(err, chela.ErrNotFound):
			return "", err
		}
		texts = append(texts, text)
	}
	k.then = strings.Join(texts, "\n\n")
	return "Sending it again: " + humanize.Truncate(humanize.OneLine(k.then), 80), nil
}

// lastFailed returns the messages of the last run that was not completed and whose messages
// were not sent again. incomplete reports whether a run was stopped or failed; one that had
// begun its answer leaves no other mark.
func lastFailed(entries []session.Entry, incomplete func(chela.RunID) bool) (messages []session.Entry) {
	again := map[string]bool{}
	failed := map[chela.RunID]bool{}
	for _, e := range slices.Backward(entries) {
		if e.Kind == session.KindNotice && e.Message != nil && e.Message.Role != "" {
			failed[e.Run] = true
		}
		if e.Kind != session.KindMessage || e.ItemID == "" {
			continue
		}
		if len(messages) > 0 && e.Run != messages[0].Run {
			break
		}
		text := e.Message.PlainText()
		if !again[text] && (failed[e.Run] || incomplete(e.Run)) {
			messages = append(messages, e)
		}
		again[text] = true
	}
	slices.Reverse(messages)
	return messages
}
