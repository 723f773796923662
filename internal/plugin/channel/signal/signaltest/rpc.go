package signaltest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// refusal is an error of JSON-RPC.
type refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

func (r *refusal) Error() string { return r.Message }

func refuse(code int, format string, args ...any) error {
	return &refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api/v1/rpc":
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
		} else if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
			w.WriteHeader(http.StatusUnsupportedMediaType)
		} else {
			s.rpc(w, r)
		}
	case "/api/v1/events", "/api/v1/check":
		name := strings.TrimPrefix(r.URL.Path, "/api/v1/")
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
		} else if f := s.fault(name); f != nil {
			fail(w, f)
		} else if name == "events" {
			s.stream(w, r)
		}
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// fault returns the fault of a request, once; nil: none.
func (s *Server) fault(method string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, method)
	for i, f := range s.faults {
		if f.Method == "" || f.Method == method {
			s.faults = slices.Delete(s.faults, i, i+1)
			return &f
		}
	}
	return nil
}

func fail(w http.ResponseWriter, f *Fault) {
	if f.Cut {
		panic(http.ErrAbortHandler)
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
	}
	if f.Status != 0 {
		w.WriteHeader(f.Status)
	}
	_, _ = io.WriteString(w, f.Body)
}

// request is a request of JSON-RPC.
type request struct {
	Version string         `json:"jsonrpc"`
	ID      any            `json:"id"`
	Method  string         `json:"method"`
	Params  map[string]any `json:"params"`
}

func (s *Server) rpc(w http.ResponseWriter, r *http.Request) {
	var q request
	d := json.NewDecoder(io.LimitReader(r.Body, 128<<20))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(&q); err != nil {
		reply(w, nil, nil, &refusal{Code: -32700, Message: err.Error()})
		return
	}
	f := s.fault(q.Method)
	if f != nil && !f.Accept && f.Code == 0 {
		fail(w, f)
		return
	}
	var result any
	var err error
	if f == nil || f.Accept {
		result, err = s.serve(&q)
	}
	switch {
	case f != nil && f.Code != 0:
		reply(w, q.ID, nil, &refusal{Code: f.Code, Message: f.Message})
	case f != nil:
		fail(w, f)
	default:
		reply(w, q.ID, result, err)
	}
}

func reply(w http.ResponseWriter, id, result any, err error) {
	w.Header().Set("Content-Type", "application/json")
	out := map[string]any{"jsonrpc": "2.0", "id": id}
	if err != nil {
		out["error"] = err
	} else {
		out["result"] = result
	}
	_ = json.NewEncoder(w).Encode(out)
}

// known are the parameters of the methods. Those of the daemon are the same in the plural.
var known = map[string]string{
	"send":          "recipient groupId message textStyle attachment quoteTimestamp quoteAuthor quoteMessage editTimestamp",
	"remoteDelete":  "recipient groupId targetTimestamp",
	"sendReaction":  "recipient groupId emoji targetAuthor targetTimestamp remove",
	"sendTyping":    "recipient groupId stop",
	"sendReceipt":   "recipient targetTimestamp type",
	"getAttachment": "id recipient groupId",
	"listContacts":  "", "listGroups": "", "listAccounts": "", "version": "",
}

