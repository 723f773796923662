package wire_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/wire"
)

func TestParseRequest(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for _, tc := range []struct {
		in   string
		want wire.Request
		err  string
	}{
		{in: `{"type":"req","id":"1","method":"health"}`, want: wire.Request{Type: "req", ID: "1", Method: "health"}},
		{
			in:   `{"type":"req","id":"2:x","method":"m","params":{"a":[1]},"traceparent":"00-1"}`,
			want: wire.Request{Type: "req", ID: "2:x", Method: "m", Params: json.RawMessage(`{"a":[1]}`), Trace: "00-1"},
		},
		{in: `{"type":"req","id":"1","method":"m","extra":1}`, want: wire.Request{ID: "1"}, err: `unknown field "extra"`},
		{in: `{"type":"req","id":5,"method":"m"}`, err: "at /id: must not be number"},
		{in: `{"type":"req","id":"","method":"m"}`, want: wire.Request{Type: "req", Method: "m"}, err: "id is empty"},
		{in: `{"type":"req","id":"1"}`, want: wire.Request{Type: "req", ID: "1"}, err: "method is empty"},
		{in: `{"type":"event","id":"1","method":"m"}`, want: wire.Request{Type: "event", ID: "1", Method: "m"},
			err: `type is "event", want "req"`},
		{in: `[]`, err: "at /: must not be array"},
		{in: `hello`, err: wire.ErrNotJSON.Error()},
		{in: ``, err: wire.ErrNotJSON.Error()},
		{in: `{"type":"id","params":` + deep + `,"id":"7","method":"m"}`, want: wire.Request{ID: "7"},
			err: "more than 10000 levels of nesting"},
		{in: deep, err: "more than 10000 levels of nesting"},
		{in: deep[1:], err: wire.ErrNotJSON.Error()},
		{in: deep + "]", err: wire.ErrNotJSON.Error()},
	} {
		got, err := wire.ParseRequest([]byte(tc.in))
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("ParseRequest(%s) (-want +got):\n%s", tc.in, diff)
		}
		if text := errText(err); text != tc.err {
			t.Errorf("ParseRequest(%s): error %q, want %q", tc.in, text, tc.err)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   string
		want any
	}{
		{
			`{"type":"res","id":"1","ok":false,"error":{"code":"FORBIDDEN","message":"no","details":{"code":"X"}},"payload":{},"new":1}`,
			wire.Response{
				Type: "res", ID: "1", Payload: json.RawMessage(`{}`),
				Error: &wire.Error{Code: wire.Forbidden, Message: "no", Details: json.RawMessage(`{"code":"X"}`)},
			},
		},
		{
			`{"type":"event","event":"tick","payload":{"ts":5},"seq":3,"stateVersion":{"presence":1,"health":2}}`,
			wire.Event{
				Type: "event", Name: "tick", Payload: json.RawMessage(`{"ts":5}`), Seq: 3,
				State: &wire.StateVersion{Presence: 1, Health: 2},
			},
		},
		{`{"type":"req","id":"1","method":"m"}`, wire.Request{Type: "req", ID: "1", Method: "m"}},
	} {
		got, err := wire.Parse([]byte(tc.in))
		if err != nil {
			t.Errorf("Parse(%s): %v", tc.in, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("Parse(%s) (-want +got):\n%s", tc.in, diff)
		}
	}
	for _, in := range []string{``, `x`, `{}`, `{"type":"more"}`, `null`} {
		if f, err := wire.Parse([]byte(in)); err == nil {
			t.Errorf("Parse(%q) = %#v, want an error", in, f)
		}
	}
}

// FuzzFrame checks that parsing and encoding round-trip and that bad input only
// yields errors.
func FuzzFrame(f *testing.F) {
	for _, s := range []string{
		`{"type":"req","id":"1","method":"chat.send","params":{"sessionKey":"main","message":"hi","idempotencyKey":"k"}}`,
		`{"type":"res","id":"1","ok":true,"payload":{"type":"hello-ok"}}`,
		`{"type":"res","id":"1","ok":false,"error":{"code":"X","message":"m","retryable":true,"retryAfterMs":5}}`,
		`{"type":"event","event":"chat","payload":{"state":"delta"},"seq":9007199254740993}`,
		`{"type":"event","event":"presence","stateVersion":{"presence":1}}`,
		`{"type":"req","id":"\u0000","method":"\ud800"}`,
		`{"type":"req","id":"1","method":"m","params":null}`,
		`[`, `{}`, `"`, `{"type":"req","type":"res"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := wire.ParseRequest(b); err == nil && (r.ID == "" || r.Method == "" || r.Type != wire.TypeRequest) {
			t.Errorf("ParseRequest(%q) = %+v without an error", b, r)
		} else if errors.Is(err, wire.ErrNotJSON) && json.Valid(b) || err == nil && !json.Valid(b) {
			t.Errorf("ParseRequest(%q): %v", b, err)
		}
		first, err := wire.Parse(b)
		if err != nil {
			return
		}
		enc, err := wire.Encode(first)
		if err != nil {
			t.Fatalf("Encode(%#v): %v", first, err)
		}
		again, err := wire.Parse(enc)
		if err != nil {
			t.Fatalf("Parse(%s): %v", enc, err)
		}
		enc2, err := wire.Encode(again)
		if err != nil || string(enc) != string(enc2) {
			t.Errorf("%s was encoded as %s, %v", enc, enc2, err)
		}
	})
}

func TestMessageContent(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{`{"role":"user","content":"plain","timestamp":1}`, "plain"},
		{`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","mimeType":"image/png","data":"AA=="},{"type":"text","text":"b"}]}`, "ab"},
		{`{"role":"user"}`, ""},
		{`{"role":"user","content":null}`, ""},
	} {
		var m wire.Message
		if err := json.Unmarshal([]byte(tc.in), &m); err != nil {
			t.Errorf("%s: %v", tc.in, err)
		}
		if got := m.Text(); got != tc.want || m.Role != wire.RoleUser {
			t.Errorf("%s: role %q, text %q; want user, %q", tc.in, m.Role, got, tc.want)
		}
	}
}

func TestOptional(t *testing.T) {
	t.Parallel()
	type patch struct {
		Label wire.Optional[string] `json:"label,omitzero"`
	}
	for _, tc := range []struct {
		in   string
		want wire.Optional[string]
	}{
		{`{}`, wire.Optional[string]{}},
		{`{"label":null}`, wire.Optional[string]{Set: true}},
		{`{"label":""}`, wire.Some("")},
		{`{"label":"x"}`, wire.Some("x")},
	} {
		var p patch
		if err := json.Unmarshal([]byte(tc.in), &p); err != nil || p.Label != tc.want {
			t.Errorf("%s: %+v, %v; want %+v", tc.in, p.Label, err, tc.want)
		}
	}
	b, err := json.Marshal(patch{})
	if err != nil || string(b) != `{}` {
		t.Errorf("absent property: %s, %v", b, err)
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	e := wire.Errorf(wire.InvalidRequest, "bad %s", "thing").With(map[string]string{"code": wire.DetailProtocol})
	if e.Error() != "bad thing" || e.Detail() != wire.DetailProtocol {
		t.Errorf("got %q with detail %q", e.Error(), e.Detail())
	}
	if got := (&wire.Error{Code: wire.Forbidden}).Error(); got != wire.Forbidden {
		t.Errorf("error without a message is %q", got)
	}
}

func TestArchived(t *testing.T) {
	for text, want := range map[string]wire.Archived{
		"true":  wire.ArchivedOnly,
		"false": "",
		"null":  "",
		`"all"`: wire.ArchivedAll,
	} {
		for _, before := range []wire.Archived{"", wire.ArchivedOnly, wire.ArchivedAll} {
			in := wire.SessionsList{Archived: before}
			if err := json.Unmarshal([]byte(`{"archived":`+text+`}`), &in); err != nil || in.Archived != want {
				t.Errorf("%s after %q: %q, %v; want %q", text, before, in.Archived, err, want)
			}
		}
	}
	for _, text := range []string{`"true"`, `""`, `1`, `{}`} {
		if err := json.Unmarshal([]byte(text), new(wire.Archived)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

func TestMillis(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1795188873525)
	if got := wire.At(now).Time(); !got.Equal(now) {
		t.Errorf("At(%v).Time() = %v", now, got)
	}
	if wire.At(time.Time{}) != 0 || !wire.Millis(0).Time().IsZero() {
		t.Error("the zero time is not 0")
	}
}

func TestEncodeKeepsText(t *testing.T) {
	t.Parallel()
	b, err := wire.Encode(map[string]string{"a": "<b> & \u2028"})
	if err != nil || strings.Contains(string(b), `\u003c`) || strings.HasSuffix(string(b), "\n") {
		t.Errorf("Encode = %q, %v", b, err)
	}
}
