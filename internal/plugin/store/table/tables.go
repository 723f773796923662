package table

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

// Reader gives read access to the tables.
type Reader struct{ C *Tables }

var _ store.Reader = Reader{}

func (r Reader) Queue() queue.Reader                 { return items{r.C} }
func (r Reader) Sessions() session.Reader            { return sessions{r.C} }
func (r Reader) Calls() session.CallReader           { return calls{r.C} }
func (r Reader) Runs() run.Reader                    { return runs{r.C} }
func (r Reader) Leases() lease.Reader                { return leases{r.C} }
func (r Reader) Approvals() approval.Reader          { return approvals{r.C} }
func (r Reader) Outbox() outbox.Reader               { return outboxTable{r.C} }
func (r Reader) Usage() usage.Reader                 { return usageTable{r.C} }
func (r Reader) Devices() pairing.Reader             { return devices{r.C} }
func (r Reader) Guests() admission.Reader            { return guests{r.C} }
func (r Reader) Children() subagent.Reader           { return children{r.C} }
func (r Reader) Jobs() job.Reader                    { return jobs{r.C} }
func (r Reader) Heartbeats() heartbeat.Reader        { return heartbeats{r.C} }
func (r Reader) Changes() journal.Reader             { return changes{r.C} }
func (r Reader) Invocations() node.Reader            { return invocations{r.C} }
func (r Reader) Media() ([]string, error)            { return refs(r.C) }
func (r Reader) Setting(name string) (string, error) { return setting(r.C, name) }

// Tx gives access to the tables in one transaction.
type Tx struct {
	C     *Tables
	Wakes *[]store.Topic // gets the wakes, to be sent after the commit
}

var _ store.Tx = Tx{}

func (t Tx) Queue() queue.Table                  { return items{t.C} }
func (t Tx) Sessions() session.Table             { return sessions{t.C} }
func (t Tx) Calls() session.Calls                { return calls{t.C} }
func (t Tx) Runs() run.Table                     { return runs{t.C} }
func (t Tx) Leases() lease.Table                 { return leases{t.C} }
func (t Tx) Approvals() approval.Table           { return approvals{t.C} }
func (t Tx) Outbox() outbox.Table                { return outboxTable{t.C} }
func (t Tx) Usage() usage.Table                  { return usageTable{t.C} }
func (t Tx) Devices() pairing.Table              { return devices{t.C} }
func (t Tx) Guests() admission.Table             { return guests{t.C} }
func (t Tx) Children() subagent.Table            { return children{t.C} }
func (t Tx) Jobs() job.Table                     { return jobs{t.C} }
func (t Tx) Heartbeats() heartbeat.Table         { return heartbeats{t.C} }
func (t Tx) Changes() journal.Table              { return changes{t.C} }
func (t Tx) Invocations() node.Table             { return invocations{t.C} }
func (t Tx) Setting(name string) (string, error) { return setting(t.C, name) }

func (t Tx) SetSetting(name, value string) error {
	_, err := t.C.Exec(`INSERT INTO setting (name, value) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value)
	return err
}

// Wake records a wake, which is sent after the commit.
func (t Tx) Wake(topic store.Topic) { *t.Wakes = append(*t.Wakes, topic) }

func setting(c *Tables, name string) (string, error) {
	return c.Text("SELECT value, intact(name, value, crc) FROM setting WHERE name = ?", name)
}

// refs returns the file references in all rows. An index finds the entries with
// references.
func refs(c *Tables) ([]string, error) {
	var list []string
	err := c.Query(func(r *Row) error {
		list = media.Refs(list, r.Text())
		return nil
	}, "SELECT parts, "+entryIntact+" FROM entry WHERE flags & 32 UNION ALL SELECT inbound, "+itemIntact+
		` FROM item WHERE instr(inbound, '"ref":"') > 0
UNION ALL SELECT media, `+outboxIntact+" FROM outbox WHERE media <> '' UNION ALL SELECT change, "+changeIntact+
		" FROM change WHERE kept > 0")
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
