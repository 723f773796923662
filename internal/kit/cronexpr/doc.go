// Package cronexpr reads cron expressions and computes the times that they
// match, by the rules of version 11 of the npm package croner.
//
// # Fields
//
// An expression has five, six or seven fields, separated by white space:
//
//	[second] minute hour day-of-month month day-of-week [year]
//
// Six fields begin with the second; seven end with the year. Without them, the
// second is 0 and the year is any. The values are
//
//	second, minute   0-59
//	hour             0-23
//	day of month     1-31
//	month            1-12 or JAN-DEC
//	day of week      0-7 or SUN-SAT; 0 and 7 are Sunday
//	year             1-9999
//
// A field is a list of items that are separated by commas. An item is
//
//	5      a value
//	2-6    a range. The first value must not be above the last. SUN at the
//	       end of a range is 7: FRI-SUN is Friday to Sunday, SUN-SUN every day
//	2-6/2  every second value of a range, from its first
//	*      every value; ? is the same
//	*/5    every fifth value, from the lowest: */2 in the day of month is 1, 3,
//	       5 and so on, in the year the even years
//
// A step is at least 1 and at most the number of the field's values (10000 for
// the year). A step on a single value (5/10) is an error. The end of a range
// with a step can be above the highest value if no step reaches one that is:
// 0-24/5 is an hour field. Names have three letters of either case and stand for
// values, not for steps.
//
// # Days
//
// The day of month has these items too:
//
//	L    the last day of the month
//	15W  the weekday (Monday to Friday) nearest to the 15th, in the same month;
//	     none in a month without that day
//	LW   the last weekday of the month; it must be the whole field
//
// In the day of week, a value, a range or a step can have a suffix:
//
//	MON#2  the second Monday of the month; 1 to 5
//	MON#L  the last Monday of the month; MONL is the same
//
// If the day of month and the day of week are both restricted, a day that
// matches one of them matches. With + before the day of week, it must match both.
// A field is unrestricted only if it is * or ?: */1 and *,1 are restrictions that
// all days meet. "*,L" in the day of month is unrestricted as well.
//
// # Nicknames
//
// An expression can also be one of these, in either case:
//
//	@yearly, @annually  0 0 1 1 *
//	@monthly            0 0 1 * *
//	@weekly             0 0 * * SUN
//	@daily, @midnight   0 0 * * *
//	@hourly             0 * * * *
//
// # Clock changes
//
// An expression with one second, one minute and one hour, and no *, ? or / in
// these fields, has a fixed time. If the clock skips that time, the expression
// matches the first instant after the gap, provided that this is on the same
// day. If the clock repeats that time, it matches the first of the two.
//
// Any other expression matches the instants at which the local clock shows a
// time that it matches: none of a skipped hour, and both of a repeated one.
package cronexpr
