package timephrase

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	numberWords = `(?:half an?|a couple(?: of)?|a few|a quarter of an|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|` +
		`twenty(?:[ -]five)?|thirty|forty(?:[ -]five)?|fifty|sixty|ninety)`
	unitNames = `(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|wks?|months?|years?|yrs?|[smhdw])\b`
)

// englishNames replaces the names in the forms of English.
var englishNames = strings.NewReplacer(
	"{n}", `(?:\d{1,30}(?:\.\d{1,9})?|`+numberWords+`)`, "{unit}", unitNames,
	"{q}", `(?:\d{1,30}(?:\.\d{1,9})?[\s-]*|`+numberWords+`[\s-]+)`+unitNames,
	"{compact}", `(?:\d{1,30}(?:\.\d{1,9})?[wdhms]){1,4}\b`,
	"{day}", `(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)`,
	"{d}", `(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)`,
	"{month}", `(?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?`,
	"{dom}", `(?:\d{1,2}(?:st|nd|rd|th)?)\b`, "{ord}", `(?:\d{1,2}(?:st|nd|rd|th)|first|last day)\b`,
	"{nth}", `(?:second|third|fourth|fifth|\d{1,2}(?:nd|rd|th))`,
	"{h}", `(?:\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b`,
	"{holiday}", `(?:(?P<h>(?:christmas|xmas)(?P<eve> eve)?(?: day)?|new year'?s? eve|new year'?s?(?: day)?|halloween|valentine'?s?(?: day)?|boxing day)|easter(?: (?:sunday|monday))?|thanksgiving(?: day)?|good friday)\b`,
	"{at}", `(?:at|@|by|around)\s*`,
)

func englishForm(expr string) func() *regexp.Regexp {
	return lazy(`(?i)^(?:`+strings.ReplaceAll(expr, "{dur}",
		`(?:{compact}|{q}(?:\s*,?\s*(?:and\s+)?{q}){0,4}(?:\s+and a half)?)`)+`)`, englishNames)
}

