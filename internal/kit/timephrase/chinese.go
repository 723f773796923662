package timephrase

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// chineseNames replaces the names in the forms of Chinese.
var chineseNames = strings.NewReplacer(
	"{n}", `(?:\d{1,30}(?:\.\d{1,9})?|[零〇一二两三四五六七八九十百]{1,7})`, "{i}", `(?:\d{1,9}|[零〇一二两三四五六七八九十]{1,4})`,
	"{unit}", `(?:秒钟?|分钟|分|刻钟|小时|钟头|天|日|周|星期|礼拜|月|年)`,
	"{week}", `(?:周|星期|礼拜)`, "{dow}", `[一二三四五六日天]`,
	"{part}", `(?:凌晨|清晨|清早|一大早|大清早|早晨|早上|上午|中午|正午|午后|下午|傍晚|晚上|夜里|夜晚|半夜|深夜|午夜|今夜)`,
	" ", `\s*`,
)

func chineseForm(expr string) func() *regexp.Regexp {
	amounts := `(?:半 个? (?:小时|钟头|天|月|年)|{n} 个? 半? {unit}半?)(?: 零? 又?{n} (?:分钟|分|秒钟?)){0,2}`
	return lazy(`(?i)^(?:`+strings.ReplaceAll(expr, "{dur}", amounts)+`)`, chineseNames)
}

