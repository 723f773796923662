// Package node defines what a node is to the rest of Chela: a paired device that carries
// out commands, such as system.run or camera.snap.
//
// A command of a node is called only if three conditions hold: the device is paired, a
// person approved the command for it (both in package pairing), and the [Policy] of the
// gateway allows it. engine/nodes checks them and keeps the connections.
package node
