package offline

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/kit/timephrase"
)

var (
	// remindHead is what asks for a reminder. Its groups are words that need a time,
	// words that may have one, and nouns.
	remindHead = lazy(`(?i)\b(?:(remind\s+me|wake\s+me(?:\s+up)?)|((?:alert|notify|ping|nudge|text|message|warn|tell)\s+me|let\s+me\s+know)` +
		`|(?:(?:set|create|add|make|schedule|start|give me|need|want)\s+(?:up\s+|me\s+)*)?(?:an?|another|my|the)?\s*(?:new\s+)?\b(reminder|alarm|timer))\b`)
	nounHead    = lazy(`(?i)^(?:i\s+)?(?:set|create|add|make|schedule|start|give me|need|want)\b|^(?:(?:an?|another|new)\s+)?(?:new\s+)?(?:reminder|alarm|timer)(?:\s*$|\s*[:,]|\s+(?:for|in|at|on|to|about|that|of|every|each|tomorrow|today|tonight|next|daily|\d)\b)`)
	connector   = lazy(`(?i)^[\s,:;–-]*(?:please[\s,]+)?(?:(?:to|that|about|of|for|regarding)(?:\s+|$|:))?[\s:,]*`)
	orderHead   = lazy(`(?i)^(?:to|that)\s`)
	question    = lazy(`(?i)^(?:of |about |again )?(?:what|who|whom|whose|where|when|why|how|which)\b`)
	statement   = lazy(`(?i)^(?:i|i'm|i've|we|you|he|she|it|they|there|this|that|people|is|are|was|were|has|have|had|will|would|can|does|did|my|our|his|her|their)\b`)
	onlyGap     = lazy(`(?i)^[\s,.;:!?，,。；：！？、]*(?:please|then)?[\s,.!?，。！？]*$`)
	trimEnd     = lazy(`(?i)[\s,.;:，。；：！!]+(?:please)?[\s.!]*$`)
	conjunction = lazy(`(?i)(?:\b(?:and|then)|然后|接着|并且?|顺便|[;；])[\s,，]*$`)
	politeStart = lazy(`(?i)^[\s,]*(?:(?:please|then|and|so)[\s,]+)*`)

	spaces = lazy(`[ \t]{2,}`)

	remindVerb = lazy(
		`(?:到时候?|届时)?\s*(?:请|再|都|要|就|来|记得|务必|\s)*(?:(提醒|催)|(叫|喊)|(告诉|通知))\s*(?:一下|一声)?\s*(?:我们?|咱们?)\s*(?:一声|一下|一次)?`)
	remindNoun = lazy(`的?\s*(?:闹钟|闹铃|提醒|定时器?|计时器?)`)
	nounVerb   = lazy(`^[\s，,。：:]*(?:设置?|设定|定|建立?|创建|新建|添?加|来|开|要)(?:一个|个|一下|一)?`)
	// Words around the subject in Chinese.
	fillerHead     = lazy(`^(?:[\s，,。：:]|请|麻烦你?|帮我|在|于|我们?|你|要|得|该|的时候|时候|记得|能|可以)*`)
	fillerTail     = lazy(`(?:[\s，,。：:！!]|的时候|的话|时候|请|你|就|再|都|记得|能|的)*$`)
	subjectHead    = lazy(`^[\s，,：:]*(?:一下|一声|一次|要|该|得|说|[，,：:\s])*`)
	noSubjectStart = lazy(`^(?:[我你他她它的了吗呢是都就才也几有没不够]|什么|大家|可以|已经|应该|怎么|为什么)`)
)

// reminder is what a text asks to be reminded of.
type reminder struct {
	phrase  timephrase.Phrase
	subject string
	tell    bool   // the subject may be a request itself: tell me the time
	bare    bool   // nothing but the time says that it is a reminder
	asked   bool   // it is a reminder, also without a time
	left    string // words that are neither its time nor its text
}

