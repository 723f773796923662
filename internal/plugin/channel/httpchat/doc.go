// Package httpchat is a channel for any program or web page with a server: it posts the
// messages of people to the gateway, and gets the answers by a webhook of its own. Both
// directions are signed with a shared secret; see package signature.
//
// A post is answered with status 200 after its message was accepted. The same signed post is
// accepted once: the signatures of the last minutes are remembered, and after a restart the
// id of the message keeps it from being accepted again.
//
// A request to the webhook has the header Idempotency-Key, which is the same at each attempt,
// so that a request whose outcome is unknown is repeated.
package httpchat
