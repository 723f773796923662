package native

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/chela-ai/chela/internal/plugin/sandbox/native/launch"
)

// layers are the layers of the cages of a workspace. The first cage mounts them,
// and gives each as a detached mount, which the next cage takes and gives back.
// So what a command writes to a toolchain is there for all other commands of
// the workspace, whatever their rights, and as soon as it is written.
type layers struct {
	b         *Broker
	workspace string
	slot      int
	turn      chan struct{}       // has a token while no cage is being built
	mounts    map[string]*os.File // by From of the layer
	cages     int                 // that use them, b.mu
	all       []layer             // that were mounted, b.mu
}

// lockLayers returns the layers of a workspace, for one cage at a time.
func (b *Broker) lockLayers(ctx context.Context, workspace string) (*layers, error) {
	for {
		b.mu.Lock()
		y := b.layers[workspace]
		if y == nil {
			y = b.newLayersLocked(workspace)
		}
		y.cages++ // until unlock; a cage that was built counts for itself
		b.mu.Unlock()
		select {
		case <-y.turn:
		case <-ctx.Done():
			y.release()
			return nil, ctx.Err()
		}
		b.mu.Lock()
		current := b.layers[workspace] == y
		b.mu.Unlock()
		if current {
			return y, nil
		}
		y.unlock()
	}
}

// newLayersLocked returns layers in a folder that no cage uses.
func (b *Broker) newLayersLocked(workspace string) *layers {
	y := &layers{b: b, workspace: workspace, turn: make(chan struct{}, 1), mounts: map[string]*os.File{}}
	for slices.Contains(b.slots[workspace], y.slot) {
		y.slot++
	}
	if b.slots == nil {
		b.slots, b.layers = map[string][]int{}, map[string]*layers{}
	}
	b.slots[workspace] = append(b.slots[workspace], y.slot)
	b.layers[workspace] = y
	y.turn <- struct{}{}
	return y
}

// unlock ends the building of a cage.
func (y *layers) unlock() {
	y.turn <- struct{}{}
	y.release()
}

// setUp sets up a cage with the layers. If that fails, the next cage has others:
// a mount that was given away does not come back.
func (y *layers) setUp(ctx context.Context, c *cage, id identity, s launch.Setup) error {
	s.Slot = fmt.Sprint(y.slot)
	var given []*os.File
	for i := range s.Layers {
		m := &s.Layers[i]
		if f := y.mounts[m.From]; f != nil {
			given = append(given, f)
			m.Merged = len(given)
			continue
		}
		if err := prepareLayer(*m, s.Slot); err != nil {
			return err
		}
		y.b.mu.Lock()
		y.all = append(y.all, *m)
		y.b.mu.Unlock()
	}
	y.b.mu.Lock()
	y.cages++
	y.b.mu.Unlock()
	c.release = y.release
	got, err := c.setUpAs(ctx, id, s, given)
	if err == nil && len(got) != len(s.Layers) {
		err = fmt.Errorf("sandbox: %d layers came back, want %d", len(got), len(s.Layers))
	}
	if err != nil {
		launch.CloseAll(got)
		y.b.mu.Lock()
		if y.b.layers[y.workspace] == y {
			delete(y.b.layers, y.workspace)
		}
		y.b.mu.Unlock()
		return err
	}
	for i, m := range s.Layers {
		if f := y.mounts[m.From]; f != nil {
			_ = f.Close() // the cage has it
		}
		y.mounts[m.From] = got[i]
	}
	return nil
}

// release frees the layers after the last cage that uses them.
func (y *layers) release() {
	y.b.mu.Lock()
	defer y.b.mu.Unlock()
	if y.cages--; y.cages > 0 {
		return
	}
	if y.b.layers[y.workspace] == y {
		delete(y.b.layers, y.workspace)
	}
	for _, f := range y.mounts {
		_ = f.Close() // nothing was written
	}
	for _, m := range y.all {
		unmark(m, fmt.Sprint(y.slot))
	}
	used := slices.DeleteFunc(y.b.slots[y.workspace], func(n int) bool { return n == y.slot })
	if y.b.slots[y.workspace] = used; len(used) == 0 {
		delete(y.b.slots, y.workspace)
	}
}

// prepareLayer makes the folders of a layer that no other cage uses.
func prepareLayer(m layer, slot string) error {
	for _, dir := range [...]string{"upper", "work"} {
		if err := os.MkdirAll(filepath.Join(m.Upper, slot, dir), 0o700); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	unmark(m, slot) // this process may have been killed
	return nil
}

// unmark removes the mark by which the kernel knows a layer that was mounted
// before and may not be stored completely. It is mounted again all the same:
// tools store what they download and build without waiting for the disk, too.
func unmark(m layer, slot string) {
	dir := filepath.Join(m.Upper, slot, "work", "work")
	for _, name := range [...]string{"", "incompat", "incompat/volatile"} { // nobody may look into them
		if err := os.Chmod(filepath.Join(dir, name), 0o700); err != nil {
			return // there is no mark
		}
	}
	_ = os.RemoveAll(dir) // if that fails, the mount does
}

// removedPrefix begins the names of folders with layers that are being removed.
const removedPrefix = "removed-"

// dropLayers removes the layers of all workspaces in which no command runs. It returns how
// many these are, and the others.
func (b *Broker) dropLayers() (dropped int, busy []string, err error) {
	if b.o.Layers == "" {
		return 0, nil, nil
	}
	entries, err := os.ReadDir(b.o.Layers)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	} else if err != nil {
		return 0, nil, err
	}
	away, err := os.MkdirTemp(b.o.Layers, removedPrefix)
	if err != nil {
		return 0, nil, err
	}
	b.mu.Lock()
	used := map[string]bool{}
	for workspace := range b.slots {
		used[filepath.Base(b.layersFolder(workspace))] = true
		busy = append(busy, "what commands wrote to caches and toolchains, for "+workspace)
	}
	for _, e := range entries {
		if !e.IsDir() || used[e.Name()] || len(e.Name()) != layersName {
			continue
		}
		dir, moved := filepath.Join(b.o.Layers, e.Name()), false
		inner, _ := os.ReadDir(dir) // it may be gone
		for _, d := range inner {
			if d.IsDir() && os.Rename(filepath.Join(dir, d.Name()), filepath.Join(away, e.Name()+"-"+d.Name())) == nil {
				moved = true
			}
		}
		_ = os.Remove(dir) // what commands made is kept; see made
		if moved {
			dropped++
		}
	}
	b.mu.Unlock()
	slices.Sort(busy)
	return dropped, busy, removeLayers(away)
}

// removeRest removes layers whose removal ended with the process.
func (b *Broker) removeRest() {
	names, _ := filepath.Glob(filepath.Join(b.o.Layers, removedPrefix+"*")) // the pattern is well-formed
	for _, name := range names {
		_ = removeLayers(name) // the next start tries again
	}
}

// removeLayers removes a folder in which some folders are closed to their owner.
func removeLayers(dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = root.Chmod(name, 0o700) // if that fails, the removal does
		}
		return nil
	})
	return os.RemoveAll(dir)
}
