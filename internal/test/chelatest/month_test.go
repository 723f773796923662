package chelatest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/llm/wiretest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/wire"
)

// longTalk is a conversation of many turns with models that have small windows. Its
// services refuse what is longer than their windows, and play their prompt caches.
type longTalk struct {
	t       *testing.T
	options Options
	g       *Gateway
	c       *Client
	rand    *rand.Rand // of the person; what the assistant says is drawn from replies

	every  int // turns from one with calls of tools to the next
	rounds int // calls in such a turn, one after the other
	lines  int // most lines of a result
	calls  int

	mu        sync.Mutex
	replies   *rand.Rand
	windows   map[string]int // tokens, by model
	said      map[int]string // what the assistant says in a turn besides small talk
	turn      int
	last      map[string][]byte // the last request of a turn, by service
	overflows int
	summaries int
	use       wiretest.CacheUse
	cache     wiretest.PromptCache
}

// newLongTalk returns a conversation whose models are one of Anthropic's and two of
// OpenAI's.
func newLongTalk(t *testing.T, defaults string, windows map[string]int) *longTalk {
	l := &longTalk{
		t:       t,
		every:   5,
		rounds:  1,
		lines:   60,
		rand:    rand.New(rand.NewPCG(1, 2)),
		replies: rand.New(rand.NewPCG(3, 4)),
		said:    map[int]string{},
		last:    map[string][]byte{},
		windows: windows,
	}
	all, hc := network(t, l.answer)
	t.Cleanup(all.close)
	for _, srv := range all {
		srv.Forget = true
	}
	conf := asks(defaults, "anthropic/claude-sonnet-4-5")
	providers := map[string]any{}
	for service, ids := range map[string][]string{"anthropic": {"claude-sonnet-4-5"}, "openai": {"gpt-5", "gpt-4.1"}} {
		models := []map[string]any{}
		for _, id := range ids {
			models = append(models, map[string]any{"id": id, "contextWindow": l.windows[id], "maxTokens": 2000})
		}
		providers[service] = map[string]any{"baseUrl": "http://" + service + ".invalid", "models": models}
	}
	b, err := json.Marshal(map[string]any{"providers": providers})
	if err != nil {
		t.Fatal(err)
	}
	conf["models"] = b
	conf["tools"] = json.RawMessage(`{"allow": ["look", "read", "write"]}`)
	l.options = Options{Dir: t.TempDir(), HTTP: hc, Env: keys(nil), Config: conf, Wrap: withoutSync, Tools: lookTools()}
	l.start()
	return l
}

// lookTools returns a tool whose results are of any length.
func lookTools() []tool.Tool { return []tool.Tool{look{}} }

// look is a tool whose results are of any length.
type look struct{}

func (look) Spec() tool.Spec {
	return tool.Spec{Name: "look", Description: "Read sensors.", Effect: tool.Reads,
		Schema: json.RawMessage(`{"type":"object","properties":{"lines":{"type":"integer"}}}`)}
}

func (look) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	var args struct{ Lines int }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return tool.Result{}, err
	}
	var b strings.Builder
	for i := range args.Lines {
		fmt.Fprintf(&b, "%4d  measured %d at sensor %d, status nominal\n", i, i*i%977, i%13)
	}
	return tool.Text(b.String()), nil
}

func (l *longTalk) start() {
	l.g = Start(l.t, l.options)
	l.c = l.g.Client()
}

func (l *longTalk) stop() {
	l.c.Close()
	l.g.Stop()
}

// turnMark returns what the message of the person in a turn begins with: letters, because
// a number could be something to remember.
func turnMark(n int) string {
	b := []byte("(aaa) ")
	for i := 3; i > 0; i, n = i-1, n/26 {
		b[i] = 'a' + byte(n%26)
	}
	return string(b)
}

// modelField finds the model of a request.
var modelField = regexp.MustCompile(`"model":"([^"]*)"`)

