// Package slacktest contains a fake of Slack: the parts of the Web API and of Socket Mode
// that the channel uses. It refuses what Slack refuses, knows what people see, and fails on
// demand. It serves over memory, so that it works with the time of a synctest bubble, or
// over a socket.
package slacktest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// What the fake knows from the start.
const (
	BotToken = "xoxb-fake-1"
	AppToken = "xapp-fake-1"
	Secret   = "8f742231b10e8888abcd99yyyzzz85a5"
	BotUser  = "UBOT"
	BotID    = "BBOT"
	Team     = "T1"
)

// Chat is a conversation.
type Chat struct {
	ID, Name string
	Kind     string // channel, group, mpim, im
	User     string // of a direct one
	Out      bool   // the bot is no member
}

// Message is a message that stands in a conversation.
type Message struct {
	TS, Channel, Thread, User string
	Text                      string // as it was sent
	Blocks                    json.RawMessage
	Metadata                  json.RawMessage
	Files                     []string // ids
	Gone, Pinned              bool
	Reactions                 map[string][]string
	Edits                     int
}

// Fault makes a call fail.
type Fault struct {
	Status int           // HTTP status; 0: the answer is not ok, or the connection is cut
	Error  string        // of an answer that is not ok
	After  time.Duration // Retry-After
	Accept bool          // the call is carried out before
	Cut    bool          // the connection breaks instead of an answer
}

// Call is a call that the fake received.
type Call struct {
	Method string
	Params url.Values
	Time   time.Time
}

// Server is the fake.
type Server struct {
	// Repeats are the pauses after which an event that was not acknowledged is repeated.
	Repeats []time.Duration
	// Patience is how long an acknowledgement is awaited, as long as by Slack in [New]. Where
	// time is real, it should be so long that a busy machine is not too slow.
	Patience time.Duration

	t    testing.TB
	base string
	wg   sync.WaitGroup

	mu       sync.Mutex
	people   map[string]string
	chats    map[string]*Chat
	messages []*Message
	last     int64
	faults   map[string][]Fault
	calls    []Call
	files    map[string]*upload
	tickets  map[string]bool
	conns    []*conn
	changed  chan struct{} // closed when a connection was made
	mute     bool
	hidden   bool // shared files are not listed yet
	late     int
}

// upload is a file.
type upload struct {
	name   string
	length int
	data   []byte
	done   bool
	shares map[string]string // timestamps by conversation
}

// New returns a fake with the people U1 (Ann) and U2 (Bob), the channels C1 (general) and C2
// (random), the private channel G1, and the direct conversations D1 and D2.
func New(t testing.TB) *Server {
	s := &Server{
		Repeats: []time.Duration{time.Second, time.Minute, 5 * time.Minute}, Patience: 3 * time.Second, t: t,
		people:  map[string]string{"U1": "Ann", "U2": "Bob", "7": "Seven", BotUser: "chela"},
		chats:   map[string]*Chat{},
		faults:  map[string][]Fault{},
		files:   map[string]*upload{},
		tickets: map[string]bool{},
		changed: make(chan struct{}),
	}
	for _, c := range []Chat{
		{ID: "C1", Name: "general", Kind: "channel"}, {ID: "C2", Name: "random", Kind: "channel"},
		{ID: "C9", Name: "other", Kind: "channel", Out: true},
		{ID: "G1", Name: "secret", Kind: "group"}, {ID: "G2", Name: "mpdm-ann--bob", Kind: "mpim"},
		{ID: "D1", Kind: "im", User: "U1"}, {ID: "D2", Kind: "im", User: "U2"},
	} {
		s.chats[c.ID] = &c
	}
	return s
}

// Pipe serves over memory and returns a client that reaches nothing else.
func (s *Server) Pipe() *http.Client {
	base, hc, stop := llmtest.ServePipe(&http.Server{Handler: s})
	s.base = base
	s.t.Cleanup(func() {
		s.Drop()
		stop()
		s.wg.Wait()
	})
	return hc
}

// Listen serves on a loopback socket.
func (s *Server) Listen() *http.Client {
	hs := httptest.NewServer(s)
	s.base = hs.URL
	s.t.Cleanup(func() {
		s.Drop()
		hs.Close()
		s.wg.Wait()
	})
	return hs.Client()
}

// Root returns the value of apiRoot.
func (s *Server) Root() string { return s.base + "/api" }

