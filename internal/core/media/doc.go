// Package media stores the images and other files of conversations in the state
// directory. A file is named by the hash of its content, so that each content is
// stored once. Rows contain references, which [Refs] finds, and never the bytes.
//
// A file is written before the row that refers to it. [Files.Sweep] removes files
// without references that are older than [Grace], because a commit may be about to
// refer to a newer one. A file may have no row for a while, but a row always has its
// file.
//
// [Probe] reads the type and the dimensions of an image from its header. An image is
// decoded only if its dimensions are within the limits.
package media
