package matrix

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// event is an event of a room.
type event struct {
	Type     string          `json:"type"`
	ID       string          `json:"event_id"`
	Sender   string          `json:"sender"`
	State    *string         `json:"state_key"` // nil: no state event
	Time     int64           `json:"origin_server_ts"`
	Content  json.RawMessage `json:"content"`
	Unsigned struct {
		Transaction string          `json:"transaction_id"`
		Redacted    json.RawMessage `json:"redacted_because"`
		Previous    struct {
			Membership string `json:"membership"`
		} `json:"prev_content"`
	} `json:"unsigned"`
}

// content is the content of a message.
type content struct {
	MsgType  string          `json:"msgtype"`
	Body     string          `json:"body"`
	HTML     string          `json:"formatted_body"`
	FileName string          `json:"filename"`
	URL      string          `json:"url"`
	File     json.RawMessage `json:"file"` // of an encrypted file
	Geo      string          `json:"geo_uri"`
	Info     struct {
		Type string  `json:"mimetype"`
		Size float64 `json:"size"`
	} `json:"info"`
	Mentions *struct {
		Users []string `json:"user_ids"`
	} `json:"m.mentions"`
	Relates relation `json:"m.relates_to"`
	New     *content `json:"m.new_content"`
}

// relation is how a message refers to others.
type relation struct {
	Type    string `json:"rel_type"`
	ID      string `json:"event_id"`
	Key     string `json:"key"` // of a reaction
	ReplyTo struct {
		ID string `json:"event_id"`
	} `json:"m.in_reply_to"`
	FallingBack bool `json:"is_falling_back"` // ReplyTo is for clients that know no threads
}

// content decodes the content of a message; it is empty if that fails.
func (e event) content() content {
	var c content
	if json.Unmarshal(e.Content, &c) != nil {
		return content{New: &content{}}
	}
	if c.New == nil {
		c.New = &content{}
	}
	return c
}

func (e event) time() time.Time { return time.UnixMilli(e.Time) }

// joins reports whether the event is that a user enters the room.
func (e event) joins(user string) bool {
	var c struct {
		Membership string `json:"membership"`
	}
	return e.Type == "m.room.member" && e.State != nil && *e.State == user && e.Unsigned.Previous.Membership != "join" &&
		json.Unmarshal(e.Content, &c) == nil && c.Membership == "join"
}

// sender returns who wrote an event. A notice is written by a program.
func (r *room) sender(e event, c content) chela.Sender {
	local, _, _ := strings.Cut(strings.TrimPrefix(e.Sender, "@"), ":")
	return chela.Sender{ID: e.Sender, Name: cmp.Or(r.names[e.Sender], local), Bot: c.MsgType == "m.notice"}
}

// text returns what a message says.
func (c content) text() string {
	switch c.MsgType {
	case "m.image", "m.file", "m.audio", "m.video":
		if len(c.File) > 0 {
			return "[encrypted file]"
		}
		if c.FileName == "" || c.FileName == c.Body { // the body is the name of the file
			return ""
		}
	case "m.location":
		if point, ok := strings.CutPrefix(c.Geo, "geo:"); ok {
			point, _, _ = strings.Cut(point, ";")
			return "[location " + strings.ReplaceAll(point, ",", ", ") + "]"
		}
	case "m.emote":
		return "* " + c.Body
	}
	return c.Body
}

// media returns the attachment of a message.
func (c content) media() []chela.Media {
	switch c.MsgType {
	case "m.image", "m.file", "m.audio", "m.video":
		if !strings.HasPrefix(c.URL, "mxc://") {
			return nil
		}
		size := 0
		if c.Info.Size > 0 && c.Info.Size < 1<<40 {
			size = int(min(c.Info.Size, 1<<30))
		}
		return []chela.Media{{
			Name: cmp.Or(c.FileName, c.Body), Type: cmp.Or(c.Info.Type, "application/octet-stream"), Bytes: size, Source: c.URL,
		}}
	}
	return nil
}

