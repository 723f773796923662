package signal

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of what is taken from a message.
const (
	maxMedia    = 32
	maxMentions = 1000
	maxName     = 100
	maxQuote    = 4000
	maxTime     = 1 << 53 // of a timestamp in milliseconds
)

// event is an event of the daemon.
type event struct {
	Account   string    `json:"account"`
	Exception *problem  `json:"exception"`
	Envelope  *envelope `json:"envelope"`
}

// problem is why the daemon could not read a message.
type problem struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// envelope is what arrived from a device of a person. Its kinds that are no messages, such
// as receipts, are left out.
type envelope struct {
	Source string       `json:"source"`
	Number string       `json:"sourceNumber"`
	UUID   string       `json:"sourceUuid"`
	Name   string       `json:"sourceName"`
	Time   int64        `json:"timestamp"`
	Data   *dataMessage `json:"dataMessage"`
	Edit   *struct {
		Target int64        `json:"targetSentTimestamp"`
		Data   *dataMessage `json:"dataMessage"`
	} `json:"editMessage"`
	Call *struct {
		Offer *struct {
			Type string `json:"type"`
		} `json:"offerMessage"`
	} `json:"callMessage"`
}

// dataMessage is a message that a person wrote. Those without any of the content here, such
// as deletions and changes of a group, are left out.
type dataMessage struct {
	Time        int64        `json:"timestamp"`
	Text        string       `json:"message"`
	Mentions    []mention    `json:"mentions"`
	Attachments []attachment `json:"attachments"`
	Quote       *struct {
		ID           int64        `json:"id"`
		Author       string       `json:"author"`
		AuthorNumber string       `json:"authorNumber"`
		AuthorUUID   string       `json:"authorUuid"`
		Text         string       `json:"text"`
		Mentions     []mention    `json:"mentions"`
		Attachments  []attachment `json:"attachments"`
	} `json:"quote"`
	Group *struct {
		ID   string `json:"groupId"`
		Name string `json:"groupName"`
	} `json:"groupInfo"`
	Reaction *struct {
		Emoji   string `json:"emoji"`
		Author  string `json:"targetAuthor"`
		Number  string `json:"targetAuthorNumber"`
		UUID    string `json:"targetAuthorUuid"`
		Target  int64  `json:"targetSentTimestamp"`
		Removed bool   `json:"isRemove"`
	} `json:"reaction"`
	Sticker *struct{} `json:"sticker"`
	Payment *struct {
		Note string `json:"note"`
	} `json:"payment"`
	Contacts []struct {
		Name struct {
			Nickname string `json:"nickname"`
			Given    string `json:"given"`
			Middle   string `json:"middle"`
			Family   string `json:"family"`
		} `json:"name"`
		Phone []struct {
			Value string `json:"value"`
		} `json:"phone"`
		Organization string `json:"organization"`
	} `json:"contacts"`
	Poll *struct {
		Question string   `json:"question"`
		Options  []string `json:"options"`
	} `json:"pollCreate"`
}

// mention is a placeholder in a text that stands for a person. Start and Length are in units
// of UTF-16.
type mention struct {
	Name   string `json:"name"`
	Number string `json:"number"`
	UUID   string `json:"uuid"`
	Start  int    `json:"start"`
	Length int    `json:"length"`
}

// attachment is a file of a message.
type attachment struct {
	ID   string `json:"id"`
	Type string `json:"contentType"`
	Name string `json:"filename"`
	Size int64  `json:"size"`
}

var uuidForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
})

// uuidOf returns a UUID in lower case; "": s is none.
func uuidOf(s string) string {
	s = strings.ToLower(s)
	if !uuidForm().MatchString(s) {
		return ""
	}
	return s
}

// person is somebody as an envelope names them.
type person struct{ uuid, number string }

func personOf(uuid, number, other string) person {
	p := person{uuidOf(uuid), number}
	if p.uuid == "" {
		p.uuid = uuidOf(other)
	}
	if p.uuid == "" && p.number == "" {
		p.number = other
	}
	return p
}

// id returns the id of the person: the UUID, or else the number; "": unknown.
func (p person) id() string {
	if p.uuid != "" {
		return p.uuid
	}
	if len(p.number) > maxName || strings.ContainsAny(p.number, ": \r\n\t") {
		return ""
	}
	return p.number
}

