package approval

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// TestRandomDecisions makes random requests and decisions, and compares the table
// with a model: only a principal with the scope decides, once, before the expiry.
func TestRandomDecisions(t *testing.T) {
	t.Parallel()
	people := []chela.Principal{
		chela.Owner("token"), {ID: "ann", Credential: "device:a", Scopes: []chela.Scope{chela.ScopeApprovals}},
		{ID: "bob", Scopes: []chela.Scope{chela.ScopeWrite, chela.ScopeRead, chela.ScopePairing}},
		{Scopes: []chela.Scope{chela.ScopeAdmin}}, {},
	}
	may := func(who int) bool { return who < 2 }
	words := []string{"allow-once", "allow-always", "deny", "yes", "no", "expired", "withdrawn", "", "maybe"}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		m := memory{}
		want := map[string]Request{} // the expected requests
		for range 40 {
			now = now.Add(time.Duration(rnd.IntN(12)) * time.Minute)
			id := string(rune('a' + rnd.IntN(3)))
			who, word := rnd.IntN(len(people)), words[rnd.IntN(len(words))]
			have, known := want[id]
			if rnd.IntN(4) == 0 {
				r, err := Ask(m, people[who], Request{ID: id, Text: "ls"}, now)
				if (err == nil) != (may(who) && !known) {
					t.Fatalf("seed %d: asked as %+v: %v", seed, people[who], err)
				}
				if err == nil {
					want[id] = r
				}
				continue
			}
			r, err := Resolve(m, people[who], id, word, now)
			d, ok := ParseDecision(word)
			open := known && have.Decision == Pending && may(who) && ok
			late := open && !now.Before(have.Expires)
			if (err == nil) != (open && !late) {
				t.Fatalf("seed %d: %q as %q about %+v: %v", seed, word, people[who].ID, have, err)
			}
			switch {
			case late:
				have.Decision, have.By, have.Decided = Expired, "expiry", now
			case open:
				have.Decision, have.By, have.Via, have.Decided = d, people[who].ID, people[who].Credential, now
			}
			if known {
				want[id] = have
			}
			if err == nil && (r.Decision != have.Decision || r.Hash != have.Hash) {
				t.Fatalf("seed %d: answered %+v, want %+v", seed, r, have)
			}
		}
		for id, w := range want {
			if got := m[id]; got.Decision != w.Decision || got.By != w.By || got.Via != w.Via ||
				!got.Decided.Equal(w.Decided) || got.Hash != w.Hash {
				t.Fatalf("seed %d: stored %+v, want %+v", seed, got, w)
			}
		}
	}
}