// english is the grammar of English.
var english = grammar{
	words:  true,
	gap:    lazy(`^[\s,]*`),
	accept: func(_ *part, _, match, after string) (string, bool) { return match, !startsWord(match, after) },
	parts: []part{
		{form: englishForm(`(?:in|after)\s+(?P<d>{dur})(?:'?s? time\b)?|(?P<e>{dur})\s+(?:from now|later)\b`),
			read: func(g map[string]string, s *spec) {
				var units [year + 1]bool
				for _, a := range englishAmounts(g["d"] + g["e"]) {
					s.amount(a.n, a.unit)
					s.unclear = s.unclear || units[a.unit] // in 5 minutes and 10 minutes: one time, or two
					units[a.unit] = true
				}
			}},
		{form: englishForm(`(?:every|each)\s+(?:(?P<n>other|{nth})\s+(?P<u>(?:day|week|month|hour|minute)s?\b)|(?P<half>half[ -](?:an )?hour\b)|(?P<hours>hour and a half\b)|(?P<d>{dur})|(?P<u2>{unit}))` +
			`|(?P<ly>hourly|daily|everyday|weekly|monthly|yearly|annually)\b`), read: englishEvery},
		{form: englishForm(`(?:every|each)\s+(?:weekday|(?:working|work|business)[ ]?day)s?\b|(?:on\s+)?(?:weekdays|(?:working|work|business)[ ]?days)\b`), read: func(_ map[string]string, s *spec) {
			s.dows = append(s.dows, 1, 2, 3, 4, 5)
		}},
		{form: englishForm(`(?:every|each)\s+weekends?\b|(?:on\s+)?weekends\b`),
			read: func(_ map[string]string, s *spec) { s.dows = append(s.dows, 6, 0) }},
		{form: englishForm(`(?P<l>(?:every|each)\s+{d}s?\b(?:\s*(?:,\s*and\b|,|and\b|&)\s*(?:every\s+|on\s+)?{d}s?\b){0,9}|(?:on\s+)?{day}s\b(?:\s*(?:,\s*and\b|,|and\b|&)\s*(?:on\s+)?{day}s\b){0,9}|(?:on\s+)?{day}\b(?:\s*(?:,\s*and\b|,|and\b|&)\s*(?:on\s+)?{day}\b){1,9})`), read: func(g map[string]string, s *spec) {
			for _, name := range englishDays().FindAllString(g["l"], -1) {
				s.dows = append(s.dows, weekdayOf(name))
			}
		}},
		{form: englishForm(`(?:every|each)\s+(?P<n>other|{nth})\s+(?P<d>{d})\b`), read: func(g map[string]string, s *spec) {
			s.repeat(englishNth(g["n"]), week)
			s.dows = append(s.dows, weekdayOf(g["d"]))
		}},
		{form: englishForm(`(?:every fortnight|fortnightly)\b`),
			read: func(_ map[string]string, s *spec) { s.repeat(2, week) }},
		{form: englishForm(`bi-?(?:weekly|monthly|annually)\b`),
			read: func(_ map[string]string, s *spec) { s.unclear = true }},
		{form: englishForm(`(?:on\s+)?(?:(?:every|each|the)\s+)?(?P<n>first|last|1st|{nth})\s+(?P<d>{d})\s+(?:of|in)\s+(?:(?:the|every|each)\s+month|(?P<once>(?:this|next)\s+month|{month}|the\s+year))\b`), read: func(g map[string]string, s *spec) {
			s.every, s.n, s.dows = month, 1, append(s.dows, weekdayOf(g["d"]))
			s.nth = "L"
			if g["n"] != "last" {
				s.nth = strconv.Itoa(int(englishNth(g["n"])))
			}
			s.unclear = s.unclear || g["once"] != ""
		}},
		{form: englishForm(
			`(?:every|each)\s+(?P<p>morning|afternoon|evening|night|noon|midnight|lunchtime)\b|(?P<q>nightly)\b`),
			read: func(g map[string]string, s *spec) {
				s.every, s.n, s.part = day, 1, partOf(g["p"]+g["q"])
			}},
		{form: englishForm(`(?:on\s+)?(?:the\s+)?(?P<o>{ord})(?:\s+day)?\s+of\s+(?:every|each)\s+month\b|(?:every|each)\s+(?P<o2>{ord})(?:\s+of the month\b)?`), read: func(g map[string]string, s *spec) {
			s.every, s.n = month, 1
			s.readDom(g["o"] + g["o2"])
		}},
		{form: englishForm(
			`(?:every|each)\s+(?P<d>{dom})\s+(?:of\s+)?(?P<m>{month})|(?:every|each)\s+(?P<m2>{month})\s+(?P<d2>{dom})`),
			read: func(g map[string]string, s *spec) {
				s.every, s.n, s.month = year, 1, monthOf(g["m"]+g["m2"])
				s.readDom(g["d"] + g["d2"])
			}},
		{kind: dayKind, form: englishForm(`(?:on\s+)?(?:(?P<past>(?:the day before )?yesterday)|(?P<two>(?:the\s+)?day after tomorrow)|(?P<one>tomorrow|tmrw|tmr)|(?P<today>today))\b`), read: func(g map[string]string, s *spec) {
			s.past = s.past || g["past"] != ""
			s.dated = true
			switch {
			case g["two"] != "":
				s.offset = 2
			case g["one"] != "":
				s.offset = 1
			}
		}},
		{kind: dayKind, form: englishForm(`(?P<w>(?:(?:on|the|this|next|coming|last)\s+){0,3})(?P<d>{day})\b|(?P<w2>(?:(?:on|this|next|coming|last)\s+){1,3})(?P<d2>{d})\b`), read: func(g map[string]string, s *spec) {
			which := strings.ToLower(g["w"] + g["w2"])
			s.weekday, s.dow = true, weekdayOf(g["d"]+g["d2"])
			s.later = strings.Contains(which, "next")
			s.past = s.past || strings.Contains(which, "last")
		}},
		{kind: dayKind, form: englishForm(`next\s+(?:(?P<w>week)|(?P<m>month)|year)\b`),
			read: func(g map[string]string, s *spec) {
				switch {
				case g["w"] != "" && !s.weekday:
					s.weekday, s.dow, s.weeks = true, time.Monday, 3
				case g["w"] != "":
					s.weeks = 3
				case g["m"] != "":
					s.nextMonth = 1
				default:
					s.year, s.month, s.dom = s.now.Year()+1, time.January, 1
				}
			}},
		{kind: dayKind, form: englishForm(`(?:on\s+)?(?:the\s+)?(?P<d>{dom})\s+(?:of\s+)?(?P<m>{month})(?:,?\s*(?P<y>\d{4})\b)?|(?:on\s+)?(?P<m2>{month})\s+(?:the\s+)?(?P<d2>{dom})(?:,?\s*(?P<y2>\d{4})\b)?`), read: func(g map[string]string, s *spec) {
			s.month = monthOf(g["m"] + g["m2"])
			s.readDom(g["d"] + g["d2"])
			s.readYear(g["y"] + g["y2"])
		}},
		{kind: dayKind, form: englishForm(`(?:on\s+)?(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})(?:t|\b)`), read: readISO},
		{kind: dayKind, form: englishForm(`on\s+(?:the\s+)?(?P<o>{ord})(?:\s+of\s+(?:(?P<next>next)|the|this)\s+month\b)?|(?:the\s+)?(?P<o2>\d{1,2}(?:st|nd|rd|th)\b)(?:\s+of\s+(?:(?P<next2>next)|the|this)\s+month\b)?`), read: func(g map[string]string, s *spec) {
			s.readDom(g["o"] + g["o2"])
			if g["next"]+g["next2"] != "" {
				s.nextMonth = 1
			}
		}},
		{kind: dayKind, form: englishForm(`(?:on\s+)?(?P<a>\d{1,2})/(?P<b>\d{1,2})(?:/(?P<y>\d{4}))?\b|(?:on\s+)?(?P<c>\d{1,2})\.(?P<e>\d{1,2})\.(?P<z>\d{4}\b)?`), read: func(g map[string]string, s *spec) {
			d, m := number(g["a"]+g["c"]), number(g["b"]+g["e"])
			if g["c"] == "" && m > 12 { // the month is first
				d, m = m, d
			} else if g["c"] == "" && d <= 12 && d != m {
				s.unclear = true
			}
			s.readDate(g["y"]+g["z"], m, d)
		}},
		{kind: clockKind,
			form: englishForm(`(?:{at}|for\s+)?(?P<h>\d{1,2}|{h})(?:[:.](?P<m>\d{2}))?\s*(?P<ap>am|pm|a\.m\.?|p\.m\.?)`),
			read: readEnglishClock},
		{kind: clockKind,
			form: englishForm(`(?:{at})?(?P<h>\d{1,2}):(?P<m>\d{2})(?::\d{2})?(?:\s*(?:hrs|h)\b)?(?P<o> sharp)?`),
			read: readEnglishClock},
		{kind: clockKind, form: englishForm(`{at}(?P<h>\d{1,2})[.h](?P<m>\d{2})\b`), read: readEnglishClock},
		{kind: clockKind, form: englishForm(`{at}(?P<h>{h})(?:\s*o'?\s?clock\b)?(?: sharp\b)?|(?P<h2>{h})\s*o'?\s?clock\b`),
			read: readEnglishClock},
		{kind: clockKind, form: englishForm(`(?:{at})?(?:a )?(?P<rel>half|quarter|(?:\d{1,2}|five|ten|twenty|twenty[ -]five)(?: minutes)?)\s+(?P<dir>past|after|to|before)\s+(?P<h>\d{1,2}|{h})(?:\s*(?P<ap>am|pm|a\.m\.?|p\.m\.?))?`), read: readEnglishClock},
		{form: englishForm(`(?:{at})?(?P<noon>noon|midday|lunchtime)\b|(?:{at})?midnight\b`),
			read: func(g map[string]string, s *spec) {
				s.part = midnight
				if g["noon"] != "" {
					s.part = noon
				}
			}},
		{form: englishForm(`(?:(?:in|during)\s+the\s+|this\s+)(?:early\s+)?(?P<p>morning|afternoon|evening|night)\b|(?P<t>tonight)\b|at\s+(?P<n>night)\b`), read: func(g map[string]string, s *spec) {
			if strings.HasPrefix(strings.ToLower(g[""]), "this") || g["t"] != "" {
				s.dated = true
			}
			if s.part = partOf(g["p"] + g["n"]); g["t"] != "" {
				s.part, s.tonight = night, true
			}
		}},
		{lead: true, form: englishForm(`(?:(?:(?:just|right|shortly|some\s?time|long|soon|{dur}|(?:the|an?)\s+(?:second|minute|hour|day|night|evening|morning|week|month|year))\s+)?(?:before|after|prior to|ahead of|since))\b`), read: func(_ map[string]string, s *spec) { s.unclear = true }},
		{kind: dayKind, form: englishForm(`(?:on|at|for)\s+{holiday}`), read: readHoliday},
		{kind: dayKind, next: true, form: englishForm(`{holiday}`), read: readHoliday},
		{next: true, form: englishForm(`(?:early\s+)?(?P<p>morning|afternoon|evening|night)\b`),
			read: func(g map[string]string, s *spec) { s.part = partOf(g["p"]) }},
	},
}

