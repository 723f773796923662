package signal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/channel/signal"
	"github.com/chela-ai/chela/internal/plugin/channel/signal/signaltest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	channeltest.Bubble(t, func(t *testing.T) channeltest.Harness {
		r := newRig(t)
		return channeltest.Harness{
			Channel: r.open(keys), Address: group(team), Other: group(other), Once: true,
			Shown: func(a chela.Address) []string { return r.server.Shown(a.Peer.ID) },
			Say: func(ctx context.Context, in chela.Inbound) error {
				return r.server.SayAndWait(ctx, in.Sender.ID, in.Address.Peer.ID, in.Text)
			},
		}
	})
}

// TestChecks are the checks of the platform.
func TestChecks(t *testing.T) {
	t.Parallel()
	t.Run("SG-01 an event is answered by a request", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c := r.open(keys)
			stop := channeltest.Run(r.t.Context(), c, func(ctx context.Context, in chela.Inbound) error {
				_, err := c.Send(ctx,
					channel.Part{Key: in.ID, Address: in.Address, ReplyTo: in.ID, Text: "**Hello** " + in.Sender.Name})
				return err
			})
			at := r.server.Say(ann, "", "hi", nil)
			synctest.Wait()
			_ = stop()
			got := r.server.Messages(ann)
			if len(got) != 1 || got[0].Text != "Hello Ann" || fmt.Sprint(got[0].Styles) != "[0:5:BOLD]" ||
				got[0].Quote != (signaltest.Quote{Time: at, Author: ann, Text: "hi"}) {
				t.Errorf("people see %+v", got)
			}
		})
	})
	t.Run("SG-02 a stream that breaks is opened again, with pauses", func(t *testing.T) {
		t.Parallel()
		var opened []int
		got, r := receive(t, keys, func(r *rig) {
			r.server.Say(ann, "", "one", nil)
			synctest.Wait()
			r.server.Fail(
				signaltest.Fault{Method: "events", Cut: true}, signaltest.Fault{Method: "events", Status: 502},
				signaltest.Fault{Method: "events", Status: 429, RetryAfter: time.Minute},
				signaltest.Fault{Method: "events", Status: 400},
				signaltest.Fault{Method: "events", Status: 404}, signaltest.Fault{Method: "events", Status: 405},
				signaltest.Fault{Method: "events", Body: "hello"},
			)
			r.server.Cut()
			for range 4 {
				time.Sleep(time.Second)
				opened = append(opened, len(r.server.Requests()))
			}
			r.server.Say(ann, "", "two", nil)
			time.Sleep(10 * time.Minute)
			r.server.Say(ann, "", "three", nil)
		})
		if texts(got) != "one two three" || r.reported() != nil || r.connected() != 2 {
			t.Errorf("got %q, report %v, %d times connected\n%s", texts(got), r.reported(), r.connected(), r.logged())
		}
		if opened[0] != 1 || opened[3] > 3 {
			t.Errorf("requests after each second: %v, want pauses", opened)
		}
		for _, want := range []string{"status 502", "pause=1m0s", "has no account", "httpUrl"} {
			if !strings.Contains(r.logged(), want) {
				t.Errorf("the log does not contain %q:\n%s", want, r.logged())
			}
		}
	})
}