// Fail makes the next calls of a method fail, one fault each; a zero Fault succeeds.
func (s *Server) Fail(method string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[method] = append(s.faults[method], faults...)
}

// Calls returns the calls of a method; all calls for "".
func (s *Server) Calls(method string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if method == "" || c.Method == method {
			out = append(out, c)
		}
	}
	return out
}

// HideShares makes files.info not know the messages of files.
func (s *Server) HideShares() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden = true
}

// Late returns the number of events that were acknowledged too late.
func (s *Server) Late() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late
}

// Messages returns the messages that stand in a conversation, or in a thread of it.
func (s *Server) Messages(chat, thread string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	for _, m := range s.messages {
		if m.Channel == chat && m.Thread == thread && !m.Gone {
			c := *m
			c.Reactions = maps.Clone(m.Reactions)
			out = append(out, c)
		}
	}
	return out
}

// Texts returns the texts of the bot's messages as people see them.
func (s *Server) Texts(chat, thread string) []string {
	var out []string
	for _, m := range s.Messages(chat, thread) {
		if m.User == BotUser {
			out = append(out, strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(m.Text))
		}
	}
	return out
}

// AddChat adds a conversation.
func (s *Server) AddChat(c Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chats[c.ID] = &c
}

// Write adds a message of a person without an event, and returns its timestamp.
func (s *Server) Write(chat, thread, who, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writeLocked(&Message{Channel: chat, Thread: thread, User: who, Text: text}).TS
}

// AddFile adds a file with a content, and returns its URL.
func (s *Server) AddFile(label string, data []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := "F" + strconv.Itoa(len(s.files)+1)
	s.files[id] = &upload{name: label, data: data, done: true}
	return s.base + "/files/" + id
}

// File returns the content of an uploaded file.
func (s *Server) File(id string) (label string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[id]; f != nil {
		return f.name, f.data
	}
	return "", nil
}

func (s *Server) writeLocked(m *Message) *Message {
	s.last = max(s.last+1, time.Now().UnixMicro())
	m.TS = fmt.Sprintf("%d.%06d", s.last/1e6, s.last%1e6)
	s.messages = append(s.messages, m)
	return m
}

func (s *Server) findLocked(chat, ts string) *Message {
	for _, m := range s.messages {
		if m.Channel == chat && m.TS == ts && !m.Gone {
			return m
		}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/link":
		s.link(w, r)
	case strings.HasPrefix(r.URL.Path, "/api/"):
		s.api(w, r, strings.TrimPrefix(r.URL.Path, "/api/"))
	case strings.HasPrefix(r.URL.Path, "/upload/"):
		s.upload(w, r, strings.TrimPrefix(r.URL.Path, "/upload/"))
	case strings.HasPrefix(r.URL.Path, "/files/"):
		s.download(w, r, strings.TrimPrefix(r.URL.Path, "/files/"))
	default:
		http.NotFound(w, r)
	}
}

// object is an answer.
type object = map[string]any

func failed(code string) object { return object{"ok": false, "error": code} }

// methods are the methods and their required parameters.
func methods() map[string]string {
	return map[string]string{
		"auth.test":             "",
		"apps.connections.open": "",
		"chat.postMessage":      "channel",
		"chat.update":           "channel ts",
		"chat.delete":           "channel ts",
		"conversations.open":    "users",
		"conversations.info":    "channel",
		"conversations.history": "channel",

		"conversations.replies": "channel ts",
		"conversations.list":    "",
		"users.info":            "user",
		"users.list":            "",
		"reactions.add":         "channel timestamp name",

		"reactions.remove": "channel timestamp name",
		"reactions.get":    "channel timestamp",
		"pins.add":         "channel timestamp",
		"pins.remove":      "channel timestamp",

		"assistant.threads.setStatus":  "channel_id thread_ts status",
		"files.getUploadURLExternal":   "filename length",
		"files.completeUploadExternal": "files",
		"files.info":                   "file",
	}
}

