// Package emailtest is a mail server in memory, for tests: IMAP for the mailbox of one
// account, and SMTP for what it sends. It is strict: it refuses mails that are malformed or
// are sent as somebody else, and commands that a real server would refuse. It fails on
// demand in the ways that real servers do.
package emailtest
