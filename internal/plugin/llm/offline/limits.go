package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/kit/timephrase"
)

const (
	dayWord = `(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekdays?|weekends?)`
	dayHan  = `(?:周末|工作日|(?:每?周|星期|礼拜)[一二三四五六日天末](?:[、和及]?(?:周|星期)?[一二三四五六日天])*)`
)

var (
	// exceptForm finds the days on which a schedule is not to be due.
	exceptForm = lazy(
		`(?i),?\s*(?:\bbut not|\bexcept(?: for)?|\bexcluding|\bapart from|\bother than|,\s*not)\s+(?:on\s+)?(` + dayWord +
			`(?:(?:\s*,\s*|\s+(?:and|or)\s+)(?:on\s+)?` + dayWord + `)*)\b` +
			`|除了?\s*(` + dayHan + `(?:[、和及，]` + dayHan + `)*)\s*(?:以外|之外|外)?[，,]?\s*都?` +
			`|[，,]?\s*(?:但是?|不过|可是)?\s*(` + dayHan + `(?:[、和及，]` + dayHan + `)*)\s*(?:除外|例外|不算|不(?:用|要|必|需要?)?(?:提醒|响|叫)我?)`)
	dayForm = lazy(`(?i)weekdays?|weekends?|mon|tue|wed|thu|fri|sat|sun|工作日|周末|[一二三四五六日天末]`)
)

// withoutDays returns a text without its exception of days, the days, and the exception.
func withoutDays(text string) (rest string, days []int, except string) {
	g := exceptForm().FindStringSubmatchIndex(text)
	if g == nil {
		return text, nil, ""
	}
	for i := 2; i < len(g); i += 2 {
		if g[i] >= 0 {
			days = append(days, daysOf(text[g[i]:g[i+1]])...)
		}
	}
	return text[:g[0]] + " " + text[g[1]:], days, strings.Trim(text[g[0]:g[1]], " ,，")
}

// daysOf returns the days of the week that a text names.
func daysOf(text string) (days []int) {
	for _, name := range dayForm().FindAllString(strings.ToLower(text), -1) {
		switch i := slices.Index(strings.Fields("sun mon tue wed thu fri sat 日 一 二 三 四 五 六"),
			strings.Replace(name, "天", "日", 1)); {
		case i >= 0:
			days = append(days, i%7)
		case strings.HasPrefix(name, "weekend"), name == "周末", name == "末":
			days = append(days, 0, 6)
		default:
			days = append(days, 1, 2, 3, 4, 5)
		}
	}
	return days
}

// exclude takes days out of a recurrence; false: that is not possible.
func exclude(p *timephrase.Phrase, days []int) bool {
	if p.Cron == "" && p.At.IsZero() {
		p.Cron = everyCron(p.Every)
	}
	f := strings.Fields(p.Cron)
	if len(f) != 5 || f[2] != "*" || f[3] != "*" {
		return false
	}
	var kept []string
	for _, d := range fieldDays(f[4]) {
		if !slices.Contains(days, d) {
			kept = append(kept, strconv.Itoa(d))
		}
	}
	f[4] = strings.Join(kept, ",")
	if f[4] == "1,2,3,4,5" {
		f[4] = "1-5"
	}
	p.Cron, p.Every = strings.Join(f, " "), 0
	return len(kept) > 0
}

// fieldDays returns the days of a field of a cron expression.
func fieldDays(field string) (days []int) {
	switch field {
	case "*":
		return []int{0, 1, 2, 3, 4, 5, 6}
	case "1-5":
		return []int{1, 2, 3, 4, 5}
	}
	for s := range strings.SplitSeq(field, ",") {
		if d, err := strconv.Atoi(s); err == nil {
			days = append(days, d%7)
		}
	}
	return days
}

