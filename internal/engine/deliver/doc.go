// Package deliver sends answers to channels. It is the only caller of
// channel.Channel.Send.
//
// Messages to be sent are rows of the outbox, written in the commit that creates
// them (see [Worker.Ended]). [Worker.Run] sends the rows: those of one address in
// order, different addresses in parallel.
//
// A row is marked as attempted, on disk, before the channel is called, and gets
// its outcome afterwards. If the outcome of an attempt is unknown, because the
// connection broke or the process died, the message is looked up if the platform
// supports that. Otherwise the row becomes ambiguous and is not sent again: the
// person can ask for a missing answer, but a duplicate cannot be taken back. The
// transcript and the chat are told so.
// A row that fails for good, also because its channel was missing for a day,
// leaves a notice in the transcript of its session. Options.Sent adds writes to the commit that closes a row.
//
// When a run waits for an approval, its channel is asked for it, once.
//
// While a run is in progress its channel may show a typing indicator and a
// preview: a message that is edited as the answer grows, stored as a row in state
// draft. The end of the run turns this row into the first part of the answer, so
// that after a crash the same message is edited.
package deliver
