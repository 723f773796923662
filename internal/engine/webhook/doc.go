// Package webhook lets other programs give the assistant work by HTTP requests: it wakes
// the main session with a text, or starts a run in a session of its own.
//
// [Parse] makes [Hooks] from the section hooks of the configuration. [Acceptor.Accept]
// turns a request into one queue item and commits it, synced, with its dedupe key and its
// session. Only then is the request answered, with the id of the run. A request with a
// known key gets the id of the first one and starts nothing, also after a restart.
//
// A request is authenticated by the token of the hooks, or by the signature of a mapping
// with a secret. A signature is a dedupe key, so that a copied request does nothing. Where
// a signature covers a time, requests with an old one are refused.
//
// The text of a payload is labeled as foreign (package untrusted). Of a template, the lines
// before the first and after the last value are the owner's own words and are not.
//
// The number of accepted requests that wait is bounded. Above the bound a request is
// refused with [ErrBusy], and nothing of it is kept.
//
// The run of a request has a principal of its own with the scopes of a permitted sender.
// Its answer goes to the chat that the request or the mapping names. If none is named, the
// commit that ends the run puts it into the queue of the agent's main session, as an event
// ([Acceptor.Ended]).
package webhook