// everyCron returns an interval as a cron expression, or "".
func everyCron(d time.Duration) string {
	hours, minutes := int(d/time.Hour), int(d/time.Minute)
	switch {
	case d == time.Hour:
		return "0 * * * *"
	case hours > 0 && d%time.Hour == 0 && 24%hours == 0:
		return fmt.Sprintf("0 */%d * * *", hours)
	case minutes > 0 && d%time.Minute == 0 && 60%minutes == 0:
		return fmt.Sprintf("*/%d * * * *", minutes)
	}
	return ""
}

var (
	// What limits a reminder, at the beginning of what it is about.
	headLimit = lazy(`(?i)^[\s,]*(?:(?:and|or|every|each|by|via|but|except|excluding|unless|until|till|only|if|as long as|while|between|starting|beginning|from|within|during|before|after|since|prior to|ahead of|on\b.*?\sto|up to|at most|no more than|once|twice)\b` +
		`|(?:for|over)\s+(?:the next\s+)?(?:an?|\d+|one|two|three|four|five|six|seven|eight|nine|ten|twelve|half an)\s*(?:seconds?|minutes?|mins?|hours?|h|days?|weeks?|months?|years?)\b|(?:\d+|two|three|four|five|ten) times\b|(?:this|next|the rest of (?:the|this))\s+(?:week|month|year|spring|summer|autumn|fall|winter)\b).*`)
	// eventTail is an event before a time of the day, which does not say when that is.
	eventTail = lazy(`(?i)(?:^|[\s,])(?:on\s+(?:\S+\s+){0,3}?\S*(?:day|eve|anniversary|holidays?)|(?:\S+\s+)?(?:seconds?|minutes?|mins?|hours?|days?|nights?|mornings?|evenings?|weeks?|months?|years?)\s+(?:before|after|prior to)\b.*)[\s,]*$`)
	// hanTail is what follows a time in Chinese that is not that time.
	hanTail    = lazy(`^\s*的?(?:([之以][前后]|[前后]一[天周晚年])|(前)(?:[^往去台任辈女男端者面]|$)|(后)(?:[^天台面]|$))`)
	dangling   = lazy(`(?i)[\s,](?:until|till|since|from|before|after|except|unless)[\s.,]*$`)
	tailUnless = lazy(`(?i)[\s,;](?:unless)\b.*`)
	tailExcept = lazy(
		`(?i)[\s,;](?:except(?:ing)?|excluding|but not|but only|apart from|other than|at most|no more than)\b.*`)
	tailUntil = lazy(`(?i)[\s,;](?:until|till|starting|beginning)\s+(.*)`)
	// tailEvent is an end that is no time.
	tailEvent = lazy(`(?i)[\s,;](?:until|till)\s+(?:christmas|xmas|easter|new year|thanksgiving|halloween|(?:the )?end of|(?:the )?(?:weekend|holidays?|spring|summer|autumn|fall|winter)|my birthday|further notice|i\b).*`)
	tailSpan  = lazy(`(?i)[\s,;](?:this|next|the rest of (?:the|this))\s+(?:week|month|year)[\s.!]*$`)
	tailFor   = lazy(`(?i)[\s,;]for\s+(?:the next\s+)?(\S+\s+\S+)$`)
	limitHan  = lazy(`除非.*|(?:^|[，,\s])(?:如果|要是|假如|若是?).*|\p{Han}*(?:除外|例外)|直到.*|\p{Han}*为止|(?:一共|总共|共|最多|只|仅)(?:提醒)?(?:\d+|[一二两三四五六七八九十几]+)[次遍回天].*|持续.*|但是?(?:不|别|只|除).*|仅限.*|只在.*|不包括.*|[，,]\s*(?:一直)?到.*|(?:^|[，,])\s*从.*(?:开始|起).*`)
	denialEnd = lazy(`(?i)(?:\b(?:don'?t|do not|never|not)|不要?|不用|不必|不需要?|无需|勿|别|甭)(?:再|来|去)?\s*$`)
	// remindWords are words around a request for a reminder that say nothing.
	remindWords = lazy(`(?i)\b(?:(?:don'?t|do not) forget|set|create|make|schedule|start|add|new|daily|weekly|hourly|monthly|reminder|alarm|timer|sure|remember|then|hey)\b|(?:别|不要)忘[了记]?|设置?|设定|定|建立?|创建|新建|添?加|闹[钟铃]|提醒|时候|务必|记得|一定|届时|准时|按时|在|于|要|每|次|好|谢谢|辛苦`)
)

