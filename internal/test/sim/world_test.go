package sim

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
)

// world is everything outside of the gateway, with the ledger of what happened there.
// What it decides depends on the seed and on what the decision is about, not on the order
// of events.
type world struct {
	t    testing.TB
	seed uint64
	dir  string
	cost float64 // of failures: their probability is multiplied by it; 0: nothing fails

	mu       sync.Mutex
	begun    time.Time
	log      []string // the story
	life     *life    // the gateway that runs; nil: none
	changed  chan struct{}
	faults   []string // violations that were seen during the day
	messages []*message
	byTag    map[string]*message
	stops    []*stop
	calls    map[string]*call   // tool calls, by key
	effects  map[string]int     // by the id of the call in the store
	issued   map[string]int     // number of answers of the model that contain the call
	answers  map[string]*answer // by token
	asked    map[string]int     // calls of the model, by last tag
	used     map[string]llm.Usage
	serial   int // of answers
	starts   []toolStart
	deleted  map[chela.SessionKey]time.Time
	// background is the session of the work in the background, by the key of its call.
	background map[string]chela.SessionKey
	probes     map[string]*probe
	jobs       []*scheduled
	webhooks   []*webhook
	beats      *beats  // nil: there are no heartbeats
	hooked     *hooked // nil: there are no hooks
	clock      []clockStep
	spans      []*span     // of the gateways
	failed     []time.Time // commits of the store

	platforms map[string]*platform
	chats     []*chat
	client    *client.Client
	pending   int // messages that were not accepted, and decisions that were not made
}

// message is a message of a person.
type message struct {
	tag      string
	text     string
	kind     string // of the plan
	chat     *chat
	id       string // on the platform, or of the client
	sender   string
	mode     string
	ignored  bool // not addressed to the assistant
	sent     time.Time
	accepted time.Time // zero: it was not
}

// stop is a command, such as one that ends the work of a session.
type stop struct {
	chat     *chat
	text     string
	id       string // on the platform, or of the client
	sender   string
	sent     time.Time
	accepted time.Time
}

// call is a tool call of the model with an effect.
type call struct {
	key     string
	effects int
	denied  bool
	allowed bool
	unsure  bool // a decision was sent, and not answered
}

// answer is a final answer of the model.
type answer struct {
	tags  []string
	child string // the label of the subagent that answered; empty: none
}

// toolStart is the start of a tool call.
type toolStart struct {
	key string
	run chela.RunID
	at  time.Time
}

// probe is a number of calls that must be at the model at the same time.
type probe struct {
	want    int
	arrived int
	all     chan struct{}
}

func newWorld(t testing.TB, seed uint64, dir string) *world {
	return &world{
		t:       t,
		seed:    seed,
		dir:     dir,
		cost:    1,
		begun:   time.Now(),
		changed: make(chan struct{}),
		byTag:   map[string]*message{},
		calls:   map[string]*call{},
		effects: map[string]int{},
		issued:  map[string]int{},
		answers: map[string]*answer{},
		asked:   map[string]int{},
		used:    map[string]llm.Usage{},
		clock:   []clockStep{{}},
		deleted: map[chela.SessionKey]time.Time{},

		background: map[string]chela.SessionKey{},
		probes:     map[string]*probe{},
	}
}

// rnd returns the source of the decisions about a subject.
func (w *world) rnd(subject ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, subject...)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// chance reports whether something with a probability in percent happens.
func (w *world) chance(percent float64, subject ...any) bool {
	return w.rnd(subject...).Float64()*100 < percent*w.failures()
}

func (w *world) failures() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cost
}

// tell adds an event to the story.
func (w *world) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tellLocked(format, args...)
}

func (w *world) tellLocked(format string, args ...any) {
	at := time.Since(w.begun)
	w.log = append(w.log, fmt.Sprintf("%9.3f  ", at.Seconds())+fmt.Sprintf(format, args...))
}

// broken records a violation.
func (w *world) broken(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	w.faults = append(w.faults, text)
	w.tellLocked("BROKEN: %s", text)
}

// do runs f on a goroutine. Until it returns, something is pending.
func (w *world) do(f func()) {
	w.expect()
	go func() {
		defer w.done()
		f()
	}()
}

// expect says that something is pending, until done is called.
func (w *world) expect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending++
}

func (w *world) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending--
}

// setLife makes a gateway the one that runs.
func (w *world) setLife(l *life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.life = l
	close(w.changed)
	w.changed = make(chan struct{})
}

// current returns the gateway that runs, or nil, and a channel that is closed when
// another one does.
func (w *world) current() (*life, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.life, w.changed
}

var errDead = errors.New("the process was killed")

// pick returns one of the choices, which have weights.
func pick[T any](r *rand.Rand, choices ...weighted[T]) T {
	sum := 0
	for _, c := range choices {
		sum += c.weight
	}
	n := r.IntN(sum)
	for _, c := range choices {
		if n -= c.weight; n < 0 {
			return c.value
		}
	}
	panic("unreachable")
}

type weighted[T any] struct {
	weight int
	value  T
}

// seconds returns a duration between two numbers of seconds.
func seconds(r *rand.Rand, from, to float64) time.Duration {
	return time.Duration((from + r.Float64()*(to-from)) * float64(time.Second))
}

// tagsIn returns the tags in a text, such as m12 and m12.c0.
func tagsIn(text string) []string { return between(text, "<<", ">>") }

// between returns the parts of a text that are between two marks.
func between(text, begin, end string) (parts []string) {
	for {
		_, rest, ok := strings.Cut(text, begin)
		if !ok {
			return parts
		}
		part, after, ok := strings.Cut(rest, end)
		if !ok {
			return parts
		}
		parts, text = append(parts, part), after
	}
}
