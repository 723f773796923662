package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// deniedReason returns the reason why a command must never run, or "".
func (w *walker) deniedReason(argv []Word) string {
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
		if len(args) != 1 || !slices.Contains([]string{"--help", "--version", "-V", "-h"}, args[0]) {
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

// mayDestroy reports whether a command runs a program that some arguments
// would make a denied one, or mentions devices.
func (w *walker) mayDestroy(command string) bool {
	for _, dev := range []string{"/dev/null", "/dev/std", "/dev/fd/", "/dev/tty", "/dev/zero",
		"/dev/random", "/dev/urandom"} {
		command = strings.ReplaceAll(command, dev, "")
	}
	return strings.Contains(command, "/dev/") || slices.ContainsFunc(w.segs, func(s Segment) bool {
		return slices.ContainsFunc(s.Argv, func(x Word) bool {
			switch name := strings.ToLower(path.Base(x.Text)); name {
			case "rm", "srm", "mke2fs", "newfs", "dd", "shred", "wipefs", "blkdiscard", "-delete":
				return true
			case "chmod", "chown", "chgrp":
				return recursive(texts(s.Argv), "R")
			default:
				return strings.HasPrefix(name, "mkfs")
			}
		})
	})
}

// deniedFind returns a reason if a find command deletes an entire system or
// home folder.
func (w *walker) deniedFind(args []string) string {
	starts := max(0, slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }))
	for i := starts; i < len(args) && w.anyRoot(args[:starts]); i++ {
		switch a := args[i]; {
		case a == "-delete", (strings.HasPrefix(a, "-exec") || strings.HasPrefix(a, "-ok")) && i+1 < len(args) &&
			path.Base(args[i+1]) == "rm":
			return "it deletes an entire system or home folder"
		case a == "-xdev" || a == "-mount" || a == "-depth" || a == "-type" || a == "-mindepth":
		case strings.HasPrefix(a, "-"): // it selects some files
			return ""
		}
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
var matchAllPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([*?.]|\[[^]]*\])+$`) })

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

// diskDevice reports whether a path is a disk or a partition.
func diskDevice(path string) bool {
	name, ok := strings.CutPrefix(path, "/dev/")
	if !ok {
		return false
	}
	name = strings.TrimLeft(name, "/")
	for _, p := range []string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "md", "dm-", "mapper/", "disk",
		"rdisk", "loop", "nbd", "zd"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return strings.ContainsAny(name, "*?[")
}