// startsWord reports whether a match ends inside of a word or a number.
func startsWord(match, after string) bool {
	if after == "" || match == "" {
		return false
	}
	c, last := after[0], match[len(match)-1]
	digit := c >= '0' && c <= '9'
	return (digit || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_') && last != ' ' &&
		!(last == 'T' || last == 't') ||
		last >= '0' && last <= '9' && len(after) > 1 && strings.ContainsRune(":.,/-%", rune(c)) &&
			after[1] >= '0' && after[1] <= '9' ||
		c == '%' || c == '/'
}

var (
	englishDays   = lazy(`(?i)\b(?:mon|tue|wed|thu|fri|sat|sun)`)
	englishAmount = lazy(`(\d+(?:\.\d+)?)\s*([smhdw])(?:\b|\d)|({n})?[\s-]*\b(second|sec|minute|min|hour|hr|day|week|wk|month|year|yr)|(an?)\s+([smhdw])\b`, englishNames)
)

// amount is a number of units.
type amount struct {
	n    float64
	unit unit
}

// englishAmounts reads "1 hour and 30 minutes", "1h30m" or "an hour and a half".
func englishAmounts(text string) []amount {
	text, half := strings.CutSuffix(strings.ToLower(text), " and a half")
	var list []amount
	for at := 0; ; {
		m := englishAmount().FindStringSubmatchIndex(text[at:])
		if m == nil {
			break
		}
		for g := 2; g < len(m); g += 4 {
			if m[g+2] >= 0 {
				n := ""
				if m[g] >= 0 {
					n = text[at+m[g] : at+m[g+1]]
				}
				list = append(list, amount{englishNumber(n), englishUnit(text[at+m[g+2] : at+m[g+3]])})
				at += m[g+3]
				break
			}
		}
	}
	if half && len(list) > 0 {
		list[len(list)-1].n += 0.5
	}
	return list
}

func englishUnit(s string) unit {
	switch s = strings.ToLower(s); {
	case s == "m" || strings.HasPrefix(s, "mi"):
		return minute
	case strings.HasPrefix(s, "mo"):
		return month
	}
	return map[byte]unit{'s': second, 'h': hour, 'd': day, 'w': week, 'y': year}[s[0]]
}

// englishNumbers are the numbers by name.
var englishNumbers = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve")

// englishNumber reads a number; one if there is none.
func englishNumber(s string) float64 {
	s = strings.ToLower(strings.ReplaceAll(s, "-", " "))
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return n
	}
	switch {
	case s == "" || s == "a" || s == "an":
		return 1
	case strings.HasPrefix(s, "half"):
		return 0.5
	case strings.HasPrefix(s, "a quarter"):
		return 0.25
	case strings.HasPrefix(s, "a couple"):
		return 2
	case s == "a few":
		return 3
	}
	for i, name := range englishNumbers {
		if s == name {
			return float64(i)
		}
	}
	tens, _, five := strings.Cut(s, " five")
	n := map[string]float64{
		"fifteen": 15,
		"twenty":  20,
		"thirty":  30,
		"forty":   40,
		"fifty":   50,
		"sixty":   60,
		"ninety":  90,
	}[tens]
	if five {
		n += 5
	}
	return n
}

