package chela

import (
	"strings"
	"testing"
)

func TestKind(t *testing.T) {
	t.Parallel()
	for key, want := range map[SessionKey]KeyKind{
		"agent:ops:main":                       KeyMain,
		"agent:ops:work":                       KeyOther,
		"agent:main:telegram:direct:7":         KeyOther,
		"agent:main:main:thread:5":             KeyOther,
		"agent:main:telegram:group:-100":       KeyGroup,
		"agent:main:slack:channel:c1:thread:9": KeyGroup,

		"agent:main:telegram:group:-100:topic:3": KeyGroup,
		"agent:main:cron:daily":                  KeyCron,
		"cron:daily":                             KeyCron,
		"agent:main:hook:mail:7":                 KeyHook,
		"hook:mail":                              KeyHook,
		"agent:main:main:subagent:u":             KeySubagent,
		"agent:helper:subagent:u":                KeySubagent,

		"agent:main:cron:daily:subagent:u": KeySubagent,
		// The words stand elsewhere.
		"agent:main:cron":              KeyOther,
		"agent:cron:x":                 KeyOther,
		"agent:main:x:direct:a:cron:b": KeyOther,

		"agent:main:direct:group:b":     KeyOther,
		"agent:main:x:direct:a:group:b": KeyOther,
	} {
		if got := key.Kind(); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if got := SessionKey("agent:ops:a:b").Name() + " " + SessionKey("cron:x").Name(); got != "a:b cron:x" {
		t.Errorf("names %s", got)
	}
}

func TestParseSessionKey(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxKey-len("agent:ops:"))
	for in, want := range map[string]SessionKey{
		"":                  "agent:ops:main",
		"main":              "agent:ops:main",
		"work":              "agent:ops:work",
		"a:b":               "agent:ops:a:b",
		"agent:other:main":  "agent:other:main",
		"agent:other:a:b":   "agent:other:a:b",
		"cron:daily":        "cron:daily",
		"hook:mail":         "hook:mail",
		"agent:ops:" + long: SessionKey("agent:ops:" + long),
		// The rest is refused.
		"agent:other":     "",
		"agent:other:":    "",
		"agent::main":     "",
		"agent:../x:main": "",

		"agent:Other:main": "",
		"agent:-x:main":    "",
		"agent:" + strings.Repeat("x", 65) + ":main": "",
		"a b":                "",
		"a\nb":               "",
		"a\x7f":              "",
		"agent:ops:x" + long: "",
	} {
		got, err := ParseSessionKey(in, "ops")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
}
