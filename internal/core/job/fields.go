package job

import (
	"maps"
	"strings"
)

// field is a field of a job that callers may set.
type field struct {
	path   string // in the record
	kind   valueKind
	nested string // other names of it inside of its object, folded
	flat   string // names of it beside the other fields of the job, folded
}

// valueKind is how the value of a field is read.
type valueKind int

const (
	asText valueKind = iota
	asWord           // a text whose case and separators do not matter
	asBool
	asNot // a boolean whose name says the opposite
	asInt
	asNumber
	asList
	asSpan // a duration, stored in milliseconds
	asTime // an instant, stored in milliseconds
	asAt
	asSeconds
	asTarget
	asMode
	asWatch
	asIgnored
)

// fields are the fields that Parse and Patch read. A name is listed once per object.
var fields = []field{
	{"id", asText, "", "id jobid"},
	{"name", asText, "", "name title jobname"},
	{"description", asText, "", "description"},
	{"declarationKey", asText, "", "declarationkey"},
	{"displayName", asText, "", "displayname"},
	{"enabled", asBool, "", "enabled"},
	{"enabled", asNot, "", "disabled"},
	{"deleteAfterRun", asBool, "", "deleteafterrun"},
	{"deleteAfterRun", asNot, "", "keepafterrun"},
	{"agentId", asText, "", "agentid agent"},
	{"sessionKey", asText, "", "sessionkey"},
	{"sessionTarget", asTarget, "", "sessiontarget session target"},
	{"wakeMode", asWord, "", "wakemode wake"},

	{"schedule.kind", asWord, "kind type", "schedulekind scheduletype"},
	{"schedule.at", asAt, "at atms time when runat datetime", "at atms when runat runatms"},
	{"schedule.everyMs", asSpan, "everyms every everyseconds everyminutes everyhours interval intervalms intervalseconds",
		"everyms every everyseconds everyminutes everyhours interval intervalms intervalseconds"},
	{"schedule.anchorMs", asTime, "anchorms anchor", "anchorms"},
	{"schedule.expr", asText, "expr cron cronexpr expression cronexpression", "expr cron cronexpr cronexpression"},
	{"schedule.tz", asText, "tz timezone", "tz timezone"},
	{"schedule.staggerMs", asSpan, "staggerms stagger", "staggerms stagger"},
	{"schedule.exact", asBool, "exact", "exact"},

	{"payload.kind", asWord, "kind type", "payloadkind payloadtype"},
	{"payload.content", asText, "message text prompt content task instructions",
		"message text prompt content task instructions reminder systemevent agentturn"},
	{"payload.model", asText, "model", "model"},
	{"payload.fallbacks", asList, "fallbacks", "fallbacks"},
	{"payload.thinking", asText, "thinking think", "thinking think"},
	{"payload.timeoutSeconds", asSeconds, "timeoutseconds timeout timeoutms", "timeoutseconds timeout timeoutms"},
	{"payload.lightContext", asBool, "lightcontext", "lightcontext"},
	{"payload.allowUnsafeExternalContent", asBool, "allowunsafeexternalcontent", "allowunsafeexternalcontent"},
	{"payload.toolsAllow", asList, "toolsallow tools", "toolsallow tools"},
	{"payload.toolsAllowIsDefault", asIgnored, "toolsallowisdefault", ""},
	{"delivery.mode", asMode, "mode deliver announce webhook webhookurl",
		"deliverymode deliver announce webhook webhookurl"},
	{"delivery.mode", asNot, "", "nodeliver"},
	{"delivery.channel", asText, "channel", "channel"},
	{"delivery.to", asText, "to", "to"},
	{"delivery.threadId", asText, "threadid thread", "threadid"},
	{"delivery.accountId", asText, "accountid account", "accountid account"},
	{"delivery.bestEffort", asBool, "besteffort besteffortdeliver", "besteffort besteffortdeliver"},
	{"delivery.failureDestination.mode", asWord, "mode", ""},
	{"delivery.failureDestination.channel", asText, "channel", ""},
	{"delivery.failureDestination.to", asText, "to", ""},
	{"delivery.failureDestination.accountId", asText, "accountid", ""},
	{"delivery.completionDestination.mode", asWord, "mode", ""},
	{"delivery.completionDestination.channel", asText, "channel", ""},
	{"delivery.completionDestination.to", asText, "to", ""},
	{"delivery.completionDestination.accountId", asText, "accountid", ""},

	{"failureAlert.after", asInt, "after", ""},
	{"failureAlert.cooldownMs", asSpan, "cooldownms cooldown", ""},
	{"failureAlert.includeSkipped", asBool, "includeskipped", ""},
	{"failureAlert.mode", asWord, "mode", ""},
	{"failureAlert.channel", asText, "channel", ""},
	{"failureAlert.to", asText, "to", ""},
	{"failureAlert.accountId", asText, "accountid", ""},

	{"trigger.script", asText, "script", ""},
	{"trigger.once", asBool, "once", ""},
	{"trigger.script", asWatch, "", "watchfile watchurl watchcommand"},

	// What answers hold besides, so that an answer can be sent back.
	{"state", asIgnored, "", "state createdatms updatedatms configrevision nextrunatms lastrunatms lastrunstatus lastrunerror lastdeliverystatus lastfailurenotificationdeliverystatus effectiveagentid scheduledtoolpolicy deliverypreview"},
}

