package pairing

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"time"
)

// hash returns what is stored of a token. Tokens are random, so that a plain
// hash tells nothing about them.
func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// issue adds a new token to a grant and returns it. The oldest one stops
// working when there are too many.
func (g *Grant) issue() string {
	token := rand.Text()
	g.Tokens = append(g.Tokens[max(0, len(g.Tokens)-maxTokens+1):len(g.Tokens):len(g.Tokens)], hash(token))
	return token
}

// takes reports whether the token opens the grant. It compares with every hash
// whatever the outcome.
func (g Grant) takes(token string) bool {
	h, found := []byte(hash(token)), 0
	for _, have := range g.Tokens {
		found |= subtle.ConstantTimeCompare(h, []byte(have))
	}
	return found == 1 && g.Live()
}

// renew takes all tokens of a grant away and gives it a new generation, so that
// connections made with one of them end.
func (d *Device) renew(g Grant, now time.Time) Grant {
	d.Generation++
	g.Generation, g.Rotated, g.Tokens, g.Claim = d.Generation, now, nil, nil
	return g
}
