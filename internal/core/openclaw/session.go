package openclaw

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Session is a conversation with all its transcripts.
type Session struct {
	Agent, Key string
	Entry
	Archived, Pinned int64       // milliseconds; 0: not
	Chat             Chat        // where it was used last; zero: unknown
	Transcripts      []Reference // oldest first

	// Known is set if the current transcript is among them.
	Known bool
	// Loose is set for a transcript whose key is unknown: Key is made of its name.
	Loose bool
}

// Entry is what OpenClaw records about a session, as far as it is of use elsewhere.
type Entry struct {
	ID          string `json:"sessionId"`
	File        string `json:"sessionFile"`
	Label       string `json:"label"`
	DisplayName string `json:"displayName"`
	Subject     string `json:"subject"`
	Category    string `json:"category"`
	Updated     int64  `json:"updatedAt"`
	Created     int64  `json:"createdAt"`
	Started     int64  `json:"sessionStartedAt"`
	Interacted  int64  `json:"lastInteractionAt"`

	Model      string `json:"modelOverride"`
	Provider   string `json:"providerOverride"`
	Think      string `json:"thinkingLevel"`
	Verbose    string `json:"verboseLevel"`
	Reasoning  string `json:"reasoningLevel"`
	Usage      string `json:"responseUsage"`
	Send       string `json:"sendPolicy"`
	Activation string `json:"groupActivation"`

	ChatType string   `json:"chatType"`
	Delivery Delivery `json:"deliveryContext"`
	Channel  string   `json:"lastChannel"`
	To       string   `json:"lastTo"`
	Account  string   `json:"lastAccountId"`
	Thread   any      `json:"lastThreadId"`
}

// Delivery is where answers of a session go.
type Delivery struct {
	Channel string `json:"channel"`
	To      string `json:"to"`
	Account string `json:"accountId"`
	Thread  any    `json:"threadId"`
}

// Chat is a chat on a chat app.
type Chat struct{ Channel, Account, Kind, Peer, Thread string }

// Reference leads to a transcript, which may have several parts: newer versions write a
// reset into the transcript.
type Reference struct {
	ID      string
	File    string // where it is, with the id for a database
	Current bool   // the last part is what the session goes on with
	Reason  string // why it ended; "": it is current
	Ended   time.Time

	read func(ctx context.Context) ([]byte, error)
}

// Part is a transcript in the exchange format: JSON lines that begin with a header.
type Part struct {
	ID     string // unique in the session
	JSONL  []byte
	Reason string    // why it ended; "": it is current
	Ended  time.Time // zero: unknown, or current
}

// Parts reads a transcript.
func (r Reference) Parts(ctx context.Context) ([]Part, error) {
	text, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	parts := split(text, r.ID)
	if n := len(parts); n > 0 && !r.Current {
		parts[n-1].Reason, parts[n-1].Ended = r.Reason, r.Ended
	}
	return parts, nil
}

// line is what is read of a line of a transcript.
type line struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Reason    string `json:"reason"`
}