// api answers a call.
func (s *Server) api(w http.ResponseWriter, r *http.Request, method string) {
	params := r.URL.Query()
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err == nil {
			params, err = url.ParseQuery(string(body))
		}
		if err != nil || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
			reply(w, failed("invalid_form_data"))
			return
		}
	}
	s.mu.Lock()
	s.calls = append(s.calls, Call{method, params, time.Now()})
	var f Fault
	if list := s.faults[method]; len(list) > 0 {
		f, s.faults[method] = list[0], list[1:]
	}
	faulty := f.Status != 0 || f.Error != "" || f.Cut
	var out object
	if !faulty || f.Accept {
		out = s.answerLocked(r, method, params)
	}
	s.mu.Unlock()
	if f.After > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.After/time.Second)))
	}
	switch {
	case f.Cut:
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		w.WriteHeader(f.Status)
	case f.Error != "":
		reply(w, object{"ok": false, "error": f.Error, "needed": "some:scope"})
	default:
		reply(w, out)
	}
}

func reply(w http.ResponseWriter, v object) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v) // the client is gone
}

// answerLocked carries a call out.
func (s *Server) answerLocked(r *http.Request, method string, p url.Values) object {
	required, known := methods()[method]
	want := BotToken
	if method == "apps.connections.open" {
		want = AppToken
	}
	switch token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); {
	case !known:
		return failed("unknown_method")
	case !ok:
		return failed("not_authed")
	case token != want:
		return failed("invalid_auth")
	}
	for _, name := range strings.Fields(required) {
		if !p.Has(name) {
			return failed("invalid_arguments")
		}
	}
	if id := cmp.Or(p.Get("channel"), p.Get("channel_id")); id != "" && s.chats[id] == nil {
		return failed("channel_not_found")
	}
	switch group, _, _ := strings.Cut(method, "."); group {
	case "chat":
		return s.chatLocked(method, p)
	case "conversations", "users":
		return s.listsLocked(method, p)
	case "reactions", "pins":
		return s.marksLocked(method, p)
	case "files":
		return s.filesLocked(method, p)
	}
	switch method {
	case "auth.test":
		return object{"ok": true, "user_id": BotUser, "bot_id": BotID, "team_id": Team, "user": "chela"}
	case "apps.connections.open":
		ticket := "t" + strconv.Itoa(len(s.tickets)+1)
		s.tickets[ticket] = true
		return object{"ok": true, "url": "ws" + strings.TrimPrefix(s.base, "http") + "/link?ticket=" + ticket}
	}
	return object{"ok": true}
}

func (s *Server) chatLocked(method string, p url.Values) object {
	if method == "chat.postMessage" {
		switch {
		case s.chats[p.Get("channel")].Out:
			return failed("not_in_channel")
		case p.Get("text") == "":
			return failed("no_text")
		case utf8.RuneCountInString(p.Get("text")) > 40000:
			return failed("msg_too_long")
		case p.Get("thread_ts") != "" && s.findLocked(p.Get("channel"), p.Get("thread_ts")) == nil:
			return failed("thread_not_found")
		case p.Get("unfurl_links") != "false" || p.Get("parse") != "none" || p.Has("link_names"):
			return failed("invalid_arguments")
		}
		var blocks json.RawMessage
		if p.Has("blocks") {
			if blocks = json.RawMessage(p.Get("blocks")); !validBlocks(blocks) {
				return failed("invalid_blocks")
			}
		}
		var meta json.RawMessage
		if p.Has("metadata") {
			if meta = json.RawMessage(p.Get("metadata")); !json.Valid(meta) {
				return failed("invalid_metadata_format")
			}
		}
		m := s.writeLocked(&Message{
			Channel:  p.Get("channel"),
			Thread:   p.Get("thread_ts"),
			User:     BotUser,
			Text:     p.Get("text"),
			Blocks:   blocks,
			Metadata: meta,
		})
		return object{"ok": true, "channel": m.Channel, "ts": m.TS}
	}
	m := s.findLocked(p.Get("channel"), p.Get("ts"))
	switch {
	case m == nil:
		return failed("message_not_found")
	case method == "chat.delete" && m.User != BotUser:
		return failed("cant_delete_message")
	case method == "chat.delete":
		m.Gone = true
		return object{"ok": true}
	case m.User != BotUser:
		return failed("cant_update_message")
	case p.Get("text") == "":
		return failed("no_text")
	case p.Get("parse") != "none": // otherwise names in the text would be mentions
		return failed("invalid_arguments")
	case utf8.RuneCountInString(p.Get("text")) > 4000:
		return failed("msg_too_long")
	}
	m.Text = p.Get("text")
	m.Edits++
	return object{"ok": true, "ts": m.TS}
}

