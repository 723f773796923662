package session

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
)

// exchangeVersion is the version of the exchange format: JSON lines with a header,
// followed by entries that refer to their predecessors.
const exchangeVersion = 3

// header is the first line.
type header struct {
	Type      string `json:"type"` // session
	Version   int    `json:"version"`
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Cwd       string `json:"cwd"`
	Parent    string `json:"parentSession,omitempty"`
}

// row is any other line. Type determines which fields are set.
type row struct {
	Type      string  `json:"type"`
	ID        string  `json:"id"`
	ParentID  *string `json:"parentId"`
	Timestamp string  `json:"timestamp"`

	RunID  string        `json:"runId,omitempty"`
	Sender *chela.Sender `json:"sender,omitempty"`

	Message   *rowMessage     `json:"message,omitempty"`          // message
	Summary   *string         `json:"summary,omitempty"`          // compaction, branch_summary
	FirstKept string          `json:"firstKeptEntryId,omitempty"` // compaction
	Tokens    *int64          `json:"tokensBefore,omitempty"`     // compaction
	Details   json.RawMessage `json:"details,omitempty"`          // compaction
	Provider  string          `json:"provider,omitempty"`         // model_change
	ModelID   string          `json:"modelId,omitempty"`          // model_change
	Level     string          `json:"thinkingLevel,omitempty"`    // thinking_level_change
	Custom    string          `json:"customType,omitempty"`       // custom, custom_message
	Data      json.RawMessage `json:"data,omitempty"`             // custom
	Content   json.RawMessage `json:"content,omitempty"`          // custom_message
	Name      string          `json:"name,omitempty"`             // session_info
}

// rowMessage is the message of a row.
type rowMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content,omitempty"`
	API        string          `json:"api,omitempty"`
	Provider   string          `json:"provider,omitempty"`
	Model      string          `json:"model,omitempty"`
	Usage      *rowUsage       `json:"usage,omitempty"`
	StopReason string          `json:"stopReason,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	ToolName   string          `json:"toolName,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"`
	IsError    *bool           `json:"isError,omitempty"`
	Command    string          `json:"command,omitempty"` // of a command that a person ran
	Output     string          `json:"output,omitempty"`
	Timestamp  json.RawMessage `json:"timestamp,omitempty"` // ms
}

type rowUsage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	Total      int64 `json:"totalTokens"`
	Cost       *struct {
		Total float64 `json:"total"`
	} `json:"cost,omitempty"`
}

// rowPart is a part of the content of a message.
type rowPart struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature string          `json:"thinkingSignature,omitempty"`
	Redacted  bool            `json:"redacted,omitempty"`
	Data      []byte          `json:"data,omitempty"`
	MIME      string          `json:"mimeType,omitempty"`
	ID        *string         `json:"id,omitempty"`
	Name      *string         `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// Custom types of entries that are specific to Chela.
const (
	customNotice  = "chela.notice"
	customCommand = "chela.command"
	customVoid    = "chela.void"
	customPrune   = "chela.prune"
)

// Export writes a transcript in the exchange format.
func Export(w io.Writer, m Meta, entries []Entry) error {
	refs := make([]EntryRef, len(entries))
	for i := range entries {
		refs[i] = RefOf(&entries[i])
	}
	x, err := NewExporter(w, m, refs)
	for i := 0; i < len(entries) && err == nil; i++ {
		err = x.Entry(&entries[i])
	}
	if err != nil {
		return err
	}
	return x.Flush()
}

// EntryRef names an entry of a transcript.
type EntryRef struct {
	ID  string
	Seq int64
}

// RefOf returns the name of an entry.
func RefOf(e *Entry) EntryRef { return EntryRef{e.ID, e.Seq} }

// Exporter writes a transcript in the exchange format, one entry at a time.
type Exporter struct {
	key  chela.SessionKey
	out  *bufio.Writer
	enc  *json.Encoder
	refs []EntryRef
	ids  []string // of the rows of refs
	used map[string]bool
	next int    // in refs
	last string // id of the row that was written last
}

