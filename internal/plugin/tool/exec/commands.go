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

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/tool"
)

// maxRetained limits the output of ended commands that is held in memory.
const maxRetained = 2_000_000

// Defer stores a deferred result for a session: after it returns, the session
// will be notified with text at the next start if this process ends before
// the command does. resolve stores how the command ended, replaces the text and
// delivers it now; an empty text cancels the notification.
type Defer func(ctx context.Context, c tool.Call,
	text string) (resolve func(ctx context.Context, text string, r queue.Result) error, err error)

// CommandOptions configure background commands. The zero value is ready to
// use.
type CommandOptions struct {
	Log   *slog.Logger // nil: no logging
	Dir   string       // directory for output that exceeds the memory limit; "": older output is dropped
	Defer Defer        // nil: sessions are not notified of the end

	TTL          time.Duration // how long ended commands are retained; 0: 30 min
	MaxRunning   int           // maximum number of running background commands; 0: 64
	MaxFinished  int           // maximum number of retained ended commands; 0: 50
	NotifySilent bool          // also notify of commands that succeeded without output
}

// Commands holds the background commands and the retained ended ones. All of
// them end when Run ends.
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
	o.MaxRunning = cmp.Or(o.MaxRunning, 64)
	o.MaxFinished = cmp.Or(o.MaxFinished, 50)
	return &Commands{o: o, byID: map[string]*command{}}
}

// Run waits until ctx ends, then ends all commands and returns when they are
// gone. After that no command can go to the background.
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

var errTooMany = errors.New("too many background commands are running; end some with process kill")

// checkCapacity returns an error if no further command can go to the
// background.
func (s *Commands) checkCapacity() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checkCapacityLocked()
}

func (s *Commands) checkCapacityLocked() error {
	if s.closed {
		return errors.New("the gateway is shutting down and starts no background commands")
	}
	n := 0
	for _, k := range s.byID {
		if k.running() {
			n++
		}
	}
	if n >= s.o.MaxRunning {
		return errTooMany
	}
	return nil
}

// detach lets a command continue without its call.
func (s *Commands) detach(ctx context.Context, c tool.Call, k *command) error {
	s.mu.Lock()
	if err := s.checkCapacityLocked(); err != nil {
		s.mu.Unlock()
		return err
	}
	s.addLocked(k)
	s.wg.Add(1) // under the lock, so before Run begins to wait
	s.mu.Unlock()
	resolve := func(context.Context, string, queue.Result) error { return nil }
	if s.o.Defer != nil {
		deferred, err := s.o.Defer(ctx, c, fmt.Sprintf(
			"Chela stopped while the background command %s was running. The command was ended and its output is lost.\nCommand: %s", k.id, oneLine(k.text, 200)))
		if err != nil {
			s.remove(k)
			s.wg.Done()
			return err
		}
		resolve = deferred
	}
	k.out.discard()
	go func() {
		defer s.wg.Done()
		<-k.done
		s.notifyEnd(context.WithoutCancel(ctx), k, resolve)
	}()
	return nil
}

// retain keeps an ended command so that its output can be read.
func (s *Commands) retain(k *command) {
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

// notifyEnd notifies the session of the end of a command, unless it was
// reported already.
func (s *Commands) notifyEnd(ctx context.Context, k *command,
	resolve func(context.Context, string, queue.Result) error) {
	s.mu.Lock()
	closed := s.closed
	if s.byID[k.id] == k {
		s.expireLocked(k)
	}
	s.mu.Unlock()
	if closed {
		return // the deferred result is delivered at the next start
	}
	k.mu.Lock()
	known := k.notified || k.waiters > 0
	k.mu.Unlock()
	text := ""
	if quiet := k.exit.Code == 0 && k.exit.Signal == "" && k.exit.Left == 0 && k.err == nil && !k.timedOut &&
		k.record.empty(); !known && (!quiet || s.o.NotifySilent) {
		text = k.endNotice()
	}
	if err := resolve(ctx, text, k.result()); err != nil {
		s.o.Log.Error("notify session of the end of a background command", "session", k.session, "command", k.id, "err", err)
	}
}

// result returns how the command has ended.
func (k *command) result() queue.Result {
	r := queue.Result{Outcome: chela.OutcomeOK, Ended: k.ended, Text: k.status()}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.stopped:
		r.Outcome = chela.OutcomeAborted
	case k.timedOut:
		r.Outcome = chela.OutcomeTimeout
	case k.err != nil || k.exit.Code != 0 || k.exit.Signal != "":
		r.Outcome = chela.OutcomeError
	}
	return r
}

