package offline

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/kit/cronexpr"
)

// instant returns a time in the person's zone, for use after "remind you" or 会在.
func (t *turn) instant(at time.Time) string {
	at = at.In(t.now.Location())
	clock := at.Format("15:04")
	if at.Second() != 0 && at.Sub(t.now) < 10*time.Minute {
		clock = at.Format("15:04:05")
	}
	days := dayNumber(at) - dayNumber(t.now)
	if t.chinese {
		date := fmt.Sprintf("%d月%d日（%s）", at.Month(), at.Day(), chineseDay(int(at.Weekday())))
		switch {
		case days == 0:
			return "今天 " + clock
		case days == 1:
			return "明天，" + date + " " + clock
		case at.Year() != t.now.Year():
			date = fmt.Sprintf("%d年", at.Year()) + date
		}
		return date + " " + clock
	}
	date := at.Format("Monday 2 January")
	switch {
	case days == 0:
		return "today at " + clock
	case days == 1:
		return "tomorrow, " + date + ", at " + clock
	case at.Year() != t.now.Year():
		date = at.Format("Monday 2 January 2006")
	}
	return "on " + date + " at " + clock
}

func dayNumber(t time.Time) int64 {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400
}

func chineseDay(d int) string { return "星期" + string([]rune("日一二三四五六")[d]) }

// schedule returns a schedule in words.
func (t *turn) schedule(s job.Schedule) string {
	switch s.Kind {
	case job.KindAt:
		if at, err := s.AtTime(); err == nil {
			return t.instant(at)
		}
	case job.KindEvery:
		return t.interval(time.Duration(s.EveryMs) * time.Millisecond)
	case job.KindCron:
		text := t.expression(s.Expr)
		if s.TZ != "" && s.TZ != t.zone {
			text += " (" + s.TZ + ")"
		}
		return text
	}
	return s.String()
}

// intervals are the units of intervals, the largest first.
var intervals = [...]struct {
	unit   time.Duration
	en, zh string
}{{24 * time.Hour, "day", "天"}, {time.Hour, "hour", "小时"}, {time.Minute, "minute", "分钟"}, {time.Second, "second", "秒"},
	{time.Millisecond, "millisecond", "毫秒"}}

func (t *turn) interval(d time.Duration) string {
	for _, u := range intervals {
		n := int64(d / u.unit)
		switch {
		case d%u.unit != 0 || n == 0:
		case t.chinese && n == 1:
			return "每" + u.zh
		case t.chinese:
			return fmt.Sprintf("每%d%s", n, u.zh)
		case n == 1:
			return "every " + u.en
		default:
			return fmt.Sprintf("every %d %ss", n, u.en)
		}
	}
	return d.String()
}

// expression returns a cron expression in words if it is a plain one.
func (t *turn) expression(expr string) string {
	raw := t.localize(localized{"by the cron expression `%s`", "按 cron 表达式 `%s`"}, expr)
	f := strings.Fields(expr)
	if len(f) != 5 {
		return raw
	}
	minute, err := strconv.Atoi(f[0])
	hour, err2 := strconv.Atoi(f[1])
	if err != nil || err2 != nil {
		return raw
	}
	days := t.days(f[2], f[3], f[4])
	if days == "" {
		return raw
	}
	return fmt.Sprintf(t.pick(localized{"%s at %02d:%02d", "%s %02d:%02d"}), days, hour, minute)
}

// days returns the days of a cron expression in words, or "" if they are not plain.
func (t *turn) days(dom, month, dow string) string {
	day, err := strconv.Atoi(dom)
	switch {
	case dom == "*" && month == "*":
		return t.weekdays(dow)
	case dow != "*" || err != nil && dom != "L":
		return ""
	case dom == "L" && month == "*":
		return t.pick(localized{"on the last day of every month", "每月最后一天"})
	case dom == "L":
		return ""
	case month == "*":
		return fmt.Sprintf(t.pick(localized{"on the %[2]s of every month", "每月%[1]d日"}), day, ordinal(day))
	}
	m, err := strconv.Atoi(month)
	if err != nil || m < 1 || m > 12 {
		return ""
	}
	if t.chinese {
		return fmt.Sprintf("每年%d月%d日", m, day)
	}
	return fmt.Sprintf("every year on %d %s", day, time.Month(m))
}

func ordinal(n int) string {
	suffix := "th"
	if n/10 != 1 && n%10 >= 1 && n%10 <= 3 {
		suffix = [...]string{"st", "nd", "rd"}[n%10-1]
	}
	return strconv.Itoa(n) + suffix
}

// weekdays returns a field of days of the week in words.
func (t *turn) weekdays(dow string) string {
	switch strings.ToUpper(dow) {
	case "*":
		return t.pick(localized{"every day", "每天"})
	case "1-5", "MON-FRI":
		return t.pick(localized{"every weekday", "每个工作日"})
	}
	var list []string
	if day, nth, ok := strings.Cut(dow, "#"); ok {
		return t.nthWeekday(day, nth)
	}
	for name := range strings.SplitSeq(dow, ",") {
		d, err := strconv.Atoi(name)
		if err != nil || d < 0 || d > 7 {
			return ""
		}
		if t.chinese {
			list = append(list, strings.TrimPrefix(chineseDay(d%7), "星期"))
		} else {
			list = append(list, time.Weekday(d%7).String())
		}
	}
	if t.chinese {
		return "每周" + strings.Join(list, "、")
	}
	if n := len(list); n > 1 {
		return "every " + strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
	return "every " + list[0]
}

// nthWeekday returns "on the second Monday of every month", or "" if it is not plain.
func (t *turn) nthWeekday(day, nth string) string {
	d, err := strconv.Atoi(day)
	if err != nil || d < 0 || d > 7 {
		return ""
	}
	n, err := strconv.Atoi(nth)
	switch {
	case nth == "L" && t.chinese:
		return "每月最后一个" + chineseDay(d%7)
	case nth == "L":
		return "on the last " + time.Weekday(d%7).String() + " of every month"
	case err != nil:
		return ""
	case t.chinese:
		return fmt.Sprintf("每月第%d个%s", n, chineseDay(d%7))
	}
	return fmt.Sprintf("on the %s %s of every month", ordinal(n), time.Weekday(d%7))
}

// first returns when a schedule is due first; zero if that is not known.
func (t *turn) first(s job.Schedule) time.Time {
	switch s.Kind {
	case job.KindAt:
		if at, err := s.AtTime(); err == nil {
			return at
		}
	case job.KindEvery:
		if s.AnchorMs != 0 {
			return s.AnchorMs.Time()
		}
		return t.now.Add(time.Duration(s.EveryMs) * time.Millisecond)
	case job.KindCron:
		if e, err := cronexpr.Parse(s.Expr); err == nil {
			return e.Next(t.now, t.now.Location())
		}
	}
	return time.Time{}
}
