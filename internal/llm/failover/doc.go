// Package failover makes one llm.Provider of several: keys of one service, and
// models that answer when another does not.
//
// A [Chain] asks its candidates in order, each with the keys it has. A call
// that fails for a reason of the service (a rate limit, an outage, a key that
// is refused, an account without credit) is asked again with the next key, and
// then of the next candidate. What the caller was given of the failed answer
// is taken back with llm.Restart, so that there is one answer and not two. A
// request that is refused for what it says is nobody's fault: it counts against
// no key. The first candidate's refusal is given as it is; after that of a
// stand-in, which may be able to do less, the next one is asked.
//
// [Health] remembers who failed. A key rests for 1, 5, 25, then 60 minutes, or
// as long as the service said; one without credit for 5 hours, doubling up to
// a day. A rate limit rests the key for that model only. A failure during a
// rest is no further step. When the rest is over one call tries, and the others
// wait until it succeeded. When everything rests, the candidate that rests no
// longer than the others is asked all the same: there is nothing to lose.
//
// A conversation stays with the key that answered it, for the sake of the
// service's prompt cache, until that key rests.
package failover
