package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/spelling"
)

// Command is a slash command.
type Command struct {
	Name    string
	Aliases []string
	Group   string // heading in the list
	Args    string // as shown in the help; empty: none
	Help    string // one line
	// Scope is required in addition to the permission to write.
	Scope chela.Scope

	// executed in the session of the chat, also if the chat is focused
	home    bool
	inline  bool                                         // may also be used inside a text
	later   bool                                         // answered after the commit, see answerLater
	unnamed bool                                         // what follows its name is not stored
	message bool                                         // the rest is a message, which may have attachments
	within  func(k *call, args string) bool              // reports whether it is a directive inside the text args
	before  func(context.Context, *call) (string, error) // executed before the commit; its answer replaces run
	run     func(*call) (string, error)
}

// Commands returns all commands by their groups, in the order of /commands.
func Commands() []Command {
	all := slices.Concat(sessionCommands(), undoCommands(), exportCommands(), modelCommands(), agentCommands(),
		focusCommands(), acpCommands(), forgetCommands(), infoCommands(), groupCommands(), asideCommands(), skillCommands(),
		adminCommands(), moneyCommands(), speechCommands())
	var groups []string
	for _, c := range all {
		if !slices.Contains(groups, c.Group) {
			groups = append(groups, c.Group)
		}
	}
	slices.SortStableFunc(all, func(a, b Command) int {
		return cmp.Compare(slices.Index(groups, a.Group), slices.Index(groups, b.Group))
	})
	return all
}

// usage returns the syntax of the command.
func (c Command) usage() string {
	if c.Args == "" {
		return "/" + c.Name
	}
	return "/" + c.Name + " " + c.Args
}

// byName returns all commands by name and alias.
func byName() map[string]Command {
	m := map[string]Command{}
	for _, c := range Commands() {
		for _, n := range append([]string{c.Name}, c.Aliases...) {
			if _, ok := m[n]; ok {
				panic("inbound: duplicate command " + n)
			}
			m[n] = c
		}
	}
	return m
}

// call is a message or command being processed in one transaction. A transaction
// may be repeated with a new copy of the call.
type call struct {
	g      *Gate
	tx     store.Tx
	who    chela.Principal
	writer chela.Principal  // of a command: who wrote it, with the rights of messages
	home   chela.SessionKey // of the chat
	key    chela.SessionKey // home, or the session that the chat is focused on
	in     chela.Inbound
	args   string
	now    time.Time

	meta      session.Meta
	begun     bool             // a run for the message was started
	after     []func()         // to be called after the commit
	events    []chela.Event    // to be published after the commit
	resets    []reset          // transcripts that ended
	follow    bool             // the rest of the command is a message
	shrink    bool             // the rest of the command is for a compaction
	then      string           // text of that message
	mode      queue.Mode       // queue mode of that message; "": the session's
	result    string           // answer of Command.before
	spawned   chela.SessionKey // of the subagent about which Command.before has asked hooks
	problems  []string         // of agent types, see readTypes
	coder     *acpSpawn        // of /acp spawn, see prepareACP
	rule      ExecRule         // of /exec, see readExecRule
	overrides run.Overrides    // of the run that the message starts
	heard     *queue.Item      // the waiting message whose transcript is processed; nil: it was written

	refused     bool // the command did nothing
	unaddressed bool // the message may address the agent only in a recording
	literal     bool // the text is no command and has no directives
}

// refuse is an error whose text is the answer to a command that changed nothing.
type refuse struct{ text string }

func (r refuse) Error() string { return r.text }

// refusef returns a refuse error.
func refusef(format string, args ...any) error { return refuse{fmt.Sprintf(format, args...)} }

// kind is the kind of a message.
type kind int

const (
	text    kind = iota // for the model
	ours                // a command
	foreign             // a command for another bot
)

