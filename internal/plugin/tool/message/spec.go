package message

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/action"
)

// parameter is a property of the schema, and what the description says about it.
type parameter struct {
	of     []action.Action // that use it; nil: all
	schema string
	doc    string // "": nothing
}

// parameters are the properties, in their order.
var parameters = [...]parameter{
	{nil, `"to":{"type":"string","description":"recipient (default: this chat)"}`, ""},
	{[]action.Action{action.Broadcast},
		`"targets":{"type":"array","items":{"type":"string"},"maxItems":50,"description":"recipients of broadcast"}`,
		"`targets`: the recipients of broadcast, each like `to`."},
	{nil, `"channel":{"type":"string","description":"channel"}`, ""},
	{nil, `"accountId":{"type":"string","description":"account to send from"}`, ""},
	{nil, `"message":{"type":"string","description":"text"}`, ""},
	{nil, `"media":{"type":"array","items":{"type":"string"},"maxItems":10,"description":"files in the workspace, or media:…"}`, ""},
	{[]action.Action{action.Send}, `"buttons":{"type":"array","items":{"type":"array","items":{"type":"object","properties":{"label":{"type":"string"},"data":{"type":"string"},"url":{"type":"string"},"style":{"enum":["primary","secondary","success","danger"]}},"required":["label"],"additionalProperties":false}},"description":"rows of buttons"}`, "`buttons`: rows of buttons below the text, with `data` (you get it as the person's message: callback_data: DATA) or `url`."},
	{nil, `"replyTo":{"type":"string","description":"id of the message to reply to"}`, ""},
	{nil, `"threadId":{"type":"string","description":"topic"}`, ""},
	{[]action.Action{action.React, action.Edit, action.Delete, action.Pin, action.Unpin},
		`"messageId":{"type":"string","description":"message to change"}`,
		"`messageId`: the message of react, edit, delete, pin and unpin. For react and pin it is the one that you answer by default."},
	{[]action.Action{action.React}, `"emoji":{"type":"string"},"remove":{"type":"boolean"}`,
		"`emoji`: the reaction; with `remove` it is removed."},
	{[]action.Action{action.Poll}, `"question":{"type":"string"},"options":{"type":"array","items":{"type":"string"},"minItems":2,"maxItems":12},"multiple":{"type":"boolean","description":"several may be chosen"},"pollDurationHours":{"type":"number"}`, "`question`, `options` (2 to 12): of a poll."},
	{[]action.Action{action.Read, action.Search}, `"limit":{"type":"integer","minimum":1,"maximum":100}`, ""},
	{[]action.Action{action.Thread}, `"name":{"type":"string","description":"name of the thread"}`, ""},
	{[]action.Action{action.Search}, `"query":{"type":"string","description":"part of a name"}`,
		"`query`: search finds people and chats with such a name. `to` accepts a name, too."},
	{nil, `"dryRun":{"type":"boolean","description":"only report what would be sent"}`, ""},
}

// uses reports whether one of the actions uses a parameter.
func (p parameter) uses(actions []action.Action) bool {
	return p.of == nil || slices.ContainsFunc(p.of, func(a action.Action) bool { return slices.Contains(actions, a) })
}

// schema returns the schema of the arguments for actions.
func schema(actions []action.Action) json.RawMessage {
	list := "send"
	if len(actions) > 0 {
		list = names(actions)
	}
	out := []string{`"action":{"type":"string","description":"` + list + `"}`}
	for _, p := range parameters {
		if p.uses(actions) {
			out = append(out, p.schema)
		}
	}
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(out, ",") + `},"additionalProperties":false}`)
}

// describe returns the description for actions.
func describe(actions []action.Action) string {
	list, more := names(actions), ""
	switch {
	case len(actions) == 0 || slices.Equal(actions, []action.Action{action.Send}):
		list = "send (the only one)"
	case actions[0] == action.Send:
		list = "send (default), " + names(actions[1:])
	}
	for _, p := range parameters {
		if p.doc != "" && p.uses(actions) {
			more += "- " + p.doc + "\n"
		}
	}
	return strings.NewReplacer("{{actions}}", list, "{{more}}", more).Replace(description)
}
