package session

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
)

// Imported is a transcript read from the exchange format.
type Imported struct {
	ID      string // of the transcript
	Name    string // set by a person; empty: none
	Title   string // first words of the first message of a person; empty: none
	Started time.Time
	Entries []Entry // the active branch, with Seq from 1

	Skipped    int // unreadable lines and lines of unknown types
	Branched   int // entries of abandoned branches
	Duplicates int // entries replaced by a later entry with the same id
}

// Adopt returns the entries as those of a new transcript: with new ids, without runs and
// costs, with no time before 1970 or after now, and with the parts of their messages that
// store returns.
func (in Imported) Adopt(now time.Time, store func(llm.Part) llm.Part) []*Entry {
	all := make([]*Entry, len(in.Entries))
	for i := range in.Entries {
		e := &in.Entries[i]
		e.ID, e.Run, e.Usage, e.NanoUSD = uuid.NewString(), "", nil, 0
		if e.Time.Before(time.Unix(0, 0)) || e.Time.After(now) {
			e.Time = now
		}
		if e.Message != nil {
			for i, p := range e.Message.Parts {
				e.Message.Parts[i] = store(p)
			}
		}
		all[i] = e
	}
	return all
}

// ErrFormat reports that a file is not a transcript in the exchange format.
var ErrFormat = errors.New("not a transcript: the first line is not a session header")

// Import reads a transcript in the exchange format. It skips and counts damaged lines, also
// a half-written last one, and lines of unknown types.
func Import(r io.Reader) (Imported, error) {
	in := bufio.NewReader(r)
	imp := &importer{at: make(map[string]int)}
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return imp.Imported, fmt.Errorf("line %d: %w", n, err)
		}
		last := err == io.EOF
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
		if len(line) > 0 {
			if err := imp.line(line); err != nil {
				return imp.Imported, err
			}
		}
		if last {
			break
		}
	}
	if !imp.started {
		return imp.Imported, ErrFormat
	}
	imp.entries()
	return imp.Imported, nil
}

// importer collects the lines of a transcript.
type importer struct {
	Imported
	started bool
	rows    []row
	at      map[string]int   // id → index in rows
	seqs    map[string]int64 // id → Seq
}

// line adds one line, or counts it as skipped.
func (imp *importer) line(b []byte) error {
	if !imp.started {
		var h header
		if json.Unmarshal(b, &h) != nil || h.Type != "session" {
			return ErrFormat
		}
		imp.started, imp.ID, imp.Started = true, h.ID, parseTime(h.Timestamp)
		return nil
	}
	var r row
	if err := json.Unmarshal(b, &r); err != nil {
		imp.Skipped++
		return nil
	}
	if r.ID == "" { // the old format without ids: each entry follows the one above
		r.ID = fmt.Sprintf("line%d", len(imp.rows))
		r.ParentID = nil
	}
	if i, ok := imp.at[r.ID]; ok {
		imp.Duplicates++
		if r.ParentID != nil && *r.ParentID == r.ID {
			r.ParentID = imp.rows[i].ParentID
		}
		imp.rows[i] = r
		return nil
	}
	imp.at[r.ID] = len(imp.rows)
	imp.rows = append(imp.rows, r)
	return nil
}

// path returns the indexes of the rows from the root to the last row. A row
// without a parent follows the row above it.
func (imp *importer) path() []int {
	var path []int
	for i := len(imp.rows) - 1; i >= 0; {
		path = append(path, i)
		parent := i - 1
		if p := imp.rows[i].ParentID; p != nil {
			if at, ok := imp.at[*p]; ok && at < i {
				parent = at
			}
		}
		i = parent
	}
	slices.Reverse(path)
	return path
}

// entries makes the entries of the active branch.
func (imp *importer) entries() {
	path := imp.path()
	imp.Branched = len(imp.rows) - len(path)

	kept := make(map[string]bool) // ids of the first entries that compactions keep
	for _, i := range path {
		if r := &imp.rows[i]; r.Type == "compaction" {
			kept[r.FirstKept] = true
		}
	}
	first := make(map[string]int64) // their Seqs
	for _, i := range path {
		r := &imp.rows[i]
		if kept[r.ID] {
			first[r.ID] = int64(len(imp.Entries)) + 1
		}
		imp.row(r, first[r.FirstKept])
	}
}

// row adds the entry of a row, if there is one.
func (imp *importer) row(r *row, first int64) {
	e := r.entry()
	switch r.Type {
	case "message":
		if r.Message == nil || !r.Message.into(&e) {
			imp.Skipped++
			return
		}
		if imp.Title == "" && r.Message.Role == "user" {
			imp.Title = TitleOf(typed(e.Message.PlainText()))
		}
	case "compaction":
		if first == 0 { // the first kept entry is missing: cut everything before the compaction
			first = int64(len(imp.Entries)) + 2
		}
		e.Kind, e.First = KindCut, first
		if r.Summary != nil {
			e.Text = strings.TrimSpace(*r.Summary)
			e.Message = summaryMessage(e.Text, "")
		}
		e.Details = r.compaction()
	case "branch_summary":
		if r.Summary == nil {
			return
		}
		e.Message = llm.User("[Summary of an abandoned branch]\n" + *r.Summary)
	case "custom_message":
		e.Message = &llm.Message{Role: llm.RoleUser, Parts: partsOf(r.Content)}
	case "model_change":
		e.Kind, e.Text = KindModel, r.Provider+"/"+r.ModelID
	case "thinking_level_change":
		e.Kind, e.Text = KindThink, r.Level
	case "session_info":
		imp.Name = r.Name
		return
	case "custom":
		if r.Custom == customPrune {
			e.Kind, e.Prune = KindPrune, imp.pruned(r.Data)
		} else if !r.custom(&e) {
			imp.Skipped++
			return
		}
	default:
		imp.Skipped++
		return
	}
	imp.add(e)
}

