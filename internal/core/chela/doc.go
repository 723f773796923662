// Package chela defines the types that every other package uses: the author of a message
// ([Sender], [Principal], [Origin]), the address of a message and of its answer
// ([Address]), the conversation ([SessionKey]), the message itself ([Inbound]), and the
// events of a run ([Event]).
//
// The package imports the standard library only, so that any package may import it.
// It only parses, prints and compares its own types.
package chela
