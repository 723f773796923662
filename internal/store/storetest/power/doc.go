// Package power is a disk whose power can be cut and that can fail: a layer
// below SQLite that knows which writes were synced. With it a test of any
// package shows that nothing is missing that the outside was told.
//
// # A sweep
//
// [Sweep] runs a scenario on a store and asks of every moment: when the power
// is cut now, is there on disk what was told before? A scenario calls tell
// whenever the outside learns something (a receipt, an answer, a message that
// was handed to a channel, an effect of a tool), with a promise: a check of
// the store that comes up after the cut.
//
//	power.Sweep(t, func(t testing.TB, s store.Store, tell func(power.Promise)) {
//		gate := inbound.New(inbound.Options{Store: s, …})
//		r, err := gate.Admit(ctx, message)
//		…
//		tell(func(r store.Reader) error { _, err := r.Queue().ByKey("…"); return err })
//	})
//
// Then it makes the synced commits ordered, one by one, and wants a promise to
// be broken by some cut each time: a synced commit that nothing tells of is
// one too many, or a promise is missing in the scenario. For that a scenario
// makes the same commits in the same order each time.
//
// # What the model says
//
// What is certainly on disk is what was synced since it was written; all else
// is lost in a cut. [Disk.Torn] keeps some of it, sector by sector, as a real
// disk may. A sync that was made to fail loses what it should have written:
// later syncs do not bring it back, unless it is written again.
package power
