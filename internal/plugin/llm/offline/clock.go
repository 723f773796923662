package offline

import (
	"cmp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// clock tells the time, or the time in a place or the date of a day that is named.
func clock(t *turn, m match) *step {
	rest := clockWords().ReplaceAllString(m.expand(m.text), " ")
	loc, place, rest := t.place(rest)
	at, day, rest := t.day(rest, loc)
	switch {
	case meaning(rest) == "":
	case placeForm().MatchString(rest):
		return &step{left: m.named(rest)}
	default: // it asks when something is
		return nil
	}
	if day != "" && place != "" {
		day += t.pick(localized{" in ", "，"}) + place
	}
	day = upper(day)
	switch {
	case day != "" && !m.asksTime():
		return &step{answer: t.localize(dayText, day, t.date(at))}
	case day != "":
		return &step{answer: t.localize(dayText, day, t.date(at)+at.Format(" 15:04"))}
	case place != "":
		return &step{answer: t.localize(placeText, place, t.date(at)+at.Format(" 15:04"), loc.String())}
	}
	m.knows(clockWords())
	s := callStep("session_status")
	s.render = func(t *turn, r result) string {
		_, when, _ := strings.Cut("\n"+r.text, "\nTime: ")
		return t.localize(timeText, t.tell(cmp.Or(firstLine(when), firstLine(r.text))))
	}
	return s
}

// asksTime reports whether a request asks for the time of the day.
func (m match) asksTime() bool { return timeWords().MatchString(m.text) }

// date returns a date in words.
func (t *turn) date(at time.Time) string {
	if t.chinese {
		return at.Format("2006年1月2日 ") + chineseDay(int(at.Weekday()))
	}
	return at.Format("Monday, 2 January 2006")
}

// day returns the time that a text names, in a zone, and the name. Without one, it is now.
func (t *turn) day(text string, loc *time.Location) (at time.Time, name, rest string) {
	now := t.now.In(loc)
	if g := relativeDay().FindStringIndex(text); g != nil {
		name = text[g[0]:g[1]]
		return now.AddDate(0, 0, dayShift(name)), strings.TrimSpace(name), text[:g[0]] + " " + text[g[1]:]
	}
	f := t.finder()
	f.Now = now
	if list := f.Find(text); len(list) == 1 && list[0].Err == nil && !list[0].Repeats() {
		p := list[0]
		return p.At, strings.TrimSpace(text[p.From:p.To]), text[:p.From] + " " + text[p.To:]
	}
	return now, "", text
}

// dayShift returns how many days from today a day is.
func dayShift(name string) int {
	for _, d := range dayNames {
		if strings.Contains(strings.ToLower(name), d.name) {
			return d.shift
		}
	}
	return 0
}

// dayNames are the days next to today; a name that contains another is before it.
var dayNames = [...]struct {
	name  string
	shift int
}{{"after tomorrow", 2}, {"before yesterday", -2}, {"tomorrow", 1}, {"yesterday", -1}, {"大后天", 3}, {"大前天", -3},
	{"后天", 2}, {"前天", -2}, {"明天", 1}, {"昨天", -1}}

// place returns the zone of the place that a text names, and its name. Without one, it is
// the zone of the turn.
func (t *turn) place(text string) (loc *time.Location, name, rest string) {
	for _, z := range hanPlaces() {
		if strings.Contains(text, z.name) {
			if loc, err := time.LoadLocation(z.zone); err == nil {
				return loc, z.name, strings.Replace(text, z.name, " ", 1)
			}
		}
	}
	for _, g := range placeForm().FindAllStringSubmatchIndex(text, -1) {
		name = text[g[2]:g[3]]
		if loc := zoneOf(name); loc != nil {
			return loc, name, text[:g[0]] + " " + text[g[1]:]
		}
	}
	return t.now.Location(), "", text
}

// zoneOf returns the zone of a city, by its name in the database of time zones; nil: it
// has none.
func zoneOf(city string) *time.Location {
	words := strings.Fields(strings.ToLower(city))
	for _, z := range places() {
		if z.name == strings.Join(words, " ") {
			loc, _ := time.LoadLocation(z.zone) // without a database of zones there is none
			return loc
		}
	}
	for i, w := range words {
		words[i] = upper(w)
	}
	for _, region := range regions {
		if loc, err := time.LoadLocation(region + "/" + strings.Join(words, "_")); err == nil {
			return loc
		}
	}
	return nil
}

// upper returns a text with a capital letter at its beginning.
func upper(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:n]) + s[n:]
}