// command parses a message that is a command as a whole.
func (g *Gate) command(key chela.SessionKey, in chela.Inbound) (Command, commandLine, kind) {
	if strings.EqualFold(strings.TrimSpace(in.Text), "stop") && g.addressed(key.Agent(), in, "") && g.o.Live(key) {
		return g.names["stop"], commandLine{}, ours
	}
	if !g.allowed().Text && !in.Address.Local() {
		return Command{}, commandLine{}, text
	}
	if line, ok := bang(in.Text); ok && g.allowed().Bash && in.Address.Peer.Kind != chela.Group &&
		in.Address.Peer.Kind != chela.Room {
		in.Text = line
	}
	w, ok := parse(in.Text)
	if !ok {
		return Command{}, w, text
	}
	c, ok := g.names[w.name]
	if s, rest, is := g.skillCommand(key.Agent(), w); is {
		c, w, ok = ofSkill(s), rest, true
	}
	if !ok || c.within != nil && c.within(&call{g: g, key: key}, w.args) || len(in.Media) > 0 && !c.message {
		return Command{}, w, text
	}
	if w.bot == "" || in.Address.Local() { // no other bot reads it there
		return c, w, ours
	}
	if name := g.o.Bot(in.Address); name != "" && !strings.EqualFold(name, w.bot) ||
		name == "" && !in.Mentioned && in.Address.Peer.Kind != chela.Direct {
		return c, w, foreign
	}
	return c, w, ours
}

// literal returns the text of a message with two slashes in front, which would be a command
// with one, or a mistyped one.
func (g *Gate) literal(s string) (string, bool) {
	s, ok := cutSlash(strings.TrimSpace(s))
	if !ok {
		return s, false
	}
	if _, ok = parse(s); !ok {
		_, name, like := almost(s, g.knows)
		ok = like && name != ""
	}
	return s, ok
}

// knows reports whether there is a command with the name, which is in lower case.
func (g *Gate) knows(name string) bool {
	_, ok := g.names[name]
	return ok
}

// terminalCommands are the commands that the terminal carries out itself.
var terminalCommands = [...]string{"image", "quit", "exit"}

// foreignCommands says what does here what commands of other assistants do.
var foreignCommands = map[string]string{
	"resume":   otherConversation,
	"continue": otherConversation,
	"sessions": otherConversation,
	"clear":    "/new starts a new conversation.",
	"rewind":   "/undo takes back changes, and /new undo returns to the previous conversation.",
	"cost":     "/usage cost shows what was spent.",

	"memory": "`chela memory list` shows the notes, and /forget removes a topic.",
	"login":  "`chela models auth` saves the key of a service.",

	"permissions": "`chela exec-policy` shows which commands run without a question.",
	"doctor":      "`chela doctor` checks the installation.",

	"init": "`chela agents add NAME --workspace DIR` gives a folder an agent of its own.",
}

const otherConversation = "`chela sessions list` shows the conversations, and `chela chat --session KEY` opens one."

