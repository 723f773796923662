package migrate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/openclaw"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// transcripts is the namespace of the ids of transcripts: the same one of OpenClaw always
// gets the same id here.
var transcripts = uuid.MustParse("5f0b6f0e-6f3c-4c55-9d0f-0d6c2f3f9a41")

// maxLabel is the maximum size of a label, in bytes.
const maxLabel = 200

// view reads the database here; f is not called if there is none.
func (p *plan) view(ctx context.Context, f func(store.Reader) error) error {
	if p.target.db == nil {
		return nil
	}
	return p.target.db.View(ctx, f)
}

// conversation is a session that was read.
type conversation struct {
	meta     session.Meta
	parts    []transcript // oldest first; the last is the current one
	messages int
	skipped  int // lines that cannot be read
}

// transcript is a part of a conversation.
type transcript struct {
	session.Imported
	past session.Past // of one that is not the current one
}

// sessions adds the conversations.
func (p *plan) sessions(ctx context.Context) error {
	for _, agent := range p.home.Agents() {
		if !p.wanted(agent) {
			continue
		}
		if !chela.ValidAgentID(agent) {
			p.leave("agents/"+agent, fmt.Sprintf("%q cannot be the id of an agent of Chela", agent))
			continue
		}
		all, deleted := p.home.Sessions(ctx, agent)
		empty := 0
		for _, s := range all {
			if err := ctx.Err(); err != nil {
				return err
			}
			c, err := p.read(ctx, s)
			switch {
			case err != nil:
				p.unreadable("session "+s.Key, err)
			case len(c.parts) == 0:
				empty++
			default:
				if err := p.addSession(ctx, s, c); err != nil {
					return err
				}
			}
		}
		if deleted > 0 {
			p.leave(fmt.Sprintf("%s of the agent %s", humanize.Many(deleted, "transcript"), agent), "deleted in OpenClaw")
		}
		if empty > 0 {
			p.leave(fmt.Sprintf("%s of the agent %s", humanize.Many(empty, "session"), agent), "without messages")
		}
	}
	return nil
}

// read reads a conversation.
func (p *plan) read(ctx context.Context, s *openclaw.Session) (*conversation, error) {
	key, err := keyOf(s)
	if err != nil {
		return nil, err
	}
	c := &conversation{}
	var problems []error
	for _, r := range s.Transcripts {
		parts, err := r.Parts(ctx)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", r.File, pathError(err)))
			continue
		}
		for _, part := range parts {
			imp, err := session.Import(bytes.NewReader(part.JSONL))
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", r.File, err))
				continue
			}
			messages := 0
			for _, e := range imp.Entries {
				if e.Kind == session.KindMessage {
					messages++
				}
			}
			if messages == 0 {
				continue
			}
			c.messages += messages
			c.skipped += imp.Skipped
			id := uuid.NewSHA1(transcripts, []byte(string(key)+"\x00"+part.ID)).String()
			ended := part.Ended
			if last := imp.Entries[len(imp.Entries)-1].Time; ended.IsZero() {
				ended = last
			}
			c.parts = append(c.parts, transcript{imp, session.Past{
				ID: id, Started: imp.Entries[0].Time, Ended: ended, Reason: cmp.Or(part.Reason, "reset"), Entries: len(imp.Entries),
			}})
		}
	}
	if len(c.parts) == 0 && len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	for _, err := range problems {
		p.unreadable("session "+s.Key, err)
	}
	if len(c.parts) > 0 {
		c.meta = metaOf(s, key, c)
	}
	return c, nil
}

// keyOf returns the key of a session here.
func keyOf(s *openclaw.Session) (chela.SessionKey, error) {
	key := s.Key
	if !strings.HasPrefix(key, "agent:") {
		key = "agent:" + s.Agent + ":" + key
	}
	k, err := chela.ParseSessionKey(key, chela.AgentID(s.Agent))
	if err == nil && !chela.ValidAgentID(string(k.Agent())) {
		err = fmt.Errorf("session key %q: the agent has no valid id", key)
	}
	return k, err
}

