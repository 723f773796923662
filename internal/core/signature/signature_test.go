package signature_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/signature"
	"github.com/chela-ai/chela/internal/kit/secret"
)

var (
	key = secret.New("a shared secret")
	now = time.Unix(1760000000, 0)
)

func TestKnown(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	signature.Set(h, key, now, []byte(`{"a":1}`))
	// printf '1760000000.{"a":1}' | openssl dgst -sha256 -hmac 'a shared secret'
	const want = "v1=4e2896f9e8b8e1a013d5c28367bd65405b1d1686b329691b622b7ce6b796fa73"
	if got := h.Get(signature.SignatureHeader); got != want || h.Get(signature.TimestampHeader) != "1760000000" {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	body := []byte("body")
	for name, tt := range map[string]struct {
		change func(http.Header)
		after  time.Duration
		want   string // the error; "": valid
	}{
		"right":            {func(http.Header) {}, 0, ""},
		"five minutes old": {func(http.Header) {}, 5 * time.Minute, ""},
		"early":            {func(http.Header) {}, -5 * time.Minute, ""},
		"too old":          {func(http.Header) {}, 301 * time.Second, "more than 5 minutes"},
		"of the future":    {func(http.Header) {}, -301 * time.Second, "more than 5 minutes"},
		"no signature":     {func(h http.Header) { h.Del(signature.SignatureHeader) }, 0, "is missing"},
		"no time":          {func(h http.Header) { h.Del(signature.TimestampHeader) }, 0, "is missing"},
		"two signatures":   {func(h http.Header) { h.Add(signature.SignatureHeader, "v1=") }, 0, "more than once"},
		"two times":        {func(h http.Header) { h.Add(signature.TimestampHeader, "1760000000") }, 0, "more than once"},
		"no scheme": {func(h http.Header) { h.Set(signature.SignatureHeader, strings.Repeat("0", 64)) },
			0, "want v1="},
		"another scheme": {func(h http.Header) { h.Set(signature.SignatureHeader, "v2="+strings.Repeat("0", 64)) },
			0, "want v1="},
		"cut": {func(h http.Header) { h.Set(signature.SignatureHeader, h.Get(signature.SignatureHeader)[:20]) },
			0, "want v1="},
		"no digits": {func(h http.Header) { h.Set(signature.SignatureHeader, "v1="+strings.Repeat("x", 64)) },
			0, "want v1="},
		"a time with +":     {func(h http.Header) { h.Set(signature.TimestampHeader, "+1760000000") }, 0, "want the seconds"},
		"a time with space": {func(h http.Header) { h.Set(signature.TimestampHeader, " 1760000000") }, 0, "want the seconds"},
		"a time with 0":     {func(h http.Header) { h.Set(signature.TimestampHeader, "01760000000") }, 0, "want the seconds"},
		"a huge time": {func(h http.Header) { h.Set(signature.TimestampHeader, "9223372036854775807") },
			0, "want the seconds"},
		"another time": {func(h http.Header) { h.Set(signature.TimestampHeader, "1760000001") }, 0, "invalid"},
	} {
		h := http.Header{}
		signature.Set(h, key, now, body)
		tt.change(h)
		s, err := signature.Parse(h, now.Add(tt.after))
		got := ""
		if err != nil {
			got = err.Error()
		} else if !s.Valid(key, body) {
			got = "invalid"
		}
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	h := http.Header{}
	signature.Set(h, key, now, body)
	s, err := signature.Parse(h, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []string{"bod", "body ", ""} {
		if s.Valid(key, []byte(b)) {
			t.Errorf("valid for %q", b)
		}
	}
	if s.Valid(secret.New("another"), body) || s.Valid(secret.Value{}, body) {
		t.Error("valid with another secret")
	}
	signature.Set(h, secret.Value{}, now, body)
	if s, err := signature.Parse(h, now); err == nil && s.Valid(secret.Value{}, body) {
		t.Error("valid without a secret")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1760000000", "v1="+strings.Repeat("ab", 32))
	f.Add("-1", "v1=")
	f.Fuzz(func(t *testing.T, stamp, text string) {
		h := http.Header{signature.TimestampHeader: {stamp}, signature.SignatureHeader: {text}}
		s, err := signature.Parse(h, now)
		if err == nil && s.Valid(key, nil) {
			again := http.Header{}
			signature.Set(again, key, now, nil)
			if again.Get(signature.TimestampHeader) == stamp && again.Get(signature.SignatureHeader) != strings.ToLower(text) {
				t.Errorf("%q at %q is valid", text, stamp)
			}
		}
	})
}
