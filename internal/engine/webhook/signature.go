package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/kit/secret"
)

// Scheme is how a sender signs its requests: with HMAC-SHA256 over the body, or over a
// time, a dot and the body.
type Scheme string

// The schemes.
const (
	Generic Scheme = "generic" // X-Signature: HEX, X-Timestamp: seconds
	GitHub  Scheme = "github"  // X-Hub-Signature-256: sha256=HEX, without a time
	Stripe  Scheme = "stripe"  // Stripe-Signature: t=SECONDS,v1=HEX
)

// Limits of signatures.
const (
	maxSignature     = 4 << 10 // bytes of a header
	maxSignatures    = 8       // in a header
	defaultTolerance = 5 * time.Minute
	maxTolerance     = time.Hour
)

// errSignature reports a signature that is missing, malformed, old or wrong.
var errSignature = errors.New("wrong signature")

// signed is what a signature header contains.
type signed struct {
	time string // as it was signed; "": none
	macs [][]byte
}

// parseSignature parses the headers of a scheme.
func parseSignature(s Scheme, header func(name string) string) (signed, error) {
	switch s {
	case GitHub:
		return parseMAC(header("X-Hub-Signature-256"), "")
	case Generic:
		t := header("X-Timestamp")
		if t == "" {
			return signed{}, fmt.Errorf("%w: there is no X-Timestamp", errSignature)
		}
		return parseMAC(header("X-Signature"), t)
	}
	return parseStripe(header("Stripe-Signature"))
}

// parseMAC parses HEX or sha256=HEX.
func parseMAC(value, at string) (signed, error) {
	mac, err := hex.DecodeString(strings.TrimPrefix(strings.TrimSpace(value), "sha256="))
	if err != nil || len(mac) != sha256.Size {
		return signed{}, fmt.Errorf("%w: want the hexadecimal form of an HMAC-SHA256", errSignature)
	}
	return signed{at, [][]byte{mac}}, nil
}

// parseStripe parses t=SECONDS,v1=HEX,v1=HEX. Other members are ignored.
func parseStripe(value string) (signed, error) {
	if len(value) > maxSignature {
		return signed{}, fmt.Errorf("%w: %d bytes", errSignature, len(value))
	}
	var out signed
	for field := range strings.SplitSeq(value, ",") {
		name, v, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch name {
		case "t":
			if out.time != "" {
				return signed{}, fmt.Errorf("%w: two times", errSignature)
			}
			out.time = v
		case "v1":
			mac, err := hex.DecodeString(v)
			if err != nil || len(mac) != sha256.Size || len(out.macs) == maxSignatures {
				return signed{}, fmt.Errorf("%w: want the hexadecimal form of an HMAC-SHA256", errSignature)
			}
			out.macs = append(out.macs, mac)
		}
	}
	if out.time == "" || len(out.macs) == 0 {
		return signed{}, fmt.Errorf("%w: want t=SECONDS,v1=HEX", errSignature)
	}
	return out, nil
}

// verify checks the signature of a request. It returns the signature that matches, in
// hexadecimal, which no other body has.
func (s signed) verify(key secret.Value, body []byte, tolerance time.Duration, now time.Time) (string, error) {
	mac := hmac.New(sha256.New, []byte(key.Reveal()))
	if s.time != "" {
		at, err := strconv.ParseInt(s.time, 10, 64)
		if err != nil || at < 0 || at > 1<<40 {
			return "", fmt.Errorf("%w: the time is no number of seconds", errSignature)
		}
		if off := now.Sub(time.Unix(at, 0)).Abs(); off > tolerance {
			return "", fmt.Errorf("%w: its time is %s off, at most %s are accepted", errSignature, off.Round(time.Second),
				tolerance)
		}
		mac.Write([]byte(s.time + "."))
	}
	mac.Write(body)
	want := mac.Sum(nil)
	ok := false
	for _, m := range s.macs {
		ok = hmac.Equal(m, want) || ok
	}
	if !ok {
		return "", errSignature
	}
	return hex.EncodeToString(want), nil
}

// Sign returns the headers of a signed request.
func Sign(s Scheme, key secret.Value, body []byte, now time.Time) map[string]string {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key.Reveal()))
	if s != GitHub {
		mac.Write([]byte(at + "."))
	}
	mac.Write(body)
	sum := hex.EncodeToString(mac.Sum(nil))
	switch s {
	case GitHub:
		return map[string]string{"X-Hub-Signature-256": "sha256=" + sum}
	case Stripe:
		return map[string]string{"Stripe-Signature": "t=" + at + ",v1=" + sum}
	}
	return map[string]string{"X-Signature": sum, "X-Timestamp": at}
}
