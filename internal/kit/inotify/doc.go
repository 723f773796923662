// Package inotify is told by the kernel which files in some folders change, by any process.
// What a process of this machine changes is reported before its system call returns, except
// what it writes to memory that is mapped from a file, which is reported when it unmaps or
// ends. The system has few watches for all programs of a person.
package inotify
