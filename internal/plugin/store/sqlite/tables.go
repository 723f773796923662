package sqlite

import (
	"bytes"
	"encoding/json"

	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/usage"
)

// reader gives read access to the tables.
type reader struct{ c *conn }

func (r reader) Queue() queue.Reader                 { return items(r) }
func (r reader) Sessions() session.Reader            { return sessions(r) }
func (r reader) Calls() session.CallReader           { return calls(r) }
func (r reader) Runs() run.Reader                    { return runs(r) }
func (r reader) Leases() lease.Reader                { return leases(r) }
func (r reader) Approvals() approval.Reader          { return approvals(r) }
func (r reader) Outbox() outbox.Reader               { return outboxTable(r) }
func (r reader) Usage() usage.Reader                 { return usageTable(r) }
func (r reader) Devices() pairing.Reader             { return devices(r) }
func (r reader) Guests() admission.Reader            { return guests(r) }
func (r reader) Children() subagent.Reader           { return children(r) }
func (r reader) Jobs() job.Reader                    { return jobs(r) }
func (r reader) Heartbeats() heartbeat.Reader        { return heartbeats(r) }
func (r reader) Changes() journal.Reader             { return changes(r) }
func (r reader) Invocations() node.Reader            { return invocations(r) }
func (r reader) Media() ([]string, error)            { return refs(r.c) }
func (r reader) Setting(name string) (string, error) { return setting(r.c, name) }

// tx gives access to the tables in one transaction.
type tx struct {
	c     *conn
	wakes *[]store.Topic
}

func (t tx) Queue() queue.Table                  { return items{t.c} }
func (t tx) Sessions() session.Table             { return sessions{t.c} }
func (t tx) Calls() session.Calls                { return calls{t.c} }
func (t tx) Runs() run.Table                     { return runs{t.c} }
func (t tx) Leases() lease.Table                 { return leases{t.c} }
func (t tx) Approvals() approval.Table           { return approvals{t.c} }
func (t tx) Outbox() outbox.Table                { return outboxTable{t.c} }
func (t tx) Usage() usage.Table                  { return usageTable{t.c} }
func (t tx) Devices() pairing.Table              { return devices{t.c} }
func (t tx) Guests() admission.Table             { return guests{t.c} }
func (t tx) Children() subagent.Table            { return children{t.c} }
func (t tx) Jobs() job.Table                     { return jobs{t.c} }
func (t tx) Heartbeats() heartbeat.Table         { return heartbeats{t.c} }
func (t tx) Changes() journal.Table              { return changes{t.c} }
func (t tx) Invocations() node.Table             { return invocations{t.c} }
func (t tx) Setting(name string) (string, error) { return setting(t.c, name) }

func (t tx) SetSetting(name, value string) error {
	_, err := t.c.exec(`INSERT INTO setting (name, value) VALUES (?, ?)
ON CONFLICT DO UPDATE SET value = excluded.value`, name, value)
	return err
}

// Wake records a wake, which is sent after the commit.
func (t tx) Wake(topic store.Topic) { *t.wakes = append(*t.wakes, topic) }

func setting(c *conn, name string) (string, error) {
	return c.text("SELECT value, intact(name, value, crc) FROM setting WHERE name = ?", name)
}

// refs returns the file references in all rows. An index finds the entries with
// references.
func refs(c *conn) ([]string, error) {
	var list []string
	err := c.query(func(r *row) error {
		list = media.Refs(list, r.text())
		return nil
	}, "SELECT parts, "+entryIntact+" FROM entry WHERE flags & 32 UNION ALL SELECT inbound, "+itemIntact+` FROM item WHERE instr(inbound, '"ref":"')
UNION ALL SELECT media, `+outboxIntact+" FROM outbox WHERE media <> '' UNION ALL SELECT change, "+changeIntact+" FROM change WHERE kept > 0")
	return list, err
}

// encode returns v as JSON without HTML escaping.
func encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// encodeSet is encode for a value that is mostly zero. The zero value is stored as
// an empty text.
func encodeSet(v any, zero bool) (string, error) {
	if zero {
		return "", nil
	}
	return encode(v)
}

// decodeSet is the inverse of encodeSet.
func decodeSet(s string, v any) error {
	if s == "" {
		return nil
	}
	return decode(s, v)
}

func decode(s string, v any) error { return json.Unmarshal([]byte(s), v) }

func raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}
