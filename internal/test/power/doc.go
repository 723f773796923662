// Package power simulates a disk that loses power and fails. It is a layer below
// SQLite that records which writes were synced. A test of any package can use it to
// check that everything that was reported to the outside is stored.
//
// # A sweep
//
// [Sweep] runs a scenario on a store and cuts the power after each commit, to check
// that everything reported before the cut is on disk. A scenario calls report when
// the outside learns of something (a receipt, a reply, a message that was sent to a
// channel, an effect of a tool). It passes a promise: a check of the store that is
// opened after the cut.
//
//	power.Sweep(t, func(t testing.TB, s store.Store, report func(power.Fact)) {
//		gate := inbound.New(inbound.Options{Store: s, …})
//		r, err := gate.Admit(ctx, message)
//		…
//		report(func(r store.Reader) error { _, err := r.Queue().ByKey("…"); return err })
//	})
//
// Sweep then runs the scenario again for each synced commit, with that commit made
// ordered, and expects that some cut breaks a promise. If none is broken, the
// commit need not be synced, or the scenario lacks a promise. A scenario must
// therefore make the same commits in the same order each time.
//
// # The model
//
// A write is on disk for certain once it was synced. A cut loses all other writes.
// [Disk.Torn] retains some of them, sector by sector, as a real disk may. A sync
// that is made to fail loses the writes that it should have made durable: later
// syncs do not restore them unless they are written again.
package power
