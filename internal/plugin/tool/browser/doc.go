// Package browser drives Chromium for the assistant: the tool browser, and the
// requests of the command line.
//
// [Browsers] has at most one browser for each profile. It is started at first use,
// with a folder of its own in the state directory, and stopped when it was idle. Each
// browser is a process tree of the [sandbox.Broker]. It is driven over a pair of pipes
// in the Chrome DevTools Protocol ([conn]): there is no debugging port, and when this
// process dies, the pipes close and Chromium ends.
//
// Everything that pages load passes a [proxy] in this process, which applies the
// rules of package egress. Names are resolved there, and what does not go through the
// proxy (QUIC, WebRTC over UDP) is off. The proxy has no password: it is bound to
// loopback and reaches nothing that other programs of this machine do not reach anyway,
// except for hosts that the configuration allows.
//
// A tab belongs to the session that opened it. Its actions run one after another. An
// action has a time limit, so that a page that hangs or asks in a dialog never holds up
// the caller. A snapshot is the accessibility tree of all frames as text, in which
// elements have refs; a ref stands for a node of the document and becomes invalid with
// it.
//
// The protocol is spoken with plain JSON instead of a library: the libraries mirror
// the whole document of each tab in memory, which a page can make arbitrarily large,
// and need it for nothing that is done here.
package browser