// limit returns what limits a reminder in its text, which no schedule says, or "".
func (t *turn) limit(text string, p timephrase.Phrase) string {
	if w := headLimit().FindString(text); w != "" {
		if i := strings.LastIndex(w, " to "); i > 0 {
			w = w[:i]
		}
		return w
	}
	if w := limitHan().FindString(text); w != "" {
		return w
	}
	if w := dangling().FindString(text); w != "" && p.To > 0 {
		return w
	}
	if w := tailUnless().FindString(text); w != "" || !p.Repeats() {
		return w
	}
	if w := tailExcept().FindString(text); w != "" {
		return w
	}
	if w := cmp.Or(tailEvent().FindString(text), tailSpan().FindString(text)); w != "" {
		return w
	}
	if g := tailUntil().FindStringSubmatch(text); g != nil {
		if list := t.finder().Find(g[1]); len(list) > 0 && list[0].From == 0 {
			return g[0]
		}
	}
	if g := tailFor().FindStringSubmatch(text); g != nil && t.longer(g[1], p) {
		return g[0]
	}
	return ""
}

// afterHan returns the words after a time in Chinese that make it another one, or "".
func afterHan(text string) string {
	if g := hanTail().FindStringSubmatch(text); g != nil {
		return g[1] + g[2] + g[3]
	}
	return ""
}

// leftOver returns the words of time beside the phrase of a reminder, which it does not
// contain, or "". The text begins after the request for a reminder.
func (q *reminder) leftOver(text string, begin int) string {
	if q.phrase.To == 0 || q.phrase.From < begin {
		return ""
	}
	before := strings.TrimSpace(text[begin:q.phrase.From])
	if q.asked && orderHead().MatchString(strings.TrimSpace(text[q.phrase.To:])) &&
		connector().FindString(before+" ") == "" {
		if q.phrase.Timed {
			before = earlyWord().ReplaceAllString(before, " ")
		}
		return surplus(againWord().ReplaceAllString(before, " "))
	}
	if q.phrase.OnlyTime {
		return strings.TrimSpace(eventTail().FindString(before))
	}
	return ""
}

var (
	// Words beside a time that do not change it.
	againWord = lazy(`(?i)^[\s,]*(?:again|once more)\b`)
	earlyWord = lazy(`(?i)\b(?:bright and )?early$`)
)

// longer reports whether a duration is longer than the interval of a recurrence, so that it
// is not a part of what is done each time.
func (t *turn) longer(duration string, p timephrase.Phrase) bool {
	interval := p.Every
	if interval == 0 {
		interval = 24 * time.Hour
	}
	list := t.finder().Find("in " + duration)
	return len(list) == 1 && list[0].From == 0 && list[0].At.Sub(t.now) > interval
}

// surplus returns the words before a request for a reminder that are not a part of it.
func surplus(before string) string {
	if meaning(remindWords().ReplaceAllString(before, " ")) == "" {
		return ""
	}
	return strings.Trim(before, " \t,.;:，。；：")
}

var limitText = localized{
	"I set no reminder, because I cannot keep to “%s”. I know times, intervals and days, such as “every weekday at 8” or “every day at 8 except Sundays”. If it belongs to the text, put the text in quotation marks.",
	"没有设置提醒：“%s”我做不到。我会的是时间、间隔和星期，例如“每个工作日8点”或“每天8点，周日除外”。如果这属于提醒的内容，请把内容放在引号里。",
}