// chinese is the grammar of Chinese.
var chinese = grammar{
	gap:    lazy(`^(?:[\s,，、]|的|在)*`),
	accept: acceptChinese,
	parts: []part{
		{form: chineseForm(`(?:再过|再等|再|过|等)? (?P<d>{dur}) (?:之后|以后|过后|后)|(?:再过|过) (?P<e>{dur})`),
			read: func(g map[string]string, s *spec) {
				for _, a := range chineseAmounts(g["d"] + g["e"]) {
					s.amount(a.n, a.unit)
				}
			}},
		{form: chineseForm(
			`每 (?P<skip>间隔|隔|过)? (?P<d>半 个? (?:小时|钟头|天|月|年)|{n} 个? 半? {unit}|个? {unit})(?: 一次)?|(?P<other>隔天)|(?P<daily>天天)`),
			read: func(g map[string]string, s *spec) {
				switch {
				case g["other"] != "":
					s.repeat(2, day)
				case g["daily"] != "":
					s.repeat(1, day)
				default:
					for _, a := range chineseAmounts(g["d"]) {
						if g["skip"] == "隔" && a.n == 1 && (a.unit == day || a.unit == week) { // one is left out
							a.n = 2
						}
						s.repeat(a.n, a.unit)
					}
				}
			}},
		{form: chineseForm(`每 个? 月 的? (?:第 (?P<n>[一二三四五]|[1-5]) 个?|最后 一? 个?) {week} (?P<d>{dow})`),
			read: func(g map[string]string, s *spec) {
				s.every, s.n, s.dows, s.nth = month, 1, append(s.dows, chineseDay(g["d"])), "L"
				if g["n"] != "" {
					s.nth = strconv.Itoa(chineseInt(g["n"]))
				}
			}},
		{form: chineseForm(`(?:每 个? )?工作日`),
			read: func(_ map[string]string, s *spec) { s.dows = append(s.dows, 1, 2, 3, 4, 5) }},
		{form: chineseForm(`每 (?:个|逢)? 周末`), read: func(_ map[string]string, s *spec) { s.dows = append(s.dows, 6, 0) }},
		{form: chineseForm(`(?:每 (?:个|逢)?|逢) {week} (?P<l>{dow}(?:(?: [、,，和及与到至] )?{week}?{dow}){0,9})`),
			read: func(g map[string]string, s *spec) { s.readDays(g["l"]) }},
		{form: chineseForm(`每 个? (?P<p>{part}|晚|早|夜)`),
			read: func(g map[string]string, s *spec) { s.every, s.n, s.part = day, 1, chinesePart(g["p"]) }},
		{form: chineseForm(`(?:月底|最后 一 天)`), read: func(_ map[string]string, s *spec) { s.lastDay = true }},
		{kind: dayKind, form: chineseForm(`(?:大前天|前天|昨天|昨日|昨晚|昨夜|上 个? (?:{week}{dow}?|月|周末)|去年)`),
			read: func(_ map[string]string, s *spec) { s.past, s.dated = true, true }},
		{kind: dayKind, form: chineseForm(`(?:(?P<three>大后天)|(?P<two>后天|后日)|(?P<one>明天|明日|明儿)|今天|今日|今儿)(?P<p>早上|晚上|早|晚)?`),
			read: func(g map[string]string, s *spec) {
				s.readOffset(g)
				if g["p"] != "" {
					s.part = chinesePart(g["p"])
				}
			}},
		{kind: dayKind, form: chineseForm(`(?:(?P<two>后)|(?P<one>明)|今)(?P<p>早|晚|夜)上?`),
			read: func(g map[string]string, s *spec) {
				s.readOffset(g)
				s.part = chinesePart(g["p"])
				s.tonight = g["p"] != "早"
			}},
		{kind: dayKind,
			form: chineseForm(
				`(?P<w>下下|下|这|本)? 个? {week} (?P<d>{dow})|(?P<w3>下|这|本)? 个? (?P<end>周末)|(?P<w2>下下|下|这|本) 个? {week}`),
			read: func(g map[string]string, s *spec) {
				s.weekday, s.dow = true, time.Monday
				if g["d"] != "" {
					s.dow = chineseDay(g["d"])
				}
				if g["end"] != "" {
					s.dow = time.Saturday
				}
				s.weeks = map[string]int{"这": 2, "本": 2, "下": 3, "下下": 4}[g["w"]+g["w2"]+g["w3"]]
			}},
		{kind: dayKind, form: chineseForm(`(?:(?P<y>\d{4}) 年|(?P<r>今|明|后) 年)? (?P<m>{i}) 月 (?P<d>{i}) [号日]`),
			read: func(g map[string]string, s *spec) {
				s.readDate(g["y"], chineseInt(g["m"]), chineseInt(g["d"]))
				if g["r"] != "" {
					s.year = s.now.Year() + map[string]int{"今": 0, "明": 1, "后": 2}[g["r"]]
				}
			}},
		{kind: dayKind,
			form: chineseForm(`(?P<n>下|这|本)? 个? 月 (?P<d>{i}) [号日]|(?P<d2>{i}) 号|(?P<d3>\d+) 日|(?P<n2>下) 个? 月(?:初)?`),
			read: func(g map[string]string, s *spec) {
				if d := g["d"] + g["d2"] + g["d3"]; d != "" {
					s.dom = chineseInt(d)
					s.bad = s.bad || s.dom < 1
				}
				if g["n"]+g["n2"] == "下" {
					s.nextMonth = 1
				}
			}},
		{kind: dayKind, form: chineseForm(`(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})`), read: readISO},
		{form: chineseForm(`(?P<p>{part})`), read: func(g map[string]string, s *spec) {
			s.part = chinesePart(g["p"])
			s.dated = s.dated || g["p"] == "今夜"
		}},
		{kind: clockKind, form: chineseForm(`(?P<p>早|晚)? (?P<h>{i}) (?:点钟?|時|时|點)(?: (?:整|(?P<half>半)|(?P<q>[一三两二]) 刻(?:钟)?|过? (?P<m>{i}) 分|(?P<m2>\d{2}|零[一二三四五六七八九]|[二三四五]?十[一二三四五六七八九]?)))?`), read: readChineseClock},
		{kind: clockKind, form: chineseForm(`(?P<p>早|晚)? (?P<h>\d{1,2}) [:：] (?P<m>\d{2})`), read: readChineseClock},
	},
}

// acceptChinese rejects 一点 that means a bit, and gives back the number of an hour that
// was read as a day of the week.
func acceptChinese(_ *part, before, match, after string) (string, bool) {
	last, _ := utf8.DecodeLastRuneInString(before)
	next, size := utf8.DecodeRuneInString(after)
	switch {
	case match == "早一点" || match == "晚一点", match == "一点" &&
		(strings.ContainsRune("早晚快慢多少好大小有差这那近远", last) || strings.ContainsRune("儿也都点", next)):
		return "", false
	case match != "" && match[0] <= '9' && last >= '0' && last <= '9':
		return "", false // inside of a number
	case size > 0 && strings.ContainsRune("点时刻號号", next) && strings.HasPrefix(match, "每"):
		r, n := utf8.DecodeLastRuneInString(match)
		if rest := match[:len(match)-n]; strings.ContainsRune("一二三四五六", r) && strings.ContainsAny(rest, "一二三四五六日天") {
			return strings.TrimRight(rest, " "), true
		}
	}
	return match, true
}