func (imp *importer) add(e Entry) {
	e.Seq = int64(len(imp.Entries)) + 1
	if imp.seqs == nil {
		imp.seqs = make(map[string]int64)
	}
	imp.seqs[e.ID] = e.Seq
	imp.Entries = append(imp.Entries, e)
}

// entry returns an entry with the fields that are common to all rows.
func (r *row) entry() Entry {
	e := Entry{ID: r.ID, Kind: KindMessage, Time: parseTime(r.Timestamp), Run: chela.RunID(r.RunID)}
	if r.Sender != nil {
		e.Sender = *r.Sender
	}
	return e
}

// custom reads an entry of a custom type of Chela into e. It reports false for other
// types.
func (r *row) custom(e *Entry) bool {
	var d struct {
		Text    string      `json:"text"`
		Message *rowMessage `json:"message"`
	}
	if json.Unmarshal(r.Data, &d) != nil {
		return false
	}
	e.Text = d.Text
	switch r.Custom {
	case customVoid:
		e.Kind = KindVoid
		return json.Unmarshal(r.Data, &e.Voids) == nil && e.Voids != Ref{}
	case customNotice:
		e.Kind = KindNotice
		if d.Message != nil && slices.Contains([]llm.Role{llm.RoleUser, llm.RoleAssistant, ""}, llm.Role(d.Message.Role)) {
			e.Message = &llm.Message{Role: llm.Role(d.Message.Role), Parts: partsOf(d.Message.Content)}
		}
	case customCommand:
		e.Kind = KindCommand
	default:
		return false
	}
	return true
}

// into sets the message of e. It reports false for an unknown role.
func (r *rowMessage) into(e *Entry) bool {
	m := &llm.Message{Role: llm.Role(r.Role), Parts: partsOf(r.Content)}
	switch r.Role {
	case "user":
	case "custom":
		m.Role = llm.RoleUser
	case "bashExecution":
		m.Role = llm.RoleUser
		m.Parts = []llm.Part{llm.Text("[The person ran a command]\n$ " + r.Command + "\n" + r.Output)}
	case "assistant":
		m.Provider, m.Model, m.Stop = r.Provider, r.Model, llm.StopReason(r.StopReason)
		e.Partial = m.Stop == llm.StopAborted
		r.usage(e)
	case "toolResult":
		m.CallID, m.ToolName, m.IsError = r.ToolCallID, r.ToolName, r.IsError != nil && *r.IsError
		e.Details, e.Cut = TruncateDetails(r.Details)
		e.Cut = e.Cut || bytes.Contains(e.Details, []byte(`"`+truncatedKey+`":true`))
	default:
		return false
	}
	e.Message = m
	return true
}

// usage sets the usage and the cost of e.
func (r *rowMessage) usage(e *Entry) {
	e.NanoUSD = -1
	if r.Usage == nil {
		return
	}
	u := r.Usage
	e.Usage = &llm.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
	if u.Cost != nil && u.Cost.Total >= 0 && u.Cost.Total < 1e9 {
		e.NanoUSD = int64(math.Round(u.Cost.Total * 1e9))
	}
}

// partsOf reads content, which is a text or a list of parts.
func partsOf(b json.RawMessage) []llm.Part {
	var text string
	if json.Unmarshal(b, &text) == nil {
		if text == "" {
			return nil
		}
		return []llm.Part{llm.Text(text)}
	}
	var raw []json.RawMessage
	if json.Unmarshal(b, &raw) != nil {
		return nil
	}
	var parts []llm.Part
	for _, b := range raw {
		var r rowPart
		if json.Unmarshal(b, &r) != nil {
			continue
		}
		if p, ok := r.part(); ok {
			parts = append(parts, p)
		}
	}
	return parts
}

// part converts r. It reports false for an unknown type.
func (r *rowPart) part() (llm.Part, bool) {
	switch llm.PartKind(r.Type) {
	case llm.PartText:
		return llm.Text(value(r.Text)), true
	case llm.PartImage:
		return llm.Image(r.MIME, r.Data), true
	case llm.PartThinking:
		p := llm.Part{Kind: llm.PartThinking, Text: value(r.Thinking), Signature: r.Signature}
		if r.Redacted {
			p.Signature, p.Redacted = "", r.Signature
		}
		return p, true
	case llm.PartCall:
		c := &llm.ToolCall{ID: value(r.ID), Name: value(r.Name), Args: r.Arguments}
		if !isObject(c.Args) {
			c.Args = json.RawMessage("{}")
		}
		return llm.Part{Kind: llm.PartCall, Call: c}, true
	}
	return llm.Part{}, false
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// compaction returns the Details of a compaction: those of Chela, or else the size that
// another program recorded.
func (r *row) compaction() json.RawMessage {
	switch {
	case len(r.Details) > 0 && len(r.Details) <= MaxDetails && CompactionOf(Entry{Details: r.Details}).TokensAfter > 0:
		return r.Details
	case r.Tokens != nil && *r.Tokens > 0:
		return encoded(Compaction{TokensBefore: int(*r.Tokens)})
	}
	return nil
}
