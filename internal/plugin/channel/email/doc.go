// Package email reads mail over IMAP and answers over SMTP.
//
// A conversation is everything that one person writes to the account: the id of the peer
// and of the sender is the address of the From header, in lower case. Answers go to this
// address only, also when a mail had other recipients.
//
// # Reception
//
// The mailbox is watched with IDLE, or asked once a minute if the server has no IDLE. The
// cursor is the UID of the last mail that was handled, together with the UIDVALIDITY of the
// mailbox. It is stored after the sink has accepted the mail. When the UIDVALIDITY changes,
// the UIDs mean nothing any more; then the mails are compared with what was handled before,
// see [state].
//
// # Identity
//
// Anybody can write any From header. A mail is passed on only if the receiving server
// says, in the header Authentication-Results, that the domain of From has vouched for it
// (see [authenticate]) and if the account is a named recipient. Mail of programs is never
// passed on, so that two of them do not answer each other endlessly.
//
// # Sending
//
// The Message-ID of a mail is derived from the key of its part. If the connection breaks
// after the content was sent, the mail is looked up in the mailbox for sent mail, which is
// conclusive only if the server itself stores what it sends.
package email
