package discordtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// failure is a refusal of the REST API.
type failure struct {
	status, code int
	message      string
}

func invalid(format string, args ...any) *failure {
	return &failure{400, 50035, "Invalid Form Body: " + fmt.Sprintf(format, args...)}
}

var (
	unknownChannel = &failure{404, 10003, "Unknown Channel"}
	unknownMessage = &failure{404, 10008, "Unknown Message"}
)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, isAPI := strings.CutPrefix(r.URL.EscapedPath(), "/api/v10")
	switch {
	case r.URL.Path == "/gate/":
		s.serveGate(w, r)
		return
	case strings.HasPrefix(r.URL.Path, "/attachments/"):
		s.serveFile(w, r)
		return
	case !isAPI:
		http.NotFound(w, r)
		return
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return
	}
	s.mu.Lock()
	fault, faulty := s.faultLocked(r.Method, path, b)
	status, answer := 0, any(nil)
	if !faulty || fault.Accept {
		status, answer = s.answerLocked(r, path, b)
	}
	if faulty {
		status, answer = faultAnswer(fault)
	}
	s.requests = append(s.requests, Request{r.Method, path, string(b), time.Now(), status})
	s.mu.Unlock()
	if faulty && fault.Cut {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(int(fault.RetryAfter+1)))
	}
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// faultLocked removes and returns the first fault for a request.
func (s *Server) faultLocked(method, path string, body []byte) (Fault, bool) {
	i := slices.IndexFunc(s.faults, func(f Fault) bool {
		return (f.Method == "" || f.Method == method) && strings.Contains(path, f.Path) &&
			bytes.Contains(body, []byte(f.Body))
	})
	if i < 0 {
		return Fault{}, false
	}
	f := s.faults[i]
	s.faults = slices.Delete(s.faults, i, i+1)
	return f, true
}

func faultAnswer(f Fault) (int, any) {
	if f.Status == 0 {
		f.Status = 500
	}
	if f.Status == http.StatusTooManyRequests {
		return 429, map[string]any{"message": "You are being rate limited.", "retry_after": f.RetryAfter, "global": f.Global}
	}
	return f.Status, map[string]any{"message": http.StatusText(f.Status), "code": 0}
}

// serveFile serves an attachment.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	var found *Attachment
	for _, m := range s.messages {
		for i := range m.Attachments {
			if strings.HasSuffix(m.Attachments[i].URL, r.URL.Path) && !m.gone {
				found = &m.Attachments[i]
			}
		}
	}
	s.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "":
		http.Error(w, "the token is not for this host", http.StatusBadRequest)
	case strings.HasSuffix(r.URL.Path, "/redirect"):
		http.Redirect(w, r, "/attachments/elsewhere", http.StatusFound)
	case strings.HasSuffix(r.URL.Path, "/elsewhere"):
		_, _ = w.Write([]byte("elsewhere"))
	case found == nil:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(found.data)
	}
}

// answerLocked carries out a request.
func (s *Server) answerLocked(r *http.Request, path string, b []byte) (int, any) {
	status, answer, bad := s.routeLocked(r, path, b)
	if bad != nil {
		return bad.status, map[string]any{"message": bad.message, "code": bad.code}
	}
	return status, answer
}

