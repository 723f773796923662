package matrixtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	var fault *Fault
	for i, f := range s.faults {
		if strings.Contains(r.URL.Path, f.Path) && (f.Method == "" || f.Method == r.Method) {
			fault = &f
			s.faults = slices.Delete(s.faults, i, i+1)
			break
		}
	}
	s.mu.Unlock()
	if fault == nil || fault.Status == 0 && !fault.Cut {
		s.serve(w, r)
		return
	}
	if fault.Accept {
		s.serve(discard{}, r)
	}
	if fault.Cut {
		panic(http.ErrAbortHandler)
	}
	v := map[string]any{"errcode": fault.Code, "error": "fault of the test"}
	if fault.RetryAfter > 0 {
		v["retry_after_ms"] = fault.RetryAfter.Milliseconds()
	}
	reply(w, fault.Status, v)
}

// discard is a writer for an answer that nobody gets.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) WriteHeader(int)             {}
func (discard) Write(b []byte) (int, error) { return len(b), nil }

// serve answers a request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	parts, err := segments(r.URL)
	if err != nil {
		refuse(w, http.StatusBadRequest, "M_INVALID_PARAM", err.Error())
		return
	}
	route := r.Method + " " + strings.Join(parts[:min(len(parts), 4)], "/")
	if route == "POST _matrix/client/v3/login" {
		s.login(w, r)
		return
	}
	if strings.HasPrefix(route, "GET _matrix/media/v3/download") && s.OldMedia {
		s.download(w, parts)
		return
	}
	s.mu.Lock()
	valid := r.Header.Get("Authorization") == "Bearer "+s.token
	s.mu.Unlock()
	if !valid {
		refuse(w, http.StatusUnauthorized, "M_UNKNOWN_TOKEN", "Invalid access token passed.")
		return
	}
	if r.URL.Query().Has("access_token") {
		refuse(w, http.StatusBadRequest, "M_INVALID_PARAM", "the token is in the URL")
		return
	}
	if route == "GET _matrix/client/v3/sync" {
		s.sync(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case route == "GET _matrix/client/v3/account" && len(parts) == 5 && parts[4] == "whoami":
		reply(w, 200, map[string]any{"user_id": s.Bot})
	case route == "GET _matrix/client/v3/profile" && len(parts) == 6:
		reply(w, 200, map[string]any{"displayname": s.Display})
	case strings.HasSuffix(route, "_matrix/client/v3/user") && len(parts) == 7 && parts[4] == s.Bot &&
		parts[6] == "m.direct":
		s.accountDataLocked(w, r)
	case route == "GET _matrix/client/v3/directory" && len(parts) == 6:
		for _, room := range s.rooms {
			if room.Alias == parts[5] {
				reply(w, 200, map[string]any{"room_id": room.ID})
				return
			}
		}
		refuse(w, http.StatusNotFound, "M_NOT_FOUND", "Room alias not found")
	case route == "POST _matrix/client/v3/createRoom":
		s.createLocked(w, r)
	case strings.HasPrefix(route, "POST _matrix/media/v3/upload"):
		s.uploadLocked(w, r)
	case strings.HasPrefix(route, "GET _matrix/client/v1/media") && len(parts) == 7 && !s.OldMedia:
		s.mu.Unlock()
		s.download(w, parts)
		s.mu.Lock()
	case len(parts) > 5 && parts[3] == "rooms":
		s.roomLocked(w, r, parts[4], parts[5:])
	default:
		refuse(w, http.StatusNotFound, "M_UNRECOGNIZED", "Unrecognized request")
	}
}

// segments returns the parts of a path, each unescaped.
func segments(u *url.URL) ([]string, error) {
	var out []string
	for p := range strings.SplitSeq(strings.Trim(u.EscapedPath(), "/"), "/") {
		s, err := url.PathUnescape(p)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// decode reads a body of JSON.
func decode(w http.ResponseWriter, r *http.Request, v any) bool {
	const most = 65536
	data, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	switch {
	case err != nil:
		return false
	case len(data) > most:
		refuse(w, http.StatusRequestEntityTooLarge, "M_TOO_LARGE", "event too large")
		return false
	case r.Header.Get("Content-Type") != "application/json" || !utf8.Valid(data) || json.Unmarshal(data, v) != nil:
		refuse(w, http.StatusBadRequest, "M_NOT_JSON", "Content not JSON.")
		return false
	}
	return true
}

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Type       string `json:"type"`
		Password   string `json:"password"`
		Device     string `json:"device_id"`
		Identifier struct {
			Type string `json:"type"`
			User string `json:"user"`
		} `json:"identifier"`
	}
	if !decode(w, r, &in) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Type != "m.login.password" || in.Identifier.Type != "m.id.user" || in.Identifier.User != s.Bot ||
		in.Password != s.Password {
		refuse(w, http.StatusForbidden, "M_FORBIDDEN", "Invalid username or password")
		return
	}
	s.logins++
	s.token = fmt.Sprint("secret-login-", s.logins)
	device := in.Device
	if device == "" {
		device = "DEVICE"
	}
	reply(w, 200, map[string]any{"user_id": s.Bot, "access_token": s.token, "device_id": device})
}

