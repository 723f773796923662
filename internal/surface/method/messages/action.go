package messages

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// aliases are other names of parameters of actions, such as OpenClaw's.
var aliases = map[string]string{
	"target":       "to",
	"text":         "message",
	"content":      "message",
	"replyToId":    "replyTo",
	"pollQuestion": "question",
	"pollOption":   "options",
	"pollOptions":  "options",
	"pollMulti":    "multiple",
	"pollPublic":   "public",
	"threadName":   "name",
	"mediaUrls":    "media",
}

func (o Options) action(ctx context.Context, p rpc.Peer, in wire.MessageAction) (wire.MessageResult, error) {
	if in.Owner != nil && !*in.Owner {
		return wire.MessageResult{}, rpc.Invalid("at /senderIsOwner: must be true: a call has the rights of the client")
	}
	if err := rpc.ReadOrigin(in.Origin); err != nil {
		return wire.MessageResult{}, err
	}
	act, ok := action.Parse(in.Action)
	if !ok {
		var names []string
		for _, a := range action.All() {
			names = append(names, string(a))
		}
		return wire.MessageResult{}, chela.Errorf(chela.CodeInvalid, "unknown action %q; use one of %s", in.Action,
			strings.Join(names, ", "))
	}
	a, err := params(in.Params)
	if err != nil {
		return wire.MessageResult{}, chela.Errorf(chela.CodeInvalid, "params: %w", err)
	}
	r := action.Request{
		Action:  act,
		To:      a.To,
		Targets: a.Targets,
		Channel: cmp.Or(in.Channel, a.Channel),
		Account: cmp.Or(in.Account, a.Account),
		Thread:  a.Thread,
		Text:    a.Message,
		ReplyTo: a.ReplyTo,
		Poll: outbox.Poll{
			Question: a.Question, Options: a.Options, Multiple: a.Multiple, Public: a.Public,
			Open: time.Duration(a.Hours*float64(time.Hour)) + time.Duration(a.Seconds)*time.Second,
		},
		Message: a.MessageID,
		Emoji:   a.Emoji,
		Name:    a.Name,
		Query:   a.Query,
		Limit:   a.Limit,
		Dry:     a.DryRun,
		Key:     in.Key,
	}
	if in.Reply != nil {
		r.ReplyTo = cmp.Or(r.ReplyTo, in.Reply.ReplyTo)
	}
	if a.Remove {
		r.Emoji = ""
	}
	if a.Kind != "" {
		if r.Kind = chela.PeerKindOf(a.Kind); r.Kind == "" {
			return wire.MessageResult{}, chela.Errorf(chela.CodeInvalid, "kind %q: want user, group or channel", a.Kind)
		}
	}
	for _, row := range a.Buttons {
		var line []chela.Button
		for _, b := range row {
			line = append(line, chela.Button{Label: b.Label, Data: b.Data, URL: b.URL, Style: chela.ButtonStyle(b.Style)})
		}
		r.Buttons = append(r.Buttons, line)
	}
	return o.do(ctx, p, r, a.Media, a.Files)
}

// params decodes the parameters of an action. Those that are null, false or empty, the name of
// the action, which OpenClaw's command line repeats, and marks of the client such as
// __agentId are left out; unknown ones are an error.
func params(raw json.RawMessage) (a wire.MessageParams, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return a, errors.New("want an object")
	}
	maps.DeleteFunc(all, func(name string, v json.RawMessage) bool {
		empty := string(bytes.TrimSpace(v))
		return name == "action" || strings.HasPrefix(name, "__") || empty == "null" || empty == "false" ||
			empty == `""` || empty == "[]"
	})
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := bytes.TrimSpace(all[name])
		as, ok := aliases[name]
		if name == "mediaUrl" {
			as, ok = "media", true
		}
		if !ok {
			continue
		}
		if all[as] == nil { // OpenClaw's command line sends a chat by both names
			all[as] = v
		}
		delete(all, name)
	}
	if v := bytes.TrimSpace(all["media"]); len(v) > 0 && v[0] == '"' { // one file
		all["media"] = slices.Concat([]byte("["), v, []byte("]"))
	}
	raw, err = json.Marshal(all)
	if err != nil {
		return a, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return a, nil
}