// metaOf returns what is stored about a conversation.
func metaOf(s *openclaw.Session, key chela.SessionKey, c *conversation) session.Meta {
	last := &c.parts[len(c.parts)-1]
	first := c.parts[0].past.Started
	m := session.Meta{
		Key: key, ID: last.past.ID, Agent: key.Agent(), Created: or(s.Created, first), Started: last.past.Started,
		Updated: or(s.Updated, last.past.Ended), Active: or(s.Interacted, last.past.Ended),
		Label: label(cmp.Or(last.Name, s.Label)), Title: last.Title, Category: label(s.Category),
		Archived: or(s.Archived, time.Time{}), Pinned: or(s.Pinned, time.Time{}),
		Verbose: oneOf(s.Verbose, "off", "on", "full"), Usage: oneOf(s.Usage, "off", "tokens", "full"),
		Reasoning: oneOf(s.Reasoning, "off", "on", "stream"), Activation: oneOf(s.Activation, "mention", "always"),
		Group: label(s.Subject), Address: addressOf(s),
	}
	m.Read = m.Updated
	if level, ok := llm.ParseLevel(s.Think); ok && s.Think != "" {
		m.Think = string(level)
	}
	if s.Send == "deny" {
		m.Send = session.SendOff
	}
	if s.Model != "" {
		m.Model = s.Model
		if s.Provider != "" && !strings.HasPrefix(s.Model, s.Provider+"/") {
			m.Model = s.Provider + "/" + s.Model
		}
		if !strings.Contains(m.Model, "/") {
			m.Model = ""
		}
	}
	if s.Loose && m.Archived.IsZero() {
		m.Archived = m.Updated // it is no conversation that goes on
	}
	switch key.Kind() {
	case chela.KeyCron, chela.KeyHook:
		m.Isolated = true
	}
	return m
}

