package discordtest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// The account that the server knows.
const (
	Token = "test.bot.token"
	Self  = "900000000000000001" // the user id of the bot
	App   = "900000000000000002" // the id of its application
)

// Types of channels.
const (
	Text   = 0
	Direct = 1
	Thread = 11
	Forum  = 15
)

// User is a person or a program.
type User struct {
	ID         string `json:"id"`
	Username   string `json:"username"`
	GlobalName string `json:"global_name,omitempty"`
	Bot        bool   `json:"bot,omitempty"`
}

// Channel is a channel, a thread, or the channel of direct messages with Person.
type Channel struct {
	ID     string `json:"id"`
	Type   int    `json:"type"`
	Guild  string `json:"guild_id,omitempty"`
	Parent string `json:"parent_id,omitempty"`
	Name   string `json:"name,omitempty"`
	Person string `json:"-"`
}

// Message is a message as people see it.
type Message struct {
	ID          string            `json:"id"`
	Channel     string            `json:"channel_id"`
	Guild       string            `json:"guild_id,omitempty"`
	Type        int               `json:"type"`
	Author      User              `json:"author"`
	Member      *Member           `json:"member,omitempty"`
	Text        string            `json:"content"`
	Time        time.Time         `json:"timestamp"`
	Edited      *time.Time        `json:"edited_timestamp"`
	Mentions    []User            `json:"mentions"`
	Attachments []Attachment      `json:"attachments"`
	Stickers    []Sticker         `json:"sticker_items,omitempty"`
	Reference   map[string]any    `json:"message_reference,omitempty"`
	Referenced  *Message          `json:"referenced_message,omitempty"`
	Snapshots   []map[string]any  `json:"message_snapshots,omitempty"`
	Components  []json.RawMessage `json:"components"`
	Poll        json.RawMessage   `json:"poll,omitempty"`
	Pinned      bool              `json:"pinned"`
	Reactions   []Reaction        `json:"reactions,omitempty"`
	Nonce       string            `json:"nonce,omitempty"`
	gone        bool
}

// Member is what a guild knows about a person.
type Member struct {
	User  *User    `json:"user,omitempty"`
	Nick  string   `json:"nick,omitempty"`
	Roles []string `json:"roles"`
}

// Attachment is a file of a message.
type Attachment struct {
	ID   string `json:"id"`
	Name string `json:"filename"`
	Type string `json:"content_type"`
	Size int    `json:"size"`
	URL  string `json:"url"`
	data []byte
}

// Sticker is a sticker of a message.
type Sticker struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Reaction is a reaction of the bot.
type Reaction struct {
	Count int   `json:"count"`
	Me    bool  `json:"me"`
	Emoji Emoji `json:"emoji"`
}

// Emoji is an emoji of a reaction.
type Emoji struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
}

// Request is a request that the REST API received.
type Request struct {
	Method, Path string
	Body         string
	Time         time.Time
	Status       int
}

// Fault is how a request fails. Method, Path and Body select it; Path and Body are parts of
// the path and of the content.
type Fault struct {
	Method, Path string
	Body         string
	Status       int     // 0: 500
	RetryAfter   float64 // seconds, with the status 429
	Global       bool    // the limit is that of all requests
	Accept       bool    // the request is carried out first
	Cut          bool    // the connection is closed instead of an answer
}

// Server is an imitation of Discord. It is safe for concurrent use.
type Server struct {
	base     string
	listener *llmtest.Listener
	http     *http.Server

	mu       sync.Mutex
	next     int64 // of ids
	users    map[string]User
	members  map[string]map[string]Member // by guild and person
	channels map[string]Channel
	messages []*Message
	requests []Request
	faults   []Fault
	typing   map[string]int
	menu     []string
	acks     map[string]int // answers to interactions by id
	gate     gate
}

// New returns a server in memory. Its clock is that of the caller's bubble.
func New() *Server { return start("http://discord.invalid", llmtest.Pipe()) }

// Listen returns a server on a socket of the loopback interface.
func Listen() (*Server, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return start("http://"+l.Addr().String(), l), nil
}

