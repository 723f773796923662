package telegram

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// chatMessage returns the parameters that name a message of a chat.
func chatMessage(a chela.Address, messageid string) (params, error) {
	a.Thread = "" // the id is unique in the chat
	in, err := chatOf(a)
	if err != nil {
		return nil, err
	}
	n, ok := messageID(messageid)
	if !ok {
		return nil, fmt.Errorf("telegram: message %q: %w", messageid, channel.ErrGone)
	}
	in["message_id"] = n
	return in, nil
}

// Edit changes the text of a message, or the caption of one with a file.
func (b *bot) Edit(ctx context.Context, a chela.Address, id, text string) error {
	in, err := chatMessage(a, id)
	if err != nil {
		return err
	}
	edit := func(method, field string) error {
		return withMarkup(in, field, text, func() error { return b.api.call(ctx, method, in, nil) })
	}
	err = edit("editMessageText", "text")
	if says(err, "there is no text in the message") {
		delete(in, "text")
		err = edit("editMessageCaption", "caption")
	}
	if says(err, "message is not modified") {
		return nil
	}
	return err
}

// Delete deletes a message.
func (b *bot) Delete(ctx context.Context, a chela.Address, id string) error {
	in, err := chatMessage(a, id)
	if err != nil {
		return err
	}
	return b.api.call(ctx, "deleteMessage", in, nil)
}

// Typing shows the typing indicator, for 5 s or until the next message.
func (b *bot) Typing(ctx context.Context, a chela.Address) error {
	in, err := chatOf(a)
	if err != nil {
		return err
	}
	if a.Thread == generalTopic {
		in["message_thread_id"] = 1 // unlike that of a message
	}
	in["action"] = "typing"
	return b.api.call(ctx, "sendChatAction", in, nil)
}

// React sets the reaction of the bot on a message.
func (b *bot) React(ctx context.Context, a chela.Address, id, emoji string) error {
	in, err := chatMessage(a, id)
	if err != nil {
		return err
	}
	in["reaction"] = []params{}
	if emoji != "" {
		in["reaction"] = []params{{"type": "emoji", "emoji": emoji}}
	}
	err = b.api.call(ctx, "setMessageReaction", in, nil)
	if says(err, "reaction_invalid") {
		return &channel.Error{Permanent: true,
			Err: fmt.Errorf("telegram: %s is not one of the reactions of Telegram, such as 👍 ❤ 🔥 🎉 👀: %w", emoji, err)}
	}
	return err
}

// Probe asks who the bot is.
func (b *bot) Probe(ctx context.Context) error {
	return b.api.call(ctx, "getMe", nil, nil)
}

// Fetch downloads a file.
func (b *bot) Fetch(ctx context.Context, m chela.Media, most int) (chela.Media, error) {
	var f struct {
		Path string `json:"file_path"`
		Size int    `json:"file_size"`
	}
	if err := b.api.call(ctx, "getFile", params{"file_id": m.Source}, &f); err != nil {
		if says(err, "file is too big") {
			return m, &channel.Error{Permanent: true,
				Err: fmt.Errorf("telegram: %q is too large: a bot can download files of at most 20 MB", m.Name)}
		}
		return m, err
	}
	if f.Size > most {
		return m, &channel.Error{Permanent: true, Err: fmt.Errorf("telegram: %q has %d bytes, at most %d are accepted",
			m.Name, f.Size, most)}
	}
	data, err := b.api.download(ctx, f.Path, most)
	if err != nil {
		return m, err
	}
	m.Data, m.Source, m.Bytes = data, "", 0
	return m, nil
}

// download gets a file of at most most bytes.
func (a *api) download(ctx context.Context, path string, most int) ([]byte, error) {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if part == "" || part == "." || part == ".." {
			return nil, fmt.Errorf("telegram: the path of the file is invalid: %q", path)
		}
		parts[i] = url.PathEscape(part)
	}
	in, cancel := context.WithTimeout(ctx, uploadTime)
	defer cancel()
	r, err := http.NewRequestWithContext(in, http.MethodGet, a.root+"/file/bot"+a.token.Reveal()+"/"+
		strings.Join(parts, "/"), nil)
	if err != nil {
		return nil, fmt.Errorf("telegram: the path of the file is invalid: %q", path)
	}
	answer, err := channel.Call(a.client, r, int64(most))
	switch {
	case err != nil:
		return nil, broken(ctx, download, uploadTime, err)
	case answer.Status != http.StatusOK:
		return nil, read(download, answer, nil)
	}
	return answer.Body, nil
}