// or returns the time of milliseconds, or t for 0.
func or(ms int64, t time.Time) time.Time {
	if ms > 0 {
		t = time.UnixMilli(ms)
	}
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

func oneOf(s string, values ...string) string {
	if slices.Contains(values, s) {
		return s
	}
	return ""
}

// label returns a name as the label of a session.
func label(name string) string {
	return humanize.TruncateBytes(strings.ToValidUTF8(strings.Join(strings.Fields(name), " "), ""), maxLabel)
}

// addressOf returns the chat in which a session was used last; zero: none that is known.
func addressOf(s *openclaw.Session) chela.Address {
	c := s.Chat
	if c.Channel == "" {
		d := s.Delivery
		to := channel.ParseTarget(cmp.Or(d.To, s.To))
		c = openclaw.Chat{
			Channel: cmp.Or(d.Channel, s.Entry.Channel),
			Account: cmp.Or(d.Account, s.Account),
			Kind:    cmp.Or(s.ChatType, string(to.Kind)),
			Peer:    to.ID,
			Thread:  to.Thread,
		}
		for _, t := range [...]any{d.Thread, s.Thread} {
			if t != nil && c.Thread == "" {
				c.Thread = fmt.Sprint(t)
			}
		}
	}
	switch c.Channel {
	case "", "webchat", "none", "cli", "internal", "heartbeat", "cron", "control-ui":
		return chela.Address{}
	}
	kind := chela.PeerKindOf(cmp.Or(c.Kind, "direct"))
	if c.Peer == "" || kind == "" {
		return chela.Address{}
	}
	return chela.Address{Channel: c.Channel, Account: chela.AccountID(cmp.Or(c.Account, "default")),
		Peer: chela.Peer{Kind: kind, ID: c.Peer}, Thread: c.Thread}
}

// mark returns what shows that a person changed a session.
func mark(m session.Meta) string {
	return hashOf(mustJSON([]any{m.Label, m.Title, m.Category, m.Model, m.Think, m.Verbose, m.Reasoning, m.Send,
		m.Archived.IsZero(), m.Pinned.IsZero()}))
}

// addSession adds the item of a conversation.
func (p *plan) addSession(ctx context.Context, s *openclaw.Session, c *conversation) error {
	meta := c.meta
	i := item{group: groupSessions, size: c.messages,
		MigratedItem: cli.MigratedItem{What: string(meta.Key), Action: cli.ItemAdd}}
	i.Note = humanize.Many(c.messages, "message")
	if n := len(c.parts); n > 1 {
		i.Note += " in " + humanize.Many(n, "transcript")
	}
	if c.skipped > 0 {
		i.Note += "; without " + humanize.Many(c.skipped, "line") + " of bookkeeping, or damaged"
	}
	var old session.Meta
	err := p.view(ctx, func(r store.Reader) (err error) {
		i.Action, old, err = p.compareSession(r, meta)
		return err
	})
	if err != nil {
		return err
	}
	if i.Action == cli.ItemAdd || i.Action == cli.ItemReplace {
		st := step{Kind: kindSession, Name: string(meta.Key), After: mark(meta),
			Entries: c.parts[len(c.parts)-1].past.Entries}
		for _, part := range slices.Backward(c.parts) {
			st.Transcripts = append(st.Transcripts, part.past.ID)
		}
		if i.Action == cli.ItemReplace {
			st.Old = mustJSON(old)
		}
		i.steps = []step{st}
		i.do = func(ctx context.Context, a *application) error { return a.writeSession(ctx, s, meta.ID) }
	}
	p.add(i)
	return nil
}

// compareSession decides what is done with a session.
func (p *plan) compareSession(r store.Reader, meta session.Meta) (action string, old session.Meta, err error) {
	old, err = r.Sessions().Get(meta.Key)
	if errors.Is(err, chela.ErrNotFound) {
		return cli.ItemAdd, old, nil
	}
	if err != nil {
		return "", old, err
	}
	past, err := r.Sessions().Past(meta.Key)
	switch {
	case err != nil:
		return "", old, err
	case old.ID == meta.ID, slices.ContainsFunc(past, func(t session.Past) bool { return t.ID == meta.ID }):
		return cli.ItemSame, old, nil
	case p.o.Overwrite:
		return cli.ItemReplace, old, nil
	}
	return cli.ItemConflict, old, nil
}

// writeSession stores a conversation in one transaction. What is here becomes an archived
// transcript. The conversation is read again, since the plan does not hold the texts of all of
// them.
func (a *application) writeSession(ctx context.Context, s *openclaw.Session, id string) error {
	if err := a.p.m.before("session " + s.Key); err != nil {
		return err
	}
	c, err := a.p.read(ctx, s)
	if err != nil {
		return fmt.Errorf("session %s: %w", s.Key, err)
	}
	if len(c.parts) == 0 || c.meta.ID != id {
		return fmt.Errorf("session %s: it was changed while it was copied; try again", s.Key)
	}
	adopted := make([][]*session.Entry, len(c.parts))
	for i := range c.parts { // pictures are stored before the transaction
		adopted[i] = c.parts[i].Adopt(a.p.now, a.media.StorePart)
	}
	err = a.db.Update(ctx, store.Synced, func(tx store.Tx) error {
		t := tx.Sessions()
		old, err := t.Get(c.meta.Key)
		switch {
		case err == nil && old.ID == id:
			return nil
		case err == nil:
			n, err := t.Count(old.ID)
			if err == nil {
				err = t.Archive(old.Key, session.Past{
					ID:      old.ID,
					Started: old.Started,
					Ended:   a.p.now,
					Reason:  "reset",
					Entries: n,
				})
			}
			if err != nil {
				return err
			}
		case !errors.Is(err, chela.ErrNotFound):
			return err
		}
		if err := t.Put(c.meta); err != nil {
			return err
		}
		for i, part := range c.parts {
			if err := t.Append(part.past.ID, clones(adopted[i])...); err != nil {
				return err
			}
			if i < len(c.parts)-1 {
				if err := t.Archive(c.meta.Key, part.past); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("session %s: %w", s.Key, err)
	}
	return nil
}

// clones copies entries: the transaction may run twice, and numbers them.
func clones(entries []*session.Entry) []*session.Entry {
	all := make([]*session.Entry, len(entries))
	for i, e := range entries {
		c := *e
		all[i] = &c
	}
	return all
}

// jobs adds the scheduled jobs.
func (p *plan) jobs(ctx context.Context) error {
	own := 0
	for _, raw := range p.home.Jobs(ctx) {
		what := cmp.Or(raw.Name, raw.ID)
		if raw.Own {
			own++
			continue
		}
		j, err := p.job(raw)
		if err != nil {
			p.unreadable("job "+what, err)
			continue
		}
		if !p.wanted(string(j.ForAgent())) {
			continue
		}
		if err := p.addJob(ctx, j); err != nil {
			return err
		}
	}
	if own > 0 {
		p.leave(humanize.Many(own, "job")+" that OpenClaw made for itself", "Chela has its own heartbeat and maintenance")
	}
	return nil
}

// job returns a job as it is stored here.
func (p *plan) job(raw openclaw.Job) (job.Job, error) {
	all, err := job.ParseFile(mustJSON(map[string]any{"version": 1, "jobs": []json.RawMessage{raw.JSON}}))
	if one, ok := errors.AsType[*job.Rejected](err); ok && errors.Unwrap(one.Jobs[0]) != nil {
		err = errors.Unwrap(one.Jobs[0]) // without the name of the job, which the plan says
	}
	if err != nil {
		return job.Job{}, err
	}
	j := all[0]
	j.Complete()
	if err := j.Check(); err != nil {
		return j, err
	}
	if !chela.ValidAgentID(string(j.ForAgent())) {
		return j, fmt.Errorf("%q cannot be the id of an agent of Chela", j.ForAgent())
	}
	j.State = job.State{Last: j.State.Last, LastStatus: j.State.LastStatus, LastError: j.State.LastError,
		Errors: j.State.Errors}
	j.Created = cmp.Or(j.Created, job.At(p.now))
	j.Principal, j.Source = chela.Owner("import"), "openclaw:"+raw.File
	switch {
	case !j.Enabled:
	case j.OneShot() && j.State.Last == 0:
		at, err := j.Schedule.AtTime()
		if err != nil {
			return j, err
		}
		j.State.Next = job.At(at)
	case j.OneShot():
	default:
		next, err := j.Slot(p.now)
		if err != nil {
			return j, err
		}
		j.State.Next = job.At(next)
	}
	return j, nil
}

// addJob adds the item of a job.
func (p *plan) addJob(ctx context.Context, j job.Job) error {
	i := item{group: groupJobs, MigratedItem: cli.MigratedItem{What: j.Title(), Action: cli.ItemAdd}}
	if !j.Enabled {
		i.Note = "disabled"
	}
	if f := strings.Fields(j.Schedule.Expr); len(f) >= 5 && slices.Contains(f, "?") {
		i.Note = "OpenClaw runs it every day because of the ?, Chela as the other day fields say"
	}
	var old job.Job
	err := p.view(ctx, func(r store.Reader) error {
		have, err := r.Jobs().Get(j.ID)
		switch {
		case errors.Is(err, chela.ErrNotFound):
		case err != nil:
			return err
		case definition(have) == definition(j):
			i.Action = cli.ItemSame
		case p.o.Overwrite:
			i.Action, old = cli.ItemReplace, have
		default:
			i.Action = cli.ItemConflict
		}
		return nil
	})
	if err != nil {
		return err
	}
	if i.Action == cli.ItemAdd || i.Action == cli.ItemReplace {
		st := step{Kind: kindJob, Name: string(j.ID), After: definition(j)}
		if i.Action == cli.ItemReplace {
			st.Old = mustJSON(old)
		}
		i.steps = []step{st}
		i.do = func(ctx context.Context, a *application) error { return a.writeJob(ctx, j, st.Old != nil) }
	}
	p.add(i)
	return nil
}

// definition identifies what a job does, without its state and times.
func definition(j job.Job) string {
	j.State, j.Created, j.Updated, j.Principal, j.Source = job.State{}, 0, 0, chela.Principal{}, ""
	return hashOf(mustJSON(j))
}

func (a *application) writeJob(ctx context.Context, j job.Job, replace bool) error {
	if err := a.p.m.before("job " + string(j.ID)); err != nil {
		return err
	}
	err := a.db.Update(ctx, store.Synced, func(tx store.Tx) error {
		have, err := tx.Jobs().Get(j.ID)
		if err == nil && (!replace || definition(have) == definition(j)) {
			return nil
		}
		if err != nil && !errors.Is(err, chela.ErrNotFound) {
			return err
		}
		if n, err := tx.Jobs().Count(); err != nil || n >= job.MaxJobs {
			return cmp.Or(err, error(chela.Errorf(chela.CodeForbidden, "there are %d jobs already", n)))
		}
		j.Updated = job.At(a.p.now)
		return tx.Jobs().Put(j)
	})
	if err != nil {
		return fmt.Errorf("job %s: %w", j.Title(), err)
	}
	return nil
}

// people adds the people who were admitted to chat apps.
func (p *plan) people(ctx context.Context) error {
	all := p.home.People(ctx, p.m.Channels)
	if p.o.Agent != "" {
		if len(all) > 0 {
			p.leave(people(len(all))+" who may write", "they belong to no agent (--agent)")
		}
		return nil
	}
	for _, who := range all {
		id := strings.TrimPrefix(who.ID, who.Channel+":")
		what := who.Channel + " " + id
		if who.Account != "default" {
			what = who.Channel + " (" + who.Account + ") " + id
		}
		if id == "*" {
			p.leave(what, "a list of people cannot admit everybody; set channels."+who.Channel+".dmPolicy if you want that")
			continue
		}
		account := chela.AccountID(who.Account)
		g := admission.Guest{
			Channel: who.Channel, Account: account, ID: id, Asked: p.now, Admitted: p.now,
			Address: chela.Address{Channel: who.Channel, Account: account, Peer: chela.Peer{Kind: chela.Direct, ID: id}},
		}
		i := item{group: groupPeople, MigratedItem: cli.MigratedItem{What: what, Action: cli.ItemAdd}}
		err := p.view(ctx, func(r store.Reader) error {
			have, err := r.Guests().Get(g.Channel, g.Account, g.ID)
			switch {
			case errors.Is(err, chela.ErrNotFound):
			case err != nil:
				return err
			case !have.Admitted.IsZero():
				i.Action = cli.ItemSame
			}
			return nil
		})
		if err != nil {
			return err
		}
		if i.Action == cli.ItemAdd {
			i.steps = []step{{Kind: kindPerson, Name: personName(g.Channel, string(g.Account), g.ID), After: "admitted"}}
			i.do = func(ctx context.Context, a *application) error { return a.writePerson(ctx, g) }
		}
		p.add(i)
	}
	return nil
}

// personName is the name of a person in a record.
func personName(channel, account, id string) string {
	return string(mustJSON([]string{channel, account, id}))
}

func (a *application) writePerson(ctx context.Context, g admission.Guest) error {
	if err := a.p.m.before("person " + g.ID); err != nil {
		return err
	}
	err := a.db.Update(ctx, store.Synced, func(tx store.Tx) error {
		have, err := tx.Guests().Get(g.Channel, g.Account, g.ID)
		if err == nil && !have.Admitted.IsZero() {
			return nil
		}
		if err != nil && !errors.Is(err, chela.ErrNotFound) {
			return err
		}
		return tx.Guests().Put(g)
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", g.Channel, g.ID, err)
	}
	return nil
}

// devices adds the paired devices.
func (p *plan) devices(ctx context.Context) error {
	all := p.home.Devices(ctx)
	if len(all) > 0 && (p.o.NoSecrets || p.o.Agent != "") {
		p.leave(humanize.Many(len(all), "paired device"),
			"their tokens are keys, and belong to no agent; pair them again: chela devices invite")
		return nil
	}
	for _, d := range all {
		what := cmp.Or(d.Label, d.DisplayName, strings.TrimSpace(d.ClientID+" "+d.Platform)) + " " +
			humanize.TruncateBytes(d.ID, 12)
		var grants []pairing.Issued
		for _, role := range sortedKeys(d.Tokens) {
			t := d.Tokens[role]
			if t.Revoked == 0 {
				grants = append(grants, pairing.Issued{Role: cmp.Or(t.Role, role), Scopes: t.Scopes, Token: t.Token,
					Created: or(t.Created, p.now)})
			}
		}
		dev, err := pairing.Adopt(pairing.Device{
			ID:          d.ID,
			PublicKey:   d.PublicKey,
			DisplayName: d.DisplayName,
			Label:       d.Label,
			Platform:    d.Platform,
			Family:      d.Family,
			ClientID:    d.ClientID,
			ClientMode:  d.ClientMode,
			Created:     or(d.Created, time.Time{}),
			Approved:    or(d.Approved, time.Time{}),
			LastSeen:    or(d.LastSeen, time.Time{}),
		}, grants, p.now)
		if err != nil {
			p.leave("device "+what, err.Error())
			continue
		}
		if err := p.addDevice(ctx, what, dev); err != nil {
			return err
		}
	}
	return nil
}

// addDevice adds the item of a device.
func (p *plan) addDevice(ctx context.Context, what string, dev pairing.Device) error {
	i := item{group: groupDevices, MigratedItem: cli.MigratedItem{What: what, Action: cli.ItemAdd}}
	err := p.view(ctx, func(r store.Reader) error {
		have, err := r.Devices().Device(dev.ID)
		switch {
		case errors.Is(err, chela.ErrNotFound):
		case err != nil:
			return err
		case have.Paired():
			i.Action = cli.ItemSame
		default:
			i.Action, i.Note = cli.ItemConflict, "it was removed here; pair it again: chela devices invite"
		}
		return nil
	})
	if err != nil {
		return err
	}
	if i.Action == cli.ItemAdd {
		i.steps = []step{{Kind: kindDevice, Name: dev.ID, After: pairing.ViaImport}}
		i.do = func(ctx context.Context, a *application) error { return a.writeDevice(ctx, dev) }
	}
	p.add(i)
	return nil
}

func (a *application) writeDevice(ctx context.Context, dev pairing.Device) error {
	if err := a.p.m.before("device " + dev.ID); err != nil {
		return err
	}
	err := a.db.Update(ctx, store.Synced, func(tx store.Tx) error {
		if _, err := tx.Devices().Device(dev.ID); !errors.Is(err, chela.ErrNotFound) {
			return err
		}
		return tx.Devices().PutDevice(dev)
	})
	if err != nil {
		return fmt.Errorf("device %s: %w", dev.ID, err)
	}
	return nil
}