// validBlocks reports whether Slack accepts the blocks of a message.
func validBlocks(raw json.RawMessage) bool {
	type text struct{ Type, Text string }
	var blocks []struct {
		Type     string
		Text     text
		Elements []struct {
			Type, Value, URL, Style string
			ID                      string `json:"action_id"`
			Text                    text
		}
	}
	if json.Unmarshal(raw, &blocks) != nil || len(blocks) == 0 || len(blocks) > 50 {
		return false
	}
	for _, b := range blocks {
		seen := map[string]bool{}
		n := utf8.RuneCountInString(b.Text.Text)
		switch {
		case b.Type == "section" && (b.Text.Type != "mrkdwn" || n == 0 || n > 3000), b.Type == "actions" &&
			(len(b.Elements) == 0 || len(b.Elements) > 25),
			b.Type != "section" && b.Type != "actions":
			return false
		}
		for _, e := range b.Elements {
			n := utf8.RuneCountInString(e.Text.Text)
			if e.Type != "button" || e.Text.Type != "plain_text" || n == 0 || n > 75 || len(e.Value) > 2000 || e.ID == "" ||
				seen[e.ID] || !slices.Contains([]string{"", "primary", "danger"}, e.Style) {
				return false
			}
			seen[e.ID] = true
		}
	}
	return true
}

// page returns a part of a list and the cursor of the next one.
func page[T any](list []T, p url.Values) ([]T, string) {
	from, _ := strconv.Atoi(p.Get("cursor"))
	limit, err := strconv.Atoi(p.Get("limit"))
	if err != nil || limit <= 0 {
		limit = 100
	}
	from = min(max(from, 0), len(list))
	to := min(from+limit, len(list))
	if to < len(list) {
		return list[from:to], strconv.Itoa(to)
	}
	return list[from:to], ""
}

func (s *Server) person(id string) object {
	return object{"id": id, "name": strings.ToLower(s.people[id]), "real_name": s.people[id] + " Real",
		"profile": object{"display_name": s.people[id]}}
}

func (c *Chat) object() object {
	return object{
		"id":         c.ID,
		"name":       c.Name,
		"user":       c.User,
		"is_im":      c.Kind == "im",
		"is_mpim":    c.Kind == "mpim",
		"is_private": c.Kind != "channel",
	}
}

func (s *Server) listsLocked(method string, p url.Values) object {
	switch method {
	case "conversations.open":
		if s.people[p.Get("users")] == "" {
			return failed("user_not_found")
		}
		for _, c := range s.chats {
			if c.User == p.Get("users") {
				return object{"ok": true, "channel": object{"id": c.ID}}
			}
		}
		c := &Chat{ID: "D" + p.Get("users"), Kind: "im", User: p.Get("users")}
		s.chats[c.ID] = c
		return object{"ok": true, "channel": object{"id": c.ID}}
	case "conversations.info":
		return object{"ok": true, "channel": s.chats[p.Get("channel")].object()}
	case "users.info":
		if s.people[p.Get("user")] == "" {
			return failed("user_not_found")
		}
		return object{"ok": true, "user": s.person(p.Get("user"))}
	case "users.list":
		ids, next := page(slices.Sorted(maps.Keys(s.people)), p)
		var list []object
		for _, id := range ids {
			list = append(list, s.person(id))
		}
		return object{"ok": true, "members": list, "response_metadata": object{"next_cursor": next}}
	case "conversations.list":
		var all []object
		for _, id := range slices.Sorted(maps.Keys(s.chats)) {
			c := s.chats[id]
			typ := map[string]string{"channel": "public_channel", "group": "private_channel"}[c.Kind]
			if slices.Contains(strings.Split(p.Get("types"), ","), cmp.Or(typ, c.Kind)) {
				all = append(all, c.object())
			}
		}
		list, next := page(all, p)
		return object{"ok": true, "channels": list, "response_metadata": object{"next_cursor": next}}
	}
	thread := ""
	if method == "conversations.replies" {
		if thread = p.Get("ts"); s.findLocked(p.Get("channel"), thread) == nil {
			return failed("thread_not_found")
		}
	}
	var all []object
	for _, m := range s.messages {
		if m.Channel == p.Get("channel") && !m.Gone &&
			(m.Thread == thread && m.TS >= p.Get("oldest") || thread != "" && m.TS == thread) {
			all = append(all, s.objectLocked(m, p.Get("include_all_metadata") == "true"))
		}
	}
	if thread == "" {
		slices.Reverse(all)
	}
	list, next := page(all, p)
	return object{"ok": true, "messages": list, "response_metadata": object{"next_cursor": next}}
}