// startsCommand reports whether a line with a leading ! goes on as commands of a shell do. A
// wide one is also the end of a Chinese sentence.
func startsCommand(line string) bool {
	line, wide := strings.CutPrefix(line, "！")
	r, _ := utf8.DecodeRuneInString(strings.TrimPrefix(line, "!"))
	if wide && r >= utf8.RuneSelf {
		return false
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("./~_$({[\"'", r)
}

// mistyped returns the answer to a message that has the form of a command but is none, so
// that a model is not asked by mistake; "": it is an ordinary message.
func (k *call) mistyped() string {
	g, in := k.g, k.in
	if k.literal || len(in.Media) > 0 || k.unaddressed || in.Sender.Bot || !g.allowed().Text && !in.Address.Local() {
		return ""
	}
	if line, ok := bang(in.Text); ok && in.Address.Local() && !g.allowed().Bash &&
		startsCommand(strings.TrimSpace(in.Text)) {
		return fmt.Sprintf("Not run, and not sent to a model: lines with ! are commands only if commands.bash is true (`chela config set commands.bash true`). "+
			"You can also ask for it in words: run `%s`", strings.TrimPrefix(line, "/bash "))
	}
	typed, name, ok := almost(in.Text, g.knows)
	if !ok {
		w, command := parse(in.Text)
		if w.name == "start" && !in.Address.Local() {
			return "" // platforms send it when a person opens the chat
		}
		if !command || g.knows(w.name) ||
			w.bot != "" && !in.Address.Local() && !strings.EqualFold(g.o.Bot(in.Address), w.bot) {
			return ""
		}
		if _, _, is := g.skillCommand(k.key.Agent(), w); is {
			return ""
		}
		typed, name = "/"+w.name, w.name
	}
	best, at := "", len(name)
	near := func(other string) {
		if d := spelling.Distance(name, other); d < at && spelling.Near(name, other) {
			best, at = other, d
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.names)) {
		if g.names[name].allowed(g.rights(k.who, in)) {
			near(name)
		}
	}
	for _, s := range g.skillsOf(k.key.Agent()) {
		near(s.Name)
	}
	if in.Address.Local() {
		for _, name := range terminalCommands {
			near(name)
		}
	}
	text := fmt.Sprintf("There is no command %s, and the message was not sent to a model.", typed)
	if name == "" {
		return text + " /commands lists the commands."
	}
	switch {
	case best == name && in.Address.Local() && slices.Contains(terminalCommands[:], name) && typed == "/"+name:
		return fmt.Sprintf("/%s is a command of the terminal (chela chat), and the message was not sent to a model. //%s sends the line as text.", name, name)
	case foreignCommands[name] != "":
		text += " " + foreignCommands[name]
	case best != "":
		text += fmt.Sprintf(" Did you mean /%s?", best)
	}
	return text + fmt.Sprintf(" /commands lists the commands; /%s sends the line as text.", typed)
}

// allowed reports whether the principal may use the command.
func (c Command) allowed(who chela.Principal) bool { return c.Scope == "" || who.May(c.Scope) }

// execute executes a command in one commit, and performs its effects outside of
// the store afterwards.
func (g *Gate) execute(ctx context.Context, c Command, k call) (Receipt, error) {
	result := ""
	if c.before != nil {
		if k.heard == nil {
			known, err := g.known(ctx, dedupeKey(k.who, k.home, k.in))
			if err != nil || known.Session != "" {
				return known, err
			}
		}
		var err error
		if result, err = c.before(k.sourced(ctx, c), &k); err != nil {
			result, k.refused = g.explainCommand(err), true
		}
	}
	if c.unnamed {
		k.in.Text, k.args = "/"+c.Name, ""
	}
	if c.message {
		if err := g.storeMedia(&k.in); err != nil {
			return Receipt{}, err
		}
	}
	var rec Receipt
	var done call
	err := g.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		done = k
		done.tx, done.now, done.result = tx, time.Now(), result
		var err error
		rec, err = done.commit(c)
		return err
	})
	if errors.Is(err, errUnheard) {
		return Receipt{}, nil
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("command /%s: %w", c.Name, err)
	}
	if !rec.New {
		return rec, nil
	}
	if c.later {
		g.wakeHearing()
	}
	for _, e := range done.events {
		g.o.Bus.Publish(e)
	}
	for _, f := range done.after {
		f()
	}
	done.notifyResets(ctx)
	done.notifyCommand(ctx, c, string(rec.Run))
	if done.follow {
		done.notifyMessage(ctx, false)
	}
	return rec, nil
}

// known returns the receipt of a message that was accepted before; otherwise the
// zero Receipt.
func (g *Gate) known(ctx context.Context, key string) (Receipt, error) {
	it, err := store.Get(ctx, g.o.Store, func(r store.Reader) (queue.Item, error) { return r.Queue().ByKey(key) })
	if errors.Is(err, chela.ErrNotFound) {
		return Receipt{}, nil
	}
	return receipt(queue.Receipt{Item: it}), err
}

