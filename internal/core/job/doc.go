// Package job defines scheduled jobs: the [Job] with its [Schedule], the [Run] of a job
// at one instant, and their table.
//
// A job is stored as JSON with the field names of OpenClaw, so that the record, the wire
// and exported files have one form.
//
// # Slots
//
// A slot is one instant at which a job is due. The next slot of a job is stored in its
// state; reading a job never changes it. A slot is claimed by storing a Run, which is
// unique per job and slot, in the commit that puts the work into the queue. The slot
// after it is computed from the claimed slot in the same commit. So a slot runs at most
// once, whoever looks at the job and however often.
//
// # States
//
// A run is open until it has a status. A job has at most one open run. A slot that comes
// while the job has an open run is left out.
package job