// objectLocked returns a message as the API does.
func (s *Server) objectLocked(m *Message, metadata bool) object {
	o := object{"type": "message", "ts": m.TS, "user": m.User, "text": m.Text}
	if m.Thread != "" {
		o["thread_ts"] = m.Thread
	}
	if m.User == BotUser {
		o["bot_id"] = BotID
	}
	if metadata && m.Metadata != nil {
		o["metadata"] = m.Metadata
	}
	var files []object
	for _, id := range m.Files {
		files = append(files, object{"id": id, "name": s.files[id].name})
	}
	o["files"] = files
	return o
}

func (s *Server) marksLocked(method string, p url.Values) object {
	m, word := s.findLocked(p.Get("channel"), p.Get("timestamp")), p.Get("name")
	if m == nil {
		return failed("message_not_found")
	}
	has := slices.Contains(m.Reactions[word], BotUser)
	switch method {
	case "reactions.add":
		if has {
			return failed("already_reacted")
		}
		if m.Reactions == nil {
			m.Reactions = map[string][]string{}
		}
		m.Reactions[word] = append(m.Reactions[word], BotUser)
	case "reactions.remove":
		if !has {
			return failed("no_reaction")
		}
		delete(m.Reactions, word)
	case "reactions.get":
		var list []object
		for _, n := range slices.Sorted(maps.Keys(m.Reactions)) {
			list = append(list, object{"name": n, "users": m.Reactions[n]})
		}
		return object{"ok": true, "message": object{"reactions": list}}
	case "pins.add":
		if m.Pinned {
			return failed("already_pinned")
		}
		m.Pinned = true
	case "pins.remove":
		if !m.Pinned {
			return failed("no_pin")
		}
		m.Pinned = false
	}
	return object{"ok": true}
}

func (s *Server) filesLocked(method string, p url.Values) object {
	switch method {
	case "files.getUploadURLExternal":
		n, err := strconv.Atoi(p.Get("length"))
		if err != nil || n <= 0 || p.Get("filename") == "" {
			return failed("invalid_arguments")
		}
		id := "F" + strconv.Itoa(len(s.files)+1)
		s.files[id] = &upload{name: p.Get("filename"), length: n}
		return object{"ok": true, "file_id": id, "upload_url": s.base + "/upload/" + id}
	case "files.info":
		f := s.files[p.Get("file")]
		if f == nil {
			return failed("file_not_found")
		}
		shares := map[string][]object{}
		for chat, ts := range f.shares {
			if !s.hidden {
				shares[chat] = []object{{"ts": ts}}
			}
		}
		return object{"ok": true, "file": object{"id": p.Get("file"), "shares": object{"public": shares}}}
	}
	var list []struct{ ID, Title string }
	if json.Unmarshal([]byte(p.Get("files")), &list) != nil || len(list) == 0 {
		return failed("invalid_arguments")
	}
	if th := p.Get("thread_ts"); th != "" && s.findLocked(p.Get("channel_id"), th) == nil {
		return failed("thread_not_found")
	}
	m := &Message{Channel: p.Get("channel_id"), Thread: p.Get("thread_ts"), User: BotUser, Text: p.Get("initial_comment")}
	for _, x := range list {
		f := s.files[x.ID]
		if f == nil || !f.done || f.shares != nil {
			return failed("file_not_found")
		}
		m.Files = append(m.Files, x.ID)
	}
	s.writeLocked(m)
	for _, id := range m.Files {
		s.files[id].shares = map[string]string{m.Channel: m.TS}
	}
	return object{"ok": true}
}

// upload stores the content of a file.
func (s *Server) upload(w http.ResponseWriter, r *http.Request, id string) {
	data, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[id]
	if err != nil || f == nil || len(data) != f.length || r.Header.Get("Authorization") != "" {
		http.Error(w, "bad upload", http.StatusBadRequest)
		return
	}
	f.data, f.done = data, true
	fmt.Fprintf(w, "OK - %d", len(data))
}

// download returns the content of a file.
func (s *Server) download(w http.ResponseWriter, r *http.Request, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[id]
	switch {
	case f == nil:
		http.NotFound(w, r)
	case r.Header.Get("Authorization") != "Bearer "+BotToken:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<html>Sign in</html>")
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(f.data)
	}
}
