package webhook

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/secret"
)

// TestGitHubExample checks the example of GitHub's documentation.
func TestGitHubExample(t *testing.T) {
	t.Parallel()
	const sum = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	body := []byte("Hello, World!")
	h := Sign(GitHub, secret.New("It's a Secret to Everybody"), body, time.Now())
	if got := h["X-Hub-Signature-256"]; got != "sha256="+sum {
		t.Errorf("got %s", got)
	}
}

func TestSignature(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	key, body := secret.New("k"), []byte(`{"a":1}`)
	verify := func(s Scheme, h map[string]string, at time.Time) error {
		header := http.Header{}
		for k, v := range h {
			header.Set(k, v)
		}
		sig, err := parseSignature(s, header.Get)
		if err == nil {
			_, err = sig.verify(key, body, time.Minute, at)
		}
		return err
	}
	for _, s := range []Scheme{Generic, GitHub, Stripe} {
		good := Sign(s, key, body, now)
		if err := verify(s, good, now); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		for what, h := range map[string]map[string]string{
			"none":         {},
			"another key":  Sign(s, secret.New("x"), body, now),
			"no key":       Sign(s, secret.Value{}, body, now),
			"another body": Sign(s, key, []byte("x"), now),
			"garbage": {"X-Hub-Signature-256": "sha256=zz", "X-Signature": "zz", "X-Timestamp": "1",
				"Stripe-Signature": "t=1,v1=zz"},
			"short": {"X-Hub-Signature-256": "sha256=00", "X-Signature": "00", "X-Timestamp": "1700000000",
				"Stripe-Signature": "t=1700000000,v1=00"},
			"no time": {"X-Hub-Signature-256": "", "X-Signature": good["X-Signature"],
				"Stripe-Signature": strings.Replace(good["Stripe-Signature"], "t=", "s=", 1)},
			"another time": {"X-Hub-Signature-256": "x", "X-Signature": good["X-Signature"], "X-Timestamp": "1700000001",
				"Stripe-Signature": strings.Replace(good["Stripe-Signature"], "t=1700000000", "t=1700000001", 1)},
			"two times": {"Stripe-Signature": "t=1," + good["Stripe-Signature"]},
			"many":      {"Stripe-Signature": good["Stripe-Signature"] + strings.Repeat(",v1="+strings.Repeat("0", 64), 10)},
		} {
			if err := verify(s, h, now); err == nil {
				t.Errorf("%s: %s is accepted", s, what)
			}
		}
		for _, off := range []time.Duration{-2 * time.Minute, 2 * time.Minute} {
			if err := verify(s, good, now.Add(off)); (err == nil) != (s == GitHub) {
				t.Errorf("%s, %s off: %v", s, off, err)
			}
		}
	}
	two := "t=1700000000,v1=" + strings.Repeat("0", 64) + "," +
		strings.TrimPrefix(Sign(Stripe, key, body, now)["Stripe-Signature"], "t=1700000000,")
	if err := verify(Stripe, map[string]string{"Stripe-Signature": two}, now); err != nil {
		t.Errorf("the second of two signatures, of a secret that was rotated: %v", err)
	}
	for _, at := range []string{"-1", "99999999999999999999", "1e9", "", "0x1"} {
		if _, err := (signed{time: at + " ", macs: [][]byte{make([]byte, 32)}}).verify(key, body, time.Hour,
			now); err == nil {
			t.Errorf("time %q is accepted", at)
		}
	}
}

// FuzzSignature checks that no header but the right one is accepted, and that a header
// that was made is.
func FuzzSignature(f *testing.F) {
	f.Add("t=1700000000,v1="+strings.Repeat("ab", 32), "1700000000", []byte("{}"))
	f.Add("sha256="+strings.Repeat("00", 32), "", []byte(""))
	now := time.Unix(1_700_000_000, 0)
	key := secret.New("a key that is not guessed")
	f.Fuzz(func(t *testing.T, value, at string, body []byte) {
		for _, s := range []Scheme{Generic, GitHub, Stripe} {
			header := func(name string) string {
				if name == "X-Timestamp" {
					return at
				}
				return value
			}
			if sig, err := parseSignature(s, header); err == nil {
				if len(sig.macs) == 0 || len(sig.macs) > maxSignatures {
					t.Errorf("%s: %d signatures", s, len(sig.macs))
				}
				if _, err := sig.verify(key, body, time.Minute, now); err == nil {
					t.Errorf("%s: %q with the time %q is accepted", s, value, at)
				}
			}
			made := Sign(s, key, body, now)
			sig, err := parseSignature(s, func(name string) string { return made[name] })
			if err == nil {
				_, err = sig.verify(key, body, time.Minute, now)
			}
			if err != nil {
				t.Errorf("%s: %v", s, err)
			}
		}
	})
}
