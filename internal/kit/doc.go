// Package kit is the folder of small pieces without a domain: atomic file
// writes, backoff, cron expressions, folders, a JSON5 reader, lanes, log files, secrets,
// server-sent events.
//
// A package belongs here if another project could use it unchanged. It imports
// the standard library only and no other package of Chela. If it needs to know
// what a session or a tool is, it belongs in core. If only one package calls it,
// it belongs in that package.
package kit