func TestReceive(t *testing.T) {
	t.Parallel()
	const placeholder = "\ufffc"
	me := func(start, length int) object {
		return object{
			"name":   "+491700000000",
			"number": "+491700000000",
			"uuid":   "99999999-9999-4999-8999-999999999999",
			"start":  start,
			"length": length,
		}
	}
	mention := func(uuid string, start, length int) object {
		return object{"name": uuid, "number": nil, "uuid": uuid, "start": start, "length": length}
	}
	var at int64
	for _, tt := range []struct {
		name string
		say  func(r *rig)
		want func(in chela.Inbound) bool
	}{
		{"text of a person", func(r *rig) { at = r.server.Say(ann, "", "hello", nil) }, func(in chela.Inbound) bool {
			return in.Address == direct(ann) && in.ID == fmt.Sprint(at, ":", ann) &&
				in.Sender == chela.Sender{ID: ann, Name: "Ann"} && in.Text == "hello" &&
				in.Group == "" && !in.Mentioned && in.Time.UnixMilli() == at
		}},
		{"text in a group", func(r *rig) { r.server.Say(ben, team, "hello", nil) }, func(in chela.Inbound) bool {
			return in.Address == group(team) && in.Sender == chela.Sender{ID: ben, Name: "Ben"} &&
				in.Group == "Team" && !in.Mentioned
		}},
		{"UUID in upper case", func(r *rig) {
			e := r.server.Envelope(ann, 7, "dataMessage", r.server.Data(7, "", "x", nil))
			e["sourceUuid"] = strings.ToUpper(ann)
			r.server.Send(e)
		}, func(in chela.Inbound) bool { return in.Sender.ID == ann && in.ID == "7:"+ann }},
		{"sender without a UUID", func(r *rig) { r.server.Say("+491709999999", "", "x", nil) }, func(in chela.Inbound) bool {
			return in.Sender == chela.Sender{ID: "+491709999999", Name: "+491709999999"} && in.Address == direct("+491709999999")
		}},
		{"only the old name of the source", func(r *rig) {
			r.server.Raw(`{"account": "+491700000000", "envelope": {"source": "` + ann +
				`", "timestamp": 5, "dataMessage": {"message": "x"}}}`)
		}, func(in chela.Inbound) bool { return in.Sender.ID == ann && in.ID == "5:"+ann }},
		{"mention at the beginning", func(r *rig) {
			r.server.Say(ann, team, placeholder+" hello", object{"mentions": []any{me(0, 1)}})
		}, func(in chela.Inbound) bool { return in.Mentioned && in.Text == "hello" }},
		{"mention in the middle after an emoji", func(r *rig) {
			r.server.Say(ann, team, "😀 "+placeholder+", hello "+placeholder+"!",
				object{"mentions": []any{mention(ann, 12, 1), me(3, 1)}})
		}, func(in chela.Inbound) bool {
			return in.Mentioned && in.Text == "😀 @+491700000000, hello @Ann!"
		}},
		{"mention of another person", func(r *rig) {
			r.server.Say(ann, team, "ask "+placeholder, object{"mentions": []any{mention(ben, 4, 1)}})
		}, func(in chela.Inbound) bool { return !in.Mentioned && in.Text == "ask @"+ben }},
		{"only a mention", func(r *rig) {
			r.server.Say(ann, team, placeholder, object{"mentions": []any{me(0, 1)}})
		}, func(in chela.Inbound) bool { return in.Mentioned && in.Text == "@+491700000000" }},
		{"mentions outside of the text", func(r *rig) {
			r.server.Say(ann, team, "x"+placeholder,
				object{"mentions": []any{me(-1, 1), me(1, 5), me(9, 1), me(0, 0), me(1, 1), me(1, 1)}})
		}, func(in chela.Inbound) bool { return in.Mentioned && in.Text == "x@+491700000000" }},
		{"reply to the account", func(r *rig) {
			r.server.Say(ann, team, "why?",
				object{"quote": object{"id": 77, "author": "+491700000000", "authorNumber": "+491700000000", "authorUuid": nil,
					"text": "No.", "attachments": []any{}}})
		}, func(in chela.Inbound) bool {
			return in.Mentioned && in.ReplyTo == "77" && in.Quote.Text == "No." && in.Quote.Sender.Bot
		}},
		{"reply to a picture of a person", func(r *rig) {
			r.server.Say(ann, team, "nice", object{"quote": object{"id": 78, "author": ben, "authorUuid": ben, "text": nil,
				"attachments": []any{object{"contentType": "image/png", "filename": nil}}}})
		}, func(in chela.Inbound) bool {
			return !in.Mentioned && in.ReplyTo == "78:"+ben && in.Quote.Text == "[image/png]" &&
				in.Quote.Sender.ID == ben && !in.Quote.Sender.Bot
		}},
		{"picture", func(r *rig) {
			r.server.Say(ann, team, "look", object{"attachments": []any{
				object{"contentType": "image/png", "filename": "a.png", "id": "abc.png", "size": 9},
				object{"contentType": "audio/aac", "filename": nil, "id": "def.aac", "size": 10},
				object{"contentType": "image/png", "filename": nil, "id": nil, "size": nil},
			}})
		}, func(in chela.Inbound) bool {
			m := in.Media
			return in.Text == "look" && len(m) == 3 && m[0].Name == "a.png" && m[0].Type == "image/png" && m[0].Bytes == 9 &&
				m[0].Source == "group "+team+" abc.png" &&
				m[0].Data == nil && m[1].Name == "def.aac" && m[2].Source == "" && m[2].Lost != ""
		}},
		{"reaction to a message of the account", func(r *rig) {
			react := func(author string, removed bool) object {
				return object{"reaction": object{"emoji": "👍", "targetAuthor": author, "targetSentTimestamp": 77,
					"isRemove": removed}}
			}
			r.server.Say(ann, team, "", react(ann, false))
			r.server.Say(ann, team, "", react(r.server.Account, true))
			r.server.Say(ann, team, "", react(r.server.Account, false))
		}, func(in chela.Inbound) bool {
			return in.Reaction == "👍" && in.ReplyTo == "77" && in.Text == "" && in.Sender.ID == ann && in.Address == group(team)
		}},
		{"sticker", func(r *rig) { r.server.Say(ann, team, "", object{"sticker": object{"packId": "aa", "stickerId": 3}}) },
			func(in chela.Inbound) bool { return in.Text == "[sticker]" }},
		{"contact", func(r *rig) {
			r.server.Say(ann, "", "",
				object{"contacts": []any{object{"name": object{"given": "Zoe", "family": "Zimmer"},
					"phone": []any{object{"value": "+4930123"}}}}})
		}, func(in chela.Inbound) bool { return in.Text == "[contact: Zoe Zimmer, +4930123]" }},
		{"poll", func(r *rig) {
			r.server.Say(ann, team, "",
				object{"pollCreate": object{"question": "Tea?", "allowMultiple": false, "options": []any{"yes", "no"}}})
		}, func(in chela.Inbound) bool { return in.Text == "[poll: Tea?, yes, no]" }},
		{"payment", func(r *rig) {
			r.server.Say(ann, "", "", object{"payment": object{"note": "for tea", "receipt": "AA=="}})
		}, func(in chela.Inbound) bool { return in.Text == "[payment: for tea]" }},
		{"call", func(r *rig) {
			r.server.Send(r.server.Envelope(ann, 9, "callMessage",
				object{"offerMessage": object{"id": json.Number("18446744073709551615"), "type": "AUDIO_CALL", "opaque": "AA=="}}))
		}, func(in chela.Inbound) bool {
			return in.Text == "[call]" && in.Address == direct(ann) && in.ID == "9:"+ann
		}},
		{"edit", func(r *rig) {
			r.server.Send(r.server.Envelope(ann, 20, "editMessage", object{"targetSentTimestamp": 10,
				"dataMessage": r.server.Data(20, team, "new", nil)}))
		}, func(in chela.Inbound) bool {
			return in.Edited && in.Text == "new" && in.ID == "10:"+ann+":edit:20" && in.Address == group(team)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, r := receive(t, keys, tt.say)
			if len(got) != 1 || !tt.want(got[0]) {
				t.Errorf("got %+v\n%s", got, r.logged())
			}
		})
	}
}

