package cron

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// outcome is how the turn of a job ended.
type outcome struct {
	text      string        // the answer
	silent    bool          // the model chose not to answer
	transient bool          // the failure may pass
	until     time.Time     // the budget of the day was used up until then; zero: it was not
	address   chela.Address // to which the turn of an event answered
}

// Ended closes the run of a job whose turn ends. It observes the ends of runs, see
// runner.Ended.
func (s *Scheduler) Ended(row run.Run) func(store.Tx) error {
	if row.Kind != run.Turn {
		return nil
	}
	return func(tx store.Tx) error {
		open, err := tx.Jobs().OpenRuns()
		if err != nil {
			return err
		}
		for _, r := range open {
			if r.ID != row.ID { // its event may have joined the run
				it, err := tx.Queue().Get(string(r.ID))
				if err != nil && !errors.Is(err, chela.ErrNotFound) {
					return err
				}
				if it.Run != row.ID {
					continue
				}
			}
			if err := s.end(tx, r, row); err != nil {
				return err
			}
		}
		return nil
	}
}

// end closes the run of a job whose turn has ended as row says.
func (s *Scheduler) end(tx store.Tx, r job.Run, row run.Run) error {
	r.Ended, r.SessionID, r.Model, r.Summary = job.At(s.o.Now()), row.SessionID, row.Model,
		humanize.Truncate(row.Text, job.MaxSummary)
	own := r.ID == row.ID
	switch {
	// the message that replaced the turn is answered together with the event
	case row.State == run.OK, !own && row.State == run.Superseded:
		r.Status = job.OK
	case row.State == run.TimedOut:
		r.Status, r.Error = job.Failed, "cron: job execution timed out: "+row.Error
	case row.State == run.Superseded:
		r.Status, r.Error = job.Failed, "a message replaced this turn"
	case !row.Until.IsZero(): // the job has not failed, and is not disabled for it
		r.Status, r.Error = job.Skipped, row.Error
	default:
		r.Status, r.Error = job.Failed, cmp.Or(row.Error, string(row.State))
	}
	used, err := tx.Usage().OfRun(row.ID)
	if err != nil {
		return err
	}
	r.Usage = used.Tokens
	j, err := tx.Jobs().Get(r.Job)
	if errors.Is(err, chela.ErrNotFound) { // the job was removed, and nobody wants its result
		r.Delivery = job.NotRequested
		tx.Wake(store.Topic{Kind: store.TopicJobs})
		s.ended(r.ID)
		return tx.Jobs().PutRun(r)
	}
	if err != nil {
		return err
	}
	o := outcome{text: row.Text, silent: row.Silent, transient: row.Failure == run.Transient, until: row.Until}
	if own {
		o.address = row.Address
	}
	return s.close(tx, j, r, o)
}

// close stores a run of a job that has ended, delivers its answer, and decides what
// follows for the job.
func (s *Scheduler) close(tx store.Tx, j job.Job, r job.Run, o outcome) error {
	end := r.Ended.Time()
	instead, err := s.deliver(tx, j, &r, o)
	if err != nil {
		return err
	}
	st := &j.State
	if st.Run == r.ID {
		st.Run, st.Running = "", 0
	}
	st.Last, st.LastStatus, st.LastError, st.LastMs = r.Started, r.Status, r.Error, int64(r.Ended-r.Started)
	note(st, r)
	switch r.Status {
	case job.OK:
		st.Errors, st.Skips = 0, 0
	case job.Failed:
		st.Errors, st.Skips = st.Errors+1, 0
	case job.Skipped:
		st.Skips++
	}
	told := r.Status == job.OK || instead
	// A job with one slot may have got another one during the run, and its slot may have
	// come during a run by hand.
	over := j.OneShot() && st.Next == 0 && (j.Enabled || !r.Forced)
	if over || !j.OneShot() && !r.Forced {
		told = s.follow(&j, r, end, o) || told
	} else {
		told = true
	}
	r.Next = st.Next
	if !j.Enabled {
		r.Next = 0
	}
	if !instead || !j.Enabled && !j.OneShot() {
		if err := s.alert(tx, &j, r, end, told); err != nil {
			return err
		}
	}
	tx.Wake(store.Topic{Kind: store.TopicJobs})
	s.ended(r.ID)
	if err := tx.Jobs().PutRun(r); err != nil {
		return err
	}
	if r.Status == job.OK && j.Deletes() && over {
		_, err := deleteJob(tx, j.ID)
		return err
	}
	return tx.Jobs().Put(j)
}

