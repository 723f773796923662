package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
)

// Sizes of the folders in memory.
const (
	tmpSize   = 4 << 30
	smallSize = 64 << 20
	shmSize   = 1 << 30
)

// systemDirs are the folders of the system that a program may read. Some are
// links on some systems.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt",
	"/nix/store", "/run/current-system"}

// systemSecrets are hidden in them.
var systemSecrets = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
	"/etc/security/opasswd",
	"/etc/ssl/private", "/etc/pki/tls/private", "/etc/ssh", "/etc/krb5.keytab", "/etc/NetworkManager/system-connections",
	"/etc/wpa_supplicant", "/etc/docker",
}

// procSecrets are files of /proc about the whole system that programs have no
// use for.
var procSecrets = []string{"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/kallsyms", "/proc/sysrq-trigger",
	"/proc/timer_list", "/proc/sched_debug", "/proc/acpi", "/proc/scsi"}

// devices are the devices of a cage.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// layout returns the root directory of a cage, without the toolchains, and the
// number of entries below these. path is the PATH of the command.
func layout(home string, r sandbox.Rights, path []string, found *privateFiles) (all []mount, below int, err error) {
	l := list{
		{Kind: temp, To: "/tmp", Size: tmpSize}, {Kind: temp, To: "/var/tmp", Size: tmpSize},
		{Kind: temp, To: "/run", Size: smallSize, Own: true},
		{Kind: procfs, To: "/proc"}, {Kind: temp, To: "/dev", Size: 1 << 20, Own: true},
		{Kind: temp, To: "/dev/shm", Size: shmSize}, {Kind: devpts, To: "/dev/pts"},
		{Kind: link, From: "pts/ptmx", To: "/dev/ptmx"}, {Kind: link, From: "/proc/self/fd", To: "/dev/fd"},
		{Kind: link, From: "/proc/self/fd/0", To: "/dev/stdin"},
		{Kind: link, From: "/proc/self/fd/1", To: "/dev/stdout"}, {Kind: link, From: "/proc/self/fd/2", To: "/dev/stderr"},
	}
	for _, name := range devices {
		l.add(mount{Kind: bind, From: "/dev/" + name, To: "/dev/" + name, Write: true})
	}
	for _, dir := range systemDirs {
		if err := l.system(dir); err != nil {
			return nil, 0, err
		}
	}
	for _, name := range slices.Concat(systemSecrets, procSecrets) {
		l.add(mount{Kind: hide, To: name})
	}
	if home != "" && home != "/" {
		l.add(mount{Kind: temp, To: home, Size: tmpSize, Own: true})
		if c := gitConfig(home); c != "" {
			l.add(mount{Kind: text, From: c, To: filepath.Join(home, ".gitconfig")})
		}
	}
	for _, dir := range path {
		l.program(home, dir, found)
	}
	system := len(l)
	l.only(home, r.Workspace, found.never, mount{Kind: temp, Size: smallSize, Own: true})
	l.rights(r, found)
	if below = len(l); inToolchain(home, r.Workspace) { // such as ~/go/src/x
		below = system
	}
	return l, below, nil
}

// system adds a folder of the system, if it exists.
func (l *list) system(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("sandbox: %w", err)
	case info.Mode().Type() == fs.ModeSymlink:
		to, err := os.Readlink(dir)
		if err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		l.add(mount{Kind: link, From: to, To: dir})
	case info.IsDir():
		l.add(mount{Kind: bind, From: dir, To: dir})
	}
	return nil
}

// homeLayers returns the toolchains below home that exist, and the caches, as
// layers whose changes go to a folder. A layer does not show what is mounted
// below it, so toolchains that are, have their own. A cache that does not exist
// is made in its layer, unless the rest of the cage already holds its place,
// where it would be made outside of the cage, or it is never shown.
func homeLayers(home, upper string, rest list, never []string) []layer {
	if home == "" || home == "/" || upper == "" {
		return nil
	}
	all := layer{From: home, Upper: filepath.Join(upper, "home")}
	var out []layer
	for _, name := range toolchains {
		dir := filepath.Join(home, name)
		real, err := filepath.EvalSymlinks(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			hidden := slices.ContainsFunc(never, func(n string) bool { return pathpolicy.Inside(dir, n) })
			if slices.Contains(caches, name) && !rest.holds(dir) && !hidden {
				all.Parts = append(all.Parts, name)
			}
		case err != nil || real != dir:
		case sameMount(dir, home):
			all.Parts = append(all.Parts, name)
			if closed(dir) {
				all.Closed = append(all.Closed, name)
			}
		default:
			l := layer{From: dir, Parts: []string{"."}, Upper: filepath.Join(upper, strings.ReplaceAll(name, "/", "-"))}
			if closed(dir) {
				l.Closed = l.Parts
			}
			out = append(out, l)
		}
	}
	if exists(home) && len(all.Parts) > 0 {
		out = append(out, all)
	}
	return out
}

// closed reports whether the owner of a folder cannot use it.
func closed(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode()&0o700 != 0o700
}

// sameMount reports whether two files are on one mount.
func sameMount(a, b string) bool {
	var x, y unix.Statx_t
	return errors.Join(unix.Statx(unix.AT_FDCWD, a, 0, unix.STATX_MNT_ID, &x),
		unix.Statx(unix.AT_FDCWD, b, 0, unix.STATX_MNT_ID, &y)) == nil &&
		x.Mask&y.Mask&unix.STATX_MNT_ID != 0 && x.Mnt_id == y.Mnt_id
}

// homeCovers hide the secrets in the toolchains, and what is never shown.
func (b *Broker) homeCovers(never []string) []mount {
	home := b.o.Home
	var out []mount
	for _, name := range never {
		if inToolchain(home, name) {
			out = append(out, mount{Kind: hide, To: name})
		}
	}
	for _, name := range b.secrets.of(home) {
		out = append(out, mount{Kind: hide, To: name})
	}
	return out
}
