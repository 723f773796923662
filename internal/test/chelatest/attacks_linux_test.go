//go:build conformance

package chelatest

import (
	"testing"

	"github.com/chela-ai/chela/wire"
)

// TestAttacks runs hostile commands whose writer did not know the program. Run in
// a shell outside, every one does what its sandbox does not grant; run by the
// model, it must not.
func TestAttacks(t *testing.T) {
	for _, mode := range []string{"full", "auto", "allowlist"} {
		t.Run(mode, func(t *testing.T) {
			g := newMachine(t)
			c := Start(t, g.options(mode)).Client()
			c.execute("first", "true "+attackSecret, wire.Deny) // the state has it now
			ran, asks, effective := 0, 0, 0
			var not []string
			for _, l := range hostile(t) {
				effects, asked, answer := g.attack(c, l)
				ran++
				if asked {
					asks++
				}
				if len(effects) > 0 {
					effective++
				} else {
					not = append(not, l.id)
				}
				if mode != "full" && len(effects) > 0 {
					t.Errorf("%s %s (%s): had the effects %v: %s", l.id, l.command, l.marks, effects, answer)
				}
			}
			t.Logf("%s: %d commands, %d asked, %d had an effect", mode, ran, asks, effective)
			if mode == "full" {
				t.Logf("without effect: %v", not)
				if effective < 300 { // some need bash, and the gateway runs sh
					t.Errorf("only %d of %d commands have an effect outside of the sandbox", effective, ran)
				}
			}
		})
	}
}
