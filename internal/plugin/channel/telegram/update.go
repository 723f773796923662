package telegram

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// update is an update of the Bot API, with the members that the channel reads.
type update struct {
	ID                int64     `json:"update_id"`
	Message           *message  `json:"message"`
	EditedMessage     *message  `json:"edited_message"`
	ChannelPost       *message  `json:"channel_post"`
	EditedChannelPost *message  `json:"edited_channel_post"`
	Callback          *callback `json:"callback_query"`
	Reaction          *reaction `json:"message_reaction"`
}

// parseUpdate parses an update. One that cannot be parsed has its id only, if that can be
// read, so that it is passed over.
func parseUpdate(raw []byte) *update {
	u := new(update)
	if json.Unmarshal(raw, u) == nil {
		return u
	}
	var id struct {
		ID int64 `json:"update_id"`
	}
	_ = json.Unmarshal(raw, &id) // the fields that can be read are set in spite of an error
	return &update{ID: id.ID}
}

// message returns the message of an update and whether it was edited; nil: there is none.
func (u *update) message() (m *message, edited bool) {
	switch {
	case u.Message != nil:
		return u.Message, false
	case u.ChannelPost != nil:
		return u.ChannelPost, false
	case u.EditedMessage != nil:
		return u.EditedMessage, true
	}
	return u.EditedChannelPost, true
}

// album returns the key of the album to which the message of the update belongs; "": none.
func (u *update) album() string {
	m, edited := u.message()
	if m == nil || edited || m.Album == "" {
		return ""
	}
	return strconv.FormatInt(m.Chat.ID, 10) + " " + m.Album
}

type user struct {
	ID       int64  `json:"id"`
	Bot      bool   `json:"is_bot"`
	First    string `json:"first_name"`
	Last     string `json:"last_name"`
	Username string `json:"username"`
}

func (u *user) name() string {
	if name := strings.TrimSpace(u.First + " " + u.Last); name != "" {
		return name
	}
	return u.Username
}

type chat struct {
	ID    int64  `json:"id"`
	Type  string `json:"type"`
	Title string `json:"title"`
	Forum bool   `json:"is_forum"`
}

type callback struct {
	ID      string   `json:"id"`
	From    user     `json:"from"`
	Message *message `json:"message"`
	Data    string   `json:"data"`
}

// reaction is a change of somebody's reactions to a message.
type reaction struct {
	Chat    chat    `json:"chat"`
	Message int64   `json:"message_id"`
	User    *user   `json:"user"` // nil: anonymous
	Date    int64   `json:"date"`
	Old     []emoji `json:"old_reaction"`
	New     []emoji `json:"new_reaction"`
}

type emoji struct {
	Type  string `json:"type"`
	Emoji string `json:"emoji"` // of the type emoji
}

// added returns the first emoji that was added; "": none.
func (r *reaction) added() string {
	for _, e := range r.New {
		if e.Emoji != "" && !slices.Contains(r.Old, e) {
			return e.Emoji
		}
	}
	return ""
}

// entity is a part of a text. Its position is in UTF-16 code units.
type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
	URL    string `json:"url"`
	User   *user  `json:"user"`
}

type message struct {
	ID           int64    `json:"message_id"`
	Thread       int64    `json:"message_thread_id"`
	InTopic      bool     `json:"is_topic_message"`
	From         *user    `json:"from"`
	SenderChat   *chat    `json:"sender_chat"`
	Chat         chat     `json:"chat"`
	Date         int64    `json:"date"`
	EditDate     int64    `json:"edit_date"`
	Album        string   `json:"media_group_id"`
	Text         string   `json:"text"`
	Entities     []entity `json:"entities"`
	Caption      string   `json:"caption"`
	CaptionParts []entity `json:"caption_entities"`

	ReplyTo *message `json:"reply_to_message"`
	Quote   *struct {
		Text string `json:"text"`
	} `json:"quote"`
	ExternalReply *struct {
		Origin *origin `json:"origin"`
	} `json:"external_reply"`
	Origin *origin `json:"forward_origin"`

	Photo     []file `json:"photo"`
	Document  *file  `json:"document"`
	Voice     *file  `json:"voice"`
	Audio     *file  `json:"audio"`
	Video     *file  `json:"video"`
	VideoNote *file  `json:"video_note"`
	Animation *file  `json:"animation"`
	content

	TopicCreated json.RawMessage `json:"forum_topic_created"`
	MigratedTo   int64           `json:"migrate_to_chat_id"` // the group has another id now

	raw json.RawMessage // of a message without text and caption; see unsupported
}

// UnmarshalJSON keeps the message for [message.unsupported].
func (m *message) UnmarshalJSON(b []byte) error {
	type plain message
	if err := json.Unmarshal(b, (*plain)(m)); err != nil {
		return err
	}
	if m.Text == "" && m.Caption == "" {
		m.raw = bytes.Clone(b)
	}
	return nil
}

// file is an attachment.
type file struct {
	ID     string `json:"file_id"`
	Unique string `json:"file_unique_id"`
	Name   string `json:"file_name"`
	Type   string `json:"mime_type"`
	Size   int    `json:"file_size"`
}