func (s *Server) routeLocked(r *http.Request, path string, b []byte) (int, any, *failure) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "interactions" && len(parts) == 4 && parts[3] == "callback" && r.Method == "POST" {
		return s.callbackLocked(parts[1], parts[2], b)
	}
	if r.Header.Get("Authorization") != "Bot "+Token {
		return 0, nil, &failure{401, 0, "401: Unauthorized"}
	}
	if !strings.HasPrefix(r.Header.Get("User-Agent"), "DiscordBot (") {
		return 0, nil, &failure{403, 40333, "internal network error"}
	}
	switch route := r.Method + " " + path; {
	case route == "GET /gateway/bot":
		remaining := 1000
		if s.gate.limited {
			remaining = 0
		}
		return 200, map[string]any{
			"url": "ws" + s.base[len("http"):] + "/gate", "shards": 1,
			"session_start_limit": map[string]any{
				"total":           1000,
				"remaining":       remaining,
				"reset_after":     300_000,
				"max_concurrency": 1,
			},
		}, nil
	case route == "GET /users/@me":
		return 200, s.users[Self], nil
	case route == "GET /applications/@me":
		return 200, map[string]any{"id": App, "name": "chela"}, nil
	case route == "POST /users/@me/channels":
		var in struct {
			Recipient string `json:"recipient_id"`
		}
		if bad := strict(b, &in); bad != nil {
			return 0, nil, bad
		}
		if _, ok := s.users[in.Recipient]; !ok {
			return 0, nil, &failure{400, 50033, "Invalid Recipient(s)"}
		}
		return 200, s.channels[s.dmLocked(in.Recipient)], nil
	case route == "GET /users/@me/guilds":
		out := []map[string]any{}
		for id := range s.members {
			out = append(out, map[string]any{"id": id, "name": "guild " + id})
		}
		return 200, out, nil
	case parts[0] == "guilds" && r.Method == "GET":
		return s.guildLocked(parts, r.URL.Query())
	case route == "PUT /applications/"+App+"/commands":
		return s.menuLocked(b)
	case parts[0] == "webhooks" && r.Method == "DELETE" && strings.HasSuffix(path, "/messages/@original"):
		return 204, nil, nil
	case parts[0] == "channels" && len(parts) > 1:
		c, ok := s.channels[parts[1]]
		if !ok {
			return 0, nil, unknownChannel
		}
		return s.channelLocked(r, c, parts[2:], b)
	}
	return 0, nil, &failure{404, 0, "404: Not Found"}
}

// strict decodes JSON and refuses unknown members.
func strict(b []byte, v any) *failure {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return invalid("%v", err)
	}
	return nil
}

// callbackLocked answers an interaction.
func (s *Server) callbackLocked(id, token string, b []byte) (int, any, *failure) {
	var in struct {
		Type int `json:"type"`
		Data *struct {
			Flags int `json:"flags"`
		} `json:"data"`
	}
	if bad := strict(b, &in); bad != nil {
		return 0, nil, bad
	}
	switch {
	case token != "itoken-"+id:
		return 0, nil, &failure{404, 10062, "Unknown interaction"}
	case s.acks[id] > 0:
		return 0, nil, &failure{400, 40060, "Interaction has already been acknowledged."}
	case in.Type != 5 && in.Type != 6 || in.Type == 5 && (in.Data == nil || in.Data.Flags != 64):
		return 0, nil, invalid("type %d", in.Type)
	}
	s.acks[id]++
	return 204, nil, nil
}

var commandName = regexp.MustCompile(`^[-_\p{Ll}\p{Lo}\p{N}]{1,32}$`)

// menuLocked replaces the slash commands.
func (s *Server) menuLocked(b []byte) (int, any, *failure) {
	var in []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Type        int    `json:"type"`
		Contexts    []int  `json:"contexts"`
		Options     []struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			Type        int    `json:"type"`
			Required    bool   `json:"required"`
		} `json:"options"`
	}
	if bad := strict(b, &in); bad != nil {
		return 0, nil, bad
	}
	if len(in) > 100 {
		return 0, nil, &failure{400, 30032, "Maximum number of application commands reached (100)"}
	}
	names := []string{}
	for _, c := range in {
		if n := utf8.RuneCountInString(c.Description); !commandName.MatchString(c.Name) || n < 1 || n > 100 ||
			slices.Contains(names, c.Name) {
			return 0, nil, invalid("command %q", c.Name)
		}
		for _, o := range c.Options {
			if !commandName.MatchString(o.Name) || o.Description == "" || o.Type < 1 {
				return 0, nil, invalid("option %q", o.Name)
			}
		}
		names = append(names, c.Name)
	}
	s.menu = names
	return 200, in, nil
}

