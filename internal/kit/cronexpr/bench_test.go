package cronexpr

import (
	"testing"
	"time"
)

func BenchmarkNext(b *testing.B) {
	for _, tt := range []struct{ text, zone string }{
		{"*/5 * * * *", "UTC"},
		{"*/5 * * * *", "America/New_York"},
		{"0 9 * * MON-FRI", "UTC"},
		{"0 9 * * MON-FRI", "America/New_York"},
		{"0 9 * * MON-FRI", "Africa/Casablanca"},
		{"0 0 L * *", "Europe/Berlin"},
		{"0 0 29 2 +MON", "Europe/Berlin"},                          // 28 or 40 years apart
		{"0 0 30 2 *", "Europe/Berlin"},                             // never
		{"0 0 0 1,15 * +TUE#2 1-9999", "Europe/Berlin"},             // never
		{"0 0,30 2 * 3 +SUN#2", "America/New_York"},                 // skipped in each year
		{"0 0,30 2 * 3 +SUN#2 2024-9999", "America/New_York"},       // skipped in each year
		{"0 30 23 * 3 +SAT#4,SAT#5 2200-9999/3", "America/Godthab"}, // mostly skipped
	} {
		b.Run(tt.text+" "+tt.zone, func(b *testing.B) {
			loc, err := time.LoadLocation(tt.zone)
			if err != nil {
				b.Fatal(err)
			}
			e, err := Parse(tt.text)
			if err != nil {
				b.Fatal(err)
			}
			start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			at := start
			b.ReportAllocs()
			for b.Loop() {
				at = e.Next(at, loc)
				if at.IsZero() {
					at = start
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("0 9 * * MON-FRI"); err != nil {
			b.Fatal(err)
		}
	}
}
