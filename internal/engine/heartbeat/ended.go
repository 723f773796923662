package heartbeat

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Ended records the outcome of a heartbeat. See runner.Ended. It is called before the
// observer that delivers the answer, because the reasoning precedes it.
func (s *Service) Ended(row run.Run) func(store.Tx) error {
	if row.Origin.Kind != chela.OriginHeartbeat || row.Kind != run.Turn {
		return nil
	}
	return func(tx store.Tx) error {
		st, err := tx.Heartbeats().State(row.Agent)
		if err != nil {
			return err
		}
		r := heartbeat.Run{ID: row.ID, Reason: row.Origin.ID, Begun: row.Started, Home: row.Session, To: row.Address}
		st.Runs = slices.DeleteFunc(slices.Clone(st.Runs), func(o heartbeat.Run) bool {
			if o.ID == row.ID {
				r = o
			}
			return o.ID == row.ID
		})
		if row.State == run.OK {
			st.Tasks = maps.Clone(st.Tasks)
			for _, name := range r.Tasks {
				if _, ok := st.Tasks[name]; ok {
					st.Tasks[name] = r.Tick
				}
			}
		}
		st.Last = result(row, r)
		return errors.Join(s.say(tx, row, r, st.Last), tx.Heartbeats().PutState(st))
	}
}

// result returns the outcome of a heartbeat.
func result(row run.Run, r heartbeat.Run) heartbeat.Result {
	out := heartbeat.Result{
		Agent:    row.Agent,
		Session:  row.Session,
		Run:      row.ID,
		Time:     row.Ended,
		Reason:   r.Reason,
		Duration: row.Ended.Sub(row.Started),
		Preview:  preview(row.Text),
	}
	indicator := "ok"
	switch {
	case row.State != run.OK:
		out.Status, indicator = heartbeat.StatusFailed, "error"
		out.Reason = row.Error
		if r.Model != "" {
			out.Reason = fmt.Sprintf("%s (the model of the heartbeat is %s)", row.Error, r.Model)
		}
	case row.Silent:
		out.Status, out.Silent = heartbeat.StatusOK, !r.ShowOK
	case strings.TrimSpace(row.Text) == "":
		out.Status, out.Silent = heartbeat.StatusEmpty, !r.ShowOK
	case r.Blocked != "":
		out.Status, out.Reason, indicator = heartbeat.StatusSkipped, r.Blocked, "alert"
	default:
		out.Status, indicator = heartbeat.StatusSent, "alert"
	}
	if r.Blocked == "" && !out.Silent {
		out.To = r.To
	}
	if r.Indicator {
		out.Indicator = indicator
	}
	return out
}

func preview(text string) string {
	return humanize.Truncate(strings.Join(strings.Fields(text), " "), heartbeat.MaxPreview)
}

// say writes what is sent besides the answer, and keeps an alert that cannot be sent.
func (s *Service) say(tx store.Tx, row run.Run, r heartbeat.Run, out heartbeat.Result) error {
	text := ""
	switch out.Status {
	case heartbeat.StatusOK, heartbeat.StatusEmpty:
		if r.ShowOK {
			text = run.HeartbeatOK
		}
	case heartbeat.StatusSent:
		if r.Reasoning {
			var err error
			if text, err = reasoning(tx, row); err != nil {
				return err
			}
		}
	case heartbeat.StatusSkipped:
		if r.Blocked == heartbeat.SkipNotReady {
			return s.keep(tx, r.Home, row, r.To, "the channel is not running")
		}
	}
	if text == "" {
		return nil
	}
	rows := outbox.Rows(outbox.Row{
		Key:     outbox.ExtraKey(row.ID, "heartbeat"),
		Run:     row.ID,
		Session: row.Session,
		Address: r.To,
		Created: row.Ended,
		Origin:  row.Origin,
	}, text, s.o.Chunks(r.To))
	tx.Wake(store.Topic{Kind: store.TopicOutbox})
	return tx.Outbox().Put(rows...)
}

// lastEntries is how many entries are read for the reasoning of a run.
const lastEntries = 4

// reasoning returns the reasoning before the answer of a run; "": there is none.
func reasoning(tx store.Tx, row run.Run) (string, error) {
	entries, err := tx.Sessions().Last(row.SessionID, lastEntries)
	var b strings.Builder
	for _, e := range entries {
		if e.Run != row.ID || e.Kind != session.KindMessage || e.Message == nil || e.Message.Role != llm.RoleAssistant {
			continue
		}
		b.Reset()
		for _, p := range e.Message.Parts {
			if p.Kind == llm.PartThinking {
				b.WriteString(p.Text)
			}
		}
	}
	if text := strings.TrimSpace(b.String()); text != "" {
		return "Reasoning:\n" + text, err
	}
	return "", err
}

// Sent keeps an alert that could not be delivered as an event for the next run. See
// deliver.Sent.
func (s *Service) Sent(row outbox.Row) func(store.Tx) error {
	if row.Origin.Kind != chela.OriginHeartbeat || row.State != outbox.Failed ||
		strings.HasPrefix(row.Key, outbox.ExtraKey(row.Run, "")) {
		return nil
	}
	return func(tx store.Tx) error {
		r, err := tx.Runs().Get(row.Run)
		if errors.Is(err, chela.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		home := chela.SessionKey(strings.TrimSuffix(string(row.Session), isolatedSuffix))
		st, err := tx.Heartbeats().State(r.Agent)
		if err != nil {
			return err
		}
		if st.Last.Run == row.Run {
			st.Last.Status, st.Last.Reason, st.Last.Time = heartbeat.StatusFailed, row.Error, time.Now()
			if st.Last.Indicator != "" {
				st.Last.Indicator = "error"
			}
			tx.Wake(store.Topic{Kind: store.TopicHeartbeat}) // so that it is published
			if err := tx.Heartbeats().PutState(st); err != nil {
				return err
			}
		}
		return s.keep(tx, home, r, row.Address, row.Error)
	}
}

// keep puts an event about an alert that nobody got to see.
func (s *Service) keep(tx store.Tx, home chela.SessionKey, row run.Run, to chela.Address, why string) error {
	text := fmt.Sprintf(
		"The heartbeat of %s had an alert for the person that could not be delivered to %s (%s). Tell the person now: %s",
		row.Started.Format(time.DateTime), to.Channel, why, humanize.Truncate(row.Text, maxKept))
	return store.Enqueue(tx, queue.NewEvent("undelivered:"+string(row.ID), home, chela.Origin{Kind: chela.OriginSystem},
		text, time.Now()))
}

// maxKept is how many characters of an alert are kept.
const maxKept = 4000