// endNotice returns the notification of the end.
func (k *command) endNotice() string {
	text := fmt.Sprintf("The background command %s has ended: %s.\nCommand: %s", k.id, k.status(), oneLine(k.text, 200))
	if end := k.record.tail(400); end != "" {
		text += "\nThe end of its output:\n" + end
	}
	return text
}

// expireLocked schedules the removal of an ended command, and removes the
// oldest ended commands that exceed the limits.
func (s *Commands) expireLocked(k *command) {
	time.AfterFunc(s.o.TTL, func() { s.remove(k) })
	var old []*command
	for _, k := range s.byID {
		if !k.running() {
			old = append(old, k)
		}
	}
	slices.SortFunc(old, func(a, b *command) int { return b.ended.Compare(a.ended) })
	size := 0
	for i, k := range old {
		size += k.record.memSize()
		if i >= s.o.MaxFinished || size > maxRetained {
			s.dropLocked(k.id)
		}
	}
}

// remove ends a command if it is running, and forgets it.
func (s *Commands) remove(k *command) {
	k.end()
	s.forget(k)
}

func (s *Commands) forget(k *command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID[k.id] == k {
		s.dropLocked(k.id)
	}
}

// Forget ends and forgets the commands of a deleted session. It does not wait
// for their end.
func (s *Commands) Forget(key chela.SessionKey) {
	for _, k := range s.list(key) {
		k.setNotified()
		k.stop()
		s.forget(k)
	}
}

// end ends the command and waits until it has ended. The session is not
// notified.
func (k *command) end() {
	k.setNotified()
	k.stop()
	<-k.done
}

// stop ends the command. It does not wait until it has ended.
func (k *command) stop() {
	k.mu.Lock()
	k.stopped = k.stopped || k.running()
	k.mu.Unlock()
	k.cancel()
}

// Kill ends the background command of a tool call and waits until it has ended. Its
// session is notified. It reports false if no command of the call runs in this process.
func (s *Commands) Kill(ctx context.Context, call string) (bool, error) {
	s.mu.Lock()
	var found *command
	for _, k := range s.byID {
		if k.call == call && k.running() {
			found = k
		}
	}
	s.mu.Unlock()
	switch {
	case found == nil:
		return false, nil
	case !found.visibleTo(chela.PrincipalFrom(ctx)):
		return false, chela.Errorf(chela.CodeForbidden, "the command %s was started by somebody else", found.id)
	}
	found.stop()
	select {
	case <-found.done:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-time.After(removeTimeout):
		return false, fmt.Errorf("the command %s does not end", found.id)
	}
}

// setNotified records that the session knows of the end.
func (k *command) setNotified() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notified = true
}

func (s *Commands) dropLocked(id string) {
	s.byID[id].record.drop()
	delete(s.byID, id)
}

// get returns a command of a session that is visible to the principal of ctx.
func (s *Commands) get(ctx context.Context, key chela.SessionKey, id string) (*command, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.byID[id]; k != nil && k.session == key && k.visibleTo(chela.PrincipalFrom(ctx)) {
		return k, nil
	}
	return nil, fmt.Errorf(
		"there is no command %q; see the action list (ended commands are retained for %v, but not across restarts)", id,
		s.o.TTL)
}

// list returns the commands of a session, the latest first.
func (s *Commands) list(key chela.SessionKey) []*command {
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
