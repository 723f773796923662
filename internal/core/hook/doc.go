// Package hook runs code before and after tool calls.
//
// A [Before] hook is called once the arguments of a call are known and valid. It
// may block the call, replace its arguments, require an approval, or do nothing.
// Hooks are called one after the other, by descending priority; hooks of equal
// priority run in the order in which they were registered. Each hook sees the
// arguments that the previous one left. The first hook that blocks decides, even
// over an earlier one that required an approval. A hook that fails is logged and
// skipped. A hook that exceeds its time limit blocks the call, because its answer
// is unknown.
//
// An [After] hook is called once for each call whose tool has run, in the order
// in which the calls ended. It changes nothing, and no call waits for it.
package hook
