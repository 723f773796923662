package slack

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/channel/slack/slacktest"
)

const httpMode = `, "mode": "http", "signingSecret": "` + slacktest.Secret + `"`

func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// resigned signs a request as if it was made d later.
func resigned(d time.Duration) func(*http.Request) {
	return func(r *http.Request) {
		body := make([]byte, r.ContentLength)
		n, _ := r.Body.Read(body)
		signTest(r, slacktest.Secret, strconv.FormatInt(time.Now().Add(d).Unix(), 10), string(body[:n]))
	}
}

func signTest(r *http.Request, key, at, body string) {
	r.Header.Set("X-Slack-Request-Timestamp", at)
	r.Header.Set("X-Slack-Signature", slacktest.Sign(key, at, body))
	r.Body = http.NoBody
	setBody(r, body)
}

func setBody(r *http.Request, body string) {
	fresh, err := http.NewRequest(r.Method, "/", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Body, r.ContentLength = fresh.Body, fresh.ContentLength
}

// TestForged posts requests that Slack did not sign.
func TestForged(t *testing.T) {
	const at = "X-Slack-Request-Timestamp"
	const sig = "X-Slack-Signature"
	now := func() string { return strconv.FormatInt(time.Now().Unix(), 10) }
	set := func(name, value string) func(*http.Request, string) {
		return func(r *http.Request, _ string) { r.Header.Set(name, value) }
	}
	del := func(names ...string) func(*http.Request, string) {
		return func(r *http.Request, _ string) {
			for _, n := range names {
				r.Header.Del(n)
			}
		}
	}
	edit := func(name string, f func(string) string) func(*http.Request, string) {
		return func(r *http.Request, _ string) { r.Header.Set(name, f(r.Header.Get(name))) }
	}
	body := func(f func(string) string) func(*http.Request, string) {
		return func(r *http.Request, b string) { setBody(r, f(b)) }
	}
	key := func(k string) func(*http.Request, string) {
		return func(r *http.Request, b string) { r.Header.Set(sig, slacktest.Sign(k, r.Header.Get(at), b)) }
	}
	// later signs with the right secret at another time.
	later := func(d time.Duration) func(*http.Request, string) {
		return func(r *http.Request, b string) {
			signTest(r, slacktest.Secret, strconv.FormatInt(time.Now().Add(d).Unix(), 10), b)
		}
	}
	// stamp signs with the right secret and any timestamp.
	stamp := func(f func(string) string) func(*http.Request, string) {
		return func(r *http.Request, b string) { signTest(r, slacktest.Secret, f(now()), b) }
	}
	// base signs another base string with the right secret.
	base := func(f func(at, b string) (string, string)) func(*http.Request, string) {
		return func(r *http.Request, b string) {
			x, y := f(r.Header.Get(at), b)
			r.Header.Set(sig, slacktest.Sign(slacktest.Secret, x, y))
		}
	}
	zeros := "v0=" + strings.Repeat("0", 64)
	forged := []struct {
		name string
		f    func(*http.Request, string)
	}{
		{"signature of zeros", set(sig, zeros)},
		{"signature of fs", set(sig, "v0="+strings.Repeat("f", 64))},
		{"empty signature", set(sig, "")},
		{"only the version", set(sig, "v0=")},
		{"no signature", del(sig)},
		{"no timestamp", del(at)},
		{"neither", del(sig, at)},
		{"empty timestamp", set(at, "")},
		{"timestamp zero", stamp(func(string) string { return "0" })},
		{"negative timestamp", stamp(func(s string) string { return "-" + s })},
		{"timestamp with a plus", stamp(func(s string) string { return "+" + s })},
		{"timestamp with a leading zero", stamp(func(s string) string { return "0" + s })},
		{"timestamp with a space before", stamp(func(s string) string { return " " + s })},
		{"timestamp with a space after", stamp(func(s string) string { return s + " " })},
		{"timestamp with a fraction", stamp(func(s string) string { return s + ".0" })},
		{"timestamp in hexadecimal", stamp(func(s string) string { return "0x" + s })},
		{"timestamp in milliseconds", stamp(func(s string) string { return s + "000" })},
		{"timestamp with an exponent", stamp(func(s string) string { return s + "e0" })},
		{"timestamp that overflows", stamp(func(string) string { return "99999999999999999999" })},
		{"timestamp with a line break", stamp(func(s string) string { return s + "\n" })},
		{"timestamp with letters", stamp(func(string) string { return "now" })},
		{"timestamp as a date", stamp(func(string) string { return time.Now().Format(time.RFC3339) })},
		{"five minutes and a second old", later(-5*time.Minute - time.Second)},
		{"an hour old", later(-time.Hour)},
		{"a day old", later(-24 * time.Hour)},
		{"a year old", later(-365 * 24 * time.Hour)},
		{"five minutes and a second early", later(5*time.Minute + time.Second)},
		{"a day early", later(24 * time.Hour)},
		{"another timestamp than signed",
			func(r *http.Request, _ string) { r.Header.Set(at, strconv.FormatInt(time.Now().Unix()-1, 10)) }},
		{"upper case", edit(sig, strings.ToUpper)},
		{"upper case digits", edit(sig, func(s string) string { return "v0=" + strings.ToUpper(s[3:]) })},
		{"upper case version", edit(sig, func(s string) string { return "V0=" + s[3:] })},
		{"version 1", edit(sig, func(s string) string { return "v1=" + s[3:] })},
		{"no version", edit(sig, func(s string) string { return s[3:] })},
		{"no version, same length", edit(sig, func(s string) string { return s[3:] + "000" })},
		{"a digit less", edit(sig, func(s string) string { return s[:len(s)-1] })},
		{"a digit more", edit(sig, func(s string) string { return s + "0" })},
		{"half", edit(sig, func(s string) string { return s[:35] })},
		{"first digit changed", edit(sig, func(s string) string { return s[:3] + flip(s[3]) + s[4:] })},
		{"last digit changed", edit(sig, func(s string) string { return s[:66] + flip(s[66]) })},
		{"reversed", edit(sig, func(s string) string { return "v0=" + reverse(s[3:]) })},
		{"a space before", edit(sig, func(s string) string { return " " + s })},
		{"a space after", edit(sig, func(s string) string { return s + " " })},
		{"a NUL after", edit(sig, func(s string) string { return s + "\x00" })},
		{"quoted", edit(sig, func(s string) string { return `"` + s + `"` })},
		{"two in one", edit(sig, func(s string) string { return zeros + "," + s })},
		{"twice", func(r *http.Request, _ string) { r.Header.Add(sig, r.Header.Get(sig)) }},
		{"a wrong one first", func(r *http.Request, _ string) { r.Header[sig] = []string{zeros, r.Header.Get(sig)} }},
		{"two timestamps", func(r *http.Request, _ string) { r.Header.Add(at, r.Header.Get(at)) }},
		{"another secret", key("another secret")},
		{"empty secret", key("")},
		{"secret in upper case", key(strings.ToUpper(slacktest.Secret))},
		{"the bot's token as the secret", key(slacktest.BotToken)},
		{"the app's token as the secret", key(slacktest.AppToken)},
		{"truncated secret", key(slacktest.Secret[:16])},
		{"changed body", body(func(s string) string { return strings.Replace(s, "hello", "hellO", 1) })},
		{"truncated body", body(func(s string) string { return s[:len(s)-1] })},
		{"longer body", body(func(s string) string { return s + " " })},
		{"empty body", body(func(string) string { return "" })},
		{"body of another form", body(func(string) string { return "payload=%7B%7D" })},
		{"url_verification without a right signature",
			body(func(string) string { return `{"type":"url_verification","challenge":"x"}` })},
		{"signed without the timestamp", base(func(_, b string) (string, string) { return "", b })},
		{"signed without the body", base(func(at, _ string) (string, string) { return at, "" })},
		{"signed with both exchanged", base(func(at, b string) (string, string) { return b, at })},
	}
	if len(forged) < 60 {
		t.Fatalf("%d requests", len(forged))
	}
	inWorld(t, httpMode, func(w *world) {
		event := asJSON(w.Event("D1", "U1", "hello", "1.000001", nil))
		for _, c := range forged {
			answer := slacktest.Post(w.b, "application/json", event, func(r *http.Request) { c.f(r, event) })
			if answer.Code != http.StatusUnauthorized && answer.Code != http.StatusForbidden {
				t.Errorf("%s: status %d", c.name, answer.Code)
			}
		}
		synctest.Wait()
		w.equal(0, len(w.received()))
		w.equal(200, slacktest.Post(w.b, "application/json", event, nil).Code)
		w.equal([]string{"hello"}, w.texts())
	})
}

// flip returns another digit.
func flip(c byte) string {
	if c == '0' {
		return "1"
	}
	return "0"
}

func reverse(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

func TestPosts(t *testing.T) {
	t.Run("a repeated post is the same message", func(t *testing.T) {
		inWorld(t, httpMode, func(w *world) {
			w.equal("/slack/events", w.b.Path())
			event := asJSON(w.Event("C1", "U1", "<@UBOT> hello", "1.000001", nil))
			for range 3 {
				w.equal(200, slacktest.Post(w.b, "application/json; charset=utf-8", event, func(r *http.Request) {
					r.Header.Set("X-Slack-Retry-Num", "1")
				}).Code)
			}
			w.equal([]string{"hello"}, w.texts())
		})
	})
	t.Run("a message that is not accepted in time is repeated", func(t *testing.T) {
		inWorld(t, httpMode, func(w *world) {
			w.sink = func(n int, _ chela.Inbound) error {
				if n < 4 {
					return chela.ErrFull
				}
				return nil
			}
			event := asJSON(w.Event("D1", "U1", "hello", "1.000001", nil))
			began := time.Now()
			w.equal(503, slacktest.Post(w.b, "application/json", event, nil).Code)
			if d := time.Since(began); d > 2600*time.Millisecond {
				t.Errorf("answered after %s", d)
			}
			time.Sleep(time.Minute)
			w.equal(200, slacktest.Post(w.b, "application/json", event, nil).Code)
			w.equal([]string{"hello"}, w.texts())
		})
	})
	t.Run("forms: a button, a command, a check of the certificate", func(t *testing.T) {
		inWorld(t, httpMode, func(w *world) {
			const form = "application/x-www-form-urlencoded"
			post := func(v url.Values) int { return slacktest.Post(w.b, form, v.Encode(), nil).Code }
			w.equal(200, post(url.Values{"payload": {asJSON(pressed("yes", "1.5"))}}))
			w.equal(200, post(url.Values{
				"command":    {"/status"},
				"text":       {"a &amp; b"},
				"user_id":    {"U1"},
				"channel_id": {"D1"},
				"team_id":    {"T1"},
				"trigger_id": {"9"},
			}))
			w.equal(200, post(url.Values{"ssl_check": {"1"}}))
			w.equal(400, post(url.Values{"payload": {"{"}}))
			w.equal([]string{"callback_data: yes", "/status a & b"}, w.texts())
		})
	})
	t.Run("bodies that are not events", func(t *testing.T) {
		inWorld(t, httpMode, func(w *world) {
			for _, c := range []struct {
				media, body string
				code        int
			}{
				{"application/json", `{"type":"app_rate_limited"}`, 200}, {"application/json", `[]`, 400},
				{"application/json", `{`, 400}, {"", `{}`, 400},
				{"text/plain", `{}`, 400}, {"application/x-www-form-urlencoded", "%zz", 400},
				{"application/json", strings.Repeat(" ", maxBody+1), 413},
			} {
				if code := slacktest.Post(w.b, c.media, c.body, nil).Code; code != c.code {
					t.Errorf("%s %.20q: status %d, want %d", c.media, c.body, code, c.code)
				}
			}
			w.equal(405, slacktest.Post(w.b, "application/json", "{}", func(r *http.Request) { r.Method = http.MethodGet }).Code)
			w.equal(0, len(w.received()))
		})
	})
	t.Run("no posts without Run, and none in Socket Mode", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, httpMode)
			event := asJSON(w.Event("D1", "U1", "hello", "1.000001", nil))
			began := time.Now()
			w.equal(503, slacktest.Post(w.b, "application/json", event, nil).Code)
			w.equal(time.Duration(0), time.Since(began))
			other := newWorld(t, "")
			w.equal("", other.b.Path())
			w.equal(404, slacktest.Post(other.b, "application/json", event, nil).Code)
		})
	})
}

// FuzzPost checks that no body makes the channel fail.
func FuzzPost(f *testing.F) {
	f.Add("application/json", `{"type":"event_callback","event":{"type":"message"}}`)
	f.Add("application/x-www-form-urlencoded", `payload={"type":"block_actions"}`)
	f.Add("application/x-www-form-urlencoded", `command=/x&text=y`)
	f.Fuzz(func(t *testing.T, media, body string) {
		kind, payload, ok := posted(media, []byte(body))
		if ok && kind != "" && !json.Valid(payload) {
			t.Errorf("%s is no JSON: %q", kind, payload)
		}
	})
}