// TestSecondEdit checks that the ids of all edits name the original.
func TestSecondEdit(t *testing.T) {
	t.Parallel()
	got, _ := receive(t, keys, func(r *rig) {
		edit := func(at, of int64, text string) {
			r.server.Send(r.server.Envelope(ann, at, "editMessage", object{"targetSentTimestamp": of,
				"dataMessage": r.server.Data(at, "", text, nil)}))
		}
		edit(20, 10, "one")
		edit(30, 20, "two")
		edit(40, 30, "three")
	})
	if len(got) != 3 || got[2].ID != "10:"+ann+":edit:40" || got[1].ID != "10:"+ann+":edit:30" {
		t.Errorf("got %+v", got)
	}
}

func TestIgnored(t *testing.T) {
	t.Parallel()
	got, r := receive(t, keys, func(r *rig) {
		s := r.server
		own := s.Envelope("+491700000000", 5, "dataMessage", s.Data(5, team, "mine", nil))
		s.Send(own)
		linked := s.Envelope("+491700000000", 6, "syncMessage",
			object{"sentMessage": object{"destination": ann, "timestamp": 6, "message": "from my phone"}})
		linked["sourceUuid"] = s.UUID
		s.Send(linked)
		byUUID := s.Envelope(s.UUID, 7, "dataMessage", s.Data(7, team, "mine, too", nil)) // the UUID is known by now
		byUUID["sourceNumber"], byUUID["sourceUuid"] = nil, s.UUID
		s.Send(byUUID)
		s.Send(s.Envelope(ann, 8, "receiptMessage", object{"when": 8, "isRead": true, "timestamps": []any{1}}))
		s.Send(s.Envelope(ann, 9, "typingMessage", object{"action": "STARTED", "timestamp": 9}))
		s.Send(s.Envelope(ann, 10, "storyMessage", object{"allowsReplies": true}))
		s.Send(s.Envelope(ann, 11, "callMessage", object{"hangupMessage": object{"id": 3, "type": "NORMAL", "deviceId": 1}}))
		s.Send(s.Envelope(ann, 12, "unknownMessage", object{"text": "x"}))
		s.Say(ann, team, "",
			object{"reaction": object{"emoji": "👍", "targetAuthor": ben, "targetSentTimestamp": 3, "isRemove": false}})
		s.Say(ann, team, "", object{"remoteDelete": object{"timestamp": 3}})
		s.Say(ann, team, "", nil) // the group was changed
		s.Say(ann, team, "  ", nil)
		s.Say("", team, "nobody", nil)
		s.Send(s.Envelope(ann, -1, "dataMessage", s.Data(-1, "", "before 1970", nil)))
		s.Raw(`not JSON`)
		s.Raw(`[]`)
		s.Raw(`{"envelope": {"dataMessage": 5}}`)
		s.Raw(`{"account": "+491700000000", "exception": {"message": "x", "type": "UntrustedIdentityException"}, "envelope": {"sourceUuid": "` + ann + `", "timestamp": 5}}`)
		s.Raw(`{"account": "+491700000000", "exception": {"message": "y", "type": "InvalidMessageException"}}`)
		s.Say(ann, team, "last", nil)
	})
	if texts(got) != "last" {
		t.Errorf("got %q", texts(got))
	}
	for _, want := range []string{"UntrustedIdentityException", "trust -v SAFETY_NUMBER " + ann,
		"InvalidMessageException", "not as expected"} {
		if !strings.Contains(r.logged(), want) {
			t.Errorf("the log does not contain %q:\n%s", want, r.logged())
		}
	}
}