// split splits a transcript at its resets. A part without lines is left out.
func split(text []byte, id string) []Part {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	header, rest, _ := bytes.Cut(text, []byte("\n"))
	header = append(bytes.TrimSpace(header), '\n')
	var parts []Part
	add := func(body []byte, reason, at string) {
		if reason != "" && len(bytes.TrimSpace(body)) == 0 {
			return
		}
		p := Part{ID: id, JSONL: append(slices.Clip(header), body...), Reason: reason}
		p.Ended, _ = time.Parse(time.RFC3339, at)
		if len(parts) > 0 {
			p.ID = fmt.Sprintf("%s.%d", id, len(parts)+1)
		}
		parts = append(parts, p)
	}
	from, at := 0, 0
	for at < len(rest) {
		end := len(rest)
		if i := bytes.IndexByte(rest[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if one := rest[at:end]; bytes.Contains(one, []byte(`"reset"`)) {
			var l line
			if json.Unmarshal(one, &l) == nil && l.Type == "reset" {
				add(rest[from:at], cmp.Or(l.Reason, "reset"), l.Timestamp)
				from = end
			}
		}
		at = end
	}
	add(rest[from:], "", "")
	return parts
}

// Sessions returns the sessions of an agent, and the number of transcripts that a person
// deleted.
func (h *Home) Sessions(ctx context.Context, agent string) (all []*Session, deleted int) {
	s := &sessions{h: h, agent: agent, byKey: map[string]*Session{}, seen: map[string]bool{}}
	s.readTables(ctx)
	s.readFiles(ctx)
	for _, key := range slices.Sorted(maps.Keys(s.byKey)) {
		one := s.byKey[key]
		slices.SortStableFunc(one.Transcripts, func(a, b Reference) int {
			if a.Current != b.Current {
				if a.Current {
					return 1
				}
				return -1
			}
			return a.Ended.Compare(b.Ended)
		})
		one.Known = slices.ContainsFunc(one.Transcripts, func(r Reference) bool { return r.Current })
		all = append(all, one)
	}
	return all, s.deleted
}

// sessions collects the sessions of an agent.
type sessions struct {
	h       *Home
	agent   string
	byKey   map[string]*Session
	seen    map[string]bool // ids of transcripts
	deleted int
}

// get returns the session with a key, a new one if there is none.
func (s *sessions) get(key string) *Session {
	if s.byKey[key] == nil {
		s.byKey[key] = &Session{Agent: s.agent, Key: key}
	}
	return s.byKey[key]
}

// add adds a transcript unless it is known.
func (s *sessions) add(key string, r Reference) {
	if r.ID == "" || s.seen[r.ID] {
		return
	}
	s.seen[r.ID] = true
	one := s.get(key)
	one.Transcripts = append(one.Transcripts, r)
}

// readTables reads the database of the agent.
func (s *sessions) readTables(ctx context.Context) {
	h, db := s.h, agentDB(s.agent)
	chats := map[string]Chat{}
	h.rows(ctx, db, "conversations", nil, nil,
		[]string{"conversation_id", "channel", "account_id", "kind", "peer_id", "thread_id"}, func(r row) error {
			chats[r.text("conversation_id")] = Chat{r.text("channel"), r.text("account_id"), r.text("kind"),
				r.text("peer_id"), r.text("thread_id")}
			return nil
		})
	h.rows(ctx, db, "session_nodes", nil, []string{"session_key"},
		[]string{"current_session_id", "entry_json", "updated_at"}, func(r row) error {
			one := s.get(r.text("session_key"))
			if err := json.Unmarshal([]byte(r.text("entry_json")), &one.Entry); err != nil {
				h.problem(db, fmt.Errorf("session %s: %w", one.Key, err))
			}
			one.ID = r.text("current_session_id")
			one.Updated = cmp.Or(r.int("updated_at"), one.Updated)
			one.Created = cmp.Or(r.int("created_at"), one.Created)
			one.Interacted = cmp.Or(r.int("last_interaction_at"), one.Interacted)
			one.Label, one.DisplayName, one.Category = cmp.Or(r.text("label"), one.Label),
				cmp.Or(r.text("display_name"), one.DisplayName), cmp.Or(r.text("category"), one.Category)
			one.Archived, one.Pinned = r.int("archived_at"), r.int("pinned_at")
			return nil
		})
	cold := s.cold(ctx, db)
	reader := func(id string) func(context.Context) ([]byte, error) {
		if read := cold[id]; read != nil {
			return read
		}
		return func(ctx context.Context) ([]byte, error) { return h.events(ctx, db, id) }
	}
	h.rows(ctx, db, "session_windows", nil, []string{"created_at"},
		[]string{"session_id", "session_key"}, func(r row) error {
			key, id := r.text("session_key"), r.text("session_id")
			one := s.get(key)
			if chat, ok := chats[r.text("primary_conversation_id")]; ok && id == one.ID {
				one.Chat = chat
			}
			ref := Reference{ID: id, File: db + "#" + id, Current: id == one.ID, read: reader(id)}
			if !ref.Current {
				ref.Reason, ref.Ended = "reset", millis(cmp.Or(r.int("ended_at"), r.int("updated_at")))
			}
			s.add(key, ref)
			return nil
		})
	s.readArchives(ctx, db)
}

// cold returns the functions that read the transcripts in cold storage, by id.
func (s *sessions) cold(ctx context.Context, db string) map[string]func(context.Context) ([]byte, error) {
	out := map[string]func(context.Context) ([]byte, error){}
	s.h.rows(ctx, db, "session_transcript_cold_archives", nil, nil,
		[]string{"session_id", "archive_name", "storage", "archive_blob"}, func(r row) error {
			id, name, blob := r.text("session_id"), r.text("archive_name"), r.bytes("archive_blob")
			out[id] = func(context.Context) ([]byte, error) {
				if r.text("storage") != "sqlite" {
					var err error
					if blob, err = s.h.read(path.Join("agents", s.agent, "sessions", "cold", path.Base(name)), maxLines); err != nil {
						return nil, err
					}
				}
				return thawed(blob)
			}
			return nil
		})
	return out
}

// events returns the transcript in the table of events.
func (h *Home) events(ctx context.Context, db, id string) ([]byte, error) {
	t := h.db(ctx, db)
	if t == nil {
		return nil, errors.New("the database is closed")
	}
	var b bytes.Buffer
	for r, err := range t.Rows("transcript_events", map[string]any{"session_id": id}, "seq") {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		event := []byte(row(r).text("event_json"))
		if packed := row(r).bytes("event_zstd"); len(packed) > 0 {
			if event, err = unpacked(packed); err != nil {
				event = []byte(`{"type":"unreadable"}`) // counted as a damaged line
			}
		}
		b.Write(bytes.ReplaceAll(event, []byte("\n"), []byte(" ")))
		b.WriteByte('\n')
		if b.Len() > maxLines {
			return nil, fmt.Errorf("larger than %d bytes", maxLines)
		}
	}
	return b.Bytes(), nil
}

// thawed returns the events of a transcript that was put into cold storage.
func thawed(blob []byte) ([]byte, error) {
	text, err := unpacked(blob)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for one := range bytes.Lines(text) {
		var record struct {
			Kind string `json:"kind"`
			Row  struct {
				Event string `json:"event_json"`
			} `json:"row"`
		}
		if json.Unmarshal(one, &record) == nil && record.Kind == "event" {
			b.WriteString(strings.ReplaceAll(record.Row.Event, "\n", " "))
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}

// readArchives reads the transcripts that the database keeps after a reset.
func (s *sessions) readArchives(ctx context.Context, db string) {
	s.h.rows(ctx, db, "session_transcript_archives", nil, []string{"created_at"},
		[]string{"session_id", "session_key", "reason", "encoding", "archive_blob"}, func(r row) error {
			id, blob := r.text("session_id"), r.bytes("archive_blob")
			if r.text("reason") == "deleted" {
				s.deleted++
				s.seen[id] = true
				return nil
			}
			if len(blob) == 0 {
				return nil // it is in a file
			}
			packed := r.text("encoding") == "zstd"
			s.add(r.text("session_key"), Reference{
				ID: id, File: db + "#" + id, Reason: "reset", Ended: millis(r.int("created_at")),
				read: func(context.Context) ([]byte, error) {
					if packed {
						return unpacked(blob)
					}
					return blob, nil
				},
			})
			return nil
		})
}

// transcriptName is the name of the file of a transcript: its id, and why and when it
// ended.
var transcriptName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_-]*)\.jsonl(?:\.(reset|deleted|bak)\.([0-9TZ.:-]+?))?(\.zst)?$`)
})

// file is a transcript in a file.
type file struct {
	Reference
	started time.Time
	loose   bool
	key     string
}

// readFiles reads the files of the agent.
func (s *sessions) readFiles(ctx context.Context) {
	h, dir := s.h, path.Join("agents", s.agent, "sessions")
	var index map[string]json.RawMessage
	h.readJSON(path.Join(dir, "sessions.json"), &index)
	keys := map[string]string{} // by id and by name of the file
	for _, key := range slices.Sorted(maps.Keys(index)) {
		var e Entry
		if err := json.Unmarshal(index[key], &e); err != nil {
			h.problem(path.Join(dir, "sessions.json"), fmt.Errorf("session %s: %w", key, err))
		}
		if s.byKey[key] != nil { // it was moved to the database
			continue
		}
		s.get(key).Entry = e
		keys[e.ID] = key
		if e.File != "" {
			keys[strings.TrimSuffix(filepath.Base(e.File), ".jsonl")] = key
		}
	}
	var files []*file
	for _, entry := range h.list(dir) {
		m := transcriptName().FindStringSubmatch(entry.Name())
		switch {
		case m == nil || !entry.Type().IsRegular() || s.seen[m[1]] || m[2] == "bak":
			continue
		case m[2] == "deleted":
			s.deleted++
			continue
		}
		f := h.transcript(path.Join(dir, entry.Name()), m)
		if f.key = keys[f.ID]; m[2] == "" && f.key != "" {
			f.Current = true
		} else {
			f.key, f.loose = "", true
		}
		files = append(files, f)
	}
	attach(files)
	for _, f := range files {
		if ctx.Err() != nil {
			return
		}
		key := f.key
		if key == "" {
			key = "agent:" + s.agent + ":recovered-" + strings.ToLower(f.ID)
			one := s.get(key)
			one.Loose, one.Entry.ID, f.Current, f.Reason = true, f.ID, true, ""
		}
		s.add(key, f.Reference)
	}
}

// transcript returns the transcript in a file; m is the match of its name.
func (h *Home) transcript(name string, m []string) *file {
	f := &file{Reference: Reference{ID: m[1], File: name, Reason: m[2]}}
	packed := m[4] != ""
	f.read = func(context.Context) ([]byte, error) {
		b, err := h.read(name, maxLines)
		if err == nil && packed {
			b, err = unpacked(b)
		}
		return b, err
	}
	if day, clock, ok := strings.Cut(m[3], "T"); ok {
		f.Ended, _ = time.Parse(time.RFC3339, day+"T"+strings.Replace(clock, "-", ":", 2))
	}
	f.started = h.startOf(name, packed)
	return f
}

// startOf returns the time in the header of a transcript.
func (h *Home) startOf(name string, packed bool) time.Time {
	in, err := h.root.Open(name)
	if err != nil {
		return time.Time{}
	}
	defer in.Close()
	var from io.Reader = in
	if packed {
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxLines))
		if err != nil {
			return time.Time{}
		}
		defer d.Close()
		from = d
	}
	head, _ := io.ReadAll(io.LimitReader(from, 4096)) // what is missing is noticed when it is read
	first, _, _ := bytes.Cut(head, []byte("\n"))
	var l line
	if json.Unmarshal(first, &l) != nil {
		return time.Time{}
	}
	t, _ := time.Parse(time.RFC3339, l.Timestamp)
	return t
}

// follows is the time within which the transcript after a reset begins.
const follows = 10 * time.Second

// attach finds the keys of transcripts that ended with a reset. sessions.json does not
// name them, but the next transcript of a session begins when the reset ends the last one.
func attach(files []*file) {
	for range files { // a chain of resets is as long as the list at most
		found := false
		for _, f := range files {
			if f.key != "" || f.Ended.IsZero() {
				continue
			}
			var next []*file
			for _, o := range files {
				if gap := o.started.Sub(f.Ended); o != f && gap >= -time.Second && gap <= follows {
					next = append(next, o)
				}
			}
			if len(next) == 1 && next[0].key != "" {
				f.key, found = next[0].key, true
			}
		}
		if !found {
			return
		}
	}
}

// unpacked decompresses a text.
func unpacked(b []byte) ([]byte, error) {
	d, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxLines))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	out, err := io.ReadAll(io.LimitReader(d, maxLines+1))
	if err == nil && len(out) > maxLines {
		err = fmt.Errorf("larger than %d bytes", maxLines)
	}
	return out, err
}

// millis returns a time in milliseconds; the zero time for 0.
func millis(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