func (s *Server) accountDataLocked(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPut:
		direct := map[string]any{}
		if decode(w, r, &direct) {
			s.direct = direct
			reply(w, 200, struct{}{})
		}
	case len(s.direct) == 0:
		refuse(w, http.StatusNotFound, "M_NOT_FOUND", "Account data not found")
	default:
		reply(w, 200, s.direct)
	}
}

func (s *Server) createLocked(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Direct bool     `json:"is_direct"`
		Invite []string `json:"invite"`
		Preset string   `json:"preset"`
	}
	if !decode(w, r, &in) {
		return
	}
	if !slices.Contains([]string{"private_chat", "trusted_private_chat", "public_chat"}, in.Preset) ||
		!in.Direct || len(in.Invite) != 1 {
		refuse(w, http.StatusBadRequest, "M_BAD_JSON", "not a direct room")
		return
	}
	id := fmt.Sprintf("!created%d:example.org", len(s.rooms))
	s.rooms[id] = &Room{ID: id, Members: []string{s.Bot, in.Invite[0]}}
	reply(w, 200, map[string]any{"room_id": id})
}

func (s *Server) uploadLocked(w http.ResponseWriter, r *http.Request) {
	most := s.MaxUpload
	if most == 0 {
		most = 1 << 20
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, int64(most)+1))
	switch {
	case err != nil:
	case len(data) > most:
		refuse(w, http.StatusRequestEntityTooLarge, "M_TOO_LARGE", "Upload request body is too large")
	case r.Header.Get("Content-Type") == "":
		refuse(w, http.StatusBadRequest, "M_MISSING_PARAM", "no content type")
	default:
		reply(w, 200, map[string]any{"content_uri": s.mediaLocked(r.Header.Get("Content-Type"), data)})
	}
}

func (s *Server) download(w http.ResponseWriter, parts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := parts[len(parts)-1]
	data, ok := s.media[id]
	if !ok || parts[len(parts)-2] != "example.org" {
		refuse(w, http.StatusNotFound, "M_NOT_FOUND", "Not found")
		return
	}
	w.Header().Set("Content-Type", s.kinds[id])
	_, _ = w.Write(data)
}

// roomLocked answers the requests about a room.
func (s *Server) roomLocked(w http.ResponseWriter, r *http.Request, id string, rest []string) {
	if r.Method == http.MethodPost && rest[0] == "join" {
		if s.invites[id] == "" || s.rooms[id] == nil {
			refuse(w, http.StatusForbidden, "M_FORBIDDEN", "You are not invited to this room.")
			return
		}
		delete(s.invites, id)
		s.rooms[id].Members = append(s.rooms[id].Members, s.Bot)
		s.addLocked(Event{
			Type:    "m.room.member",
			Sender:  s.Bot,
			State:   &s.Bot,
			room:    id,
			Content: map[string]any{"membership": "join"},
		})
		reply(w, 200, map[string]any{"room_id": id})
		return
	}
	if !s.inLocked(id) {
		refuse(w, http.StatusForbidden, "M_FORBIDDEN", "User not in room")
		return
	}
	route := r.Method + " " + rest[0]
	switch {
	case route == "PUT send" && len(rest) == 3:
		s.sendLocked(w, r, id, rest[1], rest[2])
	case route == "PUT redact" && len(rest) == 3:
		if !s.redactLocked(rest[1]) {
			refuse(w, http.StatusNotFound, "M_NOT_FOUND", "Event not found.")
			return
		}
		s.notifyLocked()
		reply(w, 200, map[string]any{"event_id": "$redaction"})
	case route == "GET event" && len(rest) == 2:
		for _, e := range s.events {
			if e.ID == rest[1] && e.room == id {
				reply(w, 200, s.viewLocked(e))
				return
			}
		}
		refuse(w, http.StatusNotFound, "M_NOT_FOUND", "Event not found.")
	case route == "GET joined_members":
		joined := map[string]any{}
		for _, m := range s.rooms[id].Members {
			joined[m] = map[string]any{"display_name": s.names[m]}
		}
		reply(w, 200, map[string]any{"joined": joined})
	case route == "GET state" && len(rest) == 2:
		s.stateLocked(w, id, rest[1])
	case route == "GET messages":
		s.messagesLocked(w, r, id)
	case route == "GET relations" && len(rest) == 4 && strings.HasPrefix(r.URL.Path, "/_matrix/client/v1/"):
		s.relationsLocked(w, id, rest[1], rest[2], rest[3])
	case route == "PUT typing" && len(rest) == 2 && rest[1] == s.Bot, route == "POST receipt" &&
		len(rest) == 3 && rest[1] == "m.read":
		var in map[string]any
		if decode(w, r, &in) {
			reply(w, 200, struct{}{})
		}
	default:
		refuse(w, http.StatusNotFound, "M_UNRECOGNIZED", "Unrecognized request")
	}
}