// follow sets what follows after a run: the slot after a failure, or the end of the job.
// It reports whether the job runs again, so that its failure is not the last word.
func (s *Scheduler) follow(j *job.Job, r job.Run, end time.Time, o outcome) bool {
	st, c := &j.State, s.o.Config.Cron()
	switch {
	case j.OneShot() && j.Enabled && r.Status == job.Failed && o.transient && st.Retries < c.MaxAttempts():
		st.Retries++
		st.Next = job.At(end.Add(c.Backoff(st.Retries)))
		return true
	case j.OneShot() && j.Enabled && !o.until.IsZero() && st.Retries < c.MaxAttempts():
		st.Retries++
		st.Next = job.At(o.until)
		return true
	case j.OneShot():
		j.Enabled, st.Next, st.Retries = false, 0, 0
		return false
	case r.Status == job.OK && j.Trigger != nil && j.Trigger.Once:
		j.Enabled, st.Next = false, 0
	case r.Status == job.Failed && st.Errors >= job.MaxErrors:
		j.Enabled, st.Next = false, 0
		st.Disabled = &job.Disabled{Reason: job.ReasonFailures, At: job.At(end), Errors: st.Errors}
		return false
	case r.Status == job.Failed && j.Enabled:
		pause := end.Add(c.Backoff(st.Errors))
		switch {
		case !pause.After(st.Next.Time()):
		case st.Missed > 0:
			st.Next = job.At(pause)
		default: // at the first slot after the pause
			s.schedule(j, pause.Add(-time.Millisecond), end)
		}
	}
	return true
}

// deliver puts the answer of a run into the outbox, or tells the session that clients
// read. It writes the delivery into the run. It reports whether the session is told
// because the wanted target cannot be used.
func (s *Scheduler) deliver(tx store.Tx, j job.Job, r *job.Run, o outcome) (instead bool, err error) {
	if r.Delivery != "" {
		return false, nil
	}
	r.Delivery = job.NotRequested
	if d := j.Delivery; d != nil && d.Completion != nil && d.Completion.Mode == job.Webhook &&
		strings.TrimSpace(o.text) != "" {
		if err := s.post(tx, *r, d.Completion.To, "completion"); err != nil {
			return false, err
		}
	}
	if r.Status != job.OK || o.silent || strings.TrimSpace(o.text) == "" {
		return false, nil
	}
	if j.Target == job.TargetMain { // it is answered like any event, see deliver.Ended
		if !o.address.Local() {
			r.Delivery = job.Unknown
		}
		if d := j.Delivery; d != nil && d.Mode == job.Webhook {
			r.Delivery = job.Unknown
			return false, s.post(tx, *r, d.To, "webhook")
		}
		return false, nil
	}
	t := s.target(tx, j)
	r.Target = t.destination()
	switch {
	case t.none:
		return false, nil
	case t.url != "":
		r.Delivery = job.Unknown
		return false, s.post(tx, *r, t.url, "webhook")
	case t.session != "":
		r.Delivery = job.WasDelivered
		if t.err != nil {
			r.Delivery, r.DeliveryErr = job.NotDelivered, t.err.Error()
			if !bestEffort(j) {
				r.Status, r.Error = job.Failed, "the answer was not delivered: "+t.err.Error()
			}
		}
		if t.session == r.Session { // the answer is in its transcript
			return t.err != nil, nil
		}
		return t.err != nil, s.tell(tx, *r, t.session, "result:"+string(r.ID), j.ResultText(t.err, o.text))
	}
	if may, err := session.MaySend(tx.Sessions(), r.Session, t.address, s.o.Config.Sends); err != nil || !may {
		r.Delivery, r.DeliveryErr = job.NotDelivered, "sending to the chat is off"
		return false, err
	}
	r.Delivery = job.Unknown
	present, err := tx.Outbox().OfRun(r.ID)
	if err != nil {
		return false, err
	}
	for _, row := range present {
		if row.Address == t.address && row.State != outbox.Failed { // the model has sent its result there
			if row.State == outbox.Sent {
				r.Delivery = job.WasDelivered
			}
			return false, nil
		}
	}
	return false, s.send(tx, *r, t.address, string(r.ID), o.text)
}