// TestOrder checks what a daemon may do with its events.
func TestOrder(t *testing.T) {
	t.Parallel()
	got, _ := receive(t, keys, func(r *rig) {
		s := r.server
		first := s.Envelope(ann, 100, "dataMessage", s.Data(100, team, "one", nil))
		second := s.Envelope(ann, 200, "dataMessage", s.Data(200, team, "two", nil))
		s.Send(s.Envelope(ann, 300, "editMessage", object{"targetSentTimestamp": 100, "dataMessage": s.Data(300, team,
			"edited", nil)}))
		s.Send(second)
		s.Send(first)
		s.Send(first)
	})
	var ids []string
	for _, in := range got {
		ids = append(ids, strings.ReplaceAll(in.ID, ann, "ann"))
	}
	if want := "[100:ann:edit:300 200:ann 100:ann 100:ann]"; fmt.Sprint(ids) != want {
		t.Errorf("got %v, want %v", ids, want)
	}
}

func TestSilence(t *testing.T) {
	t.Parallel()
	got, r := receive(t, keys, func(r *rig) {
		time.Sleep(time.Hour) // with comments only
		if _, all := r.server.Streams(); all != 1 {
			t.Errorf("%d streams were opened, want one", all)
		}
		r.server.Hang(true)
		r.server.Say(ann, "", "one", nil)
		time.Sleep(90 * time.Second)
		open, all := r.server.Streams()
		if all < 2 {
			t.Errorf("%d streams are open, %d were opened: a silent stream is kept", open, all)
		}
		r.server.Hang(false)
	})
	if texts(got) != "one" || !strings.Contains(r.logged(), "wrote nothing for 1m0s") {
		t.Errorf("got %q\n%s", texts(got), r.logged())
	}
}

// TestHalf ends the stream within an event.
func TestHalf(t *testing.T) {
	t.Parallel()
	got, r := receive(t, keys, func(r *rig) {
		r.server.Half()
		r.server.Say(ann, "", "lost", nil)
		time.Sleep(time.Minute)
		r.server.Say(ann, "", "two", nil)
	})
	if texts(got) != "two" || r.server.Lost() != 1 {
		t.Errorf("got %q", texts(got))
	}
}

