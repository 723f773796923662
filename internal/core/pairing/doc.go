// Package pairing decides which devices may connect and what each of them is
// granted. A device is a key pair: its id is the hash of its public key, and
// it signs the challenge of every connection.
//
// # Admission
//
// The gateway admits a connection in these steps:
//
//	id, err := pairing.Verify(connect, nonce, now)   // checks the signature; on error the gateway answers and closes
//	…                                                // the gateway checks the shared secret, if one is required
//	err = st.Update(ctx, store.Synced, func(tx store.Tx) (err error) {
//		a, err = pairing.Admit(tx.Devices(), id, proof, now)   // after the shared secret
//		a, err = pairing.Redeem(tx.Devices(), id, token, now)  // or with a device token
//		a, err = pairing.Accept(tx.Devices(), id, token, now)  // or with an invitation
//		a, err = pairing.Declare(tx.Devices(), a, surface, …)  // for a node, in addition: its capabilities
//		return err
//	})
//
// Each function returns an [Admission] and stores its decision. An error is a
// fault of the store. A refusal is not an error, because a request for pairing
// may have been stored with it: if a.Refusal is set, the gateway answers with
// it and closes the connection. Otherwise a.Access describes the connection:
// Access.Principal is the principal of its calls, Access.Scopes and
// Access.Token go into the hello. The gateway publishes a.Requested and
// a.Superseded after the commit.
//
// # Revocation
//
// Revoking a grant leaves a tombstone with a higher generation. Only a person's
// approval restores the grant, and the old tokens stay invalid. To refuse a
// revoked device at its next frame, the gateway first registers the connection
// as one that it can close and then calls [Check] once; a revocation commits
// first and then closes registered connections. [Current] does the same for
// queued work: it restricts a principal to what its device holds now.
//
// # Privileges
//
// No operation grants more than its caller holds. [Approve] and [Rotate]
// compare the scopes with the caller's. Pairing without approval is bounded by
// the credential's scopes ([Proof.Authority]); it adds no role to a known
// device, widens no grant that a person narrowed, and restores no tombstone. A
// connection holds those of its requested scopes that the grant covers. A
// connected device that needs more ([Widen]) requests everything that it would
// hold afterwards. It can claim one token for the approved request
// ([ClaimToken]), unless the grant changed since.
//
// Tokens are stored as hashes and compared in constant time. A token is sent
// only to the device itself, over its own connection.
package pairing
