package offline

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

// TestDateText checks that a date that is not quoted is written as a date.
func TestDateText(t *testing.T) {
	t.Parallel()
	for say, want := range map[string]string{
		"create b.txt with today's date":           "Wednesday, 25 November 2026\n",
		"create b.txt with the current time":       "10:30\n",
		"create b.txt with tomorrow's date":        "Thursday, 26 November 2026\n",
		"write the current date and time to b.txt": "Wednesday, 25 November 2026 10:30\n",

		"create b.txt with \"today's date\"": "today's date\n",
		"append today's date to b.txt":       "Wednesday, 25 November 2026\n",
		"新建 b.txt，内容是今天的日期":                  "2026年11月25日 星期三\n",
		"把现在的时间写到 b.txt":                     "10:30\n",
		"新建 b.txt，内容是“今天的日期”":                "今天的日期\n",
	} {
		k := newWhole(t)
		if reply := k.say(say); k.files["b.txt"] != want || k.stop() != llm.StopEnd {
			t.Errorf("%q: the file is %q, want %q, stop %s:\n%s", say, k.files["b.txt"], want, k.stop(), reply)
		}
	}
}

// TestPlaces checks the time in other places and the date of other days.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for say, want := range map[string]string{
		"what time is it in Tokyo?":            "In Tokyo it is Wednesday, 25 November 2026 18:30 (Asia/Tokyo).",
		"what is the current time in new york": "04:30 (America/New_York)",
		"what time is it in San Francisco?":    "01:30 (America/Los_Angeles)",
		"what is the date tomorrow?":           "Tomorrow: Thursday, 26 November 2026.",

		"what day was it yesterday?":         "Yesterday: Tuesday, 24 November 2026.",
		"what is the date in two weeks?":     "In two weeks: Wednesday, 9 December 2026.",
		"what day is it tomorrow in Sydney?": "Tomorrow in Sydney: Thursday, 26 November 2026.",

		"what time is it in 5 minutes":            "25 November 2026 10:35",
		"what is the date the day after tomorrow": "Friday, 27 November 2026",
		"现在东京几点？":                                 "东京现在是2026年11月25日 星期三 18:30（Asia/Tokyo）。",
		"纽约现在几点":                                  "04:30（America/New_York）",

		"明天是几号？":  "明天：2026年11月26日 星期四。",
		"昨天是星期几？": "昨天：2026年11月24日 星期二。",
		"大后天是几号":  "11月28日 星期六",
		"下周五是几号？": "2026年12月4日 星期五",
	} {
		k := newWhole(t)
		reply := k.say(say)
		has(t, reply, want)
		if k.stop() != llm.StopEnd {
			t.Errorf("%q: stop %s", say, k.stop())
		}
	}
	has(t, newWhole(t).say("what time is it?"), "12:00:00") // of session_status
	for _, say := range []string{"what is the time in Narnia?", "what time is it in Berlin and in Tokyo?"} {
		k := newWhole(t)
		if reply := k.say(say); k.stop() != llm.StopUnable || strings.Contains(reply, "It is ") {
			t.Errorf("%q: stop %s:\n%s", say, k.stop(), reply)
		}
	}
}