// NewExporter writes the header. entries names all entries that will be written, in their
// order, because entries refer to each other.
func NewExporter(w io.Writer, m Meta, entries []EntryRef) (*Exporter, error) {
	x := &Exporter{key: m.Key, out: bufio.NewWriter(w), refs: entries, used: make(map[string]bool, len(entries))}
	x.enc = json.NewEncoder(x.out)
	x.enc.SetEscapeHTML(false)
	for i := range entries {
		x.ids = append(x.ids, x.shortID(entries[i].ID, i))
	}
	err := x.enc.Encode(header{
		Type: "session", Version: exchangeVersion, ID: m.ID, Timestamp: stamp(m.Started), Parent: m.Previous,
	})
	if err != nil {
		return nil, fmt.Errorf("export session %s: %w", m.Key, err)
	}
	return x, nil
}

// Entry writes the next entry.
func (x *Exporter) Entry(e *Entry) error {
	r := rowOf(e)
	if e.Kind == KindCut {
		if at := slices.IndexFunc(x.refs, func(r EntryRef) bool { return r.Seq >= e.First }); at >= 0 {
			r.FirstKept = x.ids[at]
		}
	}
	if p := e.Prune; p != nil {
		r.Data = encoded(prunedRows(p, x.refs, x.ids))
	}
	if v := e.Voids; e.Kind == KindVoid {
		if at := slices.IndexFunc(x.refs, func(r EntryRef) bool { return r.ID == v.Entry }); at >= 0 {
			v.Entry = x.ids[at]
		}
		r.Data = encoded(v)
	}
	r.ID = x.ids[x.next]
	x.next++
	return x.write(r)
}

// Custom writes a row of a type of its own, which [Import] skips.
func (x *Exporter) Custom(kind string, at time.Time, data any) error {
	r := row{Type: "custom", Custom: kind, Timestamp: stamp(at), Data: encoded(data)}
	r.ID = x.shortID(fmt.Sprintf("%s after %s", kind, x.last), x.next)
	return x.write(r)
}

// Last returns the id of the row that was written last.
func (x *Exporter) Last() string { return x.last }

// Flush writes what is buffered.
func (x *Exporter) Flush() error {
	if err := x.out.Flush(); err != nil {
		return fmt.Errorf("export session %s: %w", x.key, err)
	}
	return nil
}

// write writes a row behind the last one.
func (x *Exporter) write(r row) error {
	if last := x.last; last != "" {
		r.ParentID = &last
	}
	x.last = r.ID
	if err := x.enc.Encode(r); err != nil {
		return fmt.Errorf("export session %s: %w", x.key, err)
	}
	return nil
}

// shortID returns a unique id of eight hex digits, derived from an id and a position.
func (x *Exporter) shortID(id string, at int) string {
	from := id
	for n := 0; !isShortID(id) || x.used[id]; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d:%d:%s", n, at, from))
		id = hex.EncodeToString(sum[:4])
	}
	x.used[id] = true
	return id
}

func isShortID(s string) bool {
	return len(s) == 8 && strings.Trim(s, "0123456789abcdef") == ""
}

// rowOf returns the row of an entry without the references to other rows.
func rowOf(e *Entry) row {
	r := row{Timestamp: stamp(e.Time), RunID: string(e.Run)}
	if e.Sender != (chela.Sender{}) {
		r.Sender = &e.Sender
	}
	switch e.Kind {
	case KindMessage, KindAgain:
		r.Type = "message"
		if e.Message != nil {
			r.Message = messageRow(e)
		}
	case KindCut:
		r.Type, r.Summary, r.Tokens = "compaction", &e.Text, new(int64(CompactionOf(*e).TokensBefore))
		if len(e.Details) > 0 && json.Valid(e.Details) {
			r.Details = e.Details
		}
	case KindModel:
		r.Type = "model_change"
		r.Provider, r.ModelID, _ = strings.Cut(e.Text, "/")
	case KindThink:
		r.Type, r.Level = "thinking_level_change", e.Text
	case KindCommand:
		r.Type, r.Custom, r.Data = "custom", customCommand, textData(e.Text)
	case KindVoid:
		r.Type, r.Custom = "custom", customVoid // Exporter.Entry sets Data, which refers to another row
	case KindPrune:
		r.Type, r.Custom = "custom", customPrune // Exporter.Entry sets Data, which refers to other rows
	default:
		r.Type, r.Custom, r.Data = "custom", customNotice, noticeData(e)
	}
	return r
}

