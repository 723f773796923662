// Package chela holds the nouns that every other package speaks of: who
// writes ([Sender], [Principal]), from where and to where ([Address]), into
// which conversation ([SessionKey]), what arrives ([Inbound]), and what can be
// seen while it is answered ([Event]).
//
// The package imports the standard library only, so that any package may
// import it. It holds no behaviour beyond parsing and comparing its own types.
package chela