// remind adds a job for a text with a time.
func remind(t *turn, m match) *step {
	if t.nested { // a request for a reminder is not carried out later
		return nil
	}
	text, days, except := withoutDays(timephrase.Fold(m.text))
	read := t.readEnglish
	if t.chinese {
		read = t.readChinese
	}
	q, ok := read(text, m.entities)
	if !ok && t.chinese {
		q, ok = t.readEnglish(text, m.entities)
	}
	p := q.phrase
	turn, left := false, ""
	if q.tell {
		turn, left = t.later(m.with(q.subject))
	}
	switch {
	case !ok:
		return nil
	case q.bare && (p.Err != nil || !turn && !t.plainOrder(q)):
		return nil
	case p.To == 0:
		return &step{}
	case p.Err != nil:
		return &step{answer: t.timeProblem(p.Err, m.expand(text[p.From:p.To])), unable: true}
	case left != "":
		return &step{left: left}
	case q.left == "" && except != "" && !exclude(&p, days):
		q.left = except
	}
	if q.left != "" {
		return t.cannotKeep(m, q.left)
	}
	subject := strings.TrimSpace(m.expand(spaces().ReplaceAllString(q.subject, " ")))
	if orderHead().MatchString(subject) && q.bare {
		subject = connector().ReplaceAllString(subject, "")
	}
	if subject == "" {
		subject = t.localize(timeUpText)
	}
	return t.addJob(t.jobSchedule(p), subject, turn, nil)
}

// cannotKeep returns the step for a reminder with words that no schedule says.
func (t *turn) cannotKeep(m match, what string) *step {
	if what = m.named(what); denials().MatchString(what) {
		return &step{left: what}
	}
	return &step{left: what, answer: t.localize(limitText, what)}
}

// plainOrder reports whether a text with nothing but a time is an order and not a
// statement.
func (t *turn) plainOrder(q reminder) bool {
	if q.subject == "" {
		return false
	}
	if orderHead().MatchString(q.subject) {
		return true
	}
	return q.phrase.Repeats() && q.phrase.Timed && !statement().MatchString(q.subject) &&
		!noSubjectStart().MatchString(q.subject)
}

// timeProblem returns why a reminder cannot be set.
func (t *turn) timeProblem(err error, phrase string) string {
	w := unclearTimeText
	var other timephrase.WeekdayError
	switch {
	case errors.As(err, &other):
		return t.localize(otherDayText, t.date(other.Date), clip(strings.TrimSpace(phrase), 60))
	case errors.Is(err, timephrase.ErrPast):
		w = pastTimeText
	case errors.Is(err, timephrase.ErrImpossible):
		w = impossibleTimeText
	}
	return t.localize(w, clip(strings.TrimSpace(phrase), 60))
}

// actionable reports whether a text is a request that can be carried out later.
func (t *turn) actionable(c clause) bool {
	ok, _ := t.later(c)
	return ok
}

// later reports whether a text is a request that can be carried out later, and what of it
// is not understood.
func (t *turn) later(c clause) (ok bool, left string) {
	if t.nested {
		return false, ""
	}
	path := t.path
	t.nested = true
	s := t.parse(c)
	t.path, t.nested = path, false
	if s == nil || s.asks || s.partly() {
		if s != nil {
			left = s.left
		}
		return false, left
	}
	marked := len(c.all(pathMark))+len(c.all(quoteMark))+len(c.all(codeMark)) > 0 ||
		strings.HasPrefix(strings.ToLower(c.text), "search")
	return slices.Contains([]string{"time", "status", "list", "read", "find", "fetch", "run", "write", "append", "edit"},
		s.row.intent) ||
		s.row.intent == "search" && marked, ""
}

