package telegramtest

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// methods are the known methods.
func (s *Server) do(ctx context.Context, c Call) (any, *refused) {
	if c.Method == "getUpdates" {
		return s.getUpdates(ctx, c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c.Method {
	case "getMe":
		return Object{"id": BotID, "is_bot": true, "first_name": "Chela", "username": BotName}, nil
	case "deleteWebhook":
		s.hook = hook{}
		return true, nil
	case "setWebhook":
		return s.setWebhookLocked(c)
	case "getWebhookInfo":
		return Object{"url": s.hook.url, "has_custom_certificate": false, "pending_update_count": len(s.updates)}, nil
	case "answerCallbackQuery":
		id := c.text("callback_query_id")
		if id == "" {
			return nil, badRequest("query is too old and response timeout expired or query ID is invalid")
		}
		s.answered = append(s.answered, id)
		s.signalLocked()
		return true, nil
	case "getFile":
		f, ok := s.files[c.text("file_id")]
		if !ok {
			return nil, badRequest("invalid file_id")
		}
		if len(f.data) > 20<<20 {
			return nil, badRequest("file is too big")
		}
		return Object{"file_id": c.text("file_id"), "file_path": f.path, "file_size": len(f.data)}, nil
	case "setMyCommands":
		return s.setMyCommandsLocked(c)
	}
	return s.doInChatLocked(c)
}

func (s *Server) getUpdates(ctx context.Context, c Call) (any, *refused) {
	s.mu.Lock()
	if s.hook.url != "" {
		s.mu.Unlock()
		return nil, &refused{code: http.StatusConflict,
			text: "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"}
	}
	if s.poll != nil {
		close(s.poll)
	}
	own := make(chan struct{})
	s.poll = own
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.poll == own {
			s.poll = nil
		}
	}()
	offset, _ := c.number("offset")
	limit, ok := c.number("limit")
	if !ok || limit < 1 || limit > 100 {
		limit = 100
	}
	seconds, _ := c.number("timeout")
	allowed, _ := c.Params["allowed_updates"].([]any)
	timeout := time.NewTimer(time.Duration(min(seconds, 50)) * time.Second)
	defer timeout.Stop()
	for {
		s.mu.Lock()
		out := s.fromLocked(offset, limit, allowed)
		changed := s.changed
		s.mu.Unlock()
		if len(out) > 0 {
			return out, nil
		}
		select {
		case <-changed:
		case <-timeout.C:
			return []json.RawMessage{}, nil
		case <-own:
			return nil, &refused{code: http.StatusConflict,
				text: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"}
		case <-ctx.Done():
			return nil, &refused{code: http.StatusBadGateway, text: "Bad Gateway"}
		case <-s.closed:
			return nil, &refused{code: http.StatusBadGateway, text: "Bad Gateway"}
		}
		if s.isRevoked() {
			return nil, &refused{code: http.StatusUnauthorized, text: "Unauthorized"}
		}
	}
}

// fromLocked forgets the updates before offset, and returns the others.
func (s *Server) fromLocked(offset, limit int64, allowed []any) []json.RawMessage {
	before := len(s.updates)
	s.updates = slices.DeleteFunc(s.updates, func(q queued) bool {
		var members map[string]json.RawMessage
		_ = json.Unmarshal(q.raw, &members)
		wanted := len(allowed) == 0
		for _, name := range allowed {
			wanted = wanted || members[name.(string)] != nil
		}
		return q.id < offset && (q.given || !q.fresh) || !wanted
	})
	if len(s.updates) != before {
		s.signalLocked()
	}
	out := []json.RawMessage{}
	for i := range s.updates[:min(int64(len(s.updates)), limit)] {
		s.updates[i].given = true
		out = append(out, s.updates[i].raw)
	}
	return out
}

func (s *Server) setWebhookLocked(c Call) (any, *refused) {
	if !strings.HasPrefix(c.text("url"), "https://") {
		return nil, badRequest("bad webhook: An HTTPS URL must be provided for webhook")
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{0,256}$`).MatchString(c.text("secret_token")) {
		return nil, badRequest("secret token contains unallowed characters")
	}
	s.hook = hook{c.text("url"), c.text("secret_token")}
	s.signalLocked()
	return true, nil
}

func (s *Server) setMyCommandsLocked(c Call) (any, *refused) {
	list, ok := c.Params["commands"].([]any)
	if !ok || len(list) > 100 {
		return nil, badRequest("BOT_COMMANDS_TOO_MUCH")
	}
	s.menu = nil
	for _, e := range list {
		o, _ := e.(map[string]any)
		name, _ := o["command"].(string)
		doc, _ := o["description"].(string)
		if !regexp.MustCompile(`^[a-z0-9_]{1,32}$`).MatchString(name) {
			return nil, badRequest("BOT_COMMAND_INVALID")
		}
		if n := utf8.RuneCountInString(doc); n < 1 || n > 256 {
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
		s.menu = append(s.menu, o)
	}
	return true, nil
}

// kinds are the methods that send a file, and the names of their parameters.
var kinds = map[string]string{
	"sendPhoto":     "photo",
	"sendDocument":  "document",
	"sendVoice":     "voice",
	"sendAudio":     "audio",
	"sendVideo":     "video",
	"sendAnimation": "animation",
}

// doInChatLocked does what concerns a chat.
func (s *Server) doInChatLocked(c Call) (any, *refused) {
	known := []string{"sendMessage", "sendPoll", "sendChatAction", "editMessageText", "editMessageCaption",
		"deleteMessage", "setMessageReaction", "pinChatMessage", "unpinChatMessage", "createForumTopic"}
	if kinds[c.Method] == "" && !slices.Contains(known, c.Method) {
		return nil, &refused{code: http.StatusNotFound, text: "Not Found: method not found"}
	}
	id, ok := c.number("chat_id")
	if !ok {
		return nil, badRequest("chat_id is empty")
	}
	chat := s.chats[id]
	if chat == nil {
		return nil, badRequest("chat not found")
	}
	thread, has := c.number("message_thread_id")
	if has && c.Method != "sendChatAction" && chat.topics[thread] == "" ||
		has && c.Method == "sendChatAction" && thread != 1 && chat.topics[thread] == "" {
		return nil, badRequest("message thread not found")
	}
	switch c.Method {
	case "sendChatAction":
		if !slices.Contains([]string{"typing", "upload_photo", "upload_document", "record_voice"}, c.text("action")) {
			return nil, badRequest("wrong parameter action in request")
		}
		return true, nil
	case "createForumTopic":
		name := c.text("name")
		if !chat.forum {
			return nil, badRequest("the chat is not a forum")
		}
		if n := utf8.RuneCountInString(name); n < 1 || n > 128 {
			return nil, badRequest("TOPIC_TITLE_INVALID")
		}
		s.lastID++
		chat.topics[s.lastID] = name
		return Object{"message_thread_id": s.lastID, "name": name, "icon_color": 7322096}, nil
	case "sendMessage", "sendPoll":
		return s.sendLocked(c, id, chat, thread)
	}
	if kinds[c.Method] != "" {
		return s.sendLocked(c, id, chat, thread)
	}
	return s.changeLocked(c, id, chat)
}

// shownText returns the text of a call that people see.
func shownText(c Call, field string, limit int) (text, markup string, r *refused) {
	text = c.text(field)
	switch c.text("parse_mode") {
	case "":
	case "HTML":
		markup = text
		if text, r = parseHTML(text); r != nil {
			return "", "", r
		}
	default:
		return "", "", badRequest("unsupported parse_mode")
	}
	switch {
	case field == "text" && strings.TrimSpace(text) == "":
		return "", "", badRequest("message text is empty")
	case utf16Len(text) > limit && field == "caption":
		return "", "", badRequest("message caption is too long")
	case utf16Len(text) > limit:
		return "", "", badRequest("message is too long")
	}
	return text, markup, nil
}

const maxText, maxCaption = 4096, 1024

func (s *Server) sendLocked(c Call, id int64, chat *chatState, thread int64) (any, *refused) {
	m := &Message{Thread: thread, Own: true, Time: time.Now()}
	var r *refused
	switch {
	case c.Method == "sendMessage":
		m.Text, m.HTML, r = shownText(c, "text", maxText)
	case c.Method == "sendPoll":
		m.Poll, r = poll(c)
	default:
		m.Kind = kinds[c.Method]
		m.Data = c.Files[m.Kind]
		if name, ok := strings.CutPrefix(c.text(m.Kind), "attach://"); ok {
			m.Data = c.Files[name]
		}
		if len(m.Data) == 0 {
			return nil, badRequest("there is no %s in the request", m.Kind)
		}
		m.Text, m.HTML, r = shownText(c, "caption", maxCaption)
	}
	if r == nil {
		m.Buttons, r = keyboard(c)
	}
	if r != nil {
		return nil, r
	}
	if reply, ok := c.Params["reply_parameters"].(map[string]any); ok {
		n, _ := reply["message_id"].(json.Number)
		to, err := n.Int64()
		if _, there := chat.messages[to]; err != nil || !there && reply["allow_sending_without_reply"] != true {
			return nil, badRequest("message to be replied not found")
		} else if there {
			m.ReplyTo = to
		}
	}
	s.lastID++
	m.ID = s.lastID
	chat.messages[m.ID] = m
	s.signalLocked()
	return m.object(id, chat.kind), nil
}

// object is a message of the bot as the methods return it.
func (m *Message) object(chat int64, kind string) Object {
	out := Object{
		"message_id": m.ID, "date": m.Time.Unix(), "chat": Object{"id": chat, "type": kind},
		"from": Object{"id": BotID, "is_bot": true, "first_name": "Chela", "username": BotName},
	}
	file := Object{"file_id": "sent", "file_unique_id": "sent", "file_size": len(m.Data)}
	switch m.Kind {
	case "":
		if m.Poll == nil {
			out["text"] = m.Text
			break
		}
		out["poll"] = m.Poll
	case "photo":
		out["photo"] = []Object{file}
	default:
		out[m.Kind] = file
	}
	if m.Kind != "" && m.Text != "" {
		out["caption"] = m.Text
	}
	if m.Edits > 0 {
		out["edit_date"] = time.Now().Unix()
	}
	return out
}

func poll(c Call) (Object, *refused) {
	if n := utf8.RuneCountInString(c.text("question")); n < 1 || n > 300 {
		return nil, badRequest("poll question must be non-empty and have at most 300 characters")
	}
	options, _ := c.Params["options"].([]any)
	if len(options) < 2 || len(options) > 12 {
		return nil, badRequest("poll must have at least 2 and at most 12 options")
	}
	for _, e := range options {
		o, _ := e.(map[string]any)
		text, _ := o["text"].(string)
		if n := utf8.RuneCountInString(text); n < 1 || n > 100 {
			return nil, badRequest("poll options length must not exceed 100")
		}
	}
	return c.Params, nil
}

// keyboard returns the buttons of a message.
func keyboard(c Call) ([][]Object, *refused) {
	markup, ok := c.Params["reply_markup"].(map[string]any)
	if !ok {
		return nil, nil
	}
	rows, ok := markup["inline_keyboard"].([]any)
	if !ok {
		return nil, badRequest("object expected as reply markup")
	}
	var out [][]Object
	for _, row := range rows {
		list, _ := row.([]any)
		var line []Object
		for _, e := range list {
			o, _ := e.(map[string]any)
			text, _ := o["text"].(string)
			data, hasData := o["callback_data"].(string)
			url, hasURL := o["url"].(string)
			style, hasStyle := o["style"].(string)
			switch {
			case text == "":
				return nil, badRequest("can't parse inline keyboard button: Field \"text\" must be of type String")
			case hasData == hasURL:
				return nil, badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
			case hasData && (data == "" || len(data) > 64):
				return nil, badRequest("BUTTON_DATA_INVALID")
			case hasURL && !strings.Contains(url, "://"):
				return nil, badRequest("BUTTON_URL_INVALID")
			case hasStyle && style != "primary" && style != "success" && style != "danger":
				return nil, badRequest("BUTTON_STYLE_INVALID")
			}
			line = append(line, o)
		}
		out = append(out, line)
	}
	return out, nil
}

// changeLocked changes a message of a chat.
func (s *Server) changeLocked(c Call, id int64, chat *chatState) (any, *refused) {
	n, ok := c.number("message_id")
	m := chat.messages[n]
	verb := map[string]string{
		"editMessageText":    "edit",
		"editMessageCaption": "edit",
		"deleteMessage":      "delete",
		"setMessageReaction": "react",
		"pinChatMessage":     "pin",
		"unpinChatMessage":   "unpin",
	}[c.Method]
	if !ok || m == nil {
		return nil, badRequest("message to %s not found", verb)
	}
	switch c.Method {
	case "editMessageText", "editMessageCaption":
		field, limit := "text", maxText
		if c.Method == "editMessageCaption" {
			field, limit = "caption", maxCaption
		}
		text, markup, r := shownText(c, field, limit)
		switch {
		case r != nil:
			return nil, r
		case !m.Own:
			return nil, badRequest("message can't be edited")
		case field == "text" && m.Kind != "":
			return nil, badRequest("there is no text in the message to edit")
		case text == m.Text && markup == m.HTML:
			return nil, badRequest("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
		}
		m.Text, m.HTML, m.Buttons = text, markup, nil
		m.Edits++
		s.signalLocked()
		return m.object(id, chat.kind), nil
	case "deleteMessage":
		delete(chat.messages, n)
	case "setMessageReaction":
		list, _ := c.Params["reaction"].([]any)
		m.Reaction = ""
		for _, e := range list {
			o, _ := e.(map[string]any)
			emoji, _ := o["emoji"].(string)
			if o["type"] != "emoji" || !slices.Contains([]string{"👍", "👎", "❤", "🔥", "🎉", "👀", "🤔"}, emoji) {
				return nil, badRequest("REACTION_INVALID")
			}
			m.Reaction = emoji
		}
	case "pinChatMessage":
		m.Pinned = true
	case "unpinChatMessage":
		m.Pinned = false
	}
	s.signalLocked()
	return true, nil
}