func (s *Server) stateLocked(w http.ResponseWriter, id, kind string) {
	switch room := s.rooms[id]; {
	case kind == "m.room.name" && room.Name != "":
		reply(w, 200, map[string]any{"name": room.Name})
	case kind == "m.room.encryption" && room.Crypt:
		reply(w, 200, map[string]any{"algorithm": "m.megolm.v1.aes-sha2"})
	default:
		refuse(w, http.StatusNotFound, "M_NOT_FOUND", "Event not found.")
	}
}

// sendLocked accepts an event of the bot, once for each transaction id.
func (s *Server) sendLocked(w http.ResponseWriter, r *http.Request, room, kind, txn string) {
	var c map[string]any
	if !decode(w, r, &c) {
		return
	}
	if err := check(kind, c); err != nil {
		refuse(w, http.StatusBadRequest, "M_BAD_JSON", err.Error())
		return
	}
	key := room + " " + kind + " " + txn
	id, ok := s.txns[key]
	if !ok {
		s.bodies = append(s.bodies, c)
		id = s.addLocked(Event{Type: kind, Sender: s.Bot, Content: c, room: room, txn: txn})
		s.txns[key] = id
	}
	reply(w, 200, map[string]any{"event_id": id})
}

// check reports what is wrong with an event.
func check(kind string, c map[string]any) error {
	rel, _ := c["m.relates_to"].(map[string]any)
	if kind == "m.reaction" {
		if rel["rel_type"] != "m.annotation" || rel["event_id"] == nil || rel["key"] == nil {
			return fmt.Errorf("not a reaction: %v", c)
		}
		return nil
	}
	if kind != "m.room.message" {
		return fmt.Errorf("unexpected event %s", kind)
	}
	text, _ := c["body"].(string)
	if text == "" || c["msgtype"] == nil {
		return fmt.Errorf("no body or msgtype: %v", c)
	}
	if (c["formatted_body"] == nil) != (c["format"] == nil) ||
		c["format"] != nil && c["format"] != "org.matrix.custom.html" {
		return fmt.Errorf("wrong format: %v", c)
	}
	if html, _ := c["formatted_body"].(string); strings.Contains(html, "<script") ||
		strings.Count(html, "<p>") != strings.Count(html, "</p>") {
		return fmt.Errorf("bad HTML: %s", html)
	}
	if rel["rel_type"] == "m.replace" {
		inner, ok := c["m.new_content"].(map[string]any)
		if !ok || rel["event_id"] == nil {
			return fmt.Errorf("not an edit: %v", c)
		}
		return check(kind, inner)
	}
	switch c["msgtype"] {
	case "m.image", "m.file", "m.audio", "m.video":
		if u, _ := c["url"].(string); !strings.HasPrefix(u, "mxc://") {
			return fmt.Errorf("no url: %v", c)
		}
	}
	return nil
}

// viewLocked returns an event as the bot sees it.
func (s *Server) viewLocked(e Event) Event {
	if e.txn != "" {
		u := map[string]any{"transaction_id": e.txn}
		for k, v := range e.Unsigned {
			u[k] = v
		}
		e.Unsigned = u
	}
	return e
}