// messageID returns the id of a message; an own one has no author.
func messageID(time int64, author string) string {
	if author == "" {
		return strconv.FormatInt(time, 10)
	}
	return strconv.FormatInt(time, 10) + ":" + author
}

// parseID returns the time and the author in the id of a message. The id of an edit names
// the original.
func parseID(id string) (sent int64, author string, ok bool) {
	first, rest, _ := strings.Cut(id, ":")
	author, _, _ = strings.Cut(rest, ":")
	sent, err := strconv.ParseInt(first, 10, 64)
	return sent, author, err == nil && sent > 0 && sent < maxTime
}

// self reports whether a person is the account. It learns the UUID of the account.
func (b *bot) self(p person) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.number == b.c.Account {
		if b.me == "" {
			b.me = p.uuid
		}
		return true
	}
	return p.uuid != "" && p.uuid == b.me
}

// inbound returns the message of an envelope; false: there is none.
func (b *bot) inbound(e *envelope) (chela.Inbound, bool) {
	from := personOf(e.UUID, e.Number, e.Source)
	author := from.id()
	if b.self(from) || author == "" {
		return chela.Inbound{}, false
	}
	if e.Name != "" {
		b.names.Put(author, short(e.Name))
	}
	d, edited := e.Data, e.Edit != nil && e.Edit.Data != nil
	if edited {
		d = e.Edit.Data
	}
	if d == nil {
		if e.Call == nil || e.Call.Offer == nil {
			return chela.Inbound{}, false
		}
		d = &dataMessage{Text: "[call]"}
	}
	sent := d.Time
	if sent == 0 {
		sent = e.Time
	}
	if sent <= 0 || sent >= maxTime {
		return chela.Inbound{}, false
	}
	in := chela.Inbound{
		ID:      messageID(sent, author),
		Address: chela.Address{Channel: Name, Account: b.account, Peer: chela.Peer{Kind: chela.Direct, ID: author}},
		Sender:  chela.Sender{ID: author, Name: b.nameOf(from)},
		Time:    time.UnixMilli(sent),
	}
	if d.Group != nil {
		if !groupForm().MatchString(d.Group.ID) {
			return chela.Inbound{}, false
		}
		in.Address.Peer = chela.Peer{Kind: chela.Group, ID: d.Group.ID}
		in.Group = short(d.Group.Name)
	}
	if r := d.Reaction; r != nil {
		own := b.self(personOf(r.UUID, r.Number, r.Author))
		in.ID, in.ReplyTo, in.Reaction = fmt.Sprintf("%d:reaction:%s", sent, author), messageID(r.Target, ""), r.Emoji
		return in, own && !r.Removed && r.Emoji != "" && r.Target > 0
	}
	in.Text, in.Mentioned = b.addressed(d.Text, d.Mentions)
	in.Text = strings.TrimSpace(strings.Join(append([]string{in.Text}, d.placeholders()...), "\n"))
	in.Media = b.media(in.Address.Peer, d.Attachments)
	if in.Text == "" && len(in.Media) == 0 {
		return chela.Inbound{}, false
	}
	b.quote(&in, d)
	if edited {
		in.ID, in.Edited = b.editID(e.Edit.Target, sent, author), true
	}
	b.seen.Put(messageKey{in.Address.Peer, sent},
		written{author: author, text: humanize.TruncateBytes(in.Text, maxRemembered)})
	return in, true
}

func short(name string) string {
	return humanize.TruncateBytes(strings.Join(strings.Fields(name), " "), maxName)
}

// editID returns the id of an edit. The target of a second edit is the first one.
func (b *bot) editID(target, sent int64, author string) string {
	original := target
	if first, ok := b.edits.Get(messageID(target, author)); ok {
		original = first
	}
	b.edits.Put(messageID(sent, author), original)
	return messageID(original, author) + ":edit:" + strconv.FormatInt(sent, 10)
}

// quote adds what a message is a reply to.
func (b *bot) quote(in *chela.Inbound, d *dataMessage) {
	q := d.Quote
	if q == nil || q.ID <= 0 || q.ID >= maxTime {
		return
	}
	of := personOf(q.AuthorUUID, q.AuthorNumber, q.Author)
	in.Quote.Sender = chela.Sender{ID: of.id(), Name: b.nameOf(of)}
	if b.self(of) {
		in.Mentioned = true
		in.Quote.Sender.Bot = true
		in.ReplyTo = messageID(q.ID, "")
	} else {
		in.ReplyTo = messageID(q.ID, of.id())
	}
	text, _, _ := b.expand(q.Text, q.Mentions)
	if text = strings.TrimSpace(text); text == "" {
		for _, a := range q.Attachments[:min(len(q.Attachments), maxMedia)] {
			text += "[" + short(cmp.Or(a.Name, a.Type, "file")) + "] "
		}
	}
	in.Quote.Text = strings.TrimSpace(humanize.TruncateBytes(text, maxQuote))
}

