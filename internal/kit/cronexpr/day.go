package cronexpr

import "math/bits"

// dayNumber returns the number of days from 1 January of the year 1 to a date.
func dayNumber(year, month, day int) int {
	before := [...]int{0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334}
	y := year - 1
	n := y*365 + y/4 - y/100 + y/400 + before[month] + day - 1
	if month > 2 && leap(year) {
		n++
	}
	return n
}

// weekdayOf returns the weekday of the first day of a month, 0 for Sunday. The
// first day of the year 1 was a Monday.
func weekdayOf(year, month int) int { return (dayNumber(year, month, 1) + 1) % 7 }

func leap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func daysIn(year, month int) int {
	switch month {
	case 2:
		if leap(year) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// kindOf returns the kind of a year, 0 to 13: the weekday on which it begins and
// whether it is a leap year. All years of a kind have the same calendar.
func kindOf(year int) int {
	k := weekdayOf(year, 1)
	if leap(year) {
		k += 7
	}
	return k
}

// findKinds returns the kinds of years in which a day matches. The 28 years from
// 2001 are of all kinds.
func (e *Expr) findKinds() uint16 {
	var found uint16
	for year := 2001; year < 2001+28; year++ {
		for month := 1; month <= 12; month++ {
			if e.month>>month&1 != 0 && e.days(year, month) != 0 {
				found |= 1 << kindOf(year)
				break
			}
		}
	}
	return found
}

func (e *Expr) hasYear(year int) bool {
	return e.kinds>>kindOf(year)&1 != 0 && (e.years == nil || e.years.has(year))
}

// nextDay returns the first date from the given one that matches. The day can be
// one past the end of the month.
func (e *Expr) nextDay(year, month, day int) (y, m, d int, ok bool) {
	for ; year <= lastYear; year, month, day = year+1, 1, 1 {
		if !e.hasYear(year) {
			continue
		}
		for ; month <= 12; month, day = month+1, 1 {
			if e.month>>month&1 == 0 {
				continue
			}
			if days := e.days(year, month) >> day; days != 0 {
				return year, month, day + bits.TrailingZeros32(days), true
			}
		}
	}
	return 0, 0, 0, false
}

// days returns the days of a month that match.
func (e *Expr) days(year, month int) uint32 {
	length := daysIn(year, month)
	days := e.day & (1<<(length+1) - 1)
	if e.anyWeekday && e.anyDay {
		return days
	}
	first := weekdayOf(year, month)
	if e.lastDay {
		days |= 1 << length
	}
	if e.lastWeekday {
		days |= 1 << nearestWeekday(length, length, first)
	}
	for set := e.nearest & (1<<(length+1) - 1); set != 0; set &= set - 1 {
		days |= 1 << nearestWeekday(bits.TrailingZeros32(set), length, first)
	}
	switch {
	case e.anyWeekday:
		return days
	case e.both || e.anyDay:
		return days & e.weekdays(length, first)
	}
	return days | e.weekdays(length, first)
}

// weekdays returns the days of a month that match the day of week. The month has
// the given length and begins on the weekday first.
func (e *Expr) weekdays(length, first int) uint32 {
	var days uint32
	for day := 1; day <= length; day++ {
		weeks := e.weekday[(first+day-1)%7]
		if weeks>>((day-1)/7)&1 != 0 || weeks&lastWeek != 0 && day+7 > length {
			days |= 1 << day
		}
	}
	return days
}

// nearestWeekday returns the day from Monday to Friday that is nearest to a day
// and in the same month, which has the given length and begins on the weekday
// first.
func nearestWeekday(day, length, first int) int {
	switch (first + day - 1) % 7 {
	case 0: // Sunday
		if day == length {
			return day - 2
		}
		return day + 1
	case 6: // Saturday
		if day == 1 {
			return day + 2
		}
		return day - 1
	}
	return day
}
