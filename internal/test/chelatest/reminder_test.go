package chelatest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReminders has a conversation about reminders with the built-in assistant.
func TestReminders(t *testing.T) {
	t.Parallel()
	zone := `agents: {defaults: {model: "offline/assistant", userTimezone: "Asia/Tokyo"}}`
	t.Run("at a time in the person's zone, after a restart", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := newScheduledWith(t, zone, func(o *Options) { o.Model = nil })
			s.request("remind me at 17:30 to call Bob") // it is 9:00 in Tokyo, on a Saturday
			s.last("I will remind you today at 17:30: call Bob")
			s.request("明天早上9点提醒我吃药")
			s.last("我会在明天，1月2日（星期日） 09:00 提醒你：吃药")
			s.request("what is planned?")
			s.last("Planned:\n\n- call Bob: today at 17:30\n- 吃药: tomorrow, Sunday 2 January, at 09:00")
			s.restart(time.Hour)
			time.Sleep(7*time.Hour + 31*time.Minute)
			s.last("⏰ Reminder: call Bob")
			s.request("取消关于吃药的提醒")
			s.last("已取消：吃药")
			s.request("list reminders")
			s.last("Nothing is planned.")
			s.stop()
		})
	})
	t.Run("at a time at which nothing ran: it says when it was due", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := newScheduledWith(t, zone, func(o *Options) { o.Model = nil })
			s.request("remind me at 10:00 to call Ann")
			s.restart(5 * time.Hour)
			time.Sleep(2 * time.Minute)
			s.last("⏰ Reminder: call Ann (late: it was due 2000-01-01 10:00)")
			s.stop()
		})
	})
	t.Run("a request is carried out later, and when a file changes", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := newScheduledWith(t, zone, func(o *Options) { o.Model = nil })
			s.request("in 2 minutes tell me the time")
			s.last("I will do this today at 09:02")
			time.Sleep(2*time.Minute + 10*time.Second)
			s.last("⏰ the time:\n\nIt is Saturday, 1 January 2000, 09:02:0")
			s.request("tell me when notes.txt changes")
			s.last("I will tell you when notes.txt changes")
			time.Sleep(2 * time.Minute)
			if err := os.WriteFile(filepath.Join(s.o.Dir, "workspace", "notes.txt"), []byte("new\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			s.last("⏰ Reminder: notes.txt has changed")
			s.request("stop that reminder")
			s.last("Canceled: notes.txt has changed")
			s.stop()
		})
	})
}

// request sends a message of the owner to the main session.
func (s *scheduled) request(text string) {
	s.t.Helper()
	s.Ask("main", text)
}

// last checks the last message of the main session.
func (s *scheduled) last(want string) {
	s.t.Helper()
	lines := s.lines("main")
	if len(lines) == 0 || !strings.Contains(lines[len(lines)-1], want) {
		s.t.Errorf("the transcript is %q, want at the end %q", lines, want)
	}
}