func bestEffort(j job.Job) bool { return j.Delivery != nil && j.Delivery.BestEffort }

// send puts a text for a chat into the outbox, unless sending to the chat is off.
func (s *Scheduler) send(tx store.Tx, r job.Run, to chela.Address, key, text string) error {
	if may, err := session.MaySend(tx.Sessions(), r.Session, to, s.o.Config.Sends); err != nil || !may {
		return err
	}
	rows := s.o.Rows(outbox.Row{
		Key:     key,
		Run:     r.ID,
		Session: r.Session,
		Address: to,
		Created: time.Now(),
		Origin:  chela.Origin{Kind: chela.OriginCron, ID: string(r.Job)},
	}, text)
	tx.Wake(store.Topic{Kind: store.TopicOutbox})
	return tx.Outbox().Put(rows...)
}

// Finished is the body of a webhook about a run.
type Finished struct {
	Action string `json:"action"` // finished
	job.Run
}

// post puts a webhook about a run into the outbox.
func (s *Scheduler) post(tx store.Tx, r job.Run, url, part string) error {
	r.Delivery, r.Target, r.Principal = "", job.Destination{}, chela.Principal{}
	body, err := json.Marshal(Finished{"finished", r})
	if err != nil {
		return err
	}
	tx.Wake(store.Topic{Kind: store.TopicOutbox})
	return tx.Outbox().Put(outbox.Row{
		Key:     string(r.ID) + ":" + part,
		Run:     r.ID,
		Session: r.Session,
		Address: webhook(url).address,
		Text:    string(body),
		State:   outbox.Pending,
		Created: time.Now(),
		Origin:  chela.Origin{Kind: chela.OriginCron, ID: string(r.Job)},
	})
}

// tell puts an event for a session that begins a turn.
func (s *Scheduler) tell(tx store.Tx, r job.Run, key chela.SessionKey, id, text string) error {
	return store.Enqueue(tx, queue.Item{
		ID: id, Key: id, Session: key, Kind: queue.Event, State: queue.Waiting, Created: time.Now(), Principal: r.Principal,
		Origin: chela.Origin{Kind: chela.OriginCron, ID: string(r.Job)}, Inbound: chela.Inbound{Text: text},
	})
}

// note writes what is known about the delivery of a run into the state of its job.
func note(st *job.State, r job.Run) {
	st.Delivery, st.DeliveryErr, st.Delivered = r.Delivery, r.DeliveryErr, nil
	if r.Delivery == job.WasDelivered || r.Delivery == job.NotDelivered {
		ok := r.Delivery == job.WasDelivered
		st.Delivered = &ok
	}
}

