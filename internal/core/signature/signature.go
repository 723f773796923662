// Package signature signs HTTP requests with a shared secret, and verifies them:
//
//	X-Chela-Timestamp: 1760000000
//	X-Chela-Signature: v1=hex(HMAC-SHA256(secret, timestamp + "." + body))
//
// A signature is valid for [Window] around its time, for any path. Whoever verifies
// requests that must not be repeated remembers the signatures of that time.
package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/kit/secret"
)

// The headers.
const (
	TimestampHeader = "X-Chela-Timestamp"
	SignatureHeader = "X-Chela-Signature"
)

// Window is how far the time of a signature may be from now.
const Window = 5 * time.Minute

const scheme = "v1="

// Set signs a request with a body at a time.
func Set(h http.Header, key secret.Value, at time.Time, body []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	h.Set(TimestampHeader, stamp)
	h.Set(SignatureHeader, scheme+hex.EncodeToString(mac(key, stamp, body)))
}

// Signature is the signature of a request, which was not verified yet.
type Signature struct {
	stamp string
	mac   [sha256.Size]byte
}

// Parse returns the signature in the headers of a request, if its time is not far from now.
func Parse(h http.Header, now time.Time) (Signature, error) {
	var s Signature
	text, err := single(h, SignatureHeader)
	if err != nil {
		return s, err
	}
	if s.stamp, err = single(h, TimestampHeader); err != nil {
		return s, err
	}
	digits, ok := strings.CutPrefix(text, scheme)
	if !ok || len(digits) != 2*len(s.mac) {
		return s, fmt.Errorf("%s: want v1= and 64 hexadecimal digits", SignatureHeader)
	}
	if _, err := hex.Decode(s.mac[:], []byte(digits)); err != nil {
		return s, fmt.Errorf("%s: want v1= and 64 hexadecimal digits", SignatureHeader)
	}
	const most = 12 // digits
	seconds, err := strconv.ParseInt(s.stamp, 10, 64)
	if err != nil || len(s.stamp) > most || strconv.FormatInt(seconds, 10) != s.stamp || seconds < 0 {
		return s, fmt.Errorf("%s: want the seconds since 1970", TimestampHeader)
	}
	if d := now.Sub(time.Unix(seconds, 0)); d > Window || d < -Window {
		return s, errors.New("the time of the signature is more than 5 minutes from now")
	}
	return s, nil
}

// single returns the value of a header that occurs once.
func single(h http.Header, name string) (string, error) {
	switch v := h.Values(name); len(v) {
	case 0:
		return "", fmt.Errorf("the header %s is missing", name)
	case 1:
		return v[0], nil
	}
	return "", fmt.Errorf("the header %s occurs more than once", name)
}

// Valid reports whether the signature is that of a body with a secret, which is not empty.
func (s Signature) Valid(key secret.Value, body []byte) bool {
	return !key.IsZero() && hmac.Equal(s.mac[:], mac(key, s.stamp, body))
}

func mac(key secret.Value, stamp string, body []byte) []byte {
	h := hmac.New(sha256.New, []byte(key.Reveal()))
	h.Write([]byte(stamp + "."))
	h.Write(body)
	return h.Sum(nil)
}

// String identifies the signature, for whoever remembers which were used.
func (s Signature) String() string { return s.stamp + " " + hex.EncodeToString(s.mac[:]) }