func (s *Server) serve(q *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, ok := known[q.Method]
	switch {
	case q.Version != "2.0" || q.ID == nil:
		return nil, refuse(-32600, "jsonrpc and id must be set")
	case q.Method == "":
		return nil, refuse(-32600, "method field must be set")
	case !ok, q.Method == "listAccounts" && !s.Multi:
		return nil, refuse(-32601, "Method not implemented")
	}
	account, _ := q.Params["account"].(string)
	if s.Multi && account != s.Account && q.Method != "listAccounts" {
		return nil, refuse(-32602, "Specified account does not exist")
	}
	p := maps.Clone(q.Params)
	delete(p, "account")
	for name := range p {
		if !slices.Contains(strings.Fields(names), name) {
			s.problems = append(s.problems, q.Method+" has no parameter "+name)
		}
	}
	switch q.Method {
	case "send":
		return s.message(p)
	case "remoteDelete":
		return s.remoteDelete(p)
	case "sendReaction":
		return s.reaction(p)
	case "sendTyping":
		chat, results, err := s.recipients(p)
		if err == nil {
			s.typing = append(s.typing, chat)
		}
		return s.result(0, results, err)
	case "sendReceipt":
		return s.receipt(p)
	case "getAttachment":
		return s.attachment(p)
	case "listContacts":
		return s.contacts(), nil
	case "listGroups":
		return s.list(), nil
	case "listAccounts":
		return []any{map[string]any{"number": s.Account}}, nil
	}
	return map[string]any{"version": "0.14.0"}, nil
}

// texts returns a parameter that is a string or a list of strings.
func texts(v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	case []any:
		var out []string
		for _, e := range v {
			text, ok := e.(string)
			if !ok {
				return nil, refuse(-32600, "want a string")
			}
			out = append(out, text)
		}
		return out, nil
	}
	return nil, refuse(-32600, "want a string or a list of strings")
}

func integer(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}

// find returns a person by UUID or number.
func (s *Server) find(id string) *Person {
	for _, p := range s.people {
		if p.UUID == id || p.Number == id && id != "" || p.Username != "" && "u:"+p.Username == id {
			return p
		}
	}
	return nil
}

// recipients returns the chat that the parameters name, and the results for its people.
func (s *Server) recipients(p map[string]any) (chat string, results []any, err error) {
	to, err := texts(p["recipient"])
	if err != nil {
		return "", nil, err
	}
	group, _ := p["groupId"].(string)
	if len(to) == 0 && group == "" {
		return "", nil, refuse(-1, "No recipients given")
	}
	if len(to) > 1 || len(to) == 1 && group != "" {
		return "", nil, refuse(-32600, "the test expects one chat")
	}
	if group == "" {
		if !regexp.MustCompile(`^(\+[0-9]+|[0-9a-f-]{36}|u:.+)$`).MatchString(to[0]) {
			return "", nil, refuse(-1, "Invalid phone number '%s'", to[0])
		}
		person := s.find(to[0])
		if person == nil {
			person = &Person{UUID: to[0], Outcome: "UNREGISTERED_FAILURE"}
		}
		return person.UUID, []any{person.result("")}, nil
	}
	g := s.groups[group]
	if g == nil {
		return "", nil, refuse(-1, "Group not found: %s", group)
	}
	if g.Closed {
		return "", nil, refuse(-1, "User is not a member in group: %s (%s)", g.Name, g.ID)
	}
	for _, id := range g.Members {
		if m := s.people[id]; m != nil {
			results = append(results, m.result(group))
		}
	}
	return group, results, nil
}

func (p *Person) result(group string) any {
	r := map[string]any{
		"recipientAddress": map[string]any{"uuid": p.UUID, "number": p.Number, "username": nil},
		"type":             "SUCCESS",
	}
	if p.Outcome != "" {
		r["type"] = p.Outcome
	}
	if group != "" {
		r["groupId"] = group
	}
	if p.RetryAfter > 0 {
		r["retryAfterSeconds"] = p.RetryAfter
	}
	if p.Token != "" {
		r["token"] = p.Token
	}
	return r
}

// result returns the result of a method that sends something. Its error says that nobody
// got it.
func (s *Server) result(at int64, results []any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if at == 0 {
		at = s.nowLocked()
	}
	response := map[string]any{"timestamp": at, "results": results}
	outcomes := map[string]bool{}
	for _, r := range results {
		outcomes[r.(map[string]any)["type"].(string)] = true
	}
	if outcomes["SUCCESS"] || len(results) == 0 {
		return response, nil
	}
	data := map[string]any{"response": response}
	switch {
	case len(outcomes) == 1 && outcomes["IDENTITY_FAILURE"]:
		return nil, &refusal{-4, "Failed to send message due to untrusted identities", data}
	case len(outcomes) == 1 && outcomes["RATE_LIMIT_FAILURE"]:
		return nil, &refusal{-5, "Failed to send message due to rate limiting", data}
	}
	return nil, &refusal{-1, "Failed to send message", data}
}