func englishEvery(g map[string]string, s *spec) {
	switch {
	case g["ly"] != "":
		s.repeat(1, map[byte]unit{
			'h': hour,
			'd': day,
			'e': day,
			'w': week,
			'm': month,
			'y': year,
			'a': year,
		}[strings.ToLower(g["ly"])[0]])
	case g["half"] != "":
		s.repeat(0.5, hour)
	case g["hours"] != "":
		s.repeat(1.5, hour)
	case g["n"] != "":
		s.repeat(englishNth(g["n"]), englishUnit(g["u"]))
	case g["u2"] != "":
		s.repeat(1, englishUnit(g["u2"]))
	default:
		list := englishAmounts(g["d"])
		if len(list) == 1 {
			s.repeat(list[0].n, list[0].unit)
			return
		}
		total := 0.0
		for _, a := range list {
			total += a.n * float64(seconds[a.unit])
		}
		s.repeat(total, second)
	}
}

// englishNth reads "other", "third" or "3rd".
func englishNth(s string) float64 {
	switch s = strings.ToLower(s); s {
	case "other":
		return 2
	case "first", "second", "third", "fourth", "fifth":
		return float64(1 + slices.Index([]string{"first", "second", "third", "fourth", "fifth"}, s))
	}
	return float64(number(strings.TrimRight(s, "stndrh")))
}