// answer is the response of the services.
func (l *longTalk) answer(service string, _ int, got llmtest.ReceivedRequest) llmtest.Step {
	l.mu.Lock()
	defer l.mu.Unlock()
	model := modelField.FindSubmatch(got.Body)
	if model == nil {
		l.t.Error("a request without a model")
		return llmtest.Say("ok")
	}
	if size, window := len(got.Body)*10/37, l.windows[string(model[1])]; size > window {
		l.overflows++
		return llmtest.Status(http.StatusBadRequest, fmt.Sprintf("prompt is too long: %d tokens > %d maximum", size, window))
	}
	at := bytes.LastIndex(got.Body, []byte(turnMark(l.turn)))
	isTurn := at >= 0 && bytes.Contains(got.Body, []byte(`"look"`))
	if !isTurn {
		l.summaries++
		return llmtest.Say("## Summary\n\nThey talked about the weather, the garden, and measurements of sensors, at length. Nothing is urgent.")
	}
	var s llmtest.Step
	switch {
	case l.turn%l.every == 0 && bytes.Count(got.Body[at:], []byte(`"tool_result"`))+
		bytes.Count(got.Body[at:], []byte(`"role":"tool"`)) < l.rounds:
		l.calls++
		s = llmtest.Call(fmt.Sprintf("call_%d", l.calls), "look", fmt.Sprintf(`{"lines":%d}`, 5+l.replies.IntN(l.lines)))
	case l.said[l.turn] != "":
		s = llmtest.Say(l.said[l.turn])
	default:
		s = llmtest.Say(smallTalk(l.replies, 3))
	}
	l.last[service] = got.Body
	if service == "anthropic" {
		use := l.cache.Use(got.Body, time.Now())
		l.use.Input, l.use.Read, l.use.Write = l.use.Input+use.Input, l.use.Read+use.Read, l.use.Write+use.Write
		s.Usage = &llm.Usage{Input: use.Input, CacheRead: use.Read, CacheWrite: use.Write, Output: 50}
	}
	return s
}

// smallTalk returns sentences that contain nothing to remember.
func smallTalk(r *rand.Rand, n int) string {
	subjects := []string{"the garden", "the weather", "the old kettle", "the neighbour's dog", "that film",
		"the soup", "the long walk"}
	verbs := []string{"was rather nice", "reminds me of summer", "could have been better", "made everybody laugh",
		"seems fine to me", "looks different today"}
	var b []string
	for range n {
		b = append(b, "Well, "+subjects[r.IntN(len(subjects))]+" "+verbs[r.IntN(len(verbs))]+".")
	}
	return strings.Join(b, " ")
}

// say sends a message and waits for the answer. answers is what the assistant says; "":
// small talk.
func (l *longTalk) say(text, answers string) {
	l.t.Helper()
	l.mu.Lock()
	l.turn++
	n := l.turn
	if answers != "" {
		l.said[n] = answers
	}
	l.mu.Unlock()
	if end := l.c.Ask("main", turnMark(n)+text); end.State != wire.StateFinal {
		l.t.Fatalf("turn %d: %s %q %s", n, end.State, end.Text, end.Error)
	}
}

// fact is something that the assistant still has to know at the end of the month.
type fact struct {
	says    string   // the person
	answers string   // the assistant; "": small talk
	keep    []string // each must be in the last request, literally
}

// examFacts are the facts of the exam: requests and decisions of the person, promises of
// the assistant, numbers and paths.
func examFacts() []fact {
	people := []string{"Vera", "Jonas", "Mei", "Tomasz", "Aylin", "Oluwaseun", "Ingrid", "Rafael", "Sana", "Petr"}
	var all []fact
	for i, who := range people {
		code := fmt.Sprintf("K-%04d", 1700+37*i)
		all = append(all,
			fact{fmt.Sprintf("Please remember that you still have to send the contract %s to %s.", code, who),
				"", []string{code, who}},
			fact{fmt.Sprintf("What about the invoice of %s?", who),
				fmt.Sprintf("I will send the reminder about invoice R-%d to %s on Friday.", 9000+i, who),
				[]string{fmt.Sprintf("R-%d", 9000+i)}},
			fact{fmt.Sprintf("The locker of %s has the code %d.", who, 4071+311*i), "", []string{strconv.Itoa(4071 + 311*i)}},
			fact{fmt.Sprintf("The backup of %s is in /srv/backup/%s/2026-%02d.tar.zst.", who, strings.ToLower(who), 1+i), "",
				[]string{fmt.Sprintf("/srv/backup/%s/2026-%02d.tar.zst", strings.ToLower(who), 1+i)}},
			fact{fmt.Sprintf("We decided that %s leads the project Lumen-%d from now on.", who, i), "",
				[]string{fmt.Sprintf("Lumen-%d", i), who}},
		)
	}
	return all
}