// Poll sends a poll.
func (b *bot) Poll(ctx context.Context, p channel.Poll) (channel.Receipt, error) {
	in, err := chatOf(p.Address)
	if err != nil {
		return channel.Receipt{}, err
	}
	refuse := func(format string, a ...any) (channel.Receipt, error) {
		return channel.Receipt{}, &channel.Error{Permanent: true, Err: fmt.Errorf("telegram: "+format, a...)}
	}
	const maxQuestion, maxOption = 300, 100 // characters
	if n := utf8.RuneCountInString(p.Question); n == 0 || n > maxQuestion {
		return refuse("the question of a poll has %d characters, want 1 to %d", n, maxQuestion)
	}
	if n := len(p.Options); n < 2 || n > 12 {
		return refuse("a poll has %d answers, want 2 to 12", n)
	}
	options := make([]params, len(p.Options))
	for i, o := range p.Options {
		if n := utf8.RuneCountInString(o); n == 0 || n > maxOption {
			return refuse("the answer %q of a poll has %d characters, want 1 to %d", o, n, maxOption)
		}
		options[i] = params{"text": o}
	}
	in["question"], in["options"], in["is_anonymous"], in["allows_multiple_answers"] = p.Question,
		options, !p.Public, p.Multiple
	if p.Open != 0 {
		if p.Open < 5*time.Second || p.Open > 10*time.Minute {
			return refuse("a poll is open for %s, want 5 s to 10 min, or no limit", p.Open)
		}
		in["open_period"] = int(p.Open.Seconds())
	}
	k := sentKey{p.Address, p.Key}
	if done := b.sent.get(k); len(done) > 0 {
		return done[0], nil
	}
	r, err := b.create(ctx, "sendPoll", in)
	if err == nil {
		b.sent.add(k, r)
	}
	return r, err
}

// Pin pins a message without a notification, or unpins it.
func (b *bot) Pin(ctx context.Context, a chela.Address, id string, pinned bool) error {
	in, err := chatMessage(a, id)
	if err != nil {
		return err
	}
	if !pinned {
		return b.api.call(ctx, "unpinChatMessage", in, nil)
	}
	in["disable_notification"] = true
	return b.api.call(ctx, "pinChatMessage", in, nil)
}

// Thread creates a topic in a forum.
func (b *bot) Thread(ctx context.Context, a chela.Address, name string) (chela.Address, error) {
	a.Thread = ""
	in, err := chatOf(a)
	if err != nil {
		return a, err
	}
	const maxName = 128 // characters
	if runes := []rune(strings.TrimSpace(name)); len(runes) > maxName {
		name = string(runes[:maxName])
	}
	in["name"] = strings.TrimSpace(name)
	var topic struct {
		ID int64 `json:"message_thread_id"`
	}
	if err := b.api.call(ctx, "createForumTopic", in, &topic); err != nil {
		return a, err
	}
	if topic.ID == 0 {
		return a, fmt.Errorf("telegram createForumTopic: %w: the answer has no topic", channel.ErrAmbiguous)
	}
	a.Thread = id(topic.ID)
	return a, nil
}

// Menu sets the commands that Telegram suggests. Commands whose names Telegram does not
// accept are left out.
func (b *bot) Menu(ctx context.Context, commands []channel.Command) error {
	const maxCommands, maxDoc = 100, 256
	list := []params{}
	seen := map[string]bool{}
	for _, c := range commands {
		name := strings.ReplaceAll(strings.ToLower(c.Name), "-", "_")
		doc := []rune(strings.Join(strings.Fields(c.Doc), " "))
		if !isCommand(name) || seen[name] || len(list) == maxCommands {
			continue
		}
		seen[name] = true
		if len(doc) == 0 {
			doc = []rune(name)
		}
		list = append(list, params{"command": name, "description": string(doc[:min(len(doc), maxDoc)])})
	}
	return b.api.call(ctx, "setMyCommands", params{"commands": list}, nil)
}

// isCommand reports whether Telegram accepts the name of a command.
func isCommand(name string) bool {
	const maxName = 32
	return name != "" && len(name) <= maxName && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