func readEnglishClock(g map[string]string, s *spec) {
	written := g["h"] + g["h2"]
	s.clock, s.hour, s.minute = true, int(englishNumber(written)), 0
	s.written = strings.HasPrefix(written, "0")
	back := false // it is of the hour before
	if g["m"] != "" {
		s.minute = number(g["m"])
	}
	if rel := strings.ToLower(strings.TrimSuffix(g["rel"], " minutes")); rel != "" {
		n := map[string]int{"half": 30, "quarter": 15}[rel]
		if n == 0 {
			n = int(englishNumber(rel))
		}
		dir := strings.ToLower(g["dir"])
		if back = dir == "to" || dir == "before"; back {
			n = 60 - n
		}
		s.minute = n
	}
	switch ap := strings.ToLower(g["ap"]); {
	case ap == "":
		if back {
			s.hour = cmp.Or(s.hour-1, 12)
		}
		return
	case s.hour > 12 || s.hour == 0:
		s.bad = true
	case ap[0] == 'p':
		s.hour, s.written = s.hour%12+12, true
	default:
		s.hour, s.written = s.hour%12, true
	}
	if back {
		s.hour = (s.hour + 23) % 24
	}
}

func (s *spec) readDom(text string) {
	text = strings.ToLower(text)
	switch {
	case strings.HasPrefix(text, "last"):
		s.lastDay = true
	case text == "first":
		s.dom = 1
	default:
		s.dom = number(strings.TrimRight(text, "dhnrst"))
	}
	s.bad = s.bad || !s.lastDay && s.dom < 1
}

func (s *spec) readYear(text string) {
	if text != "" {
		s.year = number(text)
	}
}

// readDate reads a date in digits; the year may be empty.
func (s *spec) readDate(y string, m, d int) {
	s.readYear(y)
	s.month, s.dom = time.Month(m), d
	s.bad = s.bad || m < 1 || m > 12 || d < 1
}

// readHoliday reads a day of every year by its name. Those that are not on the same date each
// year are not known.
func readHoliday(g map[string]string, s *spec) {
	name, m, d := strings.ToLower(g["h"]), time.December, 25
	switch {
	case name == "":
		s.unclear = true
	case strings.HasPrefix(name, "new") && strings.HasSuffix(name, "eve"):
		d = 31
	case strings.HasPrefix(name, "new"):
		m, d = time.January, 1
	case strings.HasPrefix(name, "hallow"):
		m, d = time.October, 31
	case strings.HasPrefix(name, "val"):
		m, d = time.February, 14
	case strings.HasPrefix(name, "box"):
		d = 26
	case g["eve"] != "":
		d = 24
	}
	s.month, s.dom = m, d
}

func readISO(g map[string]string, s *spec) { s.readDate(g["y"], number(g["m"]), number(g["d"])) }

func weekdayOf(name string) time.Weekday {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if len(name) > 1 && strings.EqualFold(name[:2], d.String()[:2]) {
			return d
		}
	}
	return time.Monday
}

func monthOf(name string) time.Month {
	for m := time.January; m <= time.December; m++ {
		if len(name) > 2 && strings.EqualFold(name[:3], m.String()[:3]) {
			return m
		}
	}
	return 0
}

// partOf returns a part of the day by its name.
func partOf(name string) daytime {
	switch name = strings.ToLower(name); {
	case name == "":
		return anytime
	case name[0] == 'm' && strings.HasPrefix(name, "mid"):
		return midnight
	case name[0] == 'm':
		return morning
	case name[0] == 'a':
		return afternoon
	case name[0] == 'e':
		return evening
	case name == "noon" || name[0] == 'l':
		return noon
	}
	return night
}
