// Package export writes sessions to files for people and programs. There are three
// formats:
//
//   - [JSONL] is the exchange format of package session. It is complete, so that
//     session.Import reads the same transcript from it.
//   - [HTML] is one page without scripts and without references to other files: the
//     system prompt and the tools that the model gets now, and the whole transcript.
//   - [Trajectory] is JSONL with more rows, for error reports and evaluations: the system
//     prompt, the tools, and what is known about each model call, run and tool call.
//
// HTML and Trajectory contain no known secrets. Transcripts are read and written page by
// page, so that the memory that an export needs does not grow with the texts in it.
package export