func reached(results []any) bool {
	return slices.ContainsFunc(results, func(r any) bool { return r.(map[string]any)["type"] == "SUCCESS" })
}

var (
	dataURI   = regexp.MustCompile(`(?i)\Adata:(.+?/.+?)?(;.+?=.+?)?(;base64)?,(.+)\z`)
	parameter = regexp.MustCompile(`\A;(.+)=(.+)`)
	styleForm = regexp.MustCompile(`^(\d+):(\d+):(.+)$`)
)

// styles are the names of styles.
var styles = []string{"NONE", "BOLD", "ITALIC", "SPOILER", "STRIKETHROUGH", "MONOSPACE"}

func (s *Server) message(p map[string]any) (any, error) {
	chat, results, err := s.recipients(p)
	if err != nil {
		return nil, err
	}
	m := &Message{Chat: chat}
	m.Text, _ = p["message"].(string)
	if m.Styles, err = texts(p["textStyle"]); err != nil {
		return nil, err
	}
	size := len(utf16.Encode([]rune(m.Text)))
	for _, style := range m.Styles {
		parts := styleForm.FindStringSubmatch(style)
		if parts == nil || !slices.Contains(styles, parts[3]) {
			return nil, refuse(-1, "Invalid textStyle syntax (%s)", style)
		}
		start, _ := strconv.Atoi(parts[1])
		length, _ := strconv.Atoi(parts[2])
		if length == 0 || start+length > size {
			s.problems = append(s.problems, "a style is outside of the text: "+style)
		}
	}
	uris, err := texts(p["attachment"])
	if err != nil {
		return nil, err
	}
	for _, uri := range uris {
		f, err := file(uri)
		if err != nil {
			return nil, err
		}
		m.Files = append(m.Files, f)
	}
	if at, ok := integer(p["quoteTimestamp"]); ok {
		m.Quote.Time = at
		m.Quote.Author, _ = p["quoteAuthor"].(string)
		m.Quote.Text, _ = p["quoteMessage"].(string)
		if m.Quote.Author == "" {
			return nil, refuse(-1, "Quote author parameter is missing")
		}
	}
	if m.Text == "" && len(m.Files) == 0 {
		return nil, refuse(-1, "Sending empty message is not allowed, either a message, attachment or sticker must be given.")
	}
	m.Time = s.nowLocked()
	m.Versions = []int64{m.Time}
	if reached(results) {
		if of, ok := integer(p["editTimestamp"]); ok {
			s.edit(of, m)
		} else {
			s.messages = append(s.messages, m)
		}
	}
	return s.result(m.Time, results, nil)
}

// edit changes a message, as the apps of people do: the edit has to refer to its last
// version.
func (s *Server) edit(of int64, m *Message) {
	for _, old := range s.messages {
		if old.Chat == m.Chat && old.Versions[len(old.Versions)-1] == of && !old.Gone {
			old.Text, old.Styles, old.Versions = m.Text, m.Styles, append(old.Versions, m.Time)
			return
		}
	}
	s.problems = append(s.problems, fmt.Sprintf("the edit of %d refers to no message", of))
}

func file(uri string) (File, error) {
	const most = 20_000_000
	parts := dataURI.FindStringSubmatch(uri)
	if parts == nil || parts[3] == "" || len(uri) > most {
		return File{}, refuse(-32603, "Failed to send message: the attachment is no data URI (AttachmentInvalidException)")
	}
	data, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil {
		return File{}, refuse(-32603, "Illegal base64 character (IllegalArgumentException)")
	}
	f := File{Type: parts[1], Data: data}
	if of := parameter.FindStringSubmatch(parts[2]); of != nil && of[1] == "filename" {
		f.Name, err = url.QueryUnescape(of[2])
	}
	return f, err
}

