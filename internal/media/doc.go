// Package media keeps pictures and other files of conversations: each content
// once, in a file of the state directory that is named by its hash. Rows hold
// references ([Refs] finds them) and never the bytes.
//
// A file is on disk before the row that refers to it is written; after a crash
// in between it is garbage. [Files.Sweep] removes what no row refers to, once it
// is old enough that no row can be about to. So there may be a file without a
// row for a while, and never a row without its file.
//
// What comes in is judged as it is encoded: [Probe] tells the type of a picture
// by its content, and its size in pixels from its header. Nothing is decoded
// before those are known to be within bounds.
package media