var (
	clockWords = lazy(`(?i)\b(?:what(?:'?s| is| was| will)?|which|tell|me|the|time|clock|date|todays?|day|month|year|weekday|week|it|is|be|was|will|that|of|now|current(?:ly)?|local|exact(?:ly)?|right|do|you|have|today(?:'s)?|'s)\b` +
		`|现在|当前|此时|此刻|目前|今天|今日|时间|日期|时候|几点钟?|几分|几号|几月|哪一?天|多少号|什么日子|星期几|周几|礼拜几|当地|本地|的|是|了|什么|到`)
	timeWords   = lazy(`(?i)\btime\b|\bclock\b|几点|时间|时候`)
	relativeDay = lazy(`(?i)\b(?:the )?day (?:after tomorrow|before yesterday)\b|\bafter tomorrow\b|\bbefore yesterday\b|\btomorrow(?:'s)?\b|\byesterday(?:'s)?\b|大后天|大前天|后天|前天|明天|昨天`)
	placeForm   = lazy(`(?i)(?:\b(?:in|at|for)\s+)(\pL[\pL'\-]*(?: \pL[\pL'\-]*){0,3})`)
	dayText     = localized{"%s: %s.", "%s：%s。"}
	placeText   = localized{"In %s it is %s (%s).", "%s现在是%s（%s）。"}
)

// regions are the parts of the world in names of time zones.
var regions = strings.Fields(
	"Africa America Asia Atlantic Australia Europe Indian Pacific America/Argentina America/Indiana America/Kentucky")

// places are places that no time zone is named after, but that are asked for.
var places = zones(`utc UTC|gmt UTC|beijing Asia/Shanghai|shenzhen Asia/Shanghai|guangzhou Asia/Shanghai|china Asia/Shanghai|japan Asia/Tokyo|osaka Asia/Tokyo|kyoto Asia/Tokyo|` +
	`korea Asia/Seoul|south korea Asia/Seoul|india Asia/Kolkata|delhi Asia/Kolkata|new delhi Asia/Kolkata|mumbai Asia/Kolkata|bangalore Asia/Kolkata|hanoi Asia/Bangkok|vietnam Asia/Ho_Chi_Minh|` +
	`abu dhabi Asia/Dubai|tel aviv Asia/Jerusalem|israel Asia/Jerusalem|ankara Europe/Istanbul|turkey Europe/Istanbul|germany Europe/Berlin|munich Europe/Berlin|hamburg Europe/Berlin|frankfurt Europe/Berlin|cologne Europe/Berlin|` +
	`france Europe/Paris|lyon Europe/Paris|italy Europe/Rome|milan Europe/Rome|barcelona Europe/Madrid|geneva Europe/Zurich|basel Europe/Zurich|switzerland Europe/Zurich|england Europe/London|scotland Europe/London|uk Europe/London|` +
	`edinburgh Europe/London|manchester Europe/London|ireland Europe/Dublin|poland Europe/Warsaw|sweden Europe/Stockholm|norway Europe/Oslo|finland Europe/Helsinki|greece Europe/Athens|saint petersburg Europe/Moscow|` +
	`san francisco America/Los_Angeles|seattle America/Los_Angeles|las vegas America/Los_Angeles|san diego America/Los_Angeles|california America/Los_Angeles|boston America/New_York|washington America/New_York|miami America/New_York|atlanta America/New_York|` +
	`philadelphia America/New_York|dallas America/Chicago|houston America/Chicago|austin America/Chicago|montreal America/Toronto|ottawa America/Toronto|calgary America/Edmonton|rio de janeiro America/Sao_Paulo|rio America/Sao_Paulo|são paulo America/Sao_Paulo|` +
	`cape town Africa/Johannesburg|canberra Australia/Sydney|new zealand Pacific/Auckland|wellington Pacific/Auckland|hawaii Pacific/Honolulu`)

