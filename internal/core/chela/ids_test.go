package chela

import (
	"strings"
	"testing"
)

func TestParseSessionKey(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxKey-len("agent:ops:"))
	for in, want := range map[string]SessionKey{
		"": "agent:ops:main", "main": "agent:ops:main", "work": "agent:ops:work", "a:b": "agent:ops:a:b",
		"agent:other:main": "agent:other:main", "agent:other:a:b": "agent:other:a:b", "cron:daily": "cron:daily", "hook:mail": "hook:mail",
		"agent:ops:" + long: SessionKey("agent:ops:" + long),
		// The rest is refused.
		"agent:other": "", "agent:other:": "", "agent::main": "", "agent:../x:main": "", "agent:Other:main": "", "agent:-x:main": "",
		"agent:" + strings.Repeat("x", 65) + ":main": "", "a b": "", "a\nb": "", "a\x7f": "", "agent:ops:x" + long: "",
	} {
		got, err := ParseSessionKey(in, "ops")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
}
