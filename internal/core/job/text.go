package job

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/chela-ai/chela/internal/kit/cronexpr"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// The parts of a due text. A line of the payload that looks like one of them gets a
// backslash, so that several due texts in one prompt can be told apart.
const (
	duePrefix  = "[cron:"
	latePrefix = "This is late, it was due: "
	timePrefix = "Current time: "
	foundLine  = "What the check found:"
)

// late is how long after its time a job has to begin for its text to say so.
const late = 2 * time.Minute

// lateLayout is the same in every language. The time zone is the person's own.
const lateLayout = "2006-01-02 15:04"

// DueText returns the text that a model gets when the job is due. It begins with
// "[cron:ID NAME] "; a name or an id that is not plain is quoted. If the job was due long
// before now, for example because nothing ran then, a line after the payload says when;
// due may be zero. The text of a turn has a line with the time now. Times are in loc. found
// is what the check of the trigger found; it may be empty. [ParseDue] reads the text back.
func (j Job) DueText(due, now time.Time, loc *time.Location, found string) string {
	text := duePrefix + plain(string(j.ID), " ") + " " + plain(j.Name, "") + "] " + escapeDue(j.Payload.Content())
	if !due.IsZero() && now.Sub(due) >= late {
		text += "\n\n" + latePrefix + due.In(loc).Format(lateLayout)
	}
	if j.Payload.Kind == AgentTurn {
		text += "\n\n" + timeLine(now, loc)
	}
	if found != "" {
		text += "\n\n" + foundLine + "\n" + escapeDue(found)
	}
	return text
}

// escapeDue puts a backslash before the lines that look like parts of a due text.
func escapeDue(s string) string { return dueLine().ReplaceAllString(s, `${1}\${2}${3}`) }

func unescapeDue(s string) string { return dueEscaped().ReplaceAllString(s, "${1}${2}${3}") }

// timeLine returns the line with the time.
func timeLine(now time.Time, loc *time.Location) string {
	now = now.In(loc)
	zone := loc.String()
	if loc == time.Local { // "Local" is not the name of a zone
		zone, _ = now.Zone()
	}
	return timePrefix + now.Format("Monday, 2 January 2006, 15:04:05 -07:00") + " (" + zone + ")"
}

// plain returns s as it is, or quoted if its end would not be found.
func plain(s, bad string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	if s == "" || s[0] == '"' || strings.TrimSpace(s) != s || strings.ContainsAny(s, "[]"+bad) ||
		strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}

var (
	// dueLine finds the lines that look like parts of a due text, also in a list.
	dueLine    = lazy(`(?m)^(- )?(\\*)(\[cron:|This is late, it was due: |Current time: |What the check found:)`)
	dueEscaped = lazy(`(?m)^(- )?\\(\\*)(\[cron:|This is late, it was due: |Current time: |What the check found:)`)
	dueStart   = lazy(`(?m)^(?:- )?\[cron:`)
)

// lazy returns a function that compiles the expression on first use.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// Due is what a due text says.
type Due struct {
	Job  ID
	Name string
	Text string // the payload
	Turn bool   // the text is a request to carry out, not a reminder
	Late string // when it was due, like "2026-11-28 14:05", if it is late; "": it is not

	// Found is what the check of the trigger found. It may be foreign text.
	Found string
}

// ParseDue reads a text of [Job.DueText]. It reports false for other texts.
func ParseDue(s string) (d Due, ok bool) {
	s, ok = strings.CutPrefix(s, duePrefix)
	if !ok {
		return Due{}, false
	}
	id, s, ok := cutPlain(s, " ")
	name, s, ok2 := cutPlain(s, "]")
	if !ok || !ok2 {
		return Due{}, false
	}
	s = strings.TrimPrefix(s, " ")
	s, d.Found, _ = strings.Cut(s, "\n\n"+foundLine+"\n") // lines of the texts that look like it are escaped
	s, _, d.Turn = strings.Cut(s, "\n\n"+timePrefix)
	s, d.Late, _ = strings.Cut(s, "\n\n"+latePrefix)
	d.Job, d.Name = ID(id), name
	d.Text, d.Found = unescapeDue(s), unescapeDue(d.Found)
	return d, true
}

// cutPlain cuts what plain returned, and the separator after it.
func cutPlain(s, sep string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		return strings.Cut(s, sep)
	}
	quoted, err := strconv.QuotedPrefix(s)
	if err != nil {
		return "", s, false
	}
	if value, err = strconv.Unquote(quoted); err != nil {
		return "", s, false
	}
	rest, ok = strings.CutPrefix(s[len(quoted):], sep)
	return value, rest, ok
}

