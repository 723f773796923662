package offline

import (
	"slices"
	"strings"
	"testing"
)

// newRemembering is a conversation with an assistant that has notes.
func newRemembering(t *testing.T) *talk {
	k := newTalk(t)
	k.tools = withNotes
	k.files[memoryFile] = "# Notes\n\n- Anna was born on May 4\n- the router runs on the NAS\n- 小安的生日是五月四日\n- my car is blue\n"
	k.files["memory/2026-11-19.md"] = "# House\n\nThe plumber is Mr Lee.\n"
	k.files["memory/imports/x/a.md"] = "The cat of Tim is called Minka.\n"
	k.say("hi")
	return k
}

// TestRecall asks for what is in the notes, in words of different people.
func TestRecall(t *testing.T) {
	t.Parallel()
	const anna, router, birthday, car = "MEMORY.md:3 (2026-11-20): - Anna was born on May 4",
		"MEMORY.md:4 (2026-11-20): - the router runs on the NAS",
		"MEMORY.md:5 (2026-11-20): - 小安的生日是五月四日", "MEMORY.md:6 (2026-11-20): - my car is blue"
	const plumber, cat = "memory/2026-11-19.md:3 (2026-11-20): The plumber is Mr Lee.",
		"memory/imports/x/a.md:1 (2026-11-20): The cat of Tim is called Minka."
	for say, want := range map[string]string{
		"what do you know about Anna?":              anna,
		"when is Anna's birthday?":                  anna,
		"which day was Anna born?":                  anna,
		"Do you still remember when Anna was born?": anna,
		"what day is Anna's birthday":               anna,
		"tell me what you know about Anna":          anna,
		"who is Anna?":                              anna,

		"is Anna older than me?":          anna,
		"where is the router?":            router,
		"does the router run on the NAS?": router,

		"what did I tell you about the router": router,
		"which machine has the router":         router,
		"小安的生日是哪天？":                            birthday,
		"你还记得小安吗":                              birthday,
		"小安什么时候生日":                             birthday,
		"关于小安你知道什么":                            birthday,

		"你知道小安的生日吗？":                  birthday,
		"小安几号过生日":                     birthday,
		"what color is my car?":       car,
		"what's my car like":          car,
		"do you know what car I have": car,
		"who is the plumber?":         plumber,
		"what's the plumber's name":   plumber,
		"how is Tim's cat called?":    cat,
	} {
		k := newRemembering(t)
		if got := k.say(say); !strings.Contains(got, want) || strings.Count(got, " (2026-11-20): ") != 1 {
			t.Errorf("%q: %s\n%q", say, got, k.log)
		}
	}
	for say, want := range map[string]string{
		"what is the capital of France?": "I have no notes about that",
		"who won the world cup in 1998?": "I have no notes about that",
		"小明的电话是多少？":                      "没有记录",
		"what time is it?":               "It is ",
		"what day is it today?":          "It is ",
		"which day is today":             "It is ",
		"今天几号":                           "现在是",
	} {
		k := newRemembering(t)
		if got := k.say(say); !strings.Contains(got, want) {
			t.Errorf("%q: %s", say, got)
		}
	}
}

// TestWhy asks where an answer comes from.
func TestWhy(t *testing.T) {
	t.Parallel()
	for _, say := range []string{"how do you know that?", "why do you think so", "where did you get that from?", "source",
		"why?", "where does that come from", "你怎么知道的", "来源是什么？", "为什么这么说"} {
		k := newRemembering(t)
		if got := k.say(say); strings.Contains(got, "MEMORY.md:") {
			t.Errorf("%q without a question before: %s", say, got)
		}
		k.say("where is the router?")
		if got := k.say(say); !strings.Contains(got, "MEMORY.md:4 (2026-11-20): - the router runs on the NAS") {
			t.Errorf("%q: %s", say, got)
		}
	}
	k := newRemembering(t)
	if got := k.say("how do you know that Anna was born on May 4?"); !strings.Contains(got, "MEMORY.md:3") {
		t.Errorf("with its subject: %s", got)
	}
}

// TestForget removes lines from notes, after a yes.
func TestForget(t *testing.T) {
	t.Parallel()
	all := newRemembering(t).files[memoryFile]
	for say, want := range map[string]string{
		"forget that the router runs on the NAS":   "the router",
		"please forget what I told you about Anna": "Anna",
		"forget my car":                  "car",
		"remove my car from your memory": "car",
		"忘掉小安的生日":                        "小安",
		"忘了小安的生日吧":                       "小安",
		"把小安的生日忘掉":                       "小安",
		"从你的记忆里删除小安的生日":                  "小安",
		"不要再记小安的生日了":                     "小安",
	} {
		for _, yes := range []string{"yes", "Yes, please", "ok", "do it", "是", "好的", "remove it", "no",
			"不", "what time is it?"} {
			k := newRemembering(t)
			got := k.say(say)
			if !strings.Contains(got, want) || strings.Count(got, "(2026-11-20)") != 1 || k.files[memoryFile] != all {
				t.Errorf("%q: %s\n%q", say, got, k.files[memoryFile])
				break
			}
			got = k.say(yes)
			gone := !strings.Contains(k.files[memoryFile], want)
			if accepted := !slices.Contains([]string{"no", "不", "what time is it?"}, yes); gone != accepted ||
				len(k.files[memoryFile]) < len(all)/2 {
				t.Errorf("%q, %q: %s\n%q", say, yes, got, k.files[memoryFile])
			}
			k.say("yes") // of nothing
			if left := strings.Count(k.files[memoryFile], "\n- "); left < 3 {
				t.Errorf("%q, %q: %d lines are left", say, yes, left)
			}
		}
	}
	t.Run("a line that was changed meanwhile stays", func(t *testing.T) {
		t.Parallel()
		k := newRemembering(t)
		k.say("forget my car")
		k.files[memoryFile] = strings.Replace(all, "blue", "red", 1)
		if got := k.say("yes"); !strings.Contains(got, "changed meanwhile") ||
			!strings.Contains(k.files[memoryFile], "my car is red") {
			t.Errorf("%s\n%q", got, k.files[memoryFile])
		}
	})
	t.Run("the only line of a note, and several lines of several notes", func(t *testing.T) {
		t.Parallel()
		k := newRemembering(t)
		k.files = map[string]string{
			memoryFile:             "- my car is blue\n",
			"memory/2026-11-19.md": "one\nmy car was red\nmy car is new\ntwo\n",
		}
		k.say("forget about my car")
		if got := k.say("yes"); !strings.Contains(got, "3 line") || strings.TrimSpace(k.files[memoryFile]) != "" ||
			k.files["memory/2026-11-19.md"] != "one\ntwo\n" {
			t.Errorf("%s\n%q", got, k.files)
		}
	})
	t.Run("a reminder is cancelled, not forgotten", func(t *testing.T) {
		t.Parallel()
		if got := intentOf(New(), "forget the reminder about Ann", withNotes); got != "cancel" {
			t.Errorf("the intent is %s", got)
		}
		if got := intentOf(New(), "别忘了买牛奶", withNotes); got != "remember" {
			t.Errorf("the intent is %s", got)
		}
	})
}