// readEnglish reads a text in English.
func (t *turn) readEnglish(text string, entities *[]entity) (q reminder, ok bool) {
	m := remindHead().FindStringSubmatchIndex(text)
	if m == nil || m[6] >= 0 && !nounHead().MatchString(text) {
		return t.readBare(text)
	}
	f := t.finder()
	if head := strings.ToLower(text[m[0]:m[1]]); strings.HasPrefix(head, "wake") || strings.HasSuffix(head, "alarm") {
		f.Morning = earlyRiser
	}
	q.asked = m[4] < 0
	before, after := text[:m[0]], text[m[1]:]
	q.tell = m[4] >= 0 && !orderHead().MatchString(strings.TrimSpace(after))
	if m[6] >= 0 { // a reminder for 5pm, a timer for 10 minutes
		for _, word := range []string{"", "in ", "at "} {
			rest, found := strings.CutPrefix(strings.TrimSpace(after), "for ")
			if list := f.Find(word + rest); found && len(list) > 0 && list[0].From == 0 {
				text = before + word + rest
				after = word + rest
				break
			}
		}
	}
	begin := len(text) - len(after)
	q.take(text, begin, len(text), f)
	extra := before
	if q.phrase.To == 0 {
		if list := f.Find(before); len(list) > 0 {
			q.phrase, q.subject = list[len(list)-1], after
			extra = before[:q.phrase.From] + " " + before[q.phrase.To:]
			if strings.TrimSpace(connector().ReplaceAllString(after, "")) == "" {
				q.subject, extra = politeStart().ReplaceAllString(before[:q.phrase.From]+before[q.phrase.To:], ""),
					denialEnd().FindString(before)
			}
		}
	} else if list := f.Find(before); len(list) > 0 && list[0].Repeats() && q.phrase.OnlyTime { // a daily reminder at 9
		words := before[list[0].From:list[0].To] + " " + text[q.phrase.From:q.phrase.To]
		if both := f.Find(words); len(both) == 1 {
			both[0].From, both[0].To = q.phrase.From, q.phrase.To
			q.phrase = both[0]
			extra = before[:list[0].From] + " " + before[list[0].To:]
		}
	} else if rest := politeStart().ReplaceAllString(before, ""); q.subject == "" {
		q.subject, extra = rest, denialEnd().FindString(rest)
	} else if t.another(rest, entities) {
		return q, false // two requests
	}
	q.left = cmp.Or(surplus(extra), q.leftOver(text, begin), t.limit(q.subject, q.phrase))
	q.subject = trimEnd().ReplaceAllString(connector().ReplaceAllString(q.subject, ""), "")
	switch {
	case q.phrase.To > 0:
		// "Tell me what happened on Friday" asks something now.
		late := begin > 0 && q.phrase.From > begin && !onlyGap().MatchString(text[begin:q.phrase.From])
		return q, q.asked || !late || !q.tell || t.actionable(clause{q.subject, entities})
	case question().MatchString(strings.TrimSpace(after)):
		return q, false
	}
	q.subject = ""
	return q, q.asked
}

// another reports whether the text before a request for a reminder is a request of its
// own.
func (t *turn) another(text string, entities *[]entity) bool {
	return conjunction().MatchString(text) || t.actionable(clause{strings.Trim(text, " \t\n,;.，；。、"), entities})
}

// earlyRiser is the first hour that is in the morning for alarms.
const earlyRiser = 4

func (t *turn) finder() timephrase.Finder { return timephrase.Finder{Now: t.now} }

