// Package understanding reads attachments for models that cannot: it transcribes
// recordings, describes pictures for models without image input, and extracts the text
// of documents.
//
// An attachment is tried in several ways, in order, until one succeeds: the configured
// services and programs, the service of the session's model, other services with a
// known key, and programs on this machine. [Understander.Read] never fails because of
// an attachment: one that cannot be read gets a Problem, which says why. Its bytes, its
// time and the length of its text are bounded.
//
// The text of a document and the description of a picture are labeled as untrusted. A
// transcript is not: it is what the person said.
package understanding