// origin is the author of a forwarded message.
type origin struct {
	User      *user  `json:"sender_user"`
	UserName  string `json:"sender_user_name"`
	Sender    *chat  `json:"sender_chat"`
	Chat      *chat  `json:"chat"`
	Signature string `json:"author_signature"`
}

func (o *origin) name() string {
	switch {
	case o == nil:
		return ""
	case o.User != nil:
		return o.User.name()
	case o.UserName != "":
		return o.UserName
	case o.Sender != nil:
		return o.Sender.Title
	case o.Chat != nil:
		return o.Chat.Title
	}
	return o.Signature
}

// content is what a message contains that is neither text nor file.
type content struct {
	Sticker *struct {
		Emoji string `json:"emoji"`
	} `json:"sticker"`
	Location *location `json:"location"`
	Venue    *struct {
		Location location `json:"location"`
		Title    string   `json:"title"`
		Address  string   `json:"address"`
	} `json:"venue"`
	Contact *struct {
		Phone string `json:"phone_number"`
		First string `json:"first_name"`
		Last  string `json:"last_name"`
	} `json:"contact"`
	Poll *struct {
		Question string `json:"question"`
		Options  []struct {
			Text string `json:"text"`
		} `json:"options"`
	} `json:"poll"`
	Dice *struct {
		Emoji string `json:"emoji"`
		Value int    `json:"value"`
	} `json:"dice"`
	Game *struct {
		Title string `json:"title"`
	} `json:"game"`
	Checklist *struct {
		Title string `json:"title"`
		Tasks []struct {
			Text string `json:"text"`
		} `json:"tasks"`
	} `json:"checklist"`
	Story json.RawMessage `json:"story"`
}

type location struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

func (l location) String() string {
	return strconv.FormatFloat(l.Latitude, 'f', -1, 64) + ", " + strconv.FormatFloat(l.Longitude, 'f', -1, 64)
}

// placeholder returns a short text for content that is neither text nor file; "": there is
// none.
func (c *content) placeholder() string {
	in := func(kind string, parts ...string) string {
		return "[" + strings.TrimSpace(kind+" "+strings.Join(parts, ", ")) + "]"
	}
	switch {
	case c.Sticker != nil:
		return in("sticker", c.Sticker.Emoji)
	case c.Venue != nil: // has a location, too
		return in("location", c.Venue.Location.String(), c.Venue.Title, c.Venue.Address)
	case c.Location != nil:
		return in("location", c.Location.String())
	case c.Contact != nil:
		return in("contact", strings.TrimSpace(c.Contact.First+" "+c.Contact.Last), c.Contact.Phone)
	case c.Poll != nil:
		parts := []string{c.Poll.Question}
		for _, o := range c.Poll.Options {
			parts = append(parts, o.Text)
		}
		return in("poll", strings.Join(parts, " / "))
	case c.Dice != nil:
		return in("dice", c.Dice.Emoji, strconv.Itoa(c.Dice.Value))
	case c.Game != nil:
		return in("game", c.Game.Title)
	case c.Checklist != nil:
		parts := []string{c.Checklist.Title}
		for _, o := range c.Checklist.Tasks {
			parts = append(parts, o.Text)
		}
		return in("checklist", strings.Join(parts, " / "))
	case len(c.Story) > 0:
		return "[story]"
	}
	return ""
}

// about are the members of a message that are no content.
const about = " message_id message_thread_id from sender_chat sender_boost_count sender_business_bot sender_tag date business_connection_id " +
	"chat forward_origin is_topic_message is_automatic_forward reply_to_message external_reply quote reply_to_story " +
	"reply_to_checklist_task_id via_bot edit_date has_protected_content is_from_offline is_paid_post media_group_id author_signature " +
	"paid_star_count link_preview_options effect_id has_media_spoiler show_caption_above_media reply_markup direct_messages_topic " +
	"suggested_post_info entities caption_entities text caption "

// events begin the names of the members that make a message the report of an event, such
// as of a new member of a group.
var events = []string{"new_chat_", "left_chat_", "delete_chat_", "group_chat_", "supergroup_chat_", "channel_chat_",
	"message_auto_delete_", "migrate_", "pinned_",
	"forum_topic_", "general_forum_topic_", "video_chat_", "boost_added", "chat_background_", "write_access_",
	"users_shared", "chat_shared",
	"proximity_alert_", "connected_website", "successful_payment", "refunded_payment", "giveaway_created",
	"giveaway_completed", "passport_data",
	"web_app_data", "gift", "unique_gift", "checklist_tasks_", "direct_message_price_", "paid_message_price_",
	"suggested_post_", "chat_owner_", "managed_bot_"}

// unsupported reports whether a message without text and file has content that the channel
// does not know.
func (m *message) unsupported() bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(m.raw, &members) != nil {
		return false
	}
	unknown := false
	for name := range members {
		for _, event := range events {
			if strings.HasPrefix(name, event) {
				return false
			}
		}
		unknown = unknown || !strings.Contains(about, " "+name+" ")
	}
	return unknown
}
