// Package timephrase finds the times and recurrences that a text in English or Chinese
// names: "in 20 minutes", "tomorrow at 9", "every weekday at 8", 明天早上九点, 每两小时.
//
// # Rules
//
// A time of day without am, pm or a part of the day has the sense of the day: 1 to 6 are
// in the afternoon, 7 to 12 are as written. A leading zero (05:30), 0 and hours above 12
// are of the 24-hour clock. If the day is today and that time has passed, the later one is
// meant: "today at 8" at noon is 20:00.
//
// A time of day without a day is the next one. A weekday is the next one, and today if its
// time is still to come; 下周一 is the Monday of the next week. A date without a year is the
// next one. A day without a time of day is at 9:00; a part of the day has an hour: morning
// 8:00, noon 12:00, afternoon 15:00, evening 19:00, tonight 20:00, night 21:00. Midnight,
// and 12 at night, end the day.
//
// "In 3 days" keeps the time of day. A month that lacks the day ends earlier: a month after
// 31 January is the last day of February.
package timephrase
