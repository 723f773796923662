// Package dialect is what the dialects of model services share. A dialect (package openai,
// anthropic, …) knows a wire format; this package knows what is the same for all of them.
//
// A call goes this way. [Repairs] chooses the form of the request that the service is known to
// accept. [ToolAdapter] leaves out of the tools what the service would reject. The dialect
// assembles a [Body] from stored pieces: an [Object] for the fields that may change, and the
// encodings of messages, which each message keeps (llm.Message.Memo), so that a long conversation
// is neither encoded nor copied again. [Client.Stream] loads the images, sends the body and reads
// events, which the dialect's [Decoder] adds to an [Answer]. The Answer yields each addition at
// once and the complete message at the end.
//
// One Done or one error ends a stream. An error has a class, and its text contains no key. An
// answer is limited in bytes and parts, and its message is valid whatever the service sent. A
// request is repeated here only if the service refused it for a field, an image or its faster
// tier, which the error names; the caller has then seen nothing of it. All other retries, and the
// choice of another key or model, are the caller's.
package dialect