// inbound returns the message that an event is; false: it is none for the assistant.
func (b *bot) inbound(ctx context.Context, id string, e event) (chela.Inbound, bool, error) {
	c := e.content()
	switch e.Type {
	case "m.room.message":
		if c.MsgType == "" || len(e.Unsigned.Redacted) > 0 {
			return chela.Inbound{}, false, nil
		}
	case "m.sticker":
		c.MsgType, c.Body = "m.text", placeholder("sticker", c.Body)
	case "m.poll.start", "org.matrix.msc3381.poll.start":
		c.MsgType, c.Body = "m.text", placeholder("poll", question(e.Content))
	case "m.call.invite":
		c.MsgType, c.Body = "m.text", "[call]"
	case "m.reaction":
		if c.Relates.Type != "m.annotation" || c.Relates.ID == "" || c.Relates.Key == "" {
			return chela.Inbound{}, false, nil
		}
	default:
		return chela.Inbound{}, false, nil
	}
	r, err := b.known(ctx, id)
	if err != nil {
		if final(err) { // such as that the account has left the room
			b.env.Log.Warn("message of a room that cannot be read", "room", id, "err", err)
			return chela.Inbound{}, false, nil
		}
		return chela.Inbound{}, false, err
	}
	in := chela.Inbound{ID: e.ID, Sender: r.sender(e, c), Time: e.time()}
	if e.Type == "m.reaction" {
		in.Address, in.ReplyTo, in.Reaction = b.address(id, "", r), c.Relates.ID, c.Relates.Key
		return in, true, nil
	}
	if c.Relates.Type == "m.replace" {
		in.Edited = true
		mentions := c.Mentions
		c = *c.New
		if c.Mentions == nil {
			c.Mentions = mentions
		}
		if c.MsgType == "" {
			return chela.Inbound{}, false, nil
		}
	}
	thread := ""
	if c.Relates.Type == "m.thread" {
		thread = c.Relates.ID
	}
	in.Address = b.address(id, thread, r)
	if r.other == "" {
		in.Group = cmp.Or(r.title, id)
	}
	in.Text, in.Media = c.text(), c.media()
	toMe := false
	if reply := c.Relates.ReplyTo.ID; reply != "" && !c.Relates.FallingBack {
		in.ReplyTo = reply
		in.Text, in.Quote = unquote(in.Text)
		c.Body, _ = unquote(c.Body) // what is quoted mentions nobody
		if _, own, ok := strings.Cut(c.HTML, "</mx-reply>"); ok {
			c.HTML = own
		}
		if err := b.quote(ctx, id, r, &in); err != nil {
			return in, false, err
		}
		toMe = in.Quote.Sender.ID == b.user()
	}
	mentioned := b.mentioned(c)
	in.Text = cmp.Or(b.withoutName(in.Text), in.Text)
	in.Mentioned = in.Address.Peer.Kind != chela.Direct && (mentioned || toMe)
	return in, in.Text != "" || len(in.Media) > 0, nil
}

// placeholder returns the text that stands for something other than text.
func placeholder(kind, name string) string {
	if name == "" {
		return "[" + kind + "]"
	}
	return "[" + kind + ": " + name + "]"
}

// question returns the question of a poll.
func question(raw json.RawMessage) string {
	type poll struct {
		Question struct {
			Body string `json:"body"`
			Text string `json:"org.matrix.msc1767.text"`
		} `json:"question"`
	}
	var c struct {
		Old poll `json:"org.matrix.msc3381.poll.start"`
		New poll `json:"m.poll"`
	}
	if json.Unmarshal(raw, &c) != nil {
		return ""
	}
	return cmp.Or(c.New.Question.Body, c.Old.Question.Body, c.New.Question.Text, c.Old.Question.Text)
}

