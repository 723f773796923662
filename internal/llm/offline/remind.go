package offline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Forms of times in a reminder.
var (
	inForm    = lazy(`(?i)\b(?:in|after|for)\s+(?P<n>\d+|an?|one|two|three|four|five|six|ten|fifteen|twenty|thirty|half an)\s*(?P<u>sec(?:ond)?s?|min(?:ute)?s?|hours?|hrs?|days?|weeks?|[smhd])\b(?:\s+from now)?|(?P<n2>\d+|[一二两三四五六七八九十半]+)\s*个?(?P<u2>秒钟?|分钟?|小时|钟头|天|周|星期)(?:之?后|以后)`)
	everyForm = lazy(`(?i)\bevery\s+(?:(?P<n>\d+|two|three|five|ten)\s*)?(?P<u>sec(?:ond)?s?|min(?:ute)?s?|hours?|hrs?)\b|每隔?\s*(?P<n2>\d+|[一二两三四五六七八九十]+)?\s*个?(?P<u2>秒钟?|分钟?|小时)`)
	dayForm   = lazy(`(?i)\b(?:every|each|daily|weekly|on)\s*(?P<d>day|morning|evening|night|weekdays?|weekend|mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?)?\b|每(?P<d2>天早上|天晚上|天|日|个?工作日|周[一二三四五六日天]|个?星期[一二三四五六日天]|晚|早上?)`)
	clockForm = lazy(`(?i)\b(?:at|by)\s+(?P<h>\d{1,2})(?::(?P<m>\d\d))?\s*(?P<ap>am|pm|a\.m\.|p\.m\.|o'clock)?\b|\b(?P<h2>\d{1,2}):(?P<m2>\d\d)\s*(?P<ap2>am|pm)?|\b(?P<h3>\d{1,2})\s*(?P<ap3>am|pm)\b|(?P<p>早上|上午|中午|下午|晚上|凌晨|傍晚)?\s*(?P<h4>\d{1,2}|[一二两三四五六七八九十]+)\s*[点:：时](?:钟)?\s*(?P<m4>\d{1,2}|半)?分?|(?:\bat )?\b(?P<word>noon|midnight)\b|(?P<word2>中午)`)
	dateForm  = lazy(`(?i)\b(?P<w>tomorrow|today|tonight|next week|(?:next |on |this )?(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday))\b|(?P<w2>明天|后天|今天|今晚|明早|明晚|下?周[一二三四五六日天])`)
	leadForm  = lazy(`(?i)^\s*(?:set|create|make|add|schedule|start)?\s*(?:me )?(?:an? |the )?(?:remind(?:er)?|alarm|timer|wake|notify|ping|alert)?\s*(?:me|for me|us)?\s*(?:up)?\s*(?:for|to|that|about|of|saying|called)?\s*`)
)

// remind sets a reminder, or lists those that are set.
func remind(t *turn, m match) *step {
	text := m.expand(m.text)
	low := strings.ToLower(text)
	if strings.HasPrefix(low, "list") || strings.HasPrefix(low, "show") || strings.HasPrefix(low, "what") || strings.HasPrefix(low, "which") ||
		strings.HasPrefix(low, "cancel") || strings.HasPrefix(low, "delete") || strings.HasPrefix(low, "remove") || strings.Contains(text, "取消") ||
		strings.Contains(text, "哪些提醒") || strings.Contains(text, "什么提醒") || strings.Contains(text, "列出") || strings.Contains(text, "查看") {
		return &step{about: t.say(words{"list reminders", "查看提醒"}), calls: []call{{"cron", map[string]any{"action": "list"}}}}
	}
	schedule, rest := t.schedule(text)
	what := clean(leadForm.get().ReplaceAllString(rest, ""))
	for _, w := range []string{"提醒我", "提醒", "叫我", "通知我", "设置", "设", "定", "一个", "的", "个", "闹钟", "定时", "请", "我", "要", "去"} {
		what = strings.TrimSpace(strings.TrimPrefix(what, w))
	}
	for _, w := range []string{"remind me", "to ", "that ", "about "} {
		what = strings.TrimSpace(strings.TrimPrefix(what, w))
	}
	about := t.say(words{"a reminder: ", "提醒："}) + clip(strings.TrimSpace(text), 100)
	if schedule == nil {
		if !t.tools["cron"] {
			return &step{about: about, calls: []call{{"cron", nil}}}
		}
		return &step{answer: t.say(whenText)}
	}
	if what == "" {
		what = t.say(words{"Reminder", "提醒"})
	}
	job := map[string]any{
		"name": clip(what, 60), "schedule": schedule, "sessionTarget": "main",
		"payload":        map[string]any{"kind": "systemEvent", "text": t.say(words{"Reminder: ", "提醒："}) + what},
		"deleteAfterRun": schedule["kind"] == "at",
	}
	return &step{about: about, calls: []call{{"cron", map[string]any{"action": "add", "job": job}}}, render: func(t *turn, s *step) string {
		when := fmt.Sprint(schedule["kind"], " ", firstOf(schedule, "at", "expr", "everyMs"))
		return t.say(words{"The reminder is set (%s): %s", "提醒已设置（%s）：%s"}, when, what)
	}}
}

func firstOf(m map[string]any, keys ...string) any {
	for _, k := range keys {
		if v, ok := m[k]; ok {
			return v
		}
	}
	return ""
}

