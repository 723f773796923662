// Package hook runs code of plug-ins and of the person at named points.
//
// [Points] has a field for every point. There are two kinds. At a [Deciding]
// point the caller waits for an answer. Its hooks are called one after the other,
// by descending priority; hooks of equal priority run in the order in which they
// were added. Each hook sees the event as the previous one left it, and the first
// hook that blocks, cancels or handles decides. At an [Observing] point nobody
// waits: each hook has a bounded queue and a goroutine while events are pending.
//
// A hook that fails or panics is logged and skipped. A hook of a deciding point
// that exceeds its time limit or could not be called is skipped too, unless the point
// is a policy point: there it refuses, because its answer is unknown. A hook that causes an event
// itself gets that event, up to a depth of [MaxDepth].
//
// A plug-in adds its hooks to a Points of its own. [Points.Use] puts those of a
// group in force: all points of a group change at once, no event is seen by old
// and new hooks, and the observers of the new group start when those of the old
// one have stopped. A point without hooks costs nothing.
//
// To add a point, declare its event, add a field to [Points] and a line to its
// table. Points are used by name by programs that the person installs; see
// [Points.Program].
package hook
