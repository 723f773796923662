package exec

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/sandbox"
	"github.com/chela-ai/chela/internal/tool"
)

// maxKept bounds the output of ended commands that is held in memory.
const maxKept = 2_000_000

// Owe promises a session word of a command that goes on without its call: from
// its return on text is owed to the session, and is told it at the next start
// when this process ends before the command does. settle says what is told
// instead, and that it is told now; "" takes the promise back.
type Owe func(ctx context.Context, c tool.Call, text string) (settle func(ctx context.Context, text string) error, err error)

// CommandOptions are how commands are kept that go on in the background. The
// zero value is ready.
type CommandOptions struct {
	Log *slog.Logger // nil: nothing is logged
	Dir string       // directory for output that is too much for memory; "": it is cut
	Owe Owe          // nil: nobody is told of an end

	TTL         time.Duration // for which one that ended is kept; 0: 30 min
	MaxRunning  int           // in the background at once; 0: 64
	MaxFinished int           // that are kept; 0: 50
	Idle        time.Duration // of silence, after which one with an open input seems to wait for it; 0: 15 s
	TellQuiet   bool          // tell also of one that succeeded without a word
}

// Commands are the commands that run in the background, and those that have.
// They live as long as Run does.
type Commands struct {
	o CommandOptions

	mu     sync.Mutex
	byID   map[string]*command
	closed bool
	wg     sync.WaitGroup
}

// NewCommands returns an empty collection.
func NewCommands(o CommandOptions) *Commands {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.TTL = cmp.Or(o.TTL, 30*time.Minute)
	o.Idle = cmp.Or(o.Idle, 15*time.Second)
	o.MaxRunning = cmp.Or(o.MaxRunning, 64)
	o.MaxFinished = cmp.Or(o.MaxFinished, 50)
	return &Commands{o: o, byID: map[string]*command{}}
}

// Run waits for the end of ctx, then ends all commands and returns when they
// are gone. Nothing goes to the background afterwards.
func (s *Commands) Run(ctx context.Context) error {
	<-ctx.Done()
	s.mu.Lock()
	s.closed = true
	for _, k := range s.byID {
		k.cancel()
	}
	s.mu.Unlock()
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.byID {
		s.dropLocked(id)
	}
	return ctx.Err()
}

var errMany = errors.New("too many commands run in the background; end some with process kill")

// room says why no further command can go to the background.
func (s *Commands) room() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roomLocked()
}

func (s *Commands) roomLocked() error {
	if s.closed {
		return errors.New("the gateway is ending; nothing is left running")
	}
	n := 0
	for _, k := range s.byID {
		if k.running() {
			n++
		}
	}
	if n >= s.o.MaxRunning {
		return errMany
	}
	return nil
}

// adopt lets a command go on without its call.
func (s *Commands) adopt(ctx context.Context, c tool.Call, k *command) error {
	s.mu.Lock()
	if err := s.roomLocked(); err != nil {
		s.mu.Unlock()
		return err
	}
	s.addLocked(k)
	s.wg.Add(1) // under the lock: Run has not begun to wait
	s.mu.Unlock()
	settle := func(context.Context, string) error { return nil }
	if s.o.Owe != nil {
		promise, err := s.o.Owe(ctx, c, fmt.Sprintf(
			"Chela ended while the background command %s ran, and ended it: its output is lost.\nCommand: %s", k.id, clip(k.text, 200)))
		if err != nil {
			s.remove(k)
			s.wg.Done()
			return err
		}
		settle = promise
	}
	k.out.release()
	go func() {
		defer s.wg.Done()
		<-k.done
		s.ended(context.WithoutCancel(ctx), k, settle)
	}()
	return nil
}

// keep keeps a command that has ended, for its output.
func (s *Commands) keep(k *command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		k.record.drop()
		return
	}
	s.addLocked(k)
	s.expireLocked(k)
}

func (s *Commands) addLocked(k *command) {
	for k.id == "" || s.byID[k.id] != nil {
		k.id = strings.ToLower(rand.Text()[:6])
	}
	s.byID[k.id] = k
}

// ended tells of the end of a command, unless somebody knows.
func (s *Commands) ended(ctx context.Context, k *command, settle func(context.Context, string) error) {
	s.mu.Lock()
	closed := s.closed
	if s.byID[k.id] == k {
		s.expireLocked(k)
	}
	s.mu.Unlock()
	if closed {
		return // what is owed stands
	}
	k.mu.Lock()
	known := k.told || k.polls > 0
	k.mu.Unlock()
	text := ""
	if quiet := k.exit == (sandbox.Exit{}) && k.err == nil && !k.timedOut && k.record.empty(); !known && (!quiet || s.o.TellQuiet) {
		text = k.farewell()
	}
	if err := settle(ctx, text); err != nil {
		s.o.Log.Error("tell of the end of a background command", "session", k.session, "command", k.id, "err", err)
	}
}

// farewell is what a session is told of the end.
func (k *command) farewell() string {
	text := fmt.Sprintf("The background command %s has ended: %s.\nCommand: %s", k.id, k.status(), clip(k.text, 200))
	if end := k.record.end(400); end != "" {
		text += "\nThe end of its output:\n" + end
	}
	return text
}

// expireLocked drops an ended command when its time is over, and at once the
// oldest of those that are too many.
func (s *Commands) expireLocked(k *command) {
	time.AfterFunc(s.o.TTL, func() { s.remove(k) })
	var old []*command
	for _, k := range s.byID {
		if !k.running() {
			old = append(old, k)
		}
	}
	slices.SortFunc(old, func(a, b *command) int { return b.ended.Compare(a.ended) })
	kept := 0
	for i, k := range old {
		kept += k.record.held()
		if i >= s.o.MaxFinished || kept > maxKept {
			s.dropLocked(k.id)
		}
	}
}

// remove forgets a command, and ends it if it runs.
func (s *Commands) remove(k *command) {
	k.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID[k.id] == k {
		s.dropLocked(k.id)
	}
}

// Forget ends and forgets the commands of a session that is no more. It does
// not wait for their end.
func (s *Commands) Forget(key chela.SessionKey) {
	for _, k := range s.of(key) {
		k.mu.Lock()
		k.told = true
		k.mu.Unlock()
		k.cancel()
		s.mu.Lock()
		if s.byID[k.id] == k {
			s.dropLocked(k.id)
		}
		s.mu.Unlock()
	}
}

// end ends the command and waits for that. Nobody needs to be told.
func (k *command) end() {
	k.mu.Lock()
	k.told = true
	k.mu.Unlock()
	k.cancel()
	<-k.done
}

func (s *Commands) dropLocked(id string) {
	s.byID[id].record.drop()
	delete(s.byID, id)
}

// get returns a command of a session that is shown to the principal of ctx.
func (s *Commands) get(ctx context.Context, key chela.SessionKey, id string) (*command, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.byID[id]; k != nil && k.session == key && k.shownTo(chela.PrincipalFrom(ctx)) {
		return k, nil
	}
	return nil, fmt.Errorf("there is no command %q; see the action list (those that ended are kept for %v, and none over a restart)", id, s.o.TTL)
}

// of returns the commands of a session, the latest first.
func (s *Commands) of(key chela.SessionKey) []*command {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*command
	for _, k := range s.byID {
		if k.session == key {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b *command) int { return b.began.Compare(a.began) })
	return list
}

// drop lets the output go.
func (r *record) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spool.close()
	r.marks = nil
}

// held returns how many bytes of output are in memory.
func (r *record) held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.spool.mem)
}

func (r *record) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spool.size == 0
}
