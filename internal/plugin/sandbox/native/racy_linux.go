package native

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
)

// Git reads a file again that may have been changed in the second in which its index was
// written: after a clone, for instance, all that were written last. A hidden one it cannot
// read. settle does it instead: if all such files are what the index says, it sets the time
// of the index to now, as if Git had written it again.

const (
	maxIndex = 64 << 20  // bytes of an index of Git that is read
	maxRacy  = 256 << 20 // bytes of files that are compared with an index
)

// settle makes Git, in the cage that p is of, take hidden files for unchanged that are.
//
// Who can write an index learns by its time whether a file is what it says. So each version
// of a hidden file is compared once: one guess at what is in it.
func (b *Broker) settle(ctx context.Context, p *privateFiles) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	for _, git := range p.gits {
		tree := filepath.Dir(git)
		info, err := os.Lstat(filepath.Join(git, "index"))
		if filepath.Base(git) != ".git" || err != nil || !info.Mode().IsRegular() {
			continue
		}
		since := info.ModTime().Unix()
		fresh := false
		b.mu.Lock()
		for name, files := range p.masks {
			if !pathpolicy.Inside(name, tree) {
				continue
			}
			for file, s := range files {
				if file = filepath.Join(name, file); s.Changed/1e9 >= since && b.compared[file] != s &&
					len(b.compared) < maxFolders {
					fresh = true
					b.compared[file] = s
				}
			}
		}
		b.mu.Unlock()
		if fresh {
			_ = settleIndex(ctx, tree, info) // Git takes the files for changed then
		}
	}
}

var errRacy = errors.New("a file is not what the index of Git says")

// settleIndex sets the time of the index of a working tree to now, if no file may have been
// changed unnoticed.
func settleIndex(ctx context.Context, tree string, info os.FileInfo) error {
	root, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := root.OpenFile(".git/index", os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(opened, info) || opened.Size() > maxIndex {
		return errors.Join(err, errors.New("another index"))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxIndex))
	if err != nil {
		return err
	}
	since := info.ModTime().Unix()
	all, err := racyEntries(data, uint32(since))
	if err != nil || len(all) == 0 {
		return err
	}
	newest := since
	for _, e := range all {
		newest = max(newest, int64(e.changed))
	}
	if newest > time.Now().Unix() {
		return errRacy
	}
	// A change after now has another time than those in the index.
	wait := time.NewTimer(time.Until(time.Unix(newest+1, 0)))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	now := time.Now()
	left := int64(maxRacy)
	for _, e := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		info, err := root.Lstat(e.name)
		if err != nil || info.ModTime().Unix() != int64(e.changed) || info.Size() != int64(e.size) {
			continue // Git sees that without reading it
		}
		if left -= info.Size(); left < 0 {
			return errRacy
		}
		if same, err := e.same(root, info); err != nil || !same {
			return errors.Join(err, errRacy)
		}
	}
	at := unix.NsecToTimespec(now.UnixNano())
	return unix.UtimesNanoAt(int(f.Fd()), "", []unix.Timespec{{Nsec: unix.UTIME_OMIT}, at}, unix.AT_EMPTY_PATH)
}

// racyEntry is a file in an index.
type racyEntry struct {
	name          string
	changed, size uint32
	object        []byte
}

// same reports whether a file has the content that the index says.
func (e racyEntry) same(root *os.Root, info os.FileInfo) (bool, error) {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", info.Size())
	if info.Mode().Type() == os.ModeSymlink {
		to, err := root.Readlink(e.name)
		if err != nil {
			return false, err
		}
		h.Write([]byte(to))
		return bytes.Equal(h.Sum(nil), e.object), nil
	}
	if !info.Mode().IsRegular() {
		return false, nil
	}
	f, err := root.OpenFile(e.name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(opened, info) {
		return false, err
	}
	if _, err := io.Copy(h, io.LimitReader(f, info.Size())); err != nil {
		return false, err
	}
	return bytes.Equal(h.Sum(nil), e.object), nil
}

var errIndex = errors.New("an index of Git that is not understood")

// racyEntries returns the files and links in an index, with SHA-1, that were changed at a time
// or later.
func racyEntries(data []byte, since uint32) ([]racyEntry, error) {
	if len(data) < 12+sha1.Size || string(data[:4]) != "DIRC" {
		return nil, errIndex
	}
	if sum := sha1.Sum(data[:len(data)-sha1.Size]); !bytes.Equal(sum[:], data[len(data)-sha1.Size:]) {
		return nil, errIndex
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return nil, errIndex
	}
	rest := data[12 : len(data)-sha1.Size]
	var out []racyEntry
	var name string
	for range count {
		const fixed = 62 // before the name
		if len(rest) < fixed+2 {
			return nil, errIndex
		}
		e := racyEntry{changed: binary.BigEndian.Uint32(rest[8:]), size: binary.BigEndian.Uint32(rest[36:]),
			object: rest[40:60]}
		kind, flags, at := binary.BigEndian.Uint32(rest[24:])&unix.S_IFMT, binary.BigEndian.Uint16(rest[60:]), fixed
		if flags&0x4000 != 0 { // extended
			at += 2
		}
		keep := 0
		if version == 4 {
			var n int
			if keep, n = prefix(rest[at:], len(name)); n == 0 {
				return nil, errIndex
			}
			at += n
		}
		end := bytes.IndexByte(rest[at:], 0)
		if end < 0 {
			return nil, errIndex
		}
		name = name[:keep] + string(rest[at:at+end])
		if at += end + 1; version < 4 {
			at = (at + 7) &^ 7
		}
		if at > len(rest) || len(name) > maxPath {
			return nil, errIndex
		}
		rest = rest[at:]
		if e.changed >= since && e.size > 0 && (kind == unix.S_IFREG || kind == unix.S_IFLNK) {
			e.name = name
			out = append(out, e)
		}
	}
	if bytes.HasPrefix(rest, []byte("link")) { // the other part of it is in another file
		return nil, errIndex
	}
	return out, nil
}

// prefix returns how much of a name of some length the next one has in common with it, which
// is a number of several bytes, and how many.
func prefix(b []byte, name int) (keep, n int) {
	strip := -1
	for n < len(b) && n < 4 {
		strip = (strip+1)<<7 | int(b[n]&127)
		if n++; b[n-1] < 128 {
			if strip > name {
				return 0, 0
			}
			return name - strip, n
		}
	}
	return 0, 0
}