func start(base string, l net.Listener) *Server {
	s := &Server{
		base:     base,
		next:     1_000_000,
		users:    map[string]User{},
		members:  map[string]map[string]Member{},
		channels: map[string]Channel{},
		typing:   map[string]int{},
		acks:     map[string]int{},
	}
	s.gate.interval = 41250 * time.Millisecond
	s.gate.changed = make(chan struct{})
	s.users[Self] = User{ID: Self, Username: "chela", Bot: true}
	s.http = &http.Server{Handler: s}
	s.listener, _ = l.(*llmtest.Listener)
	go func() { _ = s.http.Serve(l) }()
	return s
}

// Close ends the server and its connections.
func (s *Server) Close() {
	s.Drop(0)
	_ = s.http.Close()
}

// Root returns the base URL of the REST API.
func (s *Server) Root() string { return s.base + "/api/v10" }

// Client returns a client that reaches the server.
func (s *Server) Client() *http.Client {
	if s.listener == nil {
		return &http.Client{Transport: &http.Transport{}}
	}
	return s.listener.Client()
}

// AddUser adds a person.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = u
}

// AddGuild adds a guild with channels. Its members are added with AddMember.
func (s *Server) AddGuild(id string, channels ...Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[id] = map[string]Member{}
	for _, c := range channels {
		c.Guild = id
		s.channels[c.ID] = c
	}
}

// AddMember adds a person to a guild.
func (s *Server) AddMember(guild string, m Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[guild][m.User.ID] = m
}

// RemoveChannel removes a channel.
func (s *Server) RemoveChannel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.channels, id)
}

// Threads returns the threads of a channel, by id.
func (s *Server) Threads(parent string) []Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Channel
	for _, c := range s.channels {
		if c.Parent == parent {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Channel) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Fail makes the next matching requests fail, one fault each.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Shown returns the messages of a channel, oldest first.
func (s *Server) Shown(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	for _, m := range s.messages {
		if m.Channel == channel && !m.gone {
			out = append(out, *m)
		}
	}
	return out
}

// DM returns the channel of the direct messages with a person, which it makes if needed.
func (s *Server) DM(person string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dmLocked(person)
}

func (s *Server) dmLocked(person string) string {
	for _, c := range s.channels {
		if c.Person == person {
			return c.ID
		}
	}
	c := Channel{ID: s.idLocked(), Type: Direct, Person: person}
	s.channels[c.ID] = c
	return c.ID
}

// Requests returns the requests with a method and a part of the path; "" matches all.
func (s *Server) Requests(method, path string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Request
	for _, r := range s.requests {
		if (method == "" || r.Method == method) && strings.Contains(r.Path, path) {
			out = append(out, r)
		}
	}
	return out
}

// Typing returns how often the bot showed that it writes in a channel.
func (s *Server) Typing(channel string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.typing[channel]
}

// Menu returns the names of the slash commands.
func (s *Server) Menu() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.menu)
}

// Acks returns how often an interaction was acknowledged.
func (s *Server) Acks(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acks[id]
}

// idLocked returns a new id, which contains the time.
func (s *Server) idLocked() string {
	s.next++
	ms := max(time.Now().UnixMilli()-1420070400000, 0) // the clock of a bubble begins earlier
	return strconv.FormatInt(ms<<22|s.next&0x3fffff, 10)
}

// ID returns a new id.
func (s *Server) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.idLocked()
}

// Post is a message that a person writes. Time and id are set by the server.
type Post struct {
	Channel, Person string
	Text            string
	ReplyTo         string
	Forward         string // text of a forwarded message
	Files           map[string]string
	Sticker         string
	Type            int
	Hook            bool // written by a webhook
}

