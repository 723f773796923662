package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// entry is a container in the list of containers.
type entry struct {
	Container string          `json:"containerName"`
	Key       string          `json:"sessionKey"`
	Created   int64           `json:"createdAtMs"`
	Used      int64           `json:"lastUsedAtMs"`
	Image     string          `json:"image"`
	Hash      string          `json:"configHash"`
	Prune     json.RawMessage `json:"prune,omitempty"`
}

func (b *Broker) file() string { return filepath.Join(b.o.State, "sandbox", b.o.Program+".json") }

// entries reads the list. b.mu must be held.
func (b *Broker) entries() (all []entry, err error) {
	raw, err := os.ReadFile(b.file())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("list of containers: %w", err)
	}
	return all, nil
}

func (b *Broker) save(all []entry) error {
	raw, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(b.file()), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(b.file(), raw, 0o600)
	}
	if err != nil {
		return fmt.Errorf("list of containers: %w", err)
	}
	return nil
}

// record notes that a container is used now.
func (b *Broker) record(s *sandbox.Session, set settings, hash string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, err := b.entries()
	if err != nil {
		return err
	}
	now := time.Now().UnixMilli()
	e := entry{s.Container, s.Key, now, now, set.Image, hash, s.Prune}
	if i := slices.IndexFunc(all, func(old entry) bool { return old.Container == s.Container }); i >= 0 {
		if all[i].Hash == hash {
			e.Created = all[i].Created
		}
		all[i] = e
	} else {
		all = append(all, e)
	}
	return b.save(all)
}

// remove removes the containers that match, except for those with running
// commands.
func (b *Broker) remove(ctx context.Context, match func(entry) bool) (out sandbox.Removal, err error) {
	b.mu.Lock()
	all, err := b.entries()
	b.mu.Unlock()
	if err != nil {
		return out, err
	}
	var errs []error
	for _, e := range all {
		if !match(e) {
			continue
		}
		errs = append(errs, b.turns.Do(ctx, e.Container, "", func(ctx context.Context) error {
			if b.inUse(e.Container) {
				out.Busy = append(out.Busy, e.Container)
				return nil
			}
			if err := b.removeContainer(ctx, e.Container); err != nil {
				return err
			}
			out.Removed = append(out.Removed, e.Container)
			return b.forget(e.Container)
		}))
	}
	return out, errors.Join(errs...)
}

// forget removes a container from the list.
func (b *Broker) forget(container string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, container)
	all, err := b.entries()
	if err != nil {
		return err
	}
	return b.save(slices.DeleteFunc(all, func(e entry) bool { return e.Container == container }))
}

// Recreate removes the containers of sandboxes.
func (b *Broker) Recreate(ctx context.Context, match func(key string) bool) (sandbox.Removal, error) {
	return b.remove(ctx, func(e entry) bool { return match(e.Key) })
}

// Prune removes the containers that were not used for long, or are old.
func (b *Broker) Prune(ctx context.Context, now time.Time) (int, error) {
	out, err := b.remove(ctx, func(e entry) bool {
		p := struct {
			Idle float64 `json:"idleHours"`
			Age  float64 `json:"maxAgeDays"`
		}{24, 7}
		_ = json.Unmarshal(e.Prune, &p) // absent: the defaults
		return p.Idle > 0 && now.Sub(time.UnixMilli(e.Used)).Hours() > p.Idle ||
			p.Age > 0 && now.Sub(time.UnixMilli(e.Created)).Hours() > p.Age*24
	})
	return len(out.Removed), err
}