// commit writes the command: its key, its changes and its answer.
func (k *call) commit(c Command) (Receipt, error) {
	it := k.item(k.now)
	it.Kind, it.State = queue.Command, queue.Done
	it.Inbound.Media = nil
	if k.heard != nil {
		it.ID, it.Key = k.heard.ID, k.heard.Key
	}
	old, err := k.tx.Queue().ByKey(it.Key)
	if err == nil && k.heard != nil && old.State == queue.Waiting && old.Inbound.Unread {
		err = chela.ErrNotFound
	}
	if err == nil {
		return receipt(queue.Receipt{Item: old}), nil
	}
	if !errors.Is(err, chela.ErrNotFound) {
		return Receipt{}, err
	}
	if c.later {
		it.State = queue.Waiting
		return k.putItem(it)
	}
	if err := session.CheckSeen(k.tx.Sessions(), k.key, k.in.Seen); err != nil {
		return Receipt{}, err
	}
	k.in.Seen = chela.Seen{} // the command itself may change it
	m, created, err := k.open(k.key)
	if err != nil {
		return Receipt{}, err
	}
	if created {
		k.publish(chela.Event{Stream: chela.StreamSession, Phase: chela.PhaseCreated})
		if err := k.tx.Sessions().Put(m); err != nil {
			return Receipt{}, err
		}
	}
	k.meta = m
	reply, err := k.answer(c)
	if err != nil {
		return Receipt{}, err
	}
	k.touch()
	if err := k.tx.Sessions().Put(k.meta); err != nil {
		return Receipt{}, err
	}
	if k.shrink {
		return k.enqueueCompaction()
	}
	if k.follow {
		return k.enqueueRest(c, reply)
	}
	it.Result = answered(reply)
	rec, err := k.putItem(it)
	if err != nil {
		return Receipt{}, err
	}
	rec.Refused = k.refused
	return rec, k.reply(chela.RunID(it.ID), it.ID, reply)
}

// answered returns the result of a command with an answer.
func answered(reply string) queue.Result { return queue.Result{Outcome: chela.OutcomeOK, Text: reply} }

// answer runs the command and returns its answer, which may be a refusal.
func (k *call) answer(c Command) (string, error) {
	if c.run == nil || k.result != "" {
		return k.result, nil
	}
	reply, err := c.run(k)
	if no, ok := errors.AsType[refuse](err); ok {
		k.refused = true
		return no.text, nil
	}
	return reply, err
}

// explainCommand is explain for the error of a command, which is about what was typed
// unless a file or the storage failed.
func (g *Gate) explainCommand(err error) string {
	_, file := errors.AsType[*fs.PathError](err)
	if !file && chela.CodeOf(err) == chela.CodeInternal && !errors.Is(err, chela.ErrStorage) {
		return err.Error()
	}
	return g.explain(err)
}