// Write puts a message into a channel without telling the bot.
func (s *Server) Write(p Post) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[p.Channel]
	m := &Message{
		ID:          s.idLocked(),
		Channel:     p.Channel,
		Guild:       c.Guild,
		Type:        p.Type,
		Author:      s.users[p.Person],
		Text:        p.Text,
		Time:        time.Now(),
		Mentions:    s.mentionsLocked(p.Text),
		Attachments: []Attachment{},
		Components:  []json.RawMessage{},
	}
	if m.Author.ID == "" {
		m.Author = User{ID: p.Person, Username: "user" + p.Person}
	}
	if mb, ok := s.members[c.Guild][p.Person]; ok {
		m.Member = &Member{Nick: mb.Nick, Roles: mb.Roles}
	}
	for name, data := range p.Files {
		m.Attachments = append(m.Attachments, s.attachLocked(name, "", []byte(data)))
	}
	if p.Sticker != "" {
		m.Stickers = []Sticker{{s.idLocked(), p.Sticker}}
	}
	if p.ReplyTo != "" {
		m.Type, m.Reference = 19, map[string]any{"type": 0, "message_id": p.ReplyTo, "channel_id": p.Channel}
		if old := s.messageLocked(p.ReplyTo); old != nil {
			quoted := *old
			m.Referenced = &quoted
		}
	}
	if p.Forward != "" {
		m.Reference = map[string]any{"type": 1, "message_id": s.idLocked(), "channel_id": s.idLocked()}
		m.Snapshots = []map[string]any{{"message": map[string]any{"content": p.Forward, "type": 0}}}
	}
	s.messages = append(s.messages, m)
	return *m
}

// mentionsLocked returns the people whom a text mentions.
func (s *Server) mentionsLocked(text string) []User {
	out := []User{}
	for id, u := range s.users {
		if strings.Contains(text, "<@"+id+">") || strings.Contains(text, "<@!"+id+">") {
			out = append(out, u)
		}
	}
	return out
}

// attachLocked stores a file.
func (s *Server) attachLocked(name, kind string, data []byte) Attachment {
	id := s.idLocked()
	return Attachment{
		ID:   id,
		Name: name,
		Type: kind,
		Size: len(data),
		URL:  fmt.Sprintf("%s/attachments/%s/%s", s.base, id, name),
		data: data,
	}
}

func (s *Server) messageLocked(id string) *Message {
	for _, m := range s.messages {
		if m.ID == id && !m.gone {
			return m
		}
	}
	return nil
}

// Send writes a message and tells the bot. It returns the number of the event.
func (s *Server) Send(p Post) (Message, int64) {
	m := s.Write(p)
	return m, s.Dispatch("MESSAGE_CREATE", m)
}

// Say writes a message, and waits until the bot reports that it processed it.
func (s *Server) Say(ctx context.Context, p Post) error {
	_, seq := s.Send(p)
	return s.Await(ctx, seq)
}

// Change edits a message of a person and tells the bot.
func (s *Server) Change(id, text string) int64 {
	s.mu.Lock()
	m := s.messageLocked(id)
	now := time.Now()
	m.Text, m.Edited = text, &now
	changed := *m
	s.mu.Unlock()
	return s.Dispatch("MESSAGE_UPDATE", changed)
}

// Press tells the bot that a person pressed a button, and returns the id of the
// interaction and the event.
func (s *Server) Press(person, message, custom string) (string, map[string]any) {
	s.mu.Lock()
	m := s.messageLocked(message)
	id := s.idLocked()
	e := map[string]any{
		"id":             id,
		"type":           3,
		"token":          "itoken-" + id,
		"channel_id":     m.Channel,
		"message":        *m,
		"application_id": App,
		"version":        1,
		"data":           map[string]any{"custom_id": custom, "component_type": 2},
	}
	s.personLocked(e, m.Channel, person)
	s.mu.Unlock()
	s.Dispatch("INTERACTION_CREATE", e)
	return id, e
}

// Command tells the bot that a person used a slash command.
func (s *Server) Command(person, channel, name, args string) string {
	s.mu.Lock()
	id := s.idLocked()
	data := map[string]any{"name": name, "type": 1, "id": s.idLocked()}
	if args != "" {
		data["options"] = []any{map[string]any{"name": "args", "type": 3, "value": args}}
	}
	e := map[string]any{
		"id":             id,
		"type":           2,
		"token":          "itoken-" + id,
		"channel_id":     channel,
		"application_id": App,
		"version":        1,
		"data":           data,
	}
	s.personLocked(e, channel, person)
	s.mu.Unlock()
	s.Dispatch("INTERACTION_CREATE", e)
	return id
}

// personLocked adds to an interaction who made it.
func (s *Server) personLocked(e map[string]any, channel, person string) {
	u := s.users[person]
	if u.ID == "" {
		u = User{ID: person, Username: "user" + person}
	}
	guild := s.channels[channel].Guild
	if guild == "" {
		e["user"] = u
		return
	}
	mb := s.members[guild][person]
	mb.User = &u
	e["guild_id"], e["member"] = guild, mb
}
