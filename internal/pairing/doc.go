// Package pairing is the devices that may connect, and what each of them was
// granted. A device is a key pair: its id is the hash of its public key, and
// it signs the challenge of every connection.
//
// # Letting a connection in
//
// The gateway asks three questions, in this order:
//
//	id, err := pairing.Verify(connect, nonce, now)   // does it hold the key? err is answered, and the connection closed
//	…                                                // the gateway checks the shared secret, or that none is needed
//	err = st.Update(ctx, store.Ordered, func(tx store.Tx) (err error) {
//		a, err = pairing.Admit(tx.Devices(), id, proof, now)   // it showed the secret: which grant has it?
//		a, err = pairing.Redeem(tx.Devices(), id, token, now)  // or: it shows a device token
//		a, err = pairing.Accept(tx.Devices(), id, token, now)  // or: it was invited; Synced
//		a, err = pairing.Declare(tx.Devices(), a, surface, …)  // and of a node: what it says it can do
//		return err
//	})
//
// All return an [Admission], and store what they decide; an error of theirs
// is a fault of the store. When a.Refusal is set it is the answer, and the
// connection is closed: a request for pairing may have been stored, which is
// why a refusal is no error. Otherwise a.Pass says who the connection is:
// Pass.Principal acts in its calls, Pass.Scopes and Pass.Token go into the
// hello. What a.Requested and a.Superseded name is published after the commit.
//
// # Revocation
//
// Taking a grant away leaves a tombstone with a higher generation; nothing but
// a person's approval brings the grant back, and never the old tokens. So that
// a revoked device is refused at its next frame, the gateway adds the
// connection to those that it can cut and then, once, asks [Check] whether the
// Pass is still good: who revokes commits first and then cuts what was added.
// [Current] does the same for work that was queued: it cuts a principal to
// what its device holds today.
//
// # The lattice
//
// No operation yields a grant above the one of who asks for it. [Approve] and
// [Rotate] compare scopes with the caller's; pairing without a question is
// bounded by what the shown credential stands for ([Proof.Authority]), adds no
// role to a device that has one, widens no grant that a person cut down, and
// revives no tombstone. The
// scopes of a connection are the ones asked for that the grant covers. One that
// wants more while it is connected ([Widen]) asks a person for all that its
// device holds then, and is told a token, once, when that was approved and
// nothing changed since ([Take]).
//
// Tokens are stored as hashes and compared in constant time. A token is told
// to the device itself over its own connection and to nobody else.
package pairing