func TestTooLong(t *testing.T) {
	t.Parallel()
	got, r := receive(t, keys, func(r *rig) {
		r.server.Raw(`{"x": "` + strings.Repeat("x", 5<<20) + `"}`)
		time.Sleep(time.Minute)
		r.server.Say(ann, "", "two", nil)
	})
	if texts(got) != "two" {
		t.Errorf("got %q\n%s", texts(got), r.logged())
	}
}

// TestNotAccepted checks that a message is repeated before the next one, and that a refused
// one is not.
func TestNotAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		box := channeltest.NewInbox(chela.ErrFull, errors.New("disk"), nil, chela.Errorf(chela.CodeForbidden, "no"),
			chela.Errorf(chela.CodeInvalid, "no"))
		stop := channeltest.Run(r.t.Context(), r.open(keys), box.Sink)
		for _, text := range []string{"one", "two", "three", "four"} {
			r.server.Say(ann, "", text, nil)
		}
		synctest.Wait()
		if box.Calls() != 1 {
			t.Errorf("%d calls without a pause", box.Calls())
		}
		pending := filepath.Join(r.dir, "account", "pending.json")
		if data, err := os.ReadFile(pending); err != nil || !strings.Contains(string(data), `"one"`) {
			t.Errorf("the message is not stored: %s, %v", data, err)
		}
		if info, err := os.Stat(pending); err == nil && runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v", info.Mode())
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		box.Fail(slices.Repeat([]error{chela.ErrFull}, 10)...)
		r.server.Say(ann, "", "five", nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if _, all := r.server.Streams(); all != 1 {
			t.Errorf("%d streams were opened, although only the sink was slow", all)
		}
		_ = stop()
		if got := texts(box.Take()); got != "one four five" || box.Calls() != 17 {
			t.Errorf("got %q with %d calls\n%s", got, box.Calls(), r.logged())
		}
		if _, err := os.Stat(pending); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file of what waits: %v", err)
		}
	})
}

// TestRestart stops the gateway while the sink accepts nothing.
func TestRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		box := channeltest.NewInbox()
		box.Fail(slices.Repeat([]error{chela.ErrFull}, 1000)...)
		stop := channeltest.Run(r.t.Context(), r.open(keys), box.Sink)
		synctest.Wait()
		// The second event is read together with the first one.
		e := func(at int64, text string) string {
			data, _ := json.Marshal(object{"account": r.server.Account, "envelope": r.server.Envelope(ann, at, "dataMessage",
				r.server.Data(at, "", text, nil))})
			return string(data)
		}
		r.server.Raw(e(1, "one") + "\n\ndata:" + e(2, "two"))
		time.Sleep(time.Hour)
		calls := box.Calls()
		if err := stop(); !errors.Is(err, context.Canceled) || calls < 100 {
			t.Errorf("Run: %v after %d calls", err, calls)
		}
		box = channeltest.NewInbox(chela.ErrFull, chela.ErrFull)
		stop = channeltest.Run(r.t.Context(), r.open(keys), box.Sink)
		time.Sleep(time.Minute)
		r.server.Say(ann, "", "three", nil)
		synctest.Wait()
		_ = stop()
		if got := texts(box.Take()); got != "one two three" {
			t.Errorf("got %q, %d lost", got, r.server.Lost())
		}
		if entries, _ := os.ReadDir(filepath.Join(r.dir, "account")); len(entries) != 0 {
			t.Errorf("files are left: %v", entries)
		}
	})
}

// TestBadPending checks that a damaged file stops nothing.
func TestBadPending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		dir := filepath.Join(r.dir, "account")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "pending.json"), []byte(`[{"account": "+1"`), 0o600); err != nil {
			t.Fatal(err)
		}
		box := channeltest.NewInbox()
		stop := channeltest.Run(r.t.Context(), r.open(keys), box.Sink)
		r.server.Say(ann, "", "one", nil)
		synctest.Wait()
		_ = stop()
		if err := os.WriteFile(filepath.Join(dir, "pending.json"),
			[]byte(`[5, {"account": "+4930", "envelope": {}}, {"account": "+491700000000", "envelope": {"sourceUuid": "`+ann+
				`", "timestamp": 5, "dataMessage": {"message": "two"}}}]`), 0o600); err != nil {
			t.Fatal(err)
		}
		stop = channeltest.Run(r.t.Context(), r.open(keys), box.Sink)
		synctest.Wait()
		_ = stop()
		if got := texts(box.Take()); got != "one two" || !strings.Contains(r.logged(), "are lost") {
			t.Errorf("got %q\n%s", got, r.logged())
		}
	})
}

func TestOtherAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		box := channeltest.NewInbox()
		r.server.SendAs("+491708888888", r.server.Envelope(ann, 5, "dataMessage", r.server.Data(5, "", "not for you", nil)))
		err := r.open(keys).Run(t.Context(), box.Sink)
		if !permanent(err) || !strings.Contains(err.Error(), "+491708888888") || box.Calls() != 0 {
			t.Errorf("got %v", err)
		}
	})
}

func TestReceipts(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			box := channeltest.NewInbox(nil, chela.Errorf(chela.CodeForbidden, "no"))
			stop := channeltest.Run(r.t.Context(), r.open(fmt.Sprintf(`%s, "sendReadReceipts": %v`, keys, on)), box.Sink)
			at := r.server.Say(ann, "", "one", nil)
			r.server.Say(ann, "", "refused", nil)
			synctest.Wait()
			_ = stop()
			want := "[]"
			if on {
				want = fmt.Sprintf("[%s %d]", ann, at)
			}
			if got := fmt.Sprint(r.server.Receipts()); got != want {
				t.Errorf("receipts %s, want %s", got, want)
			}
		})
	}
}

func TestListedPeople(t *testing.T) {
	t.Parallel()
	_, r := receive(t, keys+`, "allowFrom": ["+491701111111", "`+ann+`", "*", 5], "groupAllowFrom": ["uuid:`+ben+
		`", "accessGroup:x", "`+strings.ToUpper(ben)+`"]`, func(*rig) {})
	if log := r.logged(); !strings.Contains(log, `entries="+491701111111 uuid:`+ben+` `+strings.ToUpper(ben)+`"`) {
		t.Errorf("the log is\n%s", log)
	}
	_, r = receive(t, keys+`, "allowFrom": ["`+ann+`", "*"]`, func(*rig) {})
	if log := r.logged(); strings.Contains(log, "allowFrom") {
		t.Errorf("the log is\n%s", log)
	}
}

func TestFetch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.server.AddFile("abc.png", []byte("0123456789"))
	c := r.open(keys).(channel.Fetcher)
	for _, source := range []string{"group " + team + " abc.png", "direct " + ann + " abc.png"} {
		m, err := c.Fetch(t.Context(), chela.Media{Name: "a.png", Type: "image/png", Bytes: 10, Source: source}, 10)
		if err != nil || string(m.Data) != "0123456789" || m.Source != "" || m.Bytes != 0 || m.Type != "image/png" {
			t.Errorf("got %+v, %v", m, err)
		}
	}
	m := chela.Media{Source: "direct " + ann + " abc.png"}
	if _, err := c.Fetch(t.Context(), m, 9); !permanent(err) || !strings.Contains(err.Error(), "more than 9") {
		t.Errorf("a larger one: %v", err)
	}
	r.server.AddFile("big", make([]byte, 1<<20))
	if _, err := c.Fetch(t.Context(), chela.Media{Source: "direct " + ann + " big"}, 9); err == nil ||
		!strings.Contains(err.Error(), "more than 9") {
		t.Errorf("a much larger one: %v", err)
	}
	if _, err := c.Fetch(t.Context(), chela.Media{Source: "direct " + ann + " abc.png", Bytes: 11}, 10); !permanent(err) ||
		len(r.server.Requests()) != 4 {
		t.Errorf("announced as larger: %v after %q", err, r.server.Requests())
	}
	if _, err := c.Fetch(t.Context(), chela.Media{Source: "direct " + ann + " none"},
		10); !errors.Is(err, channel.ErrGone) {
		t.Errorf("a missing one: %v", err)
	}
	for _, source := range []string{"", "x", "direct x abc.png", "channel " + team + " abc.png"} {
		if _, err := c.Fetch(t.Context(), chela.Media{Source: source}, 10); !permanent(err) {
			t.Errorf("%q: %v", source, err)
		}
	}
	r.server.Fail(signaltest.Fault{Method: "getAttachment", Cut: true})
	if _, err := c.Fetch(t.Context(), m, 10); err == nil || errors.Is(err, channel.ErrAmbiguous) || permanent(err) {
		t.Errorf("cut: %v", err)
	}
}

