//go:build !unix

package archive

// nonblock is not needed: there are no pipes among files.
const nonblock = 0