// guildLocked answers questions about a guild.
func (s *Server) guildLocked(parts []string, q url.Values) (int, any, *failure) {
	members, ok := s.members[parts[1]]
	if !ok {
		return 0, nil, &failure{404, 10004, "Unknown Guild"}
	}
	what := strings.Join(parts[2:], "/")
	limit, err := strconv.Atoi(q.Get("limit"))
	if what != "channels" && (err != nil || limit < 1 || limit > 1000) {
		return 0, nil, invalid("limit")
	}
	switch what {
	case "channels":
		out := []Channel{}
		for _, c := range s.channels {
			if c.Guild == parts[1] && c.Type != Thread {
				out = append(out, c)
			}
		}
		slices.SortFunc(out, func(a, b Channel) int { return strings.Compare(a.ID, b.ID) })
		return 200, out, nil
	case "members", "members/search":
		if what == "members/search" && q.Get("query") == "" {
			return 0, nil, invalid("query")
		}
		out := []Member{}
		for _, m := range members {
			if strings.HasPrefix(strings.ToLower(m.User.Username), strings.ToLower(q.Get("query"))) && len(out) < limit {
				out = append(out, m)
			}
		}
		return 200, out, nil
	}
	return 0, nil, &failure{404, 0, "404: Not Found"}
}

// channelLocked carries out a request about a channel.
func (s *Server) channelLocked(r *http.Request, c Channel, parts []string, b []byte) (int, any, *failure) {
	what := r.Method + " " + strings.Join(parts, "/")
	switch {
	case what == "GET ":
		return 200, c, nil
	case what == "POST typing":
		s.typing[c.ID]++
		return 204, nil, nil
	case what == "POST threads":
		return s.threadLocked(c, b)
	case what == "POST messages":
		return s.createLocked(r, c, b)
	case what == "GET messages":
		return s.listLocked(c, r.URL.Query())
	}
	if len(parts) < 2 || parts[0] != "messages" {
		return 0, nil, &failure{404, 0, "404: Not Found"}
	}
	if parts[1] == "pins" && len(parts) == 3 {
		m := s.messageLocked(parts[2])
		if m == nil || m.Channel != c.ID {
			return 0, nil, unknownMessage
		}
		m.Pinned = r.Method == "PUT"
		return 204, nil, nil
	}
	m := s.messageLocked(parts[1])
	if m == nil || m.Channel != c.ID {
		return 0, nil, unknownMessage
	}
	switch {
	case len(parts) == 2 && r.Method == "GET":
		return 200, m, nil
	case len(parts) == 2 && r.Method == "DELETE":
		m.gone = true
		return 204, nil, nil
	case len(parts) == 2 && r.Method == "PATCH":
		return s.editLocked(m, b)
	case len(parts) == 5 && parts[2] == "reactions" && parts[4] == "@me":
		return s.reactLocked(m, r.Method, parts[3])
	}
	return 0, nil, &failure{405, 0, "405: Method Not Allowed"}
}

// editLocked changes the text of a message of the bot.
func (s *Server) editLocked(m *Message, b []byte) (int, any, *failure) {
	var in struct {
		Content  string   `json:"content"`
		Mentions *allowed `json:"allowed_mentions"`
	}
	if bad := strict(b, &in); bad != nil {
		return 0, nil, bad
	}
	switch n := utf8.RuneCountInString(in.Content); {
	case m.Author.ID != Self:
		return 0, nil, &failure{403, 50005, "Cannot edit a message authored by another user"}
	case n == 0 && len(m.Attachments) == 0:
		return 0, nil, &failure{400, 50006, "Cannot send an empty message"}
	case n > 2000:
		return 0, nil, invalid("content: Must be 2000 or fewer in length.")
	case in.Mentions.bad():
		return 0, nil, invalid("allowed_mentions")
	}
	now := time.Now()
	m.Text, m.Edited = in.Content, &now
	return 200, m, nil
}

// reactLocked adds or removes a reaction of the bot.
func (s *Server) reactLocked(m *Message, method, escaped string) (int, any, *failure) {
	name, err := url.PathUnescape(escaped)
	if err != nil || name == "" || name[0] < 0x80 && !strings.Contains(name, ":") {
		return 0, nil, &failure{400, 10014, "Unknown Emoji"}
	}
	e := Emoji{Name: name}
	if before, after, ok := strings.Cut(name, ":"); ok {
		e = Emoji{ID: after, Name: before}
	}
	m.Reactions = slices.DeleteFunc(m.Reactions, func(r Reaction) bool { return r.Emoji == e })
	if method == "PUT" {
		m.Reactions = append(m.Reactions, Reaction{1, true, e})
	}
	return 204, nil, nil
}

