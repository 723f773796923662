// Package access authenticates the clients of the gateway's port.
//
// Each request passes [Authenticator.Guard] first, which refuses it before
// anything else is read if the address is locked out after too many failures, a
// credential is in the URL, it comes through an unknown proxy, the host name is
// unknown (DNS rebinding), or the origin is not allowed (a foreign web page).
// Then the client authenticates: a WebSocket client in its first frame
// ([Authenticator.Connect]), an HTTP client with the Authorization header or X-Api-Key
// ([Authenticator.Bearer]). Both return a chela.Principal; there is no other
// source of principals.
//
// Rights:
//
//	shared secret, this machine's cli or backend client, no browser   the scopes that it asks for
//	shared secret, another client without a device                    none: it may connect
//	a user interface without a device                                 refused
//	a device                                                          what it was granted (package pairing)
//	a device with an invitation                                       what that grants, once
//	mode none                                                         as with the shared secret, on this machine only
//	mode trusted-proxy                                                the proxy's user, no more scopes than it names
//
// Failures are counted by address, including those of this machine.
package access