func (s *Server) remoteDelete(p map[string]any) (any, error) {
	chat, results, err := s.recipients(p)
	if err != nil {
		return nil, err
	}
	at, ok := integer(p["targetTimestamp"])
	if !ok {
		return nil, refuse(-32600, "targetTimestamp is missing")
	}
	if reached(results) {
		found := false
		for _, m := range s.messages {
			if m.Chat == chat && slices.Contains(m.Versions, at) && !m.Gone {
				m.Gone, found = true, true
			}
		}
		if !found {
			s.problems = append(s.problems, fmt.Sprintf("the deletion of %d refers to no message", at))
		}
	}
	return s.result(0, results, nil)
}

func (s *Server) reaction(p map[string]any) (any, error) {
	chat, results, err := s.recipients(p)
	if err != nil {
		return nil, err
	}
	r := Reaction{Chat: chat}
	r.Emoji, _ = p["emoji"].(string)
	r.Author, _ = p["targetAuthor"].(string)
	r.Removed, _ = p["remove"].(bool)
	at, ok := integer(p["targetTimestamp"])
	if !ok || r.Emoji == "" || r.Author == "" {
		return nil, refuse(-32600, "emoji, targetAuthor and targetTimestamp are required")
	}
	if r.Time = at; s.find(r.Author) == nil && r.Author != s.Account {
		return nil, refuse(-1, "The user %s is not registered.", r.Author)
	}
	if reached(results) {
		s.reactions = append(s.reactions, r)
	}
	return s.result(0, results, nil)
}

func (s *Server) receipt(p map[string]any) (any, error) {
	to, _ := p["recipient"].(string)
	list, _ := p["targetTimestamp"].([]any)
	if to == "" || len(list) == 0 || p["type"] != "read" {
		return nil, refuse(-32600, "recipient, targetTimestamp and type are required")
	}
	for _, v := range list {
		at, ok := integer(v)
		if !ok {
			return nil, refuse(-32600, "targetTimestamp is no number")
		}
		s.receipts = append(s.receipts, fmt.Sprint(to, " ", at))
	}
	_, results, err := s.recipients(p)
	return s.result(0, results, err)
}

func (s *Server) attachment(p map[string]any) (any, error) {
	id, _ := p["id"].(string)
	to, _ := p["recipient"].(string)
	group, _ := p["groupId"].(string)
	if id == "" || (to == "") == (group == "") {
		return nil, refuse(-32600, "id and either recipient or groupId are required")
	}
	data, ok := s.files[id]
	if !ok {
		return nil, refuse(-1, "Could not find attachment with ID: %s", id)
	}
	return map[string]any{"data": base64.StdEncoding.EncodeToString(data)}, nil
}

func (s *Server) contacts() []any {
	out := []any{map[string]any{"number": s.Account, "uuid": s.UUID, "name": "Note to Self", "profile": nil}}
	for _, id := range slices.Sorted(maps.Keys(s.people)) {
		p := s.people[id]
		c := map[string]any{
			"number":       nil,
			"uuid":         p.UUID,
			"username":     nil,
			"name":         "",
			"nickName":     nil,
			"isBlocked":    false,
			"unregistered": p.Outcome == "UNREGISTERED_FAILURE",
			"profile":      map[string]any{"givenName": p.Name, "familyName": nil},
		}
		if p.Number != "" {
			c["number"] = p.Number
		}
		if p.Username != "" {
			c["username"] = p.Username
		}
		out = append(out, c)
	}
	return out
}

func (s *Server) list() []any {
	var out []any
	for _, id := range slices.Sorted(maps.Keys(s.groups)) {
		g := s.groups[id]
		out = append(out, map[string]any{
			"id":        g.ID,
			"name":      g.Name,
			"isMember":  !g.Closed,
			"isBlocked": false,
			"members":   []any{},
		})
	}
	return out
}