// threadLocked makes a thread.
func (s *Server) threadLocked(c Channel, b []byte) (int, any, *failure) {
	var in struct {
		Name    string          `json:"name"`
		Type    int             `json:"type"`
		Archive int             `json:"auto_archive_duration"`
		Message json.RawMessage `json:"message"`
	}
	if bad := strict(b, &in); bad != nil {
		return 0, nil, bad
	}
	if n := utf8.RuneCountInString(in.Name); n < 1 || n > 100 || c.Type == Direct || c.Type == Thread ||
		c.Type == Forum && in.Message == nil {
		return 0, nil, invalid("name or type")
	}
	t := Channel{ID: s.idLocked(), Type: Thread, Guild: c.Guild, Parent: c.ID, Name: in.Name}
	s.channels[t.ID] = t
	return 201, t, nil
}

// listLocked returns messages, newest first.
func (s *Server) listLocked(c Channel, q url.Values) (int, any, *failure) {
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 || limit > 100 {
		return 0, nil, invalid("limit")
	}
	out := []Message{}
	for _, m := range slices.Backward(s.messages) {
		if m.Channel == c.ID && !m.gone && len(out) < limit {
			out = append(out, *m)
		}
	}
	return 200, out, nil
}

// allowed says who is notified.
type allowed struct {
	Parse []string `json:"parse"`
}

// bad reports whether a message could notify everybody.
func (a *allowed) bad() bool {
	return a == nil || slices.ContainsFunc(a.Parse, func(p string) bool { return p != "users" })
}

// draft is a message to be created.
type draft struct {
	Content   string   `json:"content"`
	Nonce     string   `json:"nonce"`
	Enforce   bool     `json:"enforce_nonce"`
	Mentions  *allowed `json:"allowed_mentions"`
	Reference *struct {
		ID   string `json:"message_id"`
		Fail *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
	Components []json.RawMessage `json:"components"`
	Files      []struct {
		ID   int    `json:"id"`
		Name string `json:"filename"`
	} `json:"attachments"`
	Poll json.RawMessage `json:"poll"`
}

// createLocked creates a message of the bot.
func (s *Server) createLocked(r *http.Request, c Channel, b []byte) (int, any, *failure) {
	var in draft
	files := map[string][]byte{}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return 0, nil, invalid("content type")
	case kind == "multipart/form-data":
		form, err := multipart.NewReader(bytes.NewReader(b), params["boundary"]).ReadForm(64 << 20)
		if err != nil || len(form.Value["payload_json"]) != 1 {
			return 0, nil, invalid("form: %v", err)
		}
		b = []byte(form.Value["payload_json"][0])
		for name, list := range form.File {
			f, err := list[0].Open()
			if err != nil {
				return 0, nil, invalid("%v", err)
			}
			files[name], _ = io.ReadAll(f)
			f.Close()
		}
	case kind != "application/json":
		return 0, nil, invalid("content type")
	}
	if bad := strict(b, &in); bad != nil {
		return 0, nil, bad
	}
	if bad := in.check(files); bad != nil {
		return 0, nil, bad
	}
	if in.Enforce {
		for _, m := range s.messages {
			if m.Nonce == in.Nonce && m.Author.ID == Self && time.Since(m.Time) < 5*time.Minute {
				return 200, m, nil
			}
		}
	}
	if c.Type == Forum {
		return 0, nil, &failure{400, 50008, "Cannot send messages in a non-text channel"}
	}
	m := &Message{
		ID: s.idLocked(), Channel: c.ID, Guild: c.Guild, Author: s.users[Self], Text: in.Content, Time: time.Now(),
		Mentions: []User{}, Attachments: []Attachment{}, Components: in.Components, Poll: in.Poll, Nonce: in.Nonce,
	}
	for _, f := range in.Files {
		m.Attachments = append(m.Attachments, s.attachLocked(f.Name, "", files[fmt.Sprintf("files[%d]", f.ID)]))
	}
	if in.Reference != nil {
		if old := s.messageLocked(in.Reference.ID); old != nil {
			m.Type, m.Reference = 19, map[string]any{"message_id": in.Reference.ID}
		}
	}
	s.messages = append(s.messages, m)
	if s.gate.session != "" { // the bot receives its own messages, too
		if e, err := json.Marshal(m); err == nil {
			s.dispatchLocked("MESSAGE_CREATE", e)
		}
	}
	return 200, m, nil
}

