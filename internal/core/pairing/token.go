package pairing

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"time"
)

// hash returns the stored form of a token. Tokens are random, so a plain hash
// reveals nothing about them.
func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// issue adds a new token to a grant and returns it. The oldest token is dropped
// if there are more than maxTokens.
func (g *Grant) issue() string {
	token := rand.Text()
	g.Tokens = append(g.Tokens[max(0, len(g.Tokens)-maxTokens+1):len(g.Tokens):len(g.Tokens)], hash(token))
	return token
}

// accepts reports whether the token belongs to the live grant. It always
// compares all hashes, in constant time.
func (g Grant) accepts(token string) bool {
	h, found := []byte(hash(token)), 0
	for _, have := range g.Tokens {
		found |= subtle.ConstantTimeCompare(h, []byte(have))
	}
	return found == 1 && g.Live()
}

// renew drops all tokens of a grant and gives it a new generation, which ends
// the connections made with it.
func (d *Device) renew(g Grant, now time.Time) Grant {
	d.Generation++
	g.Generation, g.Rotated, g.Tokens, g.Pending = d.Generation, now, nil, nil
	return g
}
