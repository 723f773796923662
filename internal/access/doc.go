// Package access decides who may come in over the gateway's port.
//
// A request passes [Door.Guard] first, whatever it asks for: an address that
// guessed too often, a credential in the URL, a proxy that nobody configured, a
// host name that is not ours (DNS rebinding) and an origin that is not ours (a
// web page of somebody else) are refused before anything else of it is read.
// Then it shows its credential: a WebSocket client in its first frame
// ([Door.Connect]), an HTTP client in the Authorization header
// ([Door.Bearer]). Both give a chela.Principal, from here and nowhere else.
//
// Who may do what:
//
//	shared secret, this machine's cli or backend client, no browser   the scopes that it asks for
//	shared secret, another client without a device                    none: it may connect
//	a user interface without a device                                 refused
//	a device                                                          what it was granted (package pairing)
//	a device with an invitation                                       what that grants, once
//	mode none                                                         as with the shared secret, on this machine only
//	mode trusted-proxy                                                the proxy's user, no more scopes than it names
//
// Failures are counted by address, this machine's among them.
package access