// TestMonth is twelve days of a conversation with 15 turns each, or, in a thorough run, a
// month with 100 turns a day, with three models whose windows are small, a restart each
// night, and compactions.
func TestMonth(t *testing.T) {
	t.Parallel()
	days, perDay := 12, 15
	if thorough() {
		days, perDay = 30, 100
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLongTalk(t, `{"skipBootstrap": true}`,
			map[string]int{"claude-sonnet-4-5": 44_000, "gpt-5": 40_000, "gpt-4.1": 36_000})
		facts := examFacts()
		models := []string{"anthropic/claude-sonnet-4-5", "openai/gpt-5", "openai/gpt-4.1"}
		planted := 0
		for n := range days * perDay {
			switch {
			case n%perDay == 0 && n > 0:
				l.stop()
				time.Sleep(14 * time.Hour)
				l.start()
			case n%20 == 19: // longer than the provider's cache lasts
				time.Sleep(6 * time.Minute)
			default:
				time.Sleep(time.Duration(2+l.rand.IntN(10)) * time.Second)
			}
			if n%60 == 59 {
				l.c.Ask("main", "/model "+models[l.rand.IntN(len(models))])
			}
			if planted < len(facts) && n*len(facts) >= planted*(days-3)*perDay {
				l.say(facts[planted].says, facts[planted].answers)
				planted++
				continue
			}
			l.say(smallTalk(l.rand, 2+l.rand.IntN(4)), "")
		}
		l.c.Ask("main", "/model "+models[0])
		// known checks which facts are in the next request.
		known := func(when string, want func(f fact, piece string) bool) (body string) {
			l.say("Are you still there?", "")
			l.mu.Lock()
			defer l.mu.Unlock()
			body = string(l.last["anthropic"])
			for i, f := range facts[:planted] {
				for _, piece := range f.keep {
					if got := strings.Contains(body, piece); got != want(f, piece) {
						t.Errorf("%s: fact %d: %q is known: %t (%q, %q)", when, i, piece, got, f.says, f.answers)
					}
				}
			}
			return body
		}
		body := known("at the end", func(fact, string) bool { return true })
		for _, topic := range []string{"Oluwaseun", "contract K-1700", "Tomasz locker"} {
			l.c.Ask("main", "/forget "+topic)
			if end := l.c.Ask("main", "/forget yes"); !strings.Contains(end.Text, "Removed:") {
				t.Errorf("/forget %s: %q %s", topic, end.Text, end.Error)
			}
		}
		known("after forgetting", func(f fact, piece string) bool {
			return piece == "Vera" || piece == "Tomasz" || !strings.Contains(f.says, "Oluwaseun") &&
				!strings.Contains(f.says, "K-1700") && !strings.Contains(f.says, "locker of Tomasz")
		})
		l.stop()
		for _, gone := range []string{"oluwaseun", "k-1700", "r-9005", fmt.Sprint("code ", 4071+311*3)} {
			if names := containing(t, l.g.Dir, gone); len(names) > 0 {
				t.Errorf("%q contain %s", names, gone)
			}
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		t.Logf("%d turns, %d facts, %d overflows, %d summaries, last request %d bytes, use %+v", days*perDay, planted,
			l.overflows, l.summaries, len(body), l.use)
	})
}

// TestCachedDay is a day with one model and many results of tools, in which results are
// pruned and the conversation is compacted. Nearly all of what is sent is in the cache of
// the service.
func TestCachedDay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLongTalk(t, `{"skipBootstrap": true}`,
			map[string]int{"claude-sonnet-4-5": 200_000, "gpt-5": 200_000, "gpt-4.1": 200_000})
		l.every, l.rounds, l.lines = 2, 3, 200
		turns, least := 60, 0.85
		if thorough() {
			turns, least = 200, 0.92 // a compaction costs less of a long day
		}
		for n := range turns {
			if n == turns*3/5 {
				l.c.Ask("main", "/compact")
			}
			if n%20 == 19 { // longer than the cache lasts
				time.Sleep(time.Hour)
			} else {
				time.Sleep(time.Duration(20+l.rand.IntN(100)) * time.Second)
			}
			l.say(smallTalk(l.rand, 10+l.rand.IntN(20)), "")
		}
		var exported wire.SessionExported
		l.c.must(wire.MethodSessionsExport, wire.SessionKey{Key: "main"}, &exported)
		prunes, compactions := strings.Count(exported.JSONL, `"cause":"`),
			strings.Count(exported.JSONL, `"type":"compaction"`)
		l.stop()
		l.mu.Lock()
		defer l.mu.Unlock()
		share := float64(l.use.Read) / float64(l.use.Input+l.use.Read+l.use.Write)
		t.Logf("%.1f %% of %d tokens were cached, %d prunings, %d compactions", 100*share, l.use.Input+l.use.Read+
			l.use.Write, prunes, compactions)
		if share < least || prunes == 0 || compactions == 0 || l.overflows > 0 {
			t.Errorf("%.3f of the tokens were cached, with %d prunings, %d compactions and %d overflows", share, prunes,
				compactions, l.overflows)
		}
	})
}