// unquote removes what old clients put before a reply: the quoted message in lines that
// begin with ">".
func unquote(text string) (string, chela.Quote) {
	if !strings.HasPrefix(text, "> <") && !strings.HasPrefix(text, "> * <") {
		return text, chela.Quote{}
	}
	var q chela.Quote
	var lines []string
	rest := text
	for strings.HasPrefix(rest, ">") {
		line, after, _ := strings.Cut(rest, "\n")
		lines, rest = append(lines, strings.TrimPrefix(strings.TrimPrefix(line, ">"), " ")), after
	}
	head := strings.TrimPrefix(lines[0], "* ")
	if who, first, ok := strings.Cut(strings.TrimPrefix(head, "<"), ">"); ok {
		q.Sender.ID, lines[0] = who, strings.TrimPrefix(first, " ")
	}
	q.Text = strings.Join(lines, "\n")
	return strings.TrimPrefix(rest, "\n"), q
}

// quote reads the message to which in is a reply. Without it, the quote in the text is
// used, but not believed to be by the account.
func (b *bot) quote(ctx context.Context, id string, r *room, in *chela.Inbound) error {
	e, err := b.event(ctx, id, in.ReplyTo)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.env.Log.Debug("quoted message not found", "id", in.ReplyTo, "err", err)
		if in.Quote.Sender.ID == b.user() {
			in.Quote.Sender = chela.Sender{}
		}
		return nil
	}
	c := e.content()
	text, _ := unquote(c.text())
	in.Quote = chela.Quote{Sender: r.sender(e, c), Text: text}
	return nil
}

// event reads an event of a room.
func (b *bot) event(ctx context.Context, room, id string) (event, error) {
	var e event
	err := b.get(ctx, path("/_matrix/client/v3/rooms/%s/event/%s", room, id), nil, &e)
	if err == nil && (len(e.Unsigned.Redacted) > 0 || string(e.Content) == "{}") {
		err = fmt.Errorf("matrix: the message was deleted: %w", channel.ErrGone)
	}
	return e, err
}

// mentioned reports whether a message mentions the account. Clients that know the list of
// mentions use it; others write the name.
func (b *bot) mentioned(c content) bool {
	me := b.user()
	if c.Mentions != nil {
		return slices.Contains(c.Mentions.Users, me)
	}
	if strings.Contains(c.HTML, "https://matrix.to/#/"+me+`"`) {
		return true
	}
	for _, name := range b.names() {
		for rest := c.Body; ; {
			i := strings.Index(strings.ToLower(rest), strings.ToLower(name))
			if i < 0 || i+len(name) > len(rest) {
				break
			}
			before, _ := utf8.DecodeLastRuneInString(rest[:i])
			after, _ := utf8.DecodeRuneInString(rest[i+len(name):])
			if (i == 0 || !inWord(before)) && (i+len(name) == len(rest) || !inWord(after)) {
				return true
			}
			rest = rest[i+len(name):]
		}
	}
	return false
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// names returns the names by which people address the account, the longest first.
func (b *bot) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	local, _, _ := strings.Cut(b.me, ":")
	names := []string{b.me, local}
	if b.shown != "" {
		names = append(names, b.shown, "@"+b.shown)
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	return names
}

// withoutName removes the name of the account from the beginning of a text.
func (b *bot) withoutName(text string) string {
	for _, name := range b.names() {
		if len(text) < len(name) || !strings.EqualFold(text[:len(name)], name) {
			continue
		}
		rest := text[len(name):]
		trimmed := strings.TrimLeft(rest, ":, \t")
		if rest == "" || rest != trimmed || rest[0] == '\n' {
			return strings.TrimLeft(trimmed, "\n")
		}
	}
	return text
}

// key returns the emoji of a reaction.
func (e event) key() string {
	var c struct {
		Relates struct {
			Key string `json:"key"`
		} `json:"m.relates_to"`
	}
	if json.Unmarshal(e.Content, &c) != nil {
		return ""
	}
	return c.Relates.Key
}
