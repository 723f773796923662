package native

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/core/pathpolicy"

	"github.com/chela-ai/chela/internal/plugin/sandbox/native/launch"
)

// nobody is the user of cages when root runs the gateway and the workspace is
// root's too.
const nobody = 65534

// identity is who the programs of a cage are.
type identity struct {
	uid, gid user
	mapped   *os.File // user namespace that shows root's files as nobody's, if that is needed
}

// identify returns who the programs of the cages of a workspace are: the user
// of this process, or, if that is root, the owner of the workspace, or nobody,
// to whom root's files are shown as its own.
func (b *Broker) identify(workspace string) (identity, error) {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid != 0 {
		return identity{uid: user{uid, uid}, gid: user{gid, gid}}, nil
	}
	id := identity{uid: user{0, nobody}, gid: user{0, nobody}}
	if info, err := os.Stat(workspace); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
			return identity{uid: user{0, int(st.Uid)}, gid: user{0, int(st.Gid)}}, nil
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mapped == nil {
		ns, err := userNamespace(id)
		if err != nil {
			return identity{}, err
		}
		b.mapped = ns
	}
	id.mapped = b.mapped
	return id, nil
}

// ownsHome reports whether the files of this process's user are those of the cage's
// user, too.
func (id identity) ownsHome() bool { return os.Geteuid() != 0 || id.mapped != nil }

// userNamespace returns a user namespace with the ids of a cage. A process
// must make it, which ends at once.
func userNamespace(id identity) (*os.File, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	defer theirs.Close()
	cmd := &exec.Cmd{
		Path:       self,
		Args:       []string{"chela", launch.Arg},
		Env:        []string{},
		Dir:        "/",
		ExtraFiles: []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: id.uid.inside, HostID: id.uid.outside, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: id.gid.inside, HostID: id.gid.outside, Size: 1}},
		},
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("user namespace: %w", err)
	}
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()         // it was killed
	if err != nil {
		return nil, fmt.Errorf("user namespace: %w", err)
	}
	return ns, nil
}

// attachTrees makes the mounts of a setup that the launcher cannot make: if
// root runs the gateway, the launcher has no access to folders of root.
// They are numbered after those that are there already.
func (id identity) attachTrees(s *launch.Setup, before int) (trees []*os.File, err error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	defer func() {
		if err != nil {
			launch.CloseAll(trees)
			trees = nil
		}
	}()
	add := func(path string, mapped bool) (int, error) {
		f, err := id.tree(path, mapped)
		if err != nil {
			return 0, fmt.Errorf("mount %s: %w", path, err)
		}
		trees = append(trees, f)
		return before + len(trees), nil
	}
	for i := range s.Mounts {
		m := &s.Mounts[i]
		if m.Kind != bind {
			continue
		}
		if m.Tree, err = add(m.From, id.mapped != nil && !systemPath(m.From)); err != nil {
			return trees, err
		}
	}
	for i := range s.Layers {
		m := &s.Layers[i]
		if m.Merged > 0 {
			continue
		}
		if m.Tree, err = add(m.From, id.mapped != nil && !systemPath(m.From)); err != nil {
			return trees, err
		}
		if m.UpperTree, err = add(m.Upper, id.mapped != nil); err != nil {
			return trees, err
		}
	}
	if n := before + len(trees); n > launch.MaxFiles {
		return trees, fmt.Errorf("%d mounts, at most %d", n, launch.MaxFiles)
	}
	return trees, nil
}

// tree returns a detached mount of a path.
func (id identity) tree(path string, mapped bool) (*os.File, error) {
	fd, err := launch.CloneTree("/", path)
	if err != nil {
		return nil, err
	}
	if mapped {
		err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH,
			&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(id.mapped.Fd())})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("map its owner: %w", err), unix.Close(fd))
		}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// systemPath reports whether a path is of the system, where everybody may read
// what is not secret.
func systemPath(path string) bool {
	if pathpolicy.Inside(path, "/dev") {
		return !pathpolicy.Inside(path, "/dev/shm") // where people keep files too
	}
	for _, dir := range systemDirs {
		if pathpolicy.Inside(path, dir) {
			return true
		}
	}
	return false
}