// relationsLocked lists the events that refer to another one, newest first.
func (s *Server) relationsLocked(w http.ResponseWriter, room, id, rel, kind string) {
	chunk := []Event{}
	for _, e := range slices.Backward(s.events) {
		to, _ := e.Content["m.relates_to"].(map[string]any)
		if e.room == room && e.Type == kind && to["rel_type"] == rel && to["event_id"] == id {
			chunk = append(chunk, e)
		}
	}
	reply(w, 200, map[string]any{"chunk": chunk})
}

// messagesLocked lists events, newest first.
func (s *Server) messagesLocked(w http.ResponseWriter, r *http.Request, room string) {
	q := r.URL.Query()
	limit, _ := strconv.Atoi(q.Get("limit"))
	if q.Get("dir") != "b" || limit <= 0 {
		refuse(w, http.StatusBadRequest, "M_MISSING_PARAM", "dir or limit")
		return
	}
	from, to := len(s.events), 0
	if v := q.Get("from"); v != "" {
		from = position(v)
	}
	if v := q.Get("to"); v != "" {
		to = position(v)
	}
	chunk := []Event{}
	out := map[string]any{}
	for i := from - 1; i >= to && i >= 0; i-- {
		if s.events[i].room != room {
			continue
		}
		if len(chunk) == limit {
			out["end"] = token(i + 1)
			break
		}
		chunk = append(chunk, s.viewLocked(s.events[i]))
	}
	out["chunk"] = chunk
	reply(w, 200, out)
}

func token(n int) string { return fmt.Sprint("s", n) }

func position(s string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(s, "s"))
	return n
}

// sync answers /sync: at once if there is news, or after the time that the client names.
func (s *Server) sync(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	wait, err := strconv.Atoi(q.Get("timeout"))
	if f := q.Get("filter"); err != nil || f != "" && !json.Valid([]byte(f)) {
		refuse(w, http.StatusBadRequest, "M_INVALID_PARAM", "timeout or filter")
		return
	}
	var filter struct {
		Room struct {
			Timeline struct {
				Limit int `json:"limit"`
			} `json:"timeline"`
		} `json:"room"`
	}
	_ = json.Unmarshal([]byte(q.Get("filter")), &filter)
	limit := filter.Room.Timeline.Limit
	if limit <= 0 {
		limit = 10
	}
	timer := time.NewTimer(time.Duration(wait) * time.Millisecond)
	defer timer.Stop()
	first := true
	for {
		s.mu.Lock()
		since, full := 0, q.Get("since") == ""
		if !full {
			since = position(q.Get("since"))
		}
		if first && !full && since != s.synced {
			s.synced = since
			s.notifyLocked()
		}
		first = false
		if r.Header.Get("Authorization") != "Bearer "+s.token {
			s.mu.Unlock()
			refuse(w, http.StatusUnauthorized, "M_UNKNOWN_TOKEN", "Access token has expired")
			return
		}
		changed := s.changed
		if full || since < len(s.events) || len(s.fresh) > 0 {
			out := s.newsLocked(since, limit)
			s.mu.Unlock()
			reply(w, 200, out)
			return
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			reply(w, 200, map[string]any{"next_batch": token(since)})
			return
		case <-r.Context().Done():
			return
		case <-s.stopped:
			return
		}
	}
}

// newsLocked returns the events since a position.
func (s *Server) newsLocked(since, limit int) map[string]any {
	join, invite := map[string]any{}, map[string]any{}
	for id := range s.rooms {
		if !s.inLocked(id) {
			continue
		}
		var events []Event
		before, limited := since, false
		for i := len(s.events) - 1; i >= since; i-- {
			if s.events[i].room != id {
				continue
			}
			if len(events) == limit {
				limited, before = true, i+1
				break
			}
			events = append(events, s.viewLocked(s.events[i]))
		}
		if len(events) == 0 {
			continue
		}
		slices.Reverse(events)
		join[id] = map[string]any{"timeline": map[string]any{
			"events":     events,
			"limited":    limited,
			"prev_batch": token(before),
		}}
	}
	for id, from := range s.fresh {
		e := Event{Type: "m.room.member", Sender: from, State: &s.Bot, Content: map[string]any{"membership": "invite"}}
		invite[id] = map[string]any{"invite_state": map[string]any{"events": []Event{e}}}
	}
	clear(s.fresh)
	return map[string]any{
		"next_batch": token(len(s.events)), "rooms": map[string]any{"join": join, "invite": invite},
		"account_data": map[string]any{"events": []any{map[string]any{"type": "m.direct", "content": s.direct}}},
	}
}
