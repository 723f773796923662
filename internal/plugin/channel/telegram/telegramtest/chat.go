package telegramtest

import (
	"sort"
	"time"
)

// Message is a message that people see in a chat.
type Message struct {
	ID       int64
	Thread   int64
	Text     string // or caption, without markup
	HTML     string // as it was sent, if with markup
	Kind     string // of the file: photo, document, …; "": a text
	Data     []byte
	ReplyTo  int64
	Buttons  [][]Object
	Reaction string
	Pinned   bool
	Poll     Object
	Edits    int
	Own      bool // of the bot
	Time     time.Time
}

type chatState struct {
	kind     string
	forum    bool
	topics   map[int64]string
	messages map[int64]*Message
}

// Chat creates a chat; kind is private, group, supergroup, forum or channel.
func (s *Server) Chat(id int64, kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &chatState{kind: kind, topics: map[int64]string{}, messages: map[int64]*Message{}}
	if kind == "forum" {
		c.kind, c.forum = "supergroup", true
	}
	s.chats[id] = c
}

// Topic creates a topic of a forum.
func (s *Server) Topic(chat, thread int64, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chats[chat].topics[thread] = name
}

// Messages returns the messages of the bot in a chat, oldest first.
func (s *Server) Messages(chat int64) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chat]
	if c == nil {
		return nil
	}
	var out []Message
	for _, m := range c.messages {
		if m.Own {
			out = append(out, *m)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// Texts returns the texts of Messages.
func (s *Server) Texts(chat int64) []string {
	var out []string
	for _, m := range s.Messages(chat) {
		out = append(out, m.Text)
	}
	return out
}

// Person is the user object of a person.
func Person(id int64, name string) Object {
	return Object{"id": id, "is_bot": false, "first_name": name}
}

// Said is a message object of a person in a chat, which must exist. more are further
// members.
func (s *Server) Said(chat int64, from Object, text string, more Object) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	return s.saidLocked(s.lastID, chat, from, text, more)
}

func (s *Server) saidLocked(id, chat int64, from Object, text string, more Object) Object {
	c := s.chats[chat]
	at := Object{"id": chat, "type": c.kind}
	if c.kind == "private" {
		at["first_name"] = "Ann"
	} else {
		at["title"] = "The chat"
	}
	if c.forum {
		at["is_forum"] = true
	}
	m := Object{"message_id": id, "chat": at, "date": time.Now().Unix()}
	if from != nil {
		m["from"] = from
	}
	if text != "" {
		m["text"] = text
	}
	for k, v := range more {
		m[k] = v
	}
	c.messages[id] = &Message{ID: id, Text: text, Time: time.Now()}
	return m
}

// Say pushes a message of a person, and returns the id of the update.
func (s *Server) Say(chat int64, from Object, text string, more Object) int64 {
	return s.Push(Object{"message": s.Said(chat, from, text, more)})
}

// Vanish deletes a message as a person would.
func (s *Server) Vanish(chat, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.chats[chat].messages, id)
}