// alert tells somebody about failures. further says that the job runs again, or that it
// did not fail.
func (s *Scheduler) alert(tx store.Tx, j *job.Job, r job.Run, now time.Time, further bool) error {
	a, cooldown, on := s.o.Config.Cron().AlertFor(*j)
	st := &j.State
	text := finalAlert(*j, r, further)
	if text == "" {
		if !on || r.Forced || st.AlertAt != 0 && now.Sub(st.AlertAt.Time()) < cooldown {
			return nil
		}
		if text = countedAlert(*j, r, a); text == "" {
			return nil
		}
	}
	st.AlertAt = job.At(now)
	var failure *job.Destination
	if j.Delivery != nil {
		failure = j.Delivery.Failure
	}
	t := s.notified(tx, *j, &a.Destination, failure)
	switch {
	case t.url != "":
		return s.post(tx, r, t.url, "alert")
	case t.session != "":
		return s.tell(tx, r, t.session, "alert:"+string(r.ID), text)
	}
	return s.send(tx, r, t.address, string(r.ID)+alertPart, text)
}

// finalAlert returns the text about a run after which nothing else would be heard of its
// job; "": there is none.
func finalAlert(j job.Job, r job.Run, further bool) string {
	d := j.State.Disabled
	switch {
	case d != nil && d.At == r.Ended:
		return fmt.Sprintf("⚠️ The scheduled job %q was disabled after %d failures in a row: %s",
			j.Title(), d.Errors, r.Error)
	case further:
		return ""
	case r.Status == job.Failed:
		return fmt.Sprintf("⚠️ The scheduled job %q failed: %s", j.Title(), r.Error)
	}
	return fmt.Sprintf("⚠️ The scheduled job %q did not run: %s", j.Title(), r.Error)
}

// countedAlert returns the text about a number of failures in a row; "": there are not
// enough of them.
func countedAlert(j job.Job, r job.Run, a job.Alert) string {
	switch {
	case r.Status == job.Failed && j.State.Errors >= a.After:
		return fmt.Sprintf("⚠️ The scheduled job %q failed %d times in a row: %s", j.Title(), j.State.Errors, r.Error)
	case r.Status == job.Skipped && a.IncludeSkipped && j.State.Skips >= a.After:
		return fmt.Sprintf("⚠️ The scheduled job %q was skipped %d times in a row: %s", j.Title(), j.State.Skips, r.Error)
	}
	return ""
}

// alertPart is contained in the keys of outbox rows with alerts.
const alertPart = ":alert"

// Sent writes what became of the answer of a job. It observes closed rows, see
// deliver.Sent.
func (s *Scheduler) Sent(row outbox.Row) func(store.Tx) error {
	if row.Origin.Kind != chela.OriginCron {
		return nil
	}
	return func(tx store.Tx) error {
		r, err := tx.Jobs().Run(row.Run)
		if errors.Is(err, chela.ErrNotFound) || err == nil && r.Open() {
			return nil
		}
		if err != nil {
			return err
		}
		rows, err := tx.Outbox().OfRun(row.Run)
		if err != nil {
			return err
		}
		all := true
		for _, other := range rows {
			all = all && (other.Key == row.Key || other.State == outbox.Sent || strings.Contains(other.Key, alertPart))
		}
		alert := strings.Contains(row.Key, alertPart)
		switch {
		case row.State == outbox.Sent && (alert || !all):
			return nil
		case row.State == outbox.Sent:
			r.Delivery, r.DeliveryErr = job.WasDelivered, ""
		case row.State == outbox.Ambiguous:
			r.Delivery, r.DeliveryErr = job.Unknown, row.Error
		default:
			r.Delivery, r.DeliveryErr = job.NotDelivered, cmp.Or(row.Error, string(row.State))
		}
		return s.delivered(tx, r, row, alert)
	}
}