// objects are the fields that hold other fields, by their folded names.
var objects = map[string]string{
	"schedule":                    "schedule",
	"payload":                     "payload",
	"delivery":                    "delivery",
	"trigger":                     "trigger",
	"failurealert":                "failureAlert",
	"owner":                       "owner",
	"delivery.failuredestination": "delivery.failureDestination",

	"delivery.completiondestination": "delivery.completionDestination",
}

// canonical are the names that a message about an unknown name suggests, by object.
var canonical = map[string]string{
	"":                               "name description enabled deleteAfterRun agentId sessionKey schedule sessionTarget wakeMode payload delivery failureAlert trigger displayName declarationKey at every cron tz message text model thinking timeoutSeconds channel to",
	"schedule":                       "kind at everyMs anchorMs expr tz staggerMs",
	"payload":                        "kind text message model fallbacks thinking timeoutSeconds lightContext toolsAllow allowUnsafeExternalContent",
	"delivery":                       "mode channel to threadId accountId bestEffort failureDestination completionDestination",
	"delivery.failureDestination":    "mode channel to accountId",
	"delivery.completionDestination": "mode to",
	"failureAlert":                   "after cooldownMs includeSkipped mode channel to accountId",
	"trigger":                        "script once",
	"owner":                          "agentId sessionKey",
}

// index finds a field by the path of its object and its folded name.
type index map[[2]string]field

// elsewhere are fields in objects to which they do not belong: the owner of a job, and
// the delivery in the payload of older files.
var elsewhere = index{
	{"owner", "agentid"}:             {path: "agentId", kind: asText},
	{"owner", "sessionkey"}:          {path: "sessionKey", kind: asText},
	{"owner", "accountid"}:           {path: "owner", kind: asIgnored},
	{"payload", "deliver"}:           {path: "delivery.mode", kind: asMode},
	{"payload", "channel"}:           {path: "delivery.channel", kind: asText},
	{"payload", "provider"}:          {path: "delivery.channel", kind: asText},
	{"payload", "to"}:                {path: "delivery.to", kind: asText},
	{"payload", "besteffortdeliver"}: {path: "delivery.bestEffort", kind: asBool},
}

// newIndex returns the index of all fields.
func newIndex() index {
	x := maps.Clone(elsewhere)
	for _, f := range fields {
		object := f.path[:max(strings.LastIndexByte(f.path, '.'), 0)]
		for _, name := range strings.Fields(f.nested) {
			x[[2]string{object, name}] = f
		}
		for _, name := range strings.Fields(f.flat) {
			x[[2]string{"", name}] = f
		}
	}
	return x
}

// fold returns a name without case and separators.
func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}