func TestIgnoreAttachments(t *testing.T) {
	t.Parallel()
	got, _ := receive(t, keys+`, "ignoreAttachments": true`, func(r *rig) {
		r.server.Say(ann, "", "",
			object{"attachments": []any{object{"contentType": "image/png", "id": "abc.png", "size": 9}}})
	})
	if len(got) != 1 || len(got[0].Media) != 1 || got[0].Media[0].Source != "" ||
		!strings.Contains(got[0].Media[0].Lost, "ignoreAttachments") {
		t.Errorf("got %+v", got)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.server.Add(signaltest.Person{UUID: gone, Name: "Anna", Outcome: "UNREGISTERED_FAILURE"})
	r.server.AddGroup(signaltest.Group{ID: "bGVmdGxlZnRsZWZ0bGVmdGxlZnRsZWZ0bGVmdGxlZnQ=", Name: "Team of old",
		Closed: true})
	d := r.open(keys).(channel.Directory)
	for _, tt := range []struct {
		kind  chela.PeerKind
		query string
		n     int
		want  string
	}{
		{chela.Direct, "@aNN", 9, "[{direct " + ann + "} Ann +491701111111]"},
		{chela.Direct, "ben.01", 9, "[{direct " + ben + "} Ben ben.01]"},
		{chela.Direct, "1111", 9, "[{direct " + ann + "} Ann +491701111111]"},
		{chela.Group, "team", 9, "[{group " + team + "} Team ]"},
		{"", "", 3, "[{direct " + ann + "} Ann +491701111111] [{direct " + ben +
			"} Ben ben.01] [{group " + other + "} Other ]"},
		{chela.Room, "", 9, ""},
	} {
		got, err := d.Search(t.Context(), tt.kind, tt.query, tt.n)
		var all []string
		for _, e := range got {
			all = append(all, strings.NewReplacer("{{", "[{", "}}", "}]").Replace(fmt.Sprintf("[%v %s %s]", e.Peer,
				e.Name, e.Handle)))
		}
		if text := strings.Join(all, " "); err != nil || text != tt.want {
			t.Errorf("%s %q: %s, %v, want %s", tt.kind, tt.query, text, err, tt.want)
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	for _, multi := range []bool{false, true} {
		r := newRig(t)
		r.server.Multi = multi
		if err := r.open(keys).(channel.Prober).Probe(t.Context()); err != nil {
			t.Errorf("multi %v: %v", multi, err)
		}
		r.server.Fail(signaltest.Fault{Method: "check", Status: 404})
		if err := r.open(keys).(channel.Prober).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "httpUrl") {
			t.Errorf("no daemon: %v", err)
		}
		err := r.open(`"account": "+491706666666", "httpUrl": "` + base + `"`).(channel.Prober).Probe(t.Context())
		if multi && (!permanent(err) || !strings.Contains(err.Error(), "signal-cli link")) {
			t.Errorf("another account: %v", err)
		}
	}
}

// TestMulti uses a daemon for all accounts, which needs to be told the account.
func TestMulti(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.server.Multi = true
		box := channeltest.NewInbox()
		c := r.open(keys)
		stop := channeltest.Run(r.t.Context(), c, box.Sink)
		r.server.Say(ann, "", "one", nil)
		synctest.Wait()
		_ = stop()
		if _, err := c.Send(t.Context(), channel.Part{Address: direct(ann), Text: "x"}); err != nil ||
			texts(box.Take()) != "one" {
			t.Errorf("send: %v", err)
		}
		other := r.open(`"account": "+491706666666", "httpUrl": "` + base + `"`)
		if _, err := other.Send(t.Context(), channel.Part{Address: direct(ann), Text: "x"}); !permanent(err) ||
			!strings.Contains(err.Error(), "signal-cli link") {
			t.Errorf("send of another account: %v", err)
		}
	})
}