// take chooses the phrase of text[begin:end]: the one at the beginning, else the last one
// at the end, else the first one. The subject is the text without it. A time of the day at
// the end belongs to a day at the beginning.
func (q *reminder) take(text string, begin, end int, f timephrase.Finder) {
	part := text[begin:end]
	list := f.Find(part)
	if len(list) == 0 {
		q.subject = part
		return
	}
	last := list[len(list)-1]
	chosen := list[0]
	atStart, atEnd := onlyGap().MatchString(part[:chosen.From]), onlyGap().MatchString(part[last.To:])
	if !atStart && atEnd {
		chosen = last
	}
	q.subject = strings.TrimSpace(part[:chosen.From]) + " " + strings.TrimSpace(part[chosen.To:])
	if atStart && atEnd && len(list) > 1 && !chosen.Timed && last.OnlyTime && chosen.Err == nil {
		both := f.Find(part[chosen.From:chosen.To] + " " + part[last.From:last.To])
		if len(both) == 1 {
			both[0].From, both[0].To = chosen.From, chosen.To
			q.subject = part[chosen.To:last.From]
			chosen = both[0]
		}
	}
	q.subject = strings.TrimSpace(q.subject)
	chosen.From, chosen.To = chosen.From+begin, chosen.To+begin
	q.phrase = chosen
}

// readBare reads a text that begins with a time: every morning at 7 list the files.
func (t *turn) readBare(text string) (q reminder, ok bool) {
	list := t.finder().Find(text)
	if len(list) == 0 || list[0].From > 0 {
		return q, false
	}
	q.phrase, q.bare, q.tell = list[0], true, true
	q.subject = trimEnd().ReplaceAllString(politeStart().ReplaceAllString(strings.TrimLeft(text[q.phrase.To:], " ,:，：、"),
		""), "")
	q.left = cmp.Or(denialStart().FindString(q.subject), t.limit(q.subject, q.phrase))
	return q, q.subject != "" && (q.phrase.Timed || orderHead().MatchString(q.subject))
}

// readChinese reads a text in Chinese.
func (t *turn) readChinese(text string, entities *[]entity) (q reminder, ok bool) {
	m := remindVerb().FindStringSubmatchIndex(text)
	noun := m == nil
	if noun {
		if m = remindNoun().FindStringIndex(text); m == nil {
			return t.readBare(text)
		}
	}
	f := t.finder()
	if strings.Contains(text, "闹") || strings.Contains(text, "起床") {
		f.Morning = earlyRiser
	}
	before, after := text[:m[0]], text[m[1]:]
	denial := ""
	if !noun {
		denial = denialEnd().FindString(text[:max(m[2], m[4], m[6])])
	}
	q.asked = noun && nounVerb().MatchString(before) || !noun && m[2] >= 0
	q.tell = !noun && m[6] >= 0
	if list := f.Find(before); len(list) > 0 {
		q.phrase = list[len(list)-1]
		before = before[:q.phrase.From] + before[q.phrase.To:]
	} else if strings.TrimSpace(after) != "" {
		q.take(text, m[1], len(text), f)
		after = q.subject
	}
	if noun {
		before = nounVerb().ReplaceAllString(before, "")
		if v := remindVerb().FindStringIndex(after); v != nil {
			after = after[v[1]:]
		}
	}
	before = fillerTail().ReplaceAllString(fillerHead().ReplaceAllString(before, ""), "")
	after = strings.TrimSpace(trimEnd().ReplaceAllString(subjectHead().ReplaceAllString(after, ""), ""))
	if q.subject = after; after == "" {
		q.subject, q.left = before, denial
	} else if t.another(before, entities) {
		return q, false // two requests
	} else {
		q.left = cmp.Or(denial, surplus(before))
	}
	q.left = cmp.Or(q.left, afterHan(text[q.phrase.To:]), t.limit(q.subject, q.phrase))
	if q.phrase.To == 0 {
		q.subject = ""
	}
	return q, q.asked || q.phrase.To > 0
}

// jobSchedule returns the schedule of a phrase.
func (t *turn) jobSchedule(p timephrase.Phrase) map[string]any {
	switch {
	case p.Cron != "":
		s := map[string]any{"kind": job.KindCron, "expr": p.Cron, "staggerMs": 0}
		if t.zone != "" {
			s["tz"] = t.zone
		}
		return s
	case p.Every > 0:
		s := map[string]any{"kind": job.KindEvery, "everyMs": p.Every.Milliseconds()}
		if !p.At.IsZero() {
			s["anchorMs"] = p.At.UnixMilli()
			if t.zone != "" && p.Every%(24*time.Hour) == 0 { // at the same time of day, too, when the clock changes
				s["tz"] = t.zone
			}
		}
		return s
	}
	return map[string]any{"kind": job.KindAt, "at": p.At.Format(time.RFC3339Nano)}
}

