// Package signal connects to Signal by the HTTP interface of signal-cli: JSON-RPC requests,
// and server-sent events for what arrives. The channel uses a daemon that runs already, or
// starts one and ends it with all its processes.
//
// # Receiving
//
// Signal keeps messages until a device of the account has fetched them. The daemon that the
// channel starts fetches them only while an event stream is open
// (--receive-mode=on-connection), so that nothing is lost while the gateway does not run.
//
// The daemon confirms a message to Signal before it writes the event, and the stream has no
// acknowledgements. A message is therefore lost if the gateway or the machine dies between
// the event and the moment in which the sink has stored the message, and if the connection
// breaks while the event is on its way. To keep that time short, each event is passed to
// the sink as soon as it is read. An event that the sink does not accept for the time being
// is written to the file pending.json in the directory of the account until it is accepted,
// and so are the events that were read with it when Run ends; they come first when Run
// begins again. While the sink accepts nothing, the stream is not read, and the daemon stops
// fetching messages; the few that are between the two then are lost if the gateway ends.
//
// The daemon writes a comment every 15 seconds. A stream without any for longer is closed
// and opened again.
//
// # Identity
//
// A person is identified by the UUID of the Signal account, in lower case. A phone number can
// change hands and may be hidden; it is the id only of a sender for whom the daemon tells no
// UUID. A group is identified by its id in base64.
//
// Signal names a message by its author and the author's time in milliseconds. The id of a
// received message is "<time>:<author>", that of an own one is "<time>". An edit has the id
// "<time of the original>:<author>:edit:<time of the edit>".
//
// # Sending
//
// Signal has no keys that make a repeated request one message. The channel remembers the
// last confirmed parts by their keys; a request whose outcome is unknown is reported as
// ambiguous. An edit refers to the last version of a message, as it does in Signal's apps.
package signal
