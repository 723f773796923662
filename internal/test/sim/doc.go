// Package sim simulates days of a whole gateway, and checks the promises of the
// product after each.
//
// A day is made from one seed: people write in several chats of two channels and in a
// terminal, and react to what they see; models answer, call tools, start subagents and
// send messages to other sessions; people make, change, run, pause and remove scheduled
// jobs, and send events; heartbeats come at their interval, and HEARTBEAT.md is emptied
// and filled; other programs make requests and repeat them; hooks forbid, hang and crash;
// the clock is set; services, channels and the store fail or are slow; and the
// process is killed, loses power, or is restarted, also right after the outside has
// learned something. Everything runs in one process under testing/synctest, with its own
// clock and connections in memory.
//
// The world outside of the gateway has a ledger: what was sent and acknowledged, what the
// model was asked and answered, which effects the tools had, and what the channels
// received. At the end of a day nothing fails any more, the gateway gets time to finish,
// and the checker compares the ledger with the rows of the store:
//
//   - Each accepted message is in a transcript exactly once and has reached a final
//     state, and its sender was told. Nothing is left in progress: no run, queue item,
//     deferred item, subagent, lease, approval or delivery.
//   - A command is carried out and answered once, also if the platform offers it again.
//   - A reply is sent at most once, and exactly once if its row says that it was sent.
//     A run that was stopped sends none. A preview that a crash left behind is no reply.
//   - A tool call has its effect at most once. Its result says that it ran, or that the
//     outcome is unknown, if it had one; a denied call has none.
//   - The end of work in the background is told once, in the session of its call, also
//     after a new conversation began there. A message of another session is in the
//     transcript once, and a late reply reaches its sender once.
//   - The result of a subagent reaches the session that it is owed to exactly once. One
//     that was stopped, or has nothing to announce, is not announced. What it used is
//     counted once.
//   - A change of a scheduled job that was acknowledged is never lost. Each slot that comes
//     while the gateway runs and the job is enabled and idle runs once; those that come
//     while it does not run are one run; the others are left out for a reason: the job was
//     running or paused after a failure, less than the gap had passed, or the clock showed
//     that time before. Nothing else runs. A job with one slot does not run again after a
//     final outcome. The work of a run is in a transcript once, and its result reaches its
//     chat or session once, or nobody after the job was removed.
//   - A request of a webhook that was accepted is in a transcript once, however often it was
//     repeated, and all answers name the same run. Its answer reaches its chat, or the main
//     session once.
//   - A tick of the interval makes at most one heartbeat, also across restarts, and one when
//     nothing else runs: the ticks of two are an interval apart, and their beginnings the least
//     gap. A tick while HEARTBEAT.md is empty makes none, unless an event waits. An event is in
//     the transcript at least once, and at most as often as it was sent. An alert is delivered
//     to the chat of the configuration, or kept as an event if that fails, and nothing else is
//     delivered.
//   - What a hook refuses, or does not answer in time, has no effect. A hook that crashes
//     refuses nothing. The observer is told of the end of a run at most once, and once if the
//     gateway goes on.
//   - A stop ends all work of its session and of the subagents below. Every place of every
//     lane is free at the end, and no run exceeds its limits. The gateway stops in time
//     and leaves no goroutines.
//
// The slots of a job are computed here from what its maker asked for, and compared with the
// runs in the store. The wall clock of the schedule is that of the bubble and what was added
// to it; everything else has the clock of the bubble.
//
// A killed gateway is one whose store, model, tools, channels and connections fail from
// one moment on, so that nothing that it still does has an effect. A power loss also
// loses the commits that were not synced, by means of package power.
//
// A day that fails prints its events in order, and the command that repeats it. What
// happens at the same instant is not in a fixed order, so that a rare failure may need
// several repetitions.
//
// CHELA_SIM_SEED=n runs only that day, and tells it. CHELA_SIM_SEEDS=n runs that many,
// which are longer; both together begin with another day than the first.
package sim