// addJob returns the step that adds a job. Its text is told when it is due, or carried out
// by a turn of its own.
func (t *turn) addJob(schedule map[string]any, text string, turn bool, trigger map[string]any) *step {
	j := map[string]any{
		"name":     clip(strings.Join(strings.Fields(text), " "), 60),
		"schedule": schedule,
		"wakeMode": job.WakeNow,
	}
	if turn {
		j["sessionTarget"], j["payload"] = job.TargetIsolated, map[string]any{"kind": job.AgentTurn, "message": text}
	} else {
		j["sessionTarget"], j["payload"] = job.TargetMain, map[string]any{"kind": job.SystemEvent, "text": text}
	}
	if schedule["kind"] == job.KindAt {
		j["deleteAfterRun"] = true
	}
	if trigger != nil {
		j["trigger"] = trigger
	}
	s := callStep("cron", "action", "add", "job", j)
	s.render = added
	return s
}

// job returns the job that a call adds.
func (r result) job() job.Job {
	var a struct{ Job job.Job }
	_ = json.Unmarshal(r.call.Args, &a) // an invalid object has no job
	return a.Job
}

// added tells about a new job, from the call that added it.
func added(t *turn, r result) string {
	j := r.job()
	about := j.Payload.Content()
	if j.Trigger != nil {
		_, object := j.Trigger.Parts()
		if j.Payload.Kind == job.AgentTurn {
			return t.localize(watchDoText, object, about, t.schedule(j.Schedule))
		}
		return t.localize(watchText, object, t.schedule(j.Schedule))
	}
	when := t.schedule(j.Schedule)
	if first := t.first(j.Schedule); j.Schedule.Kind != job.KindAt && !first.IsZero() {
		when = t.localize(firstText, when, t.instant(first))
	}
	if j.Payload.Kind == job.AgentTurn {
		return t.localize(willDoText, when, about)
	}
	return t.localize(willRemindText, when, about)
}

var (
	timeUpText     = localized{"Time is up.", "时间到了。"}
	willRemindText = localized{"I will remind you %s: %s", "好的，我会在%s 提醒你：%s"}
	willDoText     = localized{"I will do this %s: %s", "好的，我会在%s 执行：%s"}
	firstText      = localized{"%s, first %s", "%s（第一次：%s）"}
	pastTimeText   = localized{
		"I set no reminder, because “%s” has passed.",
		"没有设置提醒：“%s”已经过去了。",
	}
	impossibleTimeText = localized{
		"I set no reminder, because there is no such time as “%s” (or it is more than a century away).",
		"没有设置提醒：“%s”这个时间不存在，或者太远了。",
	}
	unclearTimeText = localized{
		"I set no reminder, because I do not know which time “%s” is. Write it like “3 April at 10:00” or “every day at 8”.",
		"没有设置提醒：不清楚“%s”是什么时间。请写成“4月3日10点”或“每天8点”这样。",
	}
	otherDayText = localized{
		"I set no reminder, because the day is %s, and not as in “%s”.",
		"没有设置提醒：那天是%s，与“%s”不符。",
	}
	dueText       = localized{"⏰ Reminder: %s", "⏰ 提醒：%s"}
	lateText      = localized{" (late: it was due %s)", "（迟了，原定时间 %s）"}
	jobResultText = localized{"⏰ %s:\n\n%s", "⏰ %s：\n\n%s"}
	undoneText    = localized{
		"⏰ This was planned for now, but I did not understand it, and no language model is configured: %s",
		"⏰ 现在该执行这件事，但我没听懂，也没有配置语言模型：%s",
	}
)