// schedule reads when, and returns what is left of the text; nil when no time
// is named.
func (t *turn) schedule(text string) (map[string]any, string) {
	now := t.now.In(t.zone)
	if g, rest := inForm.cut(text); g != nil {
		return map[string]any{"kind": "at", "at": now.Add(span(g)).UTC().Format(time.RFC3339)}, rest
	}
	if g, rest := everyForm.cut(text); g != nil {
		return map[string]any{"kind": "every", "everyMs": span(g).Milliseconds()}, rest
	}
	hour, minute, rest, timed := wallClock(text)
	if g, r := dayForm.cut(rest); g != nil && (g["d"] != "" || g["d2"] != "" || strings.Contains(strings.ToLower(text), "daily")) {
		if on := strings.ToLower(text); g["d2"] != "" || strings.Contains(on, "every") || strings.Contains(on, "each") || strings.Contains(on, "daily") || strings.Contains(on, "weekly") {
			days, h := weekday(g["d"] + g["d2"])
			if !timed {
				hour, minute = h, 0
			}
			return map[string]any{"kind": "cron", "expr": fmt.Sprintf("%d %d * * %s", minute, hour, days), "tz": t.zone.String()}, r
		}
	}
	g, r := dateForm.cut(rest)
	if g == nil && !timed {
		return nil, text
	}
	if !timed {
		hour, minute = 9, 0
	}
	word := strings.ToLower(g["w"] + g["w2"])
	if (word == "tonight" || word == "今晚" || word == "明晚") && (!timed || hour < 12) {
		if hour += 12; !timed {
			hour = 20
		}
	}
	day := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, t.zone)
	switch {
	case word == "tomorrow" || word == "明天" || word == "明早" || word == "明晚":
		day = day.AddDate(0, 0, 1)
	case word == "后天":
		day = day.AddDate(0, 0, 2)
	case word == "next week":
		day = day.AddDate(0, 0, 7)
	case strings.HasSuffix(word, "day") && word != "today", strings.Contains(word, "周"):
		days, _ := weekday(word)
		want, _ := strconv.Atoi(days)
		for ok := true; ok; ok = int(day.Weekday()) != want || !day.After(now) {
			day = day.AddDate(0, 0, 1)
		}
	case !day.After(now):
		day = day.AddDate(0, 0, 1)
	}
	if g == nil {
		r = rest
	}
	return map[string]any{"kind": "at", "at": day.UTC().Format(time.RFC3339)}, r
}

// span returns the duration of groups n and u.
func span(g map[string]string) time.Duration {
	n, unit := strings.ToLower(g["n"]+g["n2"]), strings.ToLower(g["u"]+g["u2"])
	count := float64(max(numeral(n), 1))
	if n == "half an" || n == "半" {
		count = 0.5
	}
	base := time.Minute
	switch {
	case strings.HasPrefix(unit, "s") || strings.HasPrefix(unit, "秒"):
		base = time.Second
	case strings.HasPrefix(unit, "h") || unit == "小时" || unit == "钟头":
		base = time.Hour
	case strings.HasPrefix(unit, "d") || unit == "天":
		base = 24 * time.Hour
	case strings.HasPrefix(unit, "w") || unit == "周" || unit == "星期":
		base = 7 * 24 * time.Hour
	}
	return time.Duration(count * float64(base))
}

// wallClock reads a time of day and returns the text without it.
func wallClock(text string) (hour, minute int, rest string, ok bool) {
	g, rest := clockForm.cut(text)
	if g == nil {
		return 0, 0, text, false
	}
	if g["word"]+g["word2"] != "" {
		if g["word"] == "midnight" {
			return 0, 0, rest, true
		}
		return 12, 0, rest, true
	}
	h := g["h"] + g["h2"] + g["h3"] + g["h4"]
	hour, err := strconv.Atoi(h)
	if err != nil {
		hour = numeral(h)
		if tail, found := strings.CutPrefix(h, "十"); found && tail != "" {
			hour = 10 + numeral(tail)
		}
	}
	if minute, err = strconv.Atoi(g["m"] + g["m2"] + g["m4"]); err != nil && g["m4"] == "半" {
		minute = 30
	}
	half := strings.ToLower(strings.ReplaceAll(g["ap"]+g["ap2"]+g["ap3"], ".", ""))
	if (half == "pm" || slices.Contains([]string{"下午", "晚上", "傍晚"}, g["p"])) && hour < 12 {
		hour += 12
	}
	if half == "am" && hour == 12 {
		hour = 0
	}
	return hour, minute, rest, hour < 24 && minute < 60
}

// weekday returns the day field of a cron expression and the hour that the
// word suggests.
func weekday(word string) (string, int) {
	word = strings.ToLower(word)
	hour := 9
	if strings.Contains(word, "evening") || strings.Contains(word, "night") || strings.Contains(word, "晚") {
		hour = 20
	}
	for i, names := range []string{"sunday/日/天", "monday/一", "tuesday/二", "wednesday/三", "thursday/四", "friday/五", "saturday/六"} {
		for name := range strings.SplitSeq(names, "/") {
			if strings.Contains(word, name) && (len(name) > 3 || strings.Contains(word, "周") || strings.Contains(word, "星期")) {
				return strconv.Itoa(i), hour
			}
		}
	}
	switch {
	case strings.Contains(word, "weekday"), strings.Contains(word, "工作日"):
		return "1-5", hour
	case strings.Contains(word, "weekend"):
		return "0,6", hour
	}
	return "*", hour
}
