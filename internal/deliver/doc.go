// Package deliver carries answers to channels. It is the only caller of
// channel.Channel.Send.
//
// What is owed is rows of the outbox, written in the commit that makes them due
// (see [Worker.Ended]). [Worker.Run] sends them: of one address strictly in
// order, different addresses side by side.
//
// A row is marked as attempted, on disk, before the channel is called, and with
// its outcome afterwards. An attempt without an outcome, because the connection
// broke or the process died, is looked up where the platform can do it;
// elsewhere it becomes ambiguous: it is not sent again, since an answer that is
// missing can be asked for and one that came twice cannot be taken back.
//
// A run that waits for a decision has its channel asked for it, once.
//
// While a run is in progress its channel may show typing and a preview: a
// message that is edited as the answer grows, and that is a row in state draft.
// The end of the run makes it the first part of the answer, so that after a
// crash the same message is edited.
package deliver
