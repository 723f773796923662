// Package cron implements the tool cron, with which a model schedules work: reminders,
// regular reports and watches.
//
// The tool sees and changes the jobs of its agent only. A job that it adds belongs to the
// session of the call, and its answers go to the chat in which it was asked for.
package cron
