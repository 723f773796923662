package timephrase

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/cronexpr"
)

// show returns what a text says at a time, for tables.
func show(text string, now time.Time) string {
	var out []string
	for _, p := range (Finder{Now: now}).Find(Fold(text)) {
		var s string
		switch {
		case p.Err != nil:
			s = p.Err.Error()
		case p.Cron != "":
			s = p.Cron
		case p.Every > 0 && p.At.IsZero():
			s = "every " + p.Every.String()
		case p.Every > 0:
			s = "every " + p.Every.String() + " from " + p.At.Format("01-02 15:04")
		default:
			s = p.At.Format("2006-01-02 15:04")
			if p.At.Second() != 0 {
				s += p.At.Format(":05")
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

// clock returns a time on Wednesday, 25 November 2026, in Berlin.
func clock(t testing.TB, hour, minute int) time.Time {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return time.Date(2026, 11, 25, hour, minute, 0, 0, zone)
}

func TestFind(t *testing.T) {
	t.Parallel()
	now := clock(t, 10, 30)
	for _, tc := range []struct{ text, want string }{
		// from now
		{"in 20 minutes", "2026-11-25 10:50"}, {"IN TWENTY MINUTES", "2026-11-25 10:50"},
		{"in twenty-five minutes", "2026-11-25 10:55"},
		{"in half an hour", "2026-11-25 11:00"}, {"in an hour and a half", "2026-11-25 12:00"},
		{"in 1.5 hours", "2026-11-25 12:00"},
		{"in 1h30m", "2026-11-25 12:00"}, {"in 90s", "2026-11-25 10:31:30"}, {"after 5 min", "2026-11-25 10:35"},
		{"20 minutes from now", "2026-11-25 10:50"}, {"in a couple of hours", "2026-11-25 12:30"},
		{"in 2 hours and 15 minutes", "2026-11-25 12:45"},
		{"in 3 days", "2026-11-28 10:30"}, {"in 3 days at 9", "2026-11-28 09:00"}, {"in a month", "2026-12-25 10:30"},
		{"in 3 months", "2027-02-25 10:30"},
		{"in 500 years", "there is no such time"}, {"in 99999999999999999999 hours", "there is no such time"},
		{"in 20 minutes at 5pm", "the time is not clear"},
		{"20分钟后", "2026-11-25 10:50"}, {"２０分钟后", "2026-11-25 10:50"}, {"一个半小时以后", "2026-11-25 12:00"},
		{"半小时后", "2026-11-25 11:00"},
		{"两小时半后", "2026-11-25 13:00"}, {"一百二十分钟后", "2026-11-25 12:30"}, {"三天后早上9点", "2026-11-28 09:00"},
		{"过十分钟", "2026-11-25 10:40"},
		{"三个月后", "2027-02-25 10:30"}, {"一刻钟后", "2026-11-25 10:45"}, {"1小时30分钟后", "2026-11-25 12:00"},
		// times of the day
		{"at 5", "2026-11-25 17:00"}, {"at 5pm", "2026-11-25 17:00"}, {"at 5 p.m.", "2026-11-25 17:00"},
		{"at 05:30", "2026-11-26 05:30"}, {"at 8", "2026-11-26 08:00"},
		{"at 11", "2026-11-25 11:00"}, {"at 12", "2026-11-25 12:00"}, {"at 12am", "2026-11-26 00:00"},
		{"at 12pm", "2026-11-25 12:00"}, {"17:30", "2026-11-25 17:30"},
		{"at 17.30", "2026-11-25 17:30"}, {"at nine o'clock", "2026-11-26 09:00"}, {"at half past three", "2026-11-25 15:30"},
		{"at quarter to five", "2026-11-25 16:45"},
		{"at ten to one", "2026-11-25 12:50"}, {"noon", "2026-11-25 12:00"}, {"at midnight", "2026-11-26 00:00"},
		{"in the morning", "2026-11-26 08:00"},
		{"tonight", "2026-11-25 20:00"}, {"this evening at 7", "2026-11-25 19:00"}, {"at 2 at night", "2026-11-26 02:00"},
		{"at 25:00", "there is no such time"}, {"at 9:75", "there is no such time"},
		{"at 24:00", "2026-11-26 00:00"}, {"下午三点半", "2026-11-25 15:30"}, {"晚上12点", "2026-11-26 00:00"},
		{"凌晨两点", "2026-11-26 02:00"}, {"中午1点", "2026-11-25 13:00"},
		{"5点", "2026-11-25 17:00"}, {"8点", "2026-11-26 08:00"}, {"十点一刻", "2026-11-26 10:15"}, {"9点20", "2026-11-26 09:20"},
		{"25点", "there is no such time"}, {"早8点", "2026-11-26 08:00"},
		// days
		{"today at 8", "2026-11-25 20:00"}, {"today at 8am", "the time has passed"}, {"tomorrow", "2026-11-26 09:00"},
		{"tomorrow evening at 8", "2026-11-26 20:00"},
		{"the day after tomorrow at noon", "2026-11-27 12:00"}, {"yesterday at 5", "the time has passed"},
		{"on Friday", "2026-11-27 09:00"}, {"on wed at 9", "2026-12-02 09:00"},
		{"Wednesday at 11", "2026-11-25 11:00"}, {"next Wednesday at 11", "2026-12-02 11:00"},
		{"last Friday", "the time has passed"}, {"next week", "2026-11-30 09:00"},
		{"on 3 March at 10:00", "2027-03-03 10:00"}, {"March 3rd, 2028", "2028-03-03 09:00"},
		{"the 3rd of December", "2026-12-03 09:00"}, {"on 3 March 2020", "the time has passed"},
		{"on 31 February", "there is no such time"}, {"29 February", "2028-02-29 09:00"}, {"on the 15th", "2026-12-15 09:00"},
		{"on the 31st", "2026-12-31 09:00"}, {"on 2026-12-24 18:00", "2026-12-24 18:00"},
		{"2026-12-24T18:00", "2026-12-24 18:00"}, {"2026-13-01", "there is no such time"},
		{"on 3/4", "the time is not clear"}, {"on 24/12", "2026-12-24 09:00"}, {"on 24.12.", "2026-12-24 09:00"},
		{"明早八点", "2026-11-26 08:00"}, {"今晚", "2026-11-25 20:00"}, {"大后天", "2026-11-28 09:00"}, {"昨天", "the time has passed"},
		{"周五下午3点", "2026-11-27 15:00"},
		{"下周一", "2026-11-30 09:00"}, {"下周三", "2026-12-02 09:00"}, {"这周一", "the time has passed"},
		{"上周五", "the time has passed"}, {"星期天", "2026-11-29 09:00"},
		{"3月3号", "2027-03-03 09:00"}, {"十二月二十四日晚上六点", "2026-12-24 18:00"}, {"明年3月3日", "2027-03-03 09:00"},
		{"2月31号", "there is no such time"}, {"15号", "2026-12-15 09:00"},
		{"下个月1号", "2026-12-01 09:00"}, {"今天早上8点", "the time has passed"},
		// recurrences
		{"every day", "0 9 * * *"}, {"every day at 8", "0 8 * * *"}, {"daily at 20:15", "15 20 * * *"},
		{"at 8 every weekday", "0 8 * * 1-5"}, {"on weekdays at 8", "0 8 * * 1-5"},
		{"every weekend", "0 9 * * 0,6"}, {"every Monday and Thursday at 18:00", "0 18 * * 1,4"},
		{"Mondays at 9", "0 9 * * 1"}, {"every mon, wed and fri at 7am", "0 7 * * 1,3,5"},
		{"every 2 hours", "every 2h0m0s"}, {"every hour", "every 1h0m0s"}, {"every half hour", "every 30m0s"},
		{"every hour and a half", "every 1h30m0s"}, {"every minute", "every 1m0s"}, {"hourly", "every 1h0m0s"},
		{"every other Tuesday at 9", "every 336h0m0s from 12-01 09:00"},
		{"every second Monday", "every 336h0m0s from 11-30 09:00"},
		{"every 3rd Friday at 18:00", "every 504h0m0s from 11-27 18:00"},
		{"every 3rd day at 10", "every 72h0m0s from 11-26 10:00"}, {"every 2nd of the month", "0 9 2 * *"},
		{"every second", "every 1s"}, {"fortnightly on Monday at 9", "every 336h0m0s from 11-30 09:00"},
		{"biweekly on Monday", "the time is not clear"}, {"in 5 min and 10 min", "the time is not clear"},
		{"in 1 hour and 5 minutes", "2026-11-25 11:35"},
		{"the first Monday of the month at 10", "0 10 * * 1#1"}, {"every second Monday of the month", "0 9 * * 1#2"},
		{"on the last Friday of every month at 5pm", "0 17 * * 5#L"},
		{"the first Monday of next month", "the time is not clear"},
		{"每隔一周的周一9点", "every 336h0m0s from 11-30 09:00"}, {"每两周的周二9点", "every 336h0m0s from 12-01 09:00"},
		{"每月第一个周一9点", "0 9 * * 1#1"}, {"每个月最后一个星期五下午5点", "0 17 * * 5#L"},
		{"every 2 hours at noon", "every 2h0m0s from 11-25 12:00"},
		{"every other day at 9", "every 48h0m0s from 11-26 09:00"},
		{"every 2 weeks on Friday at 9", "every 336h0m0s from 11-27 09:00"},
		{"every evening", "0 19 * * *"}, {"every night at 12", "0 0 * * *"}, {"every Friday at midnight", "0 0 * * 6"},
		{"every week at 9", "0 9 * * 3"},
		{"every month on the 1st", "0 9 1 * *"}, {"monthly", "0 9 1 * *"}, {"on the 1st of every month at 10", "0 10 1 * *"},
		{"on the last day of every month", "0 9 L * *"}, {"every 3 months on the 1st", "0 9 1 */3 *"},
		{"every year on 3 March at 9", "0 9 3 3 *"}, {"every March 3", "0 9 3 3 *"},
		{"every 31 February", "there is no such time"}, {"every 5 months", "the time is not clear"},
		{"every 0 minutes", "there is no such time"},
		{"每天早上8点", "0 8 * * *"}, {"每晚十点", "0 22 * * *"}, {"每个工作日8点", "0 8 * * 1-5"}, {"每周一9点", "0 9 * * 1"},
		{"每周一三五三点", "0 15 * * 1,3,5"}, {"每周五三点", "0 15 * * 5"},
		{"每周一、三和五", "0 9 * * 1,3,5"}, {"每周一到周五8点", "0 8 * * 1-5"}, {"每周末", "0 9 * * 0,6"}, {"每两小时", "every 2h0m0s"},
		{"每隔一个小时", "every 1h0m0s"}, {"每半小时", "every 30m0s"},
		{"每隔一天早上8点", "every 48h0m0s from 11-26 08:00"}, {"每月1号", "0 9 1 * *"}, {"每个月的最后一天下午5点", "0 17 L * *"},
		{"每年3月3号", "0 9 3 3 *"}, {"每两周", "every 336h0m0s from 11-26 09:00"},
		{"every hour on weekdays", "0 * * * 1-5"}, {"every 10 minutes on weekends", "*/10 * * * 0,6"},
		{"every 7 minutes on weekends", "the time is not clear"}, {"Monday, Wednesday and Friday at 7", "0 7 * * 1,3,5"},
		{"这个周末", "2026-11-28 09:00"},
		// beside a time
		{"before 5pm", "the time is not clear"}, {"2 days before Christmas", "the time is not clear"},
		{"an hour after noon", "the time is not clear"}, {"ten minutes before 12pm", "2026-11-25 11:50"},
		{"10 to 12am", "2026-11-25 23:50"},
		{"on Christmas Eve", "2026-12-24 09:00"}, {"at 7 on New Year's Day", "2027-01-01 07:00"},
		{"on Thanksgiving", "the time is not clear"}, {"Christmas", ""}, {"before", ""},
		{"at 5pm before", "2026-11-25 17:00"}, {"13pm", "there is no such time"},
		{"on Friday 13 December", "13 December 2026 is a Sunday"}, {"Sunday 13 December at 9", "2026-12-13 09:00"},
		{"tomorrow, Friday at 9", "26 November 2026 is a Thursday"}, {"tomorrow, Thursday at 9", "2026-11-26 09:00"},
		{"下周五12月4日", "2026-12-04 09:00"}, {"下周五12月5日", "the time is not clear"}, {"12月1日星期五", "1 December 2026 is a Tuesday"},
		{"every 2 weeks on Monday and Thursday", "the time is not clear"}, {"monthly on Mondays", "the time is not clear"},
		// several, and none
		{"tomorrow at 10 for the meeting on Friday at 3pm", "2026-11-26 10:00; 2026-11-27 15:00"}, {"", ""},
		{"every cloud", ""}, {"I may march on", ""}, {"the 3 of us", ""}, {"早一点睡", ""}, {"一点儿也不", ""},
		{"version 1.2.3", ""}, {"at 50%", ""}, {"everything", ""}, {"mondayish", ""}, {"10.0.0.1", ""}, {"三餐", ""},
	} {
		if got := show(tc.text, now); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.text, got, tc.want)
		}
	}
}

// TestSkipped asks for hours that the clock leaves out.
func TestSkipped(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2027, 3, 13, 10, 0, 0, 0, zone)
	for text, want := range map[string]string{
		"on 14 March 2027 at 2:30am": "there is no such time",
		"tomorrow at 2:30am":         "there is no such time",
		"2:30am":                     "there is no such time",
		"on 2027-03-14 at 02:00":     "there is no such time",
		"明天凌晨2点半":                    "there is no such time",
		"2027年3月14日凌晨2点30分":          "there is no such time",
		"in 1 day at 2:30am":         "there is no such time",

		"tomorrow at 3am":       "2027-03-14 03:00",
		"tomorrow at 1:30am":    "2027-03-14 01:30",
		"every day at 2:30am":   "30 2 * * *",
		"on 15 March at 2:30am": "2027-03-15 02:30",
	} {
		if got := show(text, now); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestMorning(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"at 6:30": 6, "at 4": 4, "at 3": 15, "at 6pm": 18, "六点半": 6} {
		if list := (Finder{Now: clock(t, 10, 30), Morning: 4}).Find(text); len(list) != 1 || list[0].At.Hour() != want {
			t.Errorf("%q: got %v, want the hour %d", text, list, want)
		}
	}
}

func FuzzFind(f *testing.F) {
	for _, s := range []string{"in 20 minutes", "every other day at 9", "on 31 February", "tonight at 2", "每周一三五三点",
		"三天后早上9点", "last day of every month", "in 99 years 99 years", "\xff 每", "next month the 31st", "下个月31号"} {
		f.Add(s, int64(1_800_000_000), "Europe/Berlin")
		f.Add(s, int64(1_790_000_000), "Pacific/Apia")
	}
	f.Fuzz(func(t *testing.T, text string, sec int64, zone string) {
		loc, err := time.LoadLocation(zone)
		if err != nil || sec < 0 || sec > 1e10 || len(text) > 2000 {
			t.Skip()
		}
		now := time.Unix(sec, 0).In(loc)
		end := 0
		for _, p := range (Finder{Now: now}).Find(Fold(text)) {
			if p.From < end || p.To <= p.From || p.To > len(Fold(text)) {
				t.Fatalf("%q: position %d to %d", text, p.From, p.To)
			}
			end = p.To
			set := fmt.Sprint(p.Err != nil, p.Cron != "", p.Every > 0 || !p.At.IsZero())
			if strings.Count(set, "true") != 1 {
				t.Fatalf("%q: %+v", text, p)
			}
			if !p.At.IsZero() && !p.At.After(now) {
				t.Fatalf("%q at %v: %v is not later", text, now, p.At)
			}
			if p.Cron != "" {
				e, err := cronexpr.Parse(p.Cron)
				if err != nil {
					t.Fatalf("%q: %q: %v", text, p.Cron, err)
				}
				if !e.Next(now, loc).After(now) {
					t.Fatalf("%q: %q is never due", text, p.Cron)
				}
			}
		}
	})
}