var chineseAmount = lazy(`(半|{n})? 个? (半)? ({unit})(半)?`, chineseNames)

// chineseAmounts reads 一个半小时 or 1小时30分钟.
func chineseAmounts(text string) []amount {
	var list []amount
	for _, m := range chineseAmount().FindAllStringSubmatch(text, -1) {
		a := amount{1, chineseUnit(m[3])}
		if m[1] != "" {
			a.n = chineseNumber(m[1])
		}
		if m[2]+m[4] != "" {
			a.n += 0.5
		}
		if strings.HasPrefix(m[3], "刻") { // a quarter of an hour
			a.n *= 15
		}
		list = append(list, a)
	}
	return list
}

func chineseUnit(s string) unit {
	switch {
	case strings.HasPrefix(s, "秒"):
		return second
	case strings.HasPrefix(s, "分"), strings.HasPrefix(s, "刻"):
		return minute
	case s == "小时", s == "钟头":
		return hour
	case s == "天", s == "日":
		return day
	case s == "月":
		return month
	case s == "年":
		return year
	}
	return week
}

const chineseDigits = "零一二三四五六七八九"

// chineseNumber reads digits or Chinese numerals up to 999; a wrong one is -1.
func chineseNumber(s string) float64 {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return n
	}
	if s == "半" {
		return 0.5
	}
	total, digit, seen := 0, 0, false
	for _, r := range strings.NewReplacer("两", "二", "〇", "零").Replace(s) {
		scale := map[rune]int{'十': 10, '百': 100}[r]
		switch i := strings.IndexRune(chineseDigits, r); {
		case scale > 0 && (seen || digit > 0 || scale == 10):
			total, digit, seen = total+max(digit, 1)*scale, 0, true
		case i >= 0 && digit == 0:
			digit, seen = i/3, true
		default:
			return -1
		}
	}
	return float64(total + digit)
}

// chineseInt reads a whole number; a wrong or large one is -1.
func chineseInt(s string) int {
	if n := chineseNumber(s); n >= 0 && n <= 9999 {
		return int(n)
	}
	return -1
}

func chineseDay(s string) time.Weekday {
	if i := strings.Index("一二三四五六", s); i >= 0 {
		return time.Weekday(i/3 + 1)
	}
	return time.Sunday
}

// readDays reads days of the week, with ranges.
func (s *spec) readDays(list string) {
	last, ranged := time.Weekday(-1), false
	for _, r := range list {
		switch {
		case r == '到' || r == '至':
			ranged = true
		case strings.ContainsRune("一二三四五六日天", r):
			d := chineseDay(string(r))
			for n := 1; ranged && n < 7 && (last+time.Weekday(n))%7 != d; n++ {
				s.dows = append(s.dows, (last+time.Weekday(n))%7)
			}
			s.dows = append(s.dows, d)
			last, ranged = d, false
		}
	}
}

func (s *spec) readOffset(g map[string]string) {
	s.dated = true
	switch {
	case g["three"] != "":
		s.offset = 3
	case g["two"] != "":
		s.offset = 2
	case g["one"] != "":
		s.offset = 1
	}
}

func chinesePart(name string) daytime {
	switch name {
	case "":
		return anytime
	case "凌晨":
		return early
	case "中午", "正午":
		return noon
	case "午后", "下午":
		return afternoon
	case "傍晚":
		return evening
	case "晚上", "夜里", "夜晚", "深夜", "半夜", "晚", "夜", "今夜":
		return night
	case "午夜":
		return midnight
	}
	return morning
}

func readChineseClock(g map[string]string, s *spec) {
	s.clock, s.hour, s.minute = true, chineseInt(g["h"]), 0
	s.written = strings.HasPrefix(g["h"], "0") || strings.HasPrefix(g["h"], "零")
	if g["p"] != "" {
		s.part = chinesePart(g["p"])
	}
	switch {
	case g["half"] != "":
		s.minute = 30
	case g["q"] != "":
		s.minute = 15 * chineseInt(g["q"])
	case g["m"]+g["m2"] != "":
		s.minute = chineseInt(g["m"] + g["m2"])
	}
}