func messageRow(e *Entry) *rowMessage {
	m := e.Message
	r := &rowMessage{Role: string(m.Role), Content: contentRow(m.Parts)}
	if !e.Time.IsZero() {
		r.Timestamp = encoded(e.Time.UnixMilli())
	}
	switch m.Role {
	case llm.RoleAssistant:
		r.API, r.Provider, r.Model, r.StopReason = m.Provider, m.Provider, m.Model, string(m.Stop)
		if e.Partial {
			r.StopReason = string(llm.StopAborted)
		}
		r.Usage = usageRow(e)
	case llm.RoleTool:
		r.ToolCallID, r.ToolName, r.IsError = m.CallID, m.ToolName, &m.IsError
		r.Details = detailsRow(e)
	}
	return r
}

func contentRow(parts []llm.Part) json.RawMessage {
	rows := make([]rowPart, 0, len(parts))
	for i := range parts {
		p := &parts[i]
		r := rowPart{Type: string(p.Kind)}
		switch p.Kind {
		case llm.PartText:
			r.Text = &p.Text
		case llm.PartImage:
			r.Data, r.MIME = p.Data, p.MIME
		case llm.PartThinking:
			r.Thinking, r.Signature = &p.Text, p.Signature
			if p.Redacted != "" {
				r.Redacted, r.Signature = true, p.Redacted
			}
		case llm.PartCall:
			if p.Call == nil {
				continue
			}
			r.ID, r.Name, r.Arguments = &p.Call.ID, &p.Call.Name, p.Call.Args
			if !isObject(r.Arguments) {
				r.Arguments = json.RawMessage("{}")
			}
		}
		rows = append(rows, r)
	}
	return encoded(rows)
}

func usageRow(e *Entry) *rowUsage {
	if e.Usage == nil {
		return nil
	}
	u := e.Usage
	r := &rowUsage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Total: u.Total()}
	if e.NanoUSD >= 0 {
		r.Cost = &struct {
			Total float64 `json:"total"`
		}{float64(e.NanoUSD) / 1e9}
	}
	return r
}

// truncatedKey is the JSON key that marks truncated details.
const truncatedKey = "persistedDetailsTruncated"

// TruncateDetails returns d if it has at most MaxDetails bytes. Otherwise it returns a
// JSON object with the beginning and the size of d.
func TruncateDetails(d json.RawMessage) (out json.RawMessage, truncated bool) {
	if len(d) <= MaxDetails {
		return d, false
	}
	head := strings.ToValidUTF8(string(d[:MaxDetails/4]), "")
	return encoded(map[string]any{truncatedKey: true, "bytes": len(d), "head": head}), true
}

// detailsRow returns the details of a result, with a mark if they were truncated.
func detailsRow(e *Entry) json.RawMessage {
	d, truncated := TruncateDetails(e.Details)
	switch {
	case len(d) == 0 || !json.Valid(d):
		return nil
	case truncated || !e.Cut:
		return d
	}
	m := make(map[string]json.RawMessage)
	if json.Unmarshal(d, &m) != nil || m == nil {
		m = map[string]json.RawMessage{"head": d}
	}
	m[truncatedKey] = json.RawMessage("true")
	return encoded(m)
}

func textData(s string) json.RawMessage { return encoded(map[string]string{"text": s}) }

// noticeData returns the data of a notice: its text, and what a model is sent for it.
func noticeData(e *Entry) json.RawMessage {
	if e.Message == nil {
		return textData(e.Text)
	}
	return encoded(map[string]any{"text": e.Text, "message": rowMessage{Role: string(e.Message.Role),
		Content: contentRow(e.Message.Parts)}})
}

// encoded returns v as JSON, or null if v cannot be encoded.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}

func stamp(t time.Time) string {
	if t.IsZero() {
		t = time.Unix(0, 0)
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
