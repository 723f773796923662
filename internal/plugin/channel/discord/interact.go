package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	maxCommands    = 100
	maxDescription = 100 // runes
	argsOption     = "args"
	ackTimeout     = 5 * time.Second
)

// commandName matches the names that Discord accepts.
var commandName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[-_\p{L}\p{N}\p{Devanagari}\p{Thai}]{1,32}$`)
})

// interaction is the use of a slash command or a button.
type interaction struct {
	ID      string   `json:"id"`
	Type    int      `json:"type"`
	Token   string   `json:"token"`
	Channel string   `json:"channel_id"`
	Guild   string   `json:"guild_id"`
	Member  *member  `json:"member"`
	User    *user    `json:"user"`
	Message *message `json:"message"`
	Data    struct {
		Name    string   `json:"name"`
		Options []option `json:"options"`
		Custom  string   `json:"custom_id"`
		Values  []string `json:"values"`
	} `json:"data"`
}

// option is an argument of a slash command.
type option struct {
	Name    string   `json:"name"`
	Value   any      `json:"value"`
	Options []option `json:"options"` // of a subcommand
}

// Types of interactions.
const (
	slashCommand = 2
	component    = 3
)

// Types of the answers to interactions.
const (
	deferredMessage = 5
	deferredUpdate  = 6
	ephemeral       = 1 << 6
)

// valid reports whether an interaction is one that is passed on.
func (i *interaction) valid() bool {
	known := i.Type == slashCommand && commandName().MatchString(i.Data.Name) || i.Type == component && i.Data.Custom != ""
	return known && snowflake(i.ID) && snowflake(i.Channel) && i.Token != "" && i.person() != nil &&
		snowflake(i.person().ID)
}

// person returns who used the command or the button; nil: nobody.
func (i *interaction) person() *user {
	if i.Member != nil && i.Member.User != nil {
		return i.Member.User
	}
	return i.User
}

// text returns the message that the interaction stands for.
func (i *interaction) text() string {
	if i.Type == slashCommand {
		return strings.Join(append([]string{"/" + i.Data.Name}, values(i.Data.Options)...), " ")
	}
	data := i.Data.Custom
	if _, rest, ok := strings.Cut(data, customMark); ok {
		data = rest
	}
	if len(i.Data.Values) > 0 {
		data = strings.Join(i.Data.Values, ",")
	}
	if strings.HasPrefix(data, "/") {
		return data
	}
	return "callback_data: " + data
}

// values returns the arguments of a command in their order.
func values(options []option) (out []string) {
	for _, o := range options {
		if o.Value == nil { // a subcommand
			out = append(append(out, o.Name), values(o.Options)...)
			continue
		}
		if text := strings.TrimSpace(fmt.Sprint(o.Value)); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// acknowledge tells Discord that an interaction arrived, without waiting for the answer. It is
// done before the event is queued, since the queue may wait for the sink for longer than Discord
// waits for the acknowledgement.
func (c *conn) acknowledge(ctx context.Context, raw json.RawMessage) {
	var i interaction
	if json.Unmarshal(raw, &i) != nil || !i.valid() {
		return
	}
	c.bot.mu.Lock()
	_, done := c.acked.get(i.ID)
	c.bot.mu.Unlock()
	if done {
		return
	}
	answer := map[string]any{"type": deferredUpdate}
	if i.Type == slashCommand {
		answer = map[string]any{"type": deferredMessage, "data": map[string]any{"flags": ephemeral}}
	}
	select {
	case c.acks <- struct{}{}:
	default:
		c.env.Log.Debug("too many interactions; one is not acknowledged")
		return
	}
	c.wg.Go(func() {
		defer func() { <-c.acks }()
		ctx, cancel := context.WithTimeout(ctx, ackTimeout)
		defer cancel()
		err := c.do(ctx, "POST", "/interactions/"+i.ID+"/"+i.Token+"/callback", answer, nil)
		if err != nil {
			c.env.Log.Debug("interaction not acknowledged", "err", err)
			return
		}
		c.bot.mu.Lock()
		defer c.bot.mu.Unlock()
		c.acked.put(i.ID, struct{}{})
	})
}

// interact passes on an interaction.
func (r *receiver) interact(ctx context.Context, raw json.RawMessage) error {
	var i interaction
	if err := json.Unmarshal(raw, &i); err != nil {
		return chela.Errorf(chela.CodeInvalid, "discord: interaction: %w", err)
	}
	if !i.valid() || i.Guild != "" && !snowflake(i.Guild) {
		return nil
	}
	who := i.person()
	in := chela.Inbound{
		ID: "interaction:" + i.ID, Sender: who.sender(""), Text: i.text(), Time: timeOf(i.ID),
		Guild: i.Guild, Mentioned: i.Guild != "",
	}
	if m := i.Member; m != nil {
		in.Sender, in.Roles = who.sender(m.Nick), m.Roles[:min(len(m.Roles), maxRoles)]
	}
	if i.Message != nil && snowflake(i.Message.ID) {
		in.ReplyTo = i.Message.ID
	}
	var err error
	if in.Address, in.Group, err = r.address(ctx, i.Channel, i.Guild, who.ID); err != nil {
		return err
	}
	err = r.offer(ctx, i.Channel, in)
	if err == nil && i.Type == slashCommand {
		r.conclude(ctx, &i)
	}
	return err
}

// conclude removes the note "thinking" below a command: the answer is a message of its own.
func (r *receiver) conclude(ctx context.Context, i *interaction) {
	app, err := r.application(ctx)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	if err := r.do(ctx, "DELETE", "/webhooks/"+app+"/"+i.Token+"/messages/@original", nil, nil); err != nil {
		r.env.Log.Debug("the note below a command was not removed", "err", err)
	}
}

// timeOf returns the time that an id of Discord contains.
func timeOf(id string) time.Time {
	var n int64
	if _, err := fmt.Sscan(id, &n); err != nil {
		return time.Now()
	}
	return time.UnixMilli(n>>22 + 1420070400000)
}

// application returns the id of the application of the bot.
func (b *bot) application(ctx context.Context) (string, error) {
	b.mu.Lock()
	id := b.app
	b.mu.Unlock()
	if id != "" {
		return id, nil
	}
	var app struct {
		ID string `json:"id"`
	}
	if err := b.do(ctx, "GET", "/applications/@me", nil, &app); err != nil {
		return "", err
	}
	if !snowflake(app.ID) {
		return "", errors.New("discord: the application has no id")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.app = app.ID
	return app.ID, nil
}

// Menu implements channel.Menuer. Commands with names that Discord does not accept are left
// out, and those after the first 100.
func (b *bot) Menu(ctx context.Context, commands []channel.Command) error {
	app, err := b.application(ctx)
	if err != nil {
		return err
	}
	list, seen := []map[string]any{}, map[string]bool{}
	for _, c := range commands {
		name := strings.ToLower(c.Name)
		if !commandName().MatchString(name) || seen[name] || len(list) == maxCommands {
			continue
		}
		seen[name] = true
		doc := humanize.OneLine(c.Doc)
		if doc == "" {
			doc = "/" + name
		}
		list = append(list, map[string]any{
			"name": name, "type": 1, "description": truncate(doc, maxDescription), "contexts": []int{0, 1},
			"options": []map[string]any{{"name": argsOption, "type": 3, "description": "what follows the command",
				"required": false}},
		})
	}
	return b.do(ctx, "PUT", "/applications/"+app+"/commands", list, nil)
}