// hanPlaces are places by their names in Chinese.
var hanPlaces = zones(`北京 Asia/Shanghai|上海 Asia/Shanghai|广州 Asia/Shanghai|深圳 Asia/Shanghai|中国 Asia/Shanghai|乌鲁木齐 Asia/Urumqi|香港 Asia/Hong_Kong|澳门 Asia/Macau|台北 Asia/Taipei|东京 Asia/Tokyo|大阪 Asia/Tokyo|日本 Asia/Tokyo|首尔 Asia/Seoul|韩国 Asia/Seoul|` +
	`新加坡 Asia/Singapore|吉隆坡 Asia/Kuala_Lumpur|曼谷 Asia/Bangkok|泰国 Asia/Bangkok|河内 Asia/Bangkok|雅加达 Asia/Jakarta|马尼拉 Asia/Manila|新德里 Asia/Kolkata|孟买 Asia/Kolkata|印度 Asia/Kolkata|迪拜 Asia/Dubai|伊斯坦布尔 Europe/Istanbul|莫斯科 Europe/Moscow|` +
	`伦敦 Europe/London|英国 Europe/London|巴黎 Europe/Paris|法国 Europe/Paris|柏林 Europe/Berlin|慕尼黑 Europe/Berlin|德国 Europe/Berlin|罗马 Europe/Rome|米兰 Europe/Rome|意大利 Europe/Rome|马德里 Europe/Madrid|苏黎世 Europe/Zurich|瑞士 Europe/Zurich|维也纳 Europe/Vienna|` +
	`阿姆斯特丹 Europe/Amsterdam|布鲁塞尔 Europe/Brussels|斯德哥尔摩 Europe/Stockholm|雅典 Europe/Athens|开罗 Africa/Cairo|约翰内斯堡 Africa/Johannesburg|纽约 America/New_York|华盛顿 America/New_York|波士顿 America/New_York|芝加哥 America/Chicago|` +
	`洛杉矶 America/Los_Angeles|旧金山 America/Los_Angeles|西雅图 America/Los_Angeles|多伦多 America/Toronto|温哥华 America/Vancouver|圣保罗 America/Sao_Paulo|悉尼 Australia/Sydney|墨尔本 Australia/Melbourne|奥克兰 Pacific/Auckland|夏威夷 Pacific/Honolulu`)

// city is a place with its time zone.
type city struct{ name, zone string }

// zones returns a function that reads a list of places with their time zones.
func zones(list string) func() []city {
	return sync.OnceValue(func() (out []city) {
		for entry := range strings.SplitSeq(list, "|") {
			i := strings.LastIndexByte(entry, ' ')
			out = append(out, city{entry[:i], entry[i+1:]})
		}
		return out
	})
}

// dateForm matches a text that stands for a date or a time of the day.
var dateForm = lazy(`(?i)^(?:the )?(?:(?P<day>today|tomorrow|yesterday)(?:'?s)?|current|present|actual) (?:(?P<date>date)|(?P<time>time)|date and time)$` +
	`|^(?P<han>今天|今日|明天|昨天|当前|现在|此刻)的?(?:(?P<hanDate>日期)|(?P<hanTime>时间)|日期和时间)$`)

// dateText returns the date or the time that a text which is not quoted stands for, or "".
func (t *turn) dateText(text string) string {
	g := dateForm().FindStringSubmatch(strings.TrimSpace(text))
	if g == nil {
		return ""
	}
	get := func(name string) string { return g[dateForm().SubexpIndex(name)] }
	at := t.now.AddDate(0, 0, dayShift(get("day")+get("han")))
	switch {
	case get("date")+get("hanDate") != "":
		return t.date(at)
	case get("time")+get("hanTime") != "":
		return at.Format("15:04")
	}
	return t.date(at) + at.Format(" 15:04")
}
