package shell

import (
	"path"
	"slices"
	"strings"
)

// denied returns the reason why a command must never run, or "".
func (w *walker) denied(argv []Word) string {
	args := texts(argv[1:])
	name := strings.ToLower(path.Base(argv[0].Text)) // file systems may be case-insensitive
	switch {
	case name == "rm" || name == "srm":
		if recursive(args, "rR") && w.anyRoot(args) {
			return "it deletes an entire system or home folder"
		}
	case name == "find":
		return w.deniedFind(args)
	case name == "chmod" || name == "chown" || name == "chgrp":
		if recursive(args, "R") && w.anySystem(args) {
			return "it changes permissions of the whole system"
		}
	case name == "mkfs" || strings.HasPrefix(name, "mkfs.") || name == "mke2fs" || name == "newfs":
		if !onlyHelp(args) {
			return "it creates a file system"
		}
	case name == "dd":
		for _, a := range args {
			if strings.HasPrefix(a, "if=") || strings.HasPrefix(a, "of=") && diskDevice(a[3:]) {
				return "it copies raw data with dd"
			}
		}
	case slices.Contains([]string{"tee", "cp", "mv", "install", "shred", "wipefs", "blkdiscard"}, name):
		if slices.ContainsFunc(args, diskDevice) && (name != "wipefs" || len(args) > 1) {
			return "it writes to a disk device"
		}
	}
	return ""
}

// deniedFind returns a reason if a find command deletes an entire system or
// home folder.
func (w *walker) deniedFind(args []string) string {
	deletes, narrow := false, false
	var starts []string
	for i, a := range args {
		switch {
		case a == "-delete":
			deletes = true
		case strings.HasPrefix(a, "-exec") || strings.HasPrefix(a, "-ok"):
			deletes = deletes || i+1 < len(args) && path.Base(args[i+1]) == "rm"
		case a == "-xdev" || a == "-mount" || a == "-depth" || a == "-type" || a == "-mindepth":
		case strings.HasPrefix(a, "-") && !deletes:
			narrow = true
		case len(starts) == i:
			starts = append(starts, a)
		}
	}
	if deletes && !narrow && w.anyRoot(starts) {
		return "it deletes an entire system or home folder"
	}
	return ""
}

// recursive reports whether the options request recursion.
func recursive(args []string, letters string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if len(a) > 3 && strings.HasPrefix("--recursive", a) {
			return true
		}
		if len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a, letters) {
			return true
		}
	}
	return false
}

func onlyHelp(args []string) bool {
	return len(args) == 1 && (args[0] == "--help" || args[0] == "--version" || args[0] == "-V" || args[0] == "-h")
}

func (w *walker) anyRoot(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { p := w.globParent(a); return system(p) || w.home(p) })
}

func (w *walker) anySystem(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return system(w.globParent(a)) })
}

// globParent returns the folder whose whole content an argument names: for
// "/etc/*" that is /etc.
func (w *walker) globParent(arg string) string {
	if arg == "" || arg[0] == '-' {
		return ""
	}
	p := w.join(arg)
	for strings.Contains(path.Base(p), "*") && matchAllPattern().MatchString(path.Base(p)) {
		p = path.Dir(p)
	}
	return p
}

// matchAllPattern matches patterns without literal letters, such as * and
// .??*.
var matchAllPattern = lazyRegexp(`^([*?.]|\[[^]]*\])+$`)

// system reports whether a path is the root or a top folder of the system.
func system(p string) bool {
	if p == "/" {
		return true
	}
	if path.Dir(p) != "/" {
		return false
	}
	switch strings.ToLower(p[1:]) {
	case "bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "proc", "root", "sbin", "sys", "usr", "var",
		"users", "system", "library", "applications", "private":
		return true
	}
	return false
}

// home reports whether a path is a user's home folder.
func (w *walker) home(p string) bool {
	if p == w.Home {
		return true
	}
	if strings.HasPrefix(p, "~") {
		return !strings.Contains(p, "/")
	}
	dir := path.Dir(p)
	return p == "/root" || dir == "/home" || dir == "/Users"
}