// check refuses what Discord refuses.
func (d *draft) check(files map[string][]byte) *failure {
	switch {
	case utf8.RuneCountInString(d.Content) > 2000:
		return invalid("content: Must be 2000 or fewer in length.")
	case strings.TrimSpace(d.Content) == "" && len(d.Files) == 0 && d.Poll == nil:
		return &failure{400, 50006, "Cannot send an empty message"}
	case len(d.Nonce) > 25 || d.Enforce && d.Nonce == "":
		return invalid("nonce")
	case d.Mentions.bad():
		return invalid("allowed_mentions")
	case d.Reference != nil && (d.Reference.Fail == nil || *d.Reference.Fail):
		return invalid("message_reference: the test wants fail_if_not_exists false")
	case len(d.Files) != len(files) || len(files) > 10:
		return invalid("attachments")
	}
	for _, f := range d.Files {
		if _, ok := files[fmt.Sprintf("files[%d]", f.ID)]; !ok || f.Name == "" {
			return invalid("attachments")
		}
	}
	if bad := checkPoll(d.Poll); bad != nil {
		return bad
	}
	return checkRows(d.Components)
}

// checkPoll checks a poll.
func checkPoll(raw json.RawMessage) *failure {
	if raw == nil {
		return nil
	}
	type text struct {
		Text string `json:"text"`
	}
	var p struct {
		Question text `json:"question"`
		Answers  []struct {
			Media text `json:"poll_media"`
		} `json:"answers"`
		Hours    int  `json:"duration"`
		Multiple bool `json:"allow_multiselect"`
	}
	if bad := strict(raw, &p); bad != nil {
		return bad
	}
	n := utf8.RuneCountInString(p.Question.Text)
	if n < 1 || n > 300 || len(p.Answers) < 1 || len(p.Answers) > 10 || p.Hours < 1 || p.Hours > 768 {
		return invalid("poll")
	}
	for _, a := range p.Answers {
		if n := utf8.RuneCountInString(a.Media.Text); n < 1 || n > 55 {
			return invalid("poll answer")
		}
	}
	return nil
}

// checkRows checks buttons.
func checkRows(rows []json.RawMessage) *failure {
	if len(rows) > 5 {
		return invalid("components: Must be 5 or fewer in length.")
	}
	ids := map[string]bool{}
	for _, raw := range rows {
		var row struct {
			Type       int `json:"type"`
			Components []struct {
				Type   int    `json:"type"`
				Style  int    `json:"style"`
				Label  string `json:"label"`
				Custom string `json:"custom_id"`
				URL    string `json:"url"`
			} `json:"components"`
		}
		if bad := strict(raw, &row); bad != nil {
			return bad
		}
		if row.Type != 1 || len(row.Components) < 1 || len(row.Components) > 5 {
			return invalid("components: a row has 1 to 5 buttons")
		}
		for _, c := range row.Components {
			n := utf8.RuneCountInString(c.Label)
			if c.Type != 2 || c.Style < 1 || c.Style > 5 || n < 1 || n > 80 || utf8.RuneCountInString(c.Custom) > 100 {
				return invalid("button %+v", c)
			}
			if (c.Style == 5) != (c.URL != "") || (c.Style != 5) != (c.Custom != "") || c.Custom != "" && ids[c.Custom] {
				return invalid("button %+v", c)
			}
			ids[c.Custom] = true
		}
	}
	return nil
}