// explain returns the text of an error for people, with its hint. An error that was not
// written for them is logged.
func (g *Gate) explain(err error) string {
	if chela.IsInternal(err) {
		g.o.Log.Error("command failed", "err", err)
		return chela.PeopleText(err)
	}
	text := chela.PeopleText(err)
	if e, ok := errors.AsType[*chela.Error](err); ok && e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// enqueueRest puts the message that follows the command, after the answer to the
// command.
func (k *call) enqueueRest(c Command, reply string) (Receipt, error) {
	k.in.Text = k.then
	if k.writer.ID != "" {
		k.who = k.writer
	}
	k.in.Mode = cmp.Or(string(k.mode), k.in.Mode)
	inside := k.g.takeDirectives(k)
	it := k.item(k.now)
	if k.heard != nil {
		it.ID = k.heard.ID
	}
	rec, _, err := k.put(it)
	if err != nil || !rec.New {
		return rec, err
	}
	if err := k.reply(chela.RunID(it.ID+":"+c.Name), "", reply); err != nil {
		return rec, err
	}
	if err := k.shortcuts(it.ID, inside); err != nil {
		return rec, err
	}
	return rec, k.begin(nil, it)
}

// reply writes the answer to the transcript and to the outbox, and publishes it
// after the commit. item is the id of the command's item; empty if the command is
// inside a message.
func (k *call) reply(id chela.RunID, item, reply string) error {
	if reply == "" {
		return nil
	}
	e := &session.Entry{
		ID: uuid.NewString(), Kind: session.KindCommand, Time: k.now, Sender: k.in.Sender, ItemID: item,
		Text: strings.TrimSpace(k.in.Text) + "\n" + reply,
	}
	if err := k.tx.Sessions().Append(k.meta.ID, e); err != nil {
		return err
	}
	k.publish(chela.Event{Run: id, Stream: chela.StreamCommand, Phase: chela.PhaseEnd, Text: reply})
	if k.in.Address.Local() {
		return nil
	}
	rows := outbox.Rows(outbox.Row{
		Key: "command:" + string(id), Run: id, Session: k.key, Address: k.in.Address, ReplyTo: k.in.ID, Created: k.now,
	}, reply, k.g.o.Chunks(k.in.Address))
	k.tx.Wake(store.Topic{Kind: store.TopicOutbox})
	return k.tx.Outbox().Put(rows...)
}

// publish publishes an event after the commit.
func (k *call) publish(e chela.Event) {
	e.Session = k.key
	k.events = append(k.events, e)
}

// cancelled is how much work of a session was stopped.
type cancelled struct{ messages, runs, children, results int }

// String returns a sentence for the person; empty: nothing was stopped.
func (n cancelled) String() string {
	var parts []string
	if n.runs > 0 {
		parts = append(parts, "the run in progress")
	}
	if n.children > 0 {
		parts = append(parts, humanize.Many(n.children, "subagent"))
	}
	if n.messages > 0 {
		parts = append(parts, humanize.Many(n.messages, "waiting message"))
	}
	var out string
	if len(parts) > 0 {
		out = "Stopped " + strings.Join(parts, " and ") + "."
	}
	if n.results > 0 {
		out = strings.TrimSpace(out + " Discarded " + humanize.Many(n.results, "result") + " of subagents.")
	}
	return out
}

// cancel cancels the waiting messages, and stops the active runs and the subagents.
func (k *call) cancel(why string) (n cancelled, err error) {
	var after func()
	if n.children, after, err = k.g.o.StopChildren(k.tx, k.key); err != nil {
		return n, err
	}
	k.after = append(k.after, after)
	waiting, err := k.tx.Queue().Waiting(k.key)
	if err != nil {
		return n, err
	}
	var items []queue.Item
	for _, it := range waiting {
		if it.Kind != queue.Message {
			continue
		}
		it.Note = why
		items = append(items, it)
		k.publish(chela.Event{Run: chela.RunID(it.ID), Stream: chela.StreamSession, Phase: chela.PhaseAbsorbed})
	}
	if len(items) > 0 {
		if err := k.tx.Queue().Set(queue.Cancelled, items...); err != nil {
			return n, err
		}
	}
	n.messages = len(items)
	if n.runs, after, err = k.g.o.StopRuns(k.tx, k.key); err != nil {
		return n, err
	}
	k.after = append(k.after, after)
	return n, k.recount()
}

// leave is [call.cancel] for a session that gets another transcript: it also discards
// the results of subagents that wait, because they belong to the old one.
func (k *call) leave(why string) (cancelled, error) {
	n, err := k.cancel(why)
	if err != nil {
		return n, err
	}
	waiting, err := k.tx.Queue().Waiting(k.key)
	if err != nil {
		return n, err
	}
	for _, it := range waiting {
		if it.Kind != queue.Event || it.Origin.Kind != chela.OriginSubagent {
			continue
		}
		it.Note = why
		if err := k.tx.Queue().Set(queue.Cancelled, it); err != nil {
			return n, err
		}
		n.results++
	}
	return n, nil
}

// note adds an entry about a change of settings to the transcript.
func (k *call) note(kind session.Kind, text string) error {
	return k.tx.Sessions().Append(k.meta.ID, &session.Entry{ID: uuid.NewString(), Kind: kind, Time: k.now, Text: text})
}

// shortcuts executes the commands inside a message, in the commit that accepts
// it.
func (k *call) shortcuts(id string, list []string) error {
	for _, name := range list {
		c := k.g.names[name]
		reply, err := k.answer(c)
		if err != nil {
			return err
		}
		if err := k.reply(chela.RunID(id+":"+c.Name), "", reply); err != nil {
			return err
		}
	}
	return nil
}
