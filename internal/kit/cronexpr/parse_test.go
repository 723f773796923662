package cronexpr

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// TestParseSame parses texts that are two ways to write an expression.
func TestParseSame(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, same string }{
		{"0 9 * * *", "0 0 9 * * *"},
		{"0 9 * * *", "0 0 9 * * * *"},
		{" 0\t9  * *\n* ", "0 9 * * *"},
		{"007 09 01 01 00", "7 9 1 1 0"},
		{"? ? ? ? ?", "* * * * *"},
		{"?/5 * * * *", "*/5 * * * *"},
		{"* * ?,1 * +?", "* * *,1 * +*"},
		{"* * * * *,1", "* * * * */1"},
		{"0 0 * jan,Feb,MAR *", "0 0 * 1,2,3 *"},
		{"0 0 * JAN-DEC/2 *", "0 0 * 1,3,5,7,9,11 *"},
		{"0 0 * JUL *", "0 0 * 7 *"},
		{"0 0 * * mon,TUE,Wed,thu,fri,sat,sun", "0 0 * * 1,2,3,4,5,6,0"},
		{"0 0 * * 7", "0 0 * * 0"},
		{"0 0 * * 5-7", "0 0 * * 0,5,6"},
		{"0 0 * * FRI-SUN", "0 0 * * 5,6,7"},
		{"0 0 * * SUN-TUE", "0 0 * * 0,1,2"},
		{"0 0 * * SUN-SUN", "0 0 * * 0-6"},
		{"0 0 * * 1-7/2", "0 0 * * 0,1,3,5"},
		{"0 0 * * 0-13/7", "0 0 * * 0"},
		{"0 0 * * */7", "0 0 * * 0"},
		{"0 0 * * */5", "0 0 * * 0,5"},
		{"0 0 * * MONL", "0 0 * * 1#L"},
		{"0 0 * * monl", "0 0 * * MON#l"},
		{"0 0 * * MON-WED#02", "0 0 * * 1#2,2#2,3#2"},
		{"0 0 * * MON-FRI/2L", "0 0 * * 1L,3L,5L"},
		{"0 0 * * */3#1", "0 0 * * 0#1,3#1,6#1"},
		{"0 0 * * MON#2,MON", "0 0 * * 1"},
		{"0 0 */2 * *", "0 0 1-31/2 * *"},
		{"0 0 */31 * *", "0 0 1,1 * *"},
		{"*/60 */60 */24 * * *", "0-0/1 0-0/1 0-0/1 * * *"},
		{"0-24/5 0-24/5 * * *", "0,5,10,15,20 0,5,10,15,20 * * *"},
		{"0 0 1-40/30 */12 *", "0 0 1,31 1-1 *"},
		{"0 0 L,L,1 * *", "0 0 1,l * *"},
		{"0 0 *,L * *", "0 0 L,* * *"},
		{"0 0 15w * *", "0 0 15W * *"},
		{"0 0 lw * *", "0 0 LW * *"},
		{"0 0 0 1 1 * 2024-2030/3,2025", "0 0 0 1 1 * 2024,2025,2027,2030"},
		{"0 0 0 1 1 * */5000", "0 0 0 1 1 * 5000"},
		{"0 0 0 1 1 * */1", "0 0 0 1 1 * 1-9999"},
		{"@yearly", "0 0 1 1 *"},
		{"@ANNUALLY", "0 0 1 1 *"},
		{" @Monthly ", "0 0 1 * *"},
		{"@weekly", "0 0 * * 0"},
		{"@daily", "0 0 * * *"},
		{"@midnight", "0 0 * * *"},
		{"@hourly", "0 * * * *"},
	} {
		got, err := Parse(tt.text)
		want, wantErr := Parse(tt.same)
		if err != nil || wantErr != nil {
			t.Errorf("Parse(%q): %v; Parse(%q): %v", tt.text, err, tt.same, wantErr)
			continue
		}
		if got.String() != strings.TrimSpace(tt.text) {
			t.Errorf("String() = %q, want %q", got, strings.TrimSpace(tt.text))
		}
		got.text, want.text = "", ""
		if !reflect.DeepEqual(got, want) {
			t.Errorf("Parse(%q) and Parse(%q) differ:\n%+v\n%+v", tt.text, tt.same, got, want)
		}
	}
}

func TestParseFixed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"0 9 * * *":          true,
		"0 9 * * */2":        true,
		"5 0 9 L JAN MON#1":  true,
		"0-0 9 * * *":        true,
		"9,9 9-9 * * *":      true,
		"@daily":             true,
		"* 9 * * *":          false,
		"0 ? * * *":          false,
		"*/60 9 * * *":       false,
		"0-0/1 9 * * *":      false,
		"0 9,10 * * *":       false,
		"0 */24 * * *":       false,
		"0,30 0 9 * * *":     false,
		"* 0 9 * * *":        false,
		"@hourly":            false,
		"0 0 9 * * * 2024/1": false, // invalid
	} {
		if e, _ := Parse(text); e.fixed != want {
			t.Errorf("%q has a fixed time: %v, want %v", text, e.fixed, want)
		}
	}
}