// TestSocket uses a real connection.
func TestSocket(t *testing.T) {
	t.Parallel()
	s := newServer()
	r := &rig{t: t, server: s, client: http.DefaultClient, dir: t.TempDir()}
	c := r.open(`"account": "+491700000000", "httpUrl": "` + s.ListenLoopback(t) + `"`)
	got := make(chan chela.Inbound, 1)
	stop := channeltest.Run(r.t.Context(), c, func(_ context.Context, in chela.Inbound) error { got <- in; return nil })
	s.Say(ann, "", "hello", nil)
	in := <-got
	if _, err := c.Send(t.Context(), channel.Part{Key: "1", Address: in.Address, Text: "hi"}); err != nil {
		t.Fatal(err)
	}
	if err := c.(channel.Prober).Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	if shown := s.Shown(ann); len(shown) != 1 {
		t.Errorf("people see %q", shown)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	env := channel.Env{Trusted: func(...string) *http.Client { panic("no client before the section is checked") },
		Getenv: func(string) string { return "" }}
	f := signal.Factory(func(context.Context, *slog.Logger, string) (sandbox.Broker, error) {
		return nil, errors.New("no programs")
	})
	for section, want := range map[string]string{
		`{}`:                          "chela config set channels.signal.account",
		`{"account": "0170 0000000"}`: "country code",
		`{"account": 5}`:              "channels.signal",
		`{"account": "+491700000000", "accountUuid": "x"}`:                                      "accountUuid",
		`{"account": "+491700000000", "httpUrl": "ftp://x"}`:                                    "http://127.0.0.1:8080",
		`{"account": "+491700000000", "httpUrl": "http://a:b@x"}`:                               "http://127.0.0.1:8080",
		`{"account": "+491700000000", "httpPort": 70000}`:                                       "1 to 65535",
		`{"account": "+491700000000", "httpHost": "0.0.0.0"}`:                                   "without a password",
		`{"account": "+491700000000", "httpUrl": "https://example.org", "autoStart": true}`:     "autoStart false",
		`{"account": "+491700000000", "httpUrl": "http://example.org:8080", "autoStart": true}`: "without a password",
		`{"account": "+491700000000", "startupTimeoutMs": -1}`:                                  "startupTimeoutMs",
	} {
		if _, err := f.New(env, "default", json.RawMessage(section)); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "a:b@") {
			t.Errorf("%s: %v, want %q", section, err, want)
		}
	}
	var hosts []string
	env.Trusted = func(h ...string) *http.Client { hosts = h; return nil }
	for section, want := range map[string]string{
		`{"account": "+491700000000"}`:                                                          "127.0.0.1:8080",
		`{"account": "+491700000000", "httpHost": "::1", "httpPort": 9000}`:                     "[::1]:9000",
		`{"account": "+491700000000", "httpHost": "signal", "httpPort": 9, "autoStart": false}`: "signal:9",
		`{"account": "+491700000000", "httpUrl": "https://example.org/signal/"}`:                "example.org",
	} {
		if _, err := f.New(env, "work", json.RawMessage(section)); err != nil || fmt.Sprint(hosts) != "["+want+"]" {
			t.Errorf("%s: %v, hosts %v, want %s", section, err, hosts, want)
		}
	}
	env.Getenv = func(name string) string { return map[string]string{"SIGNAL_ACCOUNT": "+491700000000"}[name] }
	if _, err := f.New(env, "default", nil); err != nil {
		t.Errorf("by the environment: %v", err)
	}
	if _, err := f.New(env, "work", nil); err == nil {
		t.Error("the environment is for the account default only")
	}
	if _, err := signal.Factory(nil).New(env, "default", nil); err == nil || !strings.Contains(err.Error(), "httpUrl") {
		t.Errorf("nothing starts programs: %v", err)
	}
	if got := f.Identity(json.RawMessage(`{"account": "+49 170 (000) 0000"}`)); got != "+491700000000" {
		t.Errorf("identity %q", got)
	}
}

// TestNoDisk checks that a message is passed on although it cannot be stored meanwhile.
func TestNoDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		if err := os.WriteFile(filepath.Join(r.dir, "account"), nil, 0o600); err != nil { // where the directory would be
			t.Fatal(err)
		}
		box := channeltest.NewInbox(chela.ErrFull, chela.ErrFull)
		stop := channeltest.Run(r.t.Context(), r.open(keys), box.Sink)
		r.server.Say(ann, "", "one", nil)
		r.server.Say(ann, "", "two", nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		_ = stop()
		if got := texts(box.Take()); got != "one two" || !strings.Contains(r.logged(), "event not stored") {
			t.Errorf("got %q\n%s", got, r.logged())
		}
	})
}
