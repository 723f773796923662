//go:build linux || darwin

package native

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
)

// macDirs are the folders of macOS that a program may read.
var macDirs = []string{
	"/bin", "/sbin", "/usr", "/opt", "/nix/store", "/System/Library", "/System/Cryptexes", "/System/Volumes/Preboot/Cryptexes", "/System/iOSSupport",
	"/Library/Apple", "/Library/Developer", "/Library/Frameworks", "/Library/Java", "/Library/Perl", "/Library/Python", "/Library/Ruby", "/Applications/Xcode.app",
	"/private/etc", "/private/var/db/timezone", "/private/var/db/xcode_select_link", "/private/var/select",
}

// macSecrets are hidden in them.
var macSecrets = []string{
	"/private/etc/master.passwd", "/private/etc/sudoers", "/private/etc/sudoers.d", "/private/etc/ssh", "/private/etc/krb5.keytab", "/private/etc/openldap", "/private/etc/racoon",
	"/usr/local/var", "/opt/homebrew/var", // data of services that run as the person
}

// macBase begins a profile. A program can start others and signal those that it
// started. It cannot ask services of the system to act for it, such as those
// that open documents, read the keychain or verify certificates, which connects
// to hosts that a certificate names. It cannot read the variables of other
// processes, which are a sysctl.
const macBase = `(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read
	(sysctl-name-prefix "hw.") (sysctl-name-prefix "machdep.cpu.") (sysctl-name-prefix "vm.")
	(sysctl-name "kern.argmax") (sysctl-name "kern.boottime") (sysctl-name "kern.hostname") (sysctl-name "kern.maxfiles") (sysctl-name "kern.maxfilesperproc")
	(sysctl-name "kern.maxproc") (sysctl-name "kern.ngroups") (sysctl-name "kern.osproductversion") (sysctl-name "kern.osrelease") (sysctl-name "kern.ostype")
	(sysctl-name "kern.osvariant_status") (sysctl-name "kern.osversion") (sysctl-name "kern.secure_kernel") (sysctl-name "kern.usrstack64") (sysctl-name "kern.version")
	(sysctl-name "sysctl.proc_cputype"))
(allow mach-lookup
	(global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.opendirectoryd.membership")
	(global-name "com.apple.system.notification_center") (global-name "com.apple.system.logger"))
(allow ipc-posix-sem)
(allow pseudo-tty)
(allow file-read* file-write* file-ioctl (literal "/dev/ptmx"))
(allow file-read* file-write* (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))
(allow file-ioctl (regex #"^/dev/ttys[0-9]+$"))
(allow file-read* file-write* file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))
(allow file-read* (literal "/") (literal "/dev/random") (literal "/dev/urandom") (literal "/dev/autofs_nowait"))
(allow file-read* file-write-data (subpath "/dev/fd"))
(allow file-read-metadata (literal "/dev") (literal "/dev/stdin") (literal "/dev/stdout") (literal "/dev/stderr") (literal "/etc") (literal "/tmp") (literal "/var"))
`

// macLayout returns what a program on macOS may use, in the form of the mounts
// of a cage. The folders in temps belong to it.
func macLayout(home string, r sandbox.Rights, path []string, found *privateFiles, temps ...string) []mount {
	var l list
	for _, dir := range macDirs {
		l.add(mount{Kind: bind, From: dir, To: dir})
	}
	for _, name := range macSecrets {
		l.add(mount{Kind: hide, To: name})
	}
	if home != "" && home != "/" {
		for _, name := range toolchains {
			if dir := filepath.Join(home, name); !found.private(dir) {
				l.add(mount{Kind: bind, From: dir, To: dir})
			}
		}
		for _, name := range secretsOf(home) {
			l.add(mount{Kind: hide, To: name})
		}
	}
	for _, dir := range path {
		l.program(home, dir, found)
	}
	for _, dir := range temps {
		l.add(mount{Kind: temp, To: dir})
	}
	l.only(home, r.Workspace, found.never, mount{Kind: hide})
	keep := *found
	keep.freeze = slices.Clone(found.freeze)
	if r.Workspace != "" {
		for _, name := range pathpolicy.RunNames() { // also those that do not exist
			keep.freeze = append(keep.freeze, filepath.Join(r.Workspace, name))
		}
	}
	keep.freeze = append(keep.freeze, spelled(r.Workspace, keep.freeze)...)
	for _, name := range found.never {
		if !pathpolicy.Inside(r.Workspace, name) {
			keep.hide = append(slices.Clone(keep.hide), name)
		}
	}
	keep.pin = append(slices.Clone(found.pin), spelled(r.Workspace, found.pin)...)
	l.rights(r, &keep)
	return l
}