// SplitDue splits a list of events at its due texts. What is not part of a due text is
// left out.
func SplitDue(s string) []Due {
	at := dueStart().FindAllStringIndex(s, -1)
	var out []Due
	for i, m := range at {
		end := len(s)
		if i+1 < len(at) {
			end = at[i+1][0] - 1 // without the line feed
		}
		if d, ok := ParseDue(s[m[1]-len(duePrefix) : end]); ok {
			out = append(out, d)
		}
	}
	return out
}

// ResultText returns the event with the answer of a turn of the job. why is why it was
// not sent to where it was to go; it may be nil. [ParseResult] reads the text back.
func (j Job) ResultText(why error, answer string) string {
	note := ""
	if why != nil {
		note = fmt.Sprintf(" It was to be sent elsewhere, but %v.", why)
	}
	return resultPrefix + strconv.Quote(j.Title()) + resultEnded + note + resultOrder + answer
}

const (
	resultPrefix = "The scheduled job "
	resultEnded  = " has ended."
	resultOrder  = " Tell the user its result:\n\n"
)

// ParseResult reads a text of [Job.ResultText]. note is the sentence about why the answer
// was not sent. It reports false for other texts.
func ParseResult(s string) (title, note, answer string, ok bool) {
	s, ok = strings.CutPrefix(s, resultPrefix)
	quoted, err := strconv.QuotedPrefix(s)
	if !ok || err != nil {
		return "", "", "", false
	}
	if title, err = strconv.Unquote(quoted); err != nil {
		return "", "", "", false
	}
	s, ok = strings.CutPrefix(s[len(quoted):], resultEnded)
	note, answer, ok2 := strings.Cut(s, resultOrder)
	return title, strings.TrimSpace(note), answer, ok && ok2
}

// Line returns the line about the job in the list that a model gets. next says when it
// runs next. [ParseLine] reads it back.
func (j Job) Line(next string) string {
	watch := ""
	if j.Trigger != nil {
		watch = checkPrefix + strconv.Quote(j.Trigger.Script)
	}
	return string(j.ID) + " " + strconv.Quote(j.Title()) + ": " + j.Schedule.String() + watch + nextPrefix + next
}

const (
	checkPrefix = ", only if this has changed: "
	nextPrefix  = "; next "
	// NoJobs is the list without jobs.
	NoJobs = "There are no jobs."
	// Off is when a job runs next that is switched off.
	Off = "never: it is off"
	// NextLayout is the layout of the time at which a job runs next.
	NextLayout = "Mon 2 Jan 2006 15:04:05 -07:00"
)

// Listed is what the line about a job says.
type Listed struct {
	ID       ID
	Title    string
	Schedule Schedule // without an anchor
	Trigger  *Trigger
	Off      bool
	Next     time.Time // zero: it is not known
}

// ParseLine reads a line of [Job.Line]. It reports false for other texts.
func ParseLine(s string) (l Listed, ok bool) {
	id, rest, ok := strings.Cut(s, ` "`)
	title, err := strconv.QuotedPrefix(`"` + rest)
	if !ok || err != nil {
		return l, false
	}
	rest, ok = strings.CutPrefix(rest[len(title)-1:], ": ")
	if !ok {
		return l, false
	}
	l.ID = ID(id)
	if l.Title, err = strconv.Unquote(title); err != nil {
		return l, false
	}
	schedule, next, _ := strings.Cut(rest, nextPrefix)
	if before, after, found := strings.Cut(rest, checkPrefix); found {
		script, err := strconv.QuotedPrefix(after)
		if err != nil {
			return l, false
		}
		l.Trigger = &Trigger{}
		if l.Trigger.Script, err = strconv.Unquote(script); err != nil {
			return l, false
		}
		schedule, next = before, strings.TrimPrefix(after[len(script):], nextPrefix)
	}
	l.Schedule = parseString(schedule)
	next, _, _ = strings.Cut(next, ";")
	l.Off = strings.HasPrefix(next, "never: ")
	l.Next, _ = time.Parse(NextLayout, next) // zero for other texts
	return l, true
}

// parseString reads a text of [Schedule.String].
func parseString(s string) Schedule {
	if at, ok := strings.CutPrefix(s, "at "); ok {
		return Schedule{Kind: KindAt, At: at}
	}
	if every, ok := strings.CutPrefix(s, "every "); ok {
		every, zone, _ := strings.Cut(every, " ")
		if d, err := humanize.ParseDuration(every); err == nil {
			return Schedule{Kind: KindEvery, EveryMs: d.Milliseconds(), TZ: zone}
		}
	}
	if i := strings.LastIndexByte(s, ' '); i > 0 {
		if _, err := cronexpr.Parse(s); err != nil { // the last field is a zone
			return Schedule{Kind: KindCron, Expr: s[:i], TZ: s[i+1:]}
		}
	}
	return Schedule{Kind: KindCron, Expr: s}
}