// media returns the attachments of a message.
func (b *bot) media(chat chela.Peer, all []attachment) []chela.Media {
	var out []chela.Media
	for _, a := range all[:min(len(all), maxMedia)] {
		m := chela.Media{Name: short(cmp.Or(a.Name, a.ID)), Type: short(cmp.Or(a.Type, "application/octet-stream"))}
		if a.Size > 0 && a.Size < 1<<31 {
			m.Bytes = int(a.Size)
		}
		switch source, ok := sourceOf(chat, a.ID); {
		case b.c.IgnoreAttachments:
			m.Lost = "attachments are not downloaded (channels.signal.ignoreAttachments)"
		case !ok:
			m.Lost = "signal-cli did not download it"
		default:
			m.Source = source
		}
		out = append(out, m)
	}
	return out
}

// placeholders returns texts for the kinds of content that are no text.
func (d *dataMessage) placeholders() []string {
	var out []string
	add := func(kind string, parts ...string) {
		const most = 500
		text := strings.Join(slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" }), ", ")
		if text = strings.Join(strings.Fields(text), " "); text != "" {
			kind += ": " + humanize.TruncateBytes(text, most)
		}
		out = append(out, "["+kind+"]")
	}
	if d.Sticker != nil {
		add("sticker")
	}
	if d.Payment != nil {
		add("payment", d.Payment.Note)
	}
	for i := range d.Contacts[:min(len(d.Contacts), 10)] {
		c := &d.Contacts[i]
		name := strings.Join([]string{c.Name.Given, c.Name.Middle, c.Name.Family}, " ")
		if strings.TrimSpace(name) == "" {
			name = cmp.Or(c.Name.Nickname, c.Organization)
		}
		parts := []string{name}
		for _, p := range c.Phone[:min(len(c.Phone), 3)] {
			parts = append(parts, p.Value)
		}
		add("contact", parts...)
	}
	if d.Poll != nil {
		add("poll", append([]string{d.Poll.Question}, d.Poll.Options[:min(len(d.Poll.Options), 12)]...)...)
	}
	return out
}

// nameOf returns what people see as the name of a person.
func (b *bot) nameOf(p person) string {
	if name, ok := b.names.Get(p.id()); ok {
		return name
	}
	if p.number != "" {
		return p.number
	}
	return p.uuid
}

// addressed returns the text of a message without a mention of the account at its
// beginning, and whether the account is mentioned.
func (b *bot) addressed(text string, mentions []mention) (string, bool) {
	shown, first, mentioned := b.expand(text, mentions)
	shown = strings.TrimSpace(shown)
	if first > 0 {
		if rest := strings.TrimLeft(shown[min(first, len(shown)):], " \t\r\n,:"); rest != "" {
			return rest, true
		}
	}
	return shown, mentioned
}

// expand replaces the placeholders of mentions by names. first is the length of the mention
// of the account with which the text begins, without the space before it; 0: it does not.
func (b *bot) expand(text string, mentions []mention) (shown string, first int, mentioned bool) {
	if len(mentions) == 0 {
		return text, 0, false
	}
	units := utf16.Encode([]rune(text))
	mentions = slices.Clone(mentions[:min(len(mentions), maxMentions)])
	slices.SortStableFunc(mentions, func(a, b mention) int { return cmp.Compare(a.Start, b.Start) })
	var out strings.Builder
	done := 0
	for _, m := range mentions {
		if m.Start < done || m.Length <= 0 || m.Start > len(units) || m.Length > len(units)-m.Start {
			continue
		}
		out.WriteString(string(utf16.Decode(units[done:m.Start])))
		p := personOf(m.UUID, m.Number, m.Name)
		name := "@" + short(b.nameOf(p))
		if b.self(p) {
			mentioned = true
			if strings.TrimSpace(out.String()) == "" {
				first = len(name)
			}
		}
		out.WriteString(name)
		done = m.Start + m.Length
	}
	out.WriteString(string(utf16.Decode(units[done:])))
	return out.String(), first, mentioned
}