// spelled returns the paths of files below a root as their folders list them.
// File systems of macOS ignore case, but rules do not.
func spelled(root string, names []string) []string {
	var out []string
	for _, name := range names {
		dir := root
		for _, part := range strings.Split(strings.TrimPrefix(name, root+"/"), "/") {
			entries, _ := os.ReadDir(dir) // it may have gone
			if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == part }) {
				if i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return strings.EqualFold(e.Name(), part) }); i >= 0 {
					part = entries[i].Name()
				}
			}
			dir = filepath.Join(dir, part)
		}
		out = append(out, dir)
	}
	return out
}

// profile returns the text that makes sandbox-exec confine a program to what a
// list of mounts shows. port is that of the proxy on this machine; 0: none. A
// rule replaces those before it.
func profile(mounts []mount, port int) string {
	var b strings.Builder
	b.WriteString(macBase)
	if port > 0 {
		fmt.Fprintf(&b, "(allow network-outbound (remote ip \"localhost:%d\"))\n", port)
	}
	rule := func(head, filter string, paths ...string) {
		slices.Sort(paths)
		if paths = slices.Compact(paths); len(paths) == 0 {
			return
		}
		b.WriteString("(" + head)
		for _, p := range paths {
			b.WriteString(" (" + filter + " " + quote(p) + ")")
		}
		b.WriteString(")\n")
	}
	var above, roots []string
	for _, m := range mounts {
		if m.Kind == bind || m.Kind == temp {
			above = append(above, parents(m.To, "/")...)
		}
		if m.Kind == temp || m.Kind == bind && m.Write {
			roots = append(roots, m.To)
		}
	}
	var fixed []string
	for _, m := range mounts {
		switch m.Kind {
		case bind:
			rule("allow file-read* file-map-executable", "subpath", m.To)
			if m.Write {
				rule("allow file-write*", "subpath", m.To)
			} else {
				rule("deny file-write*", "subpath", m.To)
			}
		case temp:
			rule("allow file-read* file-write* file-map-executable", "subpath", m.To)
		case hide:
			rule("deny file-read* file-write* file-map-executable", "subpath", m.To)
		case freeze:
			rule("deny file-write*", "subpath", m.To)
		}
		if m.Kind == hide || m.Kind == freeze || m.Kind == pin {
			fixed = append(fixed, m.To)
			for _, root := range roots {
				if pathpolicy.Inside(m.To, root) {
					fixed = append(fixed, parents(m.To, root)...)
				}
			}
		}
	}
	rule("allow file-read-metadata", "literal", above...)
	// A rule is about a path. Where the folder of a hidden file could be renamed, or
	// a folder that can be changed, no rule would be about what is in it any more.
	rule("deny file-write-unlink", "literal", append(fixed, roots...)...)
	return b.String()
}

// parents returns the folders that a path is in, below a root.
func parents(name, root string) (out []string) {
	for dir := filepath.Dir(name); dir != root && pathpolicy.Inside(dir, root); dir = filepath.Dir(dir) {
		out = append(out, dir)
	}
	return out
}

// quote returns a path as a string of a profile.
func quote(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}