// delivered stores the outcome of a delivery. A person is told about one that failed.
func (s *Scheduler) delivered(tx store.Tx, r job.Run, row outbox.Row, alert bool) error {
	j, err := tx.Jobs().Get(r.Job)
	gone := errors.Is(err, chela.ErrNotFound)
	if err != nil && !gone {
		return err
	}
	failed := r.Delivery == job.NotDelivered && row.State != outbox.Dismissed
	if !alert {
		turns := failed && r.Status == job.OK && !bestEffort(j)
		if turns {
			r.Status, r.Error = job.Failed, "the answer was not delivered: "+r.DeliveryErr
		}
		if err := tx.Jobs().PutRun(r); err != nil {
			return err
		}
		if !gone && j.State.Last == r.Started { // no later run has ended
			note(&j.State, r)
			j.State.LastStatus, j.State.LastError = r.Status, r.Error
			if turns {
				j.State.Errors++
			}
			if err := tx.Jobs().Put(j); err != nil {
				return err
			}
		}
	}
	tx.Wake(store.Topic{Kind: store.TopicJobs})
	if !failed || !alert && bestEffort(j) {
		return nil
	}
	text := fmt.Sprintf(
		"A message of the scheduled job %q could not be delivered to %s: %s\n\nTell the user. The message was:\n\n%s",
		r.Name, row.Address.Channel, r.DeliveryErr, humanize.Truncate(row.Text, job.MaxSummary))
	return s.tell(tx, r, chela.MainSession(r.Agent), "undelivered:"+row.Key, text)
}

// closeLost closes runs of jobs that nothing will end: their queue item was cancelled, or
// the turn takes too long.
func (s *Scheduler) closeLost(ctx context.Context, now time.Time) error {
	var stuck []job.Run
	err := s.o.Store.View(ctx, func(rd store.Reader) error {
		open, err := rd.Jobs().OpenRuns()
		for _, r := range open {
			if why, err := lost(rd.Queue(), rd.Runs(), r); err != nil {
				return err
			} else if why != "" {
				stuck = append(stuck, r)
			}
		}
		return err
	})
	if err != nil || len(stuck) == 0 {
		return err
	}
	for _, r := range stuck {
		err := s.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
			r, err := tx.Jobs().Run(r.ID)
			if err != nil || !r.Open() {
				return err
			}
			why, err := lost(tx.Queue(), tx.Runs(), r)
			if err != nil || why == "" {
				return err
			}
			r.Ended, r.Status, r.Error, r.Delivery = job.At(now), job.Failed, why, job.NotRequested
			j, err := tx.Jobs().Get(r.Job)
			if errors.Is(err, chela.ErrNotFound) {
				return tx.Jobs().PutRun(r)
			}
			if err != nil {
				return err
			}
			return s.close(tx, j, r, outcome{})
		})
		if err != nil {
			return err
		}
		if _, err := s.o.Abort(ctx, r.Session, r.ID); err != nil && ctx.Err() == nil {
			s.o.Log.Warn("stop the run of a job that takes too long", "job", r.Job, "run", r.ID, "err", err)
		}
	}
	return nil
}

// lost returns why nothing will end a run of a job; "": something will.
func lost(items queue.Reader, runs run.Reader, r job.Run) (string, error) {
	id := r.ID
	it, err := items.Get(string(id))
	switch {
	case errors.Is(err, chela.ErrNotFound):
		return "its queue item is gone", nil
	case err != nil:
		return "", err
	case it.State == queue.Cancelled, it.State == queue.Dropped:
		return cmp.Or(it.Note, "it was stopped before it began"), nil
	case it.State == queue.Waiting || it.State == queue.Deferred:
		return "", nil // time in the queue is no time of the run
	}
	id = cmp.Or(it.Run, id)
	row, err := runs.Get(id)
	switch {
	case errors.Is(err, chela.ErrNotFound):
		return "its turn is gone", nil
	case err != nil:
		return "", err
	case row.State.Final():
		return "its turn has ended without a result", nil
	case time.Since(row.Started) > job.Stuck:
		return fmt.Sprintf("stuck: the turn has not ended within %s", humanize.Span(job.Stuck)), nil
	}
	return "", nil
}
