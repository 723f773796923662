// Package failover combines several llm.Providers into one: the keys of a
// service, and fallback models.
//
// A [Chain] calls its candidates in order, each with its keys. If a call fails
// because of the service (rate limit, outage, rejected key, no credit), the
// chain continues with the next key and then with the next candidate. An
// llm.Restart event tells the caller to discard the failed answer. An error
// that the request itself causes does not count against a key. If the first
// candidate refuses the request, the error is returned; if a fallback refuses
// it, the next candidate is called, since fallbacks may support less.
//
// [Health] tracks failures. A failed key is on cooldown for 1, 5, 25, then 60
// minutes, or as long as the service asked for; a key without credit for 5
// hours, doubling up to a day. A rate limit puts only the key's use of that
// model on cooldown. Failures during a cooldown do not advance to the next step. When a
// cooldown ends, one call probes the key and the others wait for its result.
// If everything is on cooldown, the candidate whose cooldown ends first is
// called anyway.
//
// A conversation keeps using the key that answered it last, which preserves
// the service's prompt cache, until that key is on cooldown.
package failover