func TestParseError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, field, value, message string }{
		{"", "", "", `cron expression "" does not have 5, 6 or 7 fields`},
		{" ", "", "", `cron expression "" does not have 5, 6 or 7 fields`},
		{"* * * *", "", "* * * *", `cron expression "* * * *" does not have 5, 6 or 7 fields`},
		{"every day at nine", "", "every day at nine", `cron expression "every day at nine" does not have 5, 6 or 7 fields`},
		{"1 2 3 4 5 6 7 8", "", "1 2 3 4 5 6 7 8", `cron expression "1 2 3 4 5 6 7 8" does not have 5, 6 or 7 fields`},
		{"@every 5m", "", "@every 5m", `cron expression "@every 5m" does not have 5, 6 or 7 fields`},
		{"@reboot", "", "@reboot", `cron expression "@reboot" is not a nickname: want @yearly, @annually, @monthly, @weekly, @daily, @midnight or @hourly`},
		{"@dayly", "", "@dayly", `cron expression "@dayly" is not a nickname: want @yearly, @annually, @monthly, @weekly, @daily, @midnight or @hourly`},
		{"every day at nine o'clock", "minute", "every", `minute "every" is not a number`},
		{"61 * * * *", "minute", "61", `minute "61" is not in the range 0 to 59`},
		{"60 * * * * *", "second", "60", `second "60" is not in the range 0 to 59`},
		{"1,61 * * * *", "minute", "61", `minute "61" is not in the range 0 to 59`},
		{"1,,2 * * * *", "minute", "", `minute "" is empty`},
		{"-1 * * * *", "minute", "-1", `minute "-1" is not a number`},
		{"+1 * * * *", "minute", "+1", `minute "+1" is not a number`},
		{"1.5 * * * *", "minute", "1.5", `minute "1.5" is not a number`},
		{"٣ * * * *", "minute", "٣", `minute "٣" is not a number`},
		{"9-5 * * * *", "minute", "9-5", `minute "9-5" begins above its end`},
		{"5- * * * *", "minute", "5-", `minute "5-" is not a number`},
		{"1-2-3 * * * *", "minute", "1-2-3", `minute "1-2-3" is not a number`},
		{"5-60 * * * *", "minute", "5-60", `minute "5-60" is not in the range 0 to 59`},
		{"0-60/15 * * * *", "minute", "0-60/15", `minute "0-60/15" is not in the range 0 to 59`},
		{"*-5 * * * *", "minute", "*-5", `minute "*-5" is not a number`},
		{"5/10 * * * *", "minute", "5/10", `minute "5/10" has a step without * or a range before it`},
		{"/10 * * * *", "minute", "/10", `minute "/10" has a step without * or a range before it`},
		{"*/0 * * * *", "minute", "*/0", `minute "*/0" does not have a step from 1 to 60`},
		{"*/61 * * * *", "minute", "*/61", `minute "*/61" does not have a step from 1 to 60`},
		{"*/ * * * *", "minute", "*/", `minute "*/" does not have a step from 1 to 60`},
		{"*/5/5 * * * *", "minute", "*/5/5", `minute "*/5/5" does not have a step from 1 to 60`},
		{"L * * * *", "minute", "L", `minute "L" is not a number`},
		{"5#1 * * * *", "minute", "5#1", `minute "5#1" is not a number`},
		{"* 24 * * *", "hour", "24", `hour "24" is not in the range 0 to 23`},
		{"* 99999999999999999999 * * *", "hour", "99999999999999999999",
			`hour "99999999999999999999" is not in the range 0 to 23`},
		{"* 1-99999999999999999999/9 * * *", "hour", "1-99999999999999999999/9",
			`hour "1-99999999999999999999/9" is not in the range 0 to 23`},
		{"* * 0 * *", "day of month", "0", `day of month "0" is not in the range 1 to 31`},
		{"* * 32 * *", "day of month", "32", `day of month "32" is not in the range 1 to 31`},
		{"* * L-3 * *", "day of month", "L-3", `day of month "L-3" is not a number`},
		{"* * 5L * *", "day of month", "5L", `day of month "5L" is not a number`},
		{"* * L, * *", "day of month", "", `day of month "" is empty`},
		{"* * LW,1 * *", "day of month", "LW,1", `day of month "LW,1" has LW in a list`},
		{"* * 1-5W * *", "day of month", "1-5W", `day of month "1-5W" does not have a day from 1 to 31 before the W`},
		{"* * W * *", "day of month", "W", `day of month "W" does not have a day from 1 to 31 before the W`},
		{"* * W5 * *", "day of month", "W5", `day of month "W5" is not a number`},
		{"* * 0W * *", "day of month", "0W", `day of month "0W" does not have a day from 1 to 31 before the W`},
		{"* * 32W * *", "day of month", "32W", `day of month "32W" does not have a day from 1 to 31 before the W`},
		{"* * MON * *", "day of month", "MON", `day of month "MON" is not a number`},
		{"* * * 0 *", "month", "0", `month "0" is not in the range 1 to 12`},
		{"* * * 13 *", "month", "13", `month "13" is not in the range 1 to 12`},
		{"* * * january *", "month", "january", `month "january" is not a number or a name`},
		{"* * * JULL *", "month", "JULL", `month "JULL" is not a number or a name`},
		{"* * * DEC-JAN *", "month", "DEC-JAN", `month "DEC-JAN" begins above its end`},
		{"* * * ſep *", "month", "ſep", `month "ſep" is not a number or a name`},
		{"* * * * 8", "day of week", "8", `day of week "8" is not in the range 0 to 7`},
		{"* * * * SAT-MON", "day of week", "SAT-MON", `day of week "SAT-MON" begins above its end`},
		{"* * * * SUNDAY", "day of week", "SUNDAY", `day of week "SUNDAY" is not a number or a name`},
		{"* * * * JAN", "day of week", "JAN", `day of week "JAN" is not a number or a name`},
		{"* * * * 1-5/8", "day of week", "1-5/8", `day of week "1-5/8" does not have a step from 1 to 7`},
		{"* * * * */MON", "day of week", "*/MON", `day of week "*/MON" does not have a step from 1 to 7`},
		{"* * * * L", "day of week", "L", `day of week "L" does not have a day before the week`},
		{"* * * * *L", "day of week", "*L", `day of week "*L" does not have a day before the week`},
		{"* * * * ?#1", "day of week", "*#1", `day of week "*#1" does not have a day before the week`},
		{"* * * * #1", "day of week", "#1", `day of week "#1" does not have a day before the week`},
		{"* * * * MON#", "day of week", "MON#", `day of week "MON#" does not have a week from 1 to 5 or L after the #`},
		{"* * * * MON#0", "day of week", "MON#0", `day of week "MON#0" does not have a week from 1 to 5 or L after the #`},
		{"* * * * MON#6", "day of week", "MON#6", `day of week "MON#6" does not have a week from 1 to 5 or L after the #`},
		{"* * * * MON#1#2", "day of week", "MON#1#2",
			`day of week "MON#1#2" does not have a week from 1 to 5 or L after the #`},
		{"* * * * MONL#2", "day of week", "MONL#2", `day of week "MONL#2" is not a number or a name`},
		{"* * * * +", "day of week", "", `day of week "" is empty`},
		{"* * * * ++1", "day of week", "+1", `day of week "+1" is not a number or a name`},
		{"* * * * 1W", "day of week", "1W", `day of week "1W" is not a number or a name`},
		{"* * * * * * 0", "year", "0", `year "0" is not in the range 1 to 9999`},
		{"* * * * * * 10000", "year", "10000", `year "10000" is not in the range 1 to 9999`},
		{"* * * * * * 2024-10000", "year", "2024-10000", `year "2024-10000" is not in the range 1 to 9999`},
		{"* * * * * * */10001", "year", "*/10001", `year "*/10001" does not have a step from 1 to 10000`},
		{"* * * * * * 2024/2", "year", "2024/2", `year "2024/2" has a step without * or a range before it`},
	} {
		e, err := Parse(tt.text)
		got, ok := errors.AsType[*Error](err)
		if !ok {
			t.Errorf("Parse(%q) = %+v, %v, want an Error", tt.text, e, err)
			continue
		}
		if got.Field != tt.field || got.Value != tt.value || got.Error() != tt.message {
			t.Errorf("Parse(%q): %q, %q: %s\nwant %q, %q: %s", tt.text, got.Field, got.Value, got,
				tt.field, tt.value, tt.message)
		}
		if !reflect.DeepEqual(e, Expr{}) {
			t.Errorf("Parse(%q) returned %+v with an error", tt.text, e)
		}
	}
}

func TestTopOfHour(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"0 * * * *":      true,
		"0 */2 * * *":    true,
		"0 9-17 * * MON": true,
		"0 9,21 1 * *":   true,
		"0 0 * * * *":    true,
		"@hourly":        true,
		"*/60 * * * *":   true,
		"0 9 * * *":      false,
		"@daily":         false,
		"5 * * * *":      false,
		"0,30 * * * *":   false,
		"* * * * *":      false,
		"5 0 * * * *":    false,
		"0,5 0 * * * *":  false,
		"* 0 * * * *":    false,
		"0 0-0 * * *":    false,
	} {
		e, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.TopOfHour(); got != want {
			t.Errorf("%q: TopOfHour() = %v, want %v", text, got, want)
		}
	}
	if (Expr{}).TopOfHour() {
		t.Error("TopOfHour() of the zero Expr = true")
	}
}
