// Package archive keeps folders and files in one compressed file with a manifest: what each
// of them was, and the size and hash of every file. [Create] writes such a file, [Verify]
// checks one without trusting it, and [Extract] brings its files back.
//
// The entries of an archive are below the names of its sources. The last entry is the
// manifest, because hashes are known only when the files were read.
package archive
