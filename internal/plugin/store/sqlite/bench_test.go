//go:build unix

package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
)

// modelCall makes the writes of the commit after a model call.
func modelCall(tx store.Tx, n int64) error {
	now := time.Now()
	if err := tx.Sessions().Append("t", &session.Entry{
		ID: fmt.Sprint(n), Kind: session.KindMessage, Time: now, Run: "run-1",
		Message: &llm.Message{
			Role:     llm.RoleAssistant,
			Provider: "p",
			Model:    "m",
			Stop:     llm.StopEnd,
			Parts:    []llm.Part{llm.Text("a short answer")},
		},
		Usage: &llm.Usage{Input: 100, Output: 10},
	}); err != nil {
		return err
	}
	return tx.Usage().Add(usage.Row{
		Run:      "run-1",
		Session:  "s",
		Agent:    "main",
		Provider: "p",
		Model:    "m",
		Time:     now,
		Tokens:   llm.Usage{Input: 100, Output: 10},
	})
}

// cpu reports the processor time per operation, of all threads.
func cpu(b *testing.B) func() {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	start := used()
	return func() { b.ReportMetric(float64((used()-start).Microseconds())/float64(b.N), "cpu-µs/op") }
}

func benchmarkUpdate(b *testing.B, sync store.Sync) {
	d := open(b)
	var l lease.Lease
	if err := d.Update(b.Context(), store.Synced, func(tx store.Tx) (err error) {
		l, _, err = tx.Leases().Acquire("s", "me")
		return err
	}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	defer cpu(b)()
	for n := int64(0); b.Loop(); n++ {
		if err := store.Held(b.Context(), d, l, sync, func(tx store.Tx) error { return modelCall(tx, n) }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdateOrdered(b *testing.B) { benchmarkUpdate(b, store.Ordered) }
func BenchmarkUpdateSynced(b *testing.B)  { benchmarkUpdate(b, store.Synced) }

func BenchmarkUpdateGrouped64(b *testing.B) {
	d := open(b)
	var n atomic.Int64
	defer cpu(b)()
	b.SetParallelism(32) // times GOMAXPROCS
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if err := d.Update(b.Context(), store.Synced, func(tx store.Tx) error { return modelCall(tx, n.Add(1)) }); err !=
				nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkTurn makes the commits of a turn without tools: its start with the
// message, and its end. It does not wait for the disk.
func BenchmarkTurn(b *testing.B) {
	d := open(b)
	meta := session.Meta{Key: "agent:main:main", ID: "0b06d9a6-5b0c-4f0e-8f4a-3a3c6a0b7d11", Agent: "main", Title: "hi"}
	b.ReportAllocs()
	defer cpu(b)()
	for n := 0; b.Loop(); n++ {
		if err := turn(b, d, meta, fmt.Sprintf("5d9e1f0a-%08x-4c1b-9f43-0d3f5c4b%04x", uint32(n)*2654435761,
			n&0xffff)); err != nil {
			b.Fatal(err)
		}
	}
}

func turn(b *testing.B, d *DB, meta session.Meta, id string) error {
	now := time.Now()
	r := run.Run{
		ID:        chela.RunID(id),
		Session:   meta.Key,
		SessionID: meta.ID,
		Agent:     meta.Agent,
		Kind:      run.Turn,
		Origin:    chela.Origin{Kind: chela.OriginPerson, ID: "owner"},
		Lane:      "main",
		State:     run.Running,
		Principal: chela.Principal{ID: "owner"},
		Attempts:  1,
		Started:   now,
	}
	err := d.Update(b.Context(), store.Ordered, func(tx store.Tx) error {
		if _, err := tx.Sessions().Get(meta.Key); err != nil && !errors.Is(err, chela.ErrNotFound) {
			return err
		}
		if _, err := tx.Runs().Active(meta.Key); err != nil {
			return err
		}
		if _, err := tx.Queue().Waiting(meta.Key); err != nil {
			return err
		}
		if _, err := tx.Queue().Put(queue.Item{
			ID: id, Key: "client:agent:main:main:" + id, Session: meta.Key, Kind: queue.Message, Principal: r.Principal,
			Inbound: chela.Inbound{Text: "hi", Sender: chela.Sender{ID: "owner"}}, State: queue.Taken, Run: r.ID, Created: now,
		}); err != nil {
			return err
		}
		meta.Updated, meta.Active = now, now
		if err := tx.Sessions().Put(meta); err != nil {
			return err
		}
		if _, err := tx.Leases().Get(lease.Session(meta.Key)); err != nil {
			return err
		}
		l, _, err := tx.Leases().Acquire(lease.Session(meta.Key), "me")
		if err != nil {
			return err
		}
		r.Fence = l.Fence
		if err := tx.Sessions().Append(meta.ID, &session.Entry{
			ID:      id,
			Kind:    session.KindMessage,
			Time:    now,
			Run:     r.ID,
			Message: llm.User("hi"),
			Sender:  chela.Sender{ID: "owner"},
			ItemID:  id,
		}); err != nil {
			return err
		}
		return tx.Runs().Put(r)
	})
	if err != nil {
		return err
	}
	l := lease.Lease{Name: lease.Session(meta.Key), Owner: "me", Fence: r.Fence}
	return store.Held(b.Context(), d, l, store.Ordered, func(tx store.Tx) error {
		m, err := tx.Sessions().Get(meta.Key)
		if err != nil {
			return err
		}
		used := llm.Usage{Input: 100, Output: 10}
		if err := tx.Usage().Add(usage.Row{
			Run:      r.ID,
			Session:  meta.Key,
			Agent:    "main",
			Provider: "p",
			Model:    "m",
			Time:     now,
			Tokens:   used,
		}); err != nil {
			return err
		}
		if err := tx.Sessions().Append(meta.ID, &session.Entry{
			ID: "a" + id, Kind: session.KindMessage, Time: now, Run: r.ID, Usage: &used,
			Message: &llm.Message{
				Role:     llm.RoleAssistant,
				Provider: "p",
				Model:    "m",
				Stop:     llm.StopEnd,
				Parts:    []llm.Part{llm.Text("a short answer")},
			},
		}); err != nil {
			return err
		}
		if err := tx.Queue().Finish(r.ID); err != nil {
			return err
		}
		if _, err := tx.Queue().Waiting(meta.Key); err != nil {
			return err
		}
		m.Updated, m.Answered, m.Context = time.Now(), time.Now(), 100
		if err := tx.Sessions().Put(m); err != nil {
			return err
		}
		r.State, r.Ended, r.Text = run.OK, time.Now(), "a short answer"
		return tx.Runs().Put(r)
	})
}

// fill creates a transcript of n entries and about size bytes, similar to a coding
// session: prompts, replies with a tool call, results.
func fill(tb testing.TB, d *DB, id string, n, size int) {
	tb.Helper()
	text := strings.Repeat("The quick brown fox jumps over the lazy dog.\n", size/n/45*3/2)
	err := d.Update(tb.Context(), store.Synced, func(tx store.Tx) error {
		for i := range n {
			e := &session.Entry{ID: fmt.Sprintf("%032d", i), Kind: session.KindMessage, Time: time.Now(), Run: "run-1"}
			switch i % 4 {
			case 0:
				e.Message = llm.User("Please read the next file and tell me what it does.")
				e.Sender, e.ItemID = chela.Sender{ID: "owner"}, fmt.Sprintf("%036d", i)
			case 1:
				e.Message = &llm.Message{
					Role:     llm.RoleAssistant,
					Provider: "anthropic",
					Model:    "claude",
					Stop:     llm.StopTools,
					Parts: []llm.Part{
						llm.Text("I will read it."),
						{Kind: llm.PartCall, Call: &llm.ToolCall{ID: fmt.Sprintf("toolu_%024d", i), Name: "read",
							Args: json.RawMessage(`{"path":"/a/b/c.go"}`)}},
					},
				}
				e.Usage = &llm.Usage{Input: 1000, Output: 100}
			case 2:
				e.Message = &llm.Message{Role: llm.RoleTool, CallID: fmt.Sprintf("toolu_%024d", i-1), ToolName: "read",
					Parts: []llm.Part{llm.Text(text + text)}}
			default:
				e.Message = &llm.Message{
					Role:     llm.RoleAssistant,
					Provider: "anthropic",
					Model:    "claude",
					Stop:     llm.StopEnd,
					Parts:    []llm.Part{llm.Text(text)},
				}
				e.Usage = &llm.Usage{Input: 1000, Output: 100}
			}
			if err := tx.Sessions().Append(id, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func BenchmarkEntries2000(b *testing.B) {
	d := open(b)
	fill(b, d, "t", 2000, 5<<20)
	b.ReportAllocs()
	defer cpu(b)()
	for b.Loop() {
		err := d.View(b.Context(), func(r store.Reader) error {
			list, err := r.Sessions().Entries("t", 0, 0)
			if err == nil && len(list) != 2000 {
				err = fmt.Errorf("%d entries", len(list))
			}
			size := 0
			for _, e := range list {
				size += len(e.Message.PlainText())
			}
			b.SetBytes(int64(size))
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "chela.db")
	d, err := Open(b.Context(), Options{Path: path})
	if err != nil {
		b.Fatal(err)
	}
	fill(b, d, "t", 2000, 5<<20)
	if err := d.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		d, err := Open(b.Context(), Options{Path: path})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkOpenFresh(b *testing.B) {
	dir := b.TempDir()
	for n := 0; b.Loop(); n++ {
		d, err := Open(b.Context(), Options{Path: filepath.Join(dir, fmt.Sprint(n))})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkActive reads the active runs of a session with many ended runs.
func BenchmarkActive(b *testing.B) {
	d := open(b)
	now := time.Now()
	err := d.Update(b.Context(), store.Synced, func(tx store.Tx) error {
		for i := range 5000 {
			at := now.Add(time.Duration(i) * time.Second)
			r := run.Run{ID: chela.RunID(fmt.Sprint(i)), Session: "s", State: run.OK, Started: at, Ended: at}
			if err := tx.Runs().Put(r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		err := d.View(b.Context(), func(r store.Reader) error {
			_, err := r.Runs().Active("s")
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
