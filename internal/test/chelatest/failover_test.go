package chelatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// serviceFault is a fault of a service.
type serviceFault struct {
	name     string
	class    llm.Class // the expected classification
	fault    llmtest.Fault
	takes    time.Duration // time until it is noticed
	cooldown time.Duration // cooldown of the key; 0: longer than the test
	reported bool          // the service has reported the usage of the prompt by then
}

// id returns the check that the fault belongs to: timeouts, or errors of all
// kinds.
func (f *serviceFault) id() string {
	if f.takes > 0 {
		return "R19"
	}
	return "R20"
}

// rotates reports whether another key may help.
func (f *serviceFault) rotates() bool {
	return !slices.Contains([]llm.Class{llm.ClassFormat, llm.ClassContext, llm.ClassNoModel}, f.class)
}

// refusals are responses with an error status.
func refusals() []serviceFault {
	var all []serviceFault
	for _, r := range []struct {
		status         int
		message, after string
		class          llm.Class
	}{
		{400, "tool_use ids were found without tool_result", "", llm.ClassFormat},
		{400, "prompt is too long: 250000 tokens", "", llm.ClassContext},
		{401, "", "", llm.ClassAuth},
		{403, "", "", llm.ClassAuth},
		{404, "", "", llm.ClassNoModel},
		{408, "", "", llm.ClassTimeout},
		{413, "", "", llm.ClassContext},
		{422, "", "", llm.ClassFormat},
		{429, "", "", llm.ClassRate},
		{429, "", "120", llm.ClassRate},
		{429, "", "Fri, 31 Dec 1999 23:59:59 GMT", llm.ClassRate},
		{429, "", "soon", llm.ClassRate},
		{500, "", "", llm.ClassNetwork},
		{502, "", "", llm.ClassNetwork},
		{503, "", "", llm.ClassOverload},
		{503, "", "90", llm.ClassOverload},
		{529, "", "", llm.ClassOverload},
	} {
		f := serviceFault{
			name:  strings.TrimSpace(fmt.Sprintf("%d %s %s", r.status, r.message, r.after)),
			class: r.class, cooldown: time.Minute,
			fault: llmtest.Fault{Status: r.status, Message: r.message, RetryAfter: r.after},
		}
		if r.after != "" {
			f.cooldown = 2 * time.Minute
		}
		all = append(all, f)
	}
	return append(all,
		serviceFault{
			name: "429 with a date", class: llm.ClassRate, cooldown: 90 * time.Second,
			fault: llmtest.Fault{Status: 429, Header: func(set func(k, v string)) {
				set("Retry-After", time.Now().Add(90*time.Second).UTC().Format(http.TimeFormat))
			}},
		},
		serviceFault{
			name: "breaks before the headers", class: llm.ClassNetwork, cooldown: time.Minute,
			fault: llmtest.Fault{Header: func(func(k, v string)) { panic(http.ErrAbortHandler) }},
		},
		serviceFault{
			name: "hangs before the headers", class: llm.ClassTimeout, takes: silence, cooldown: time.Minute,
			fault: llmtest.Fault{Hang: llmtest.HangHeaders},
		},
		serviceFault{
			name: "sends one byte per second", class: llm.ClassTimeout, takes: silence, cooldown: time.Minute,
			fault: llmtest.Fault{Drip: time.Second},
		},
	)
}

// broke is an account without credit. Its key has a cooldown of hours, so this
// case comes last.
func broke() serviceFault {
	return serviceFault{name: "402", class: llm.ClassBilling, fault: llmtest.Fault{Status: http.StatusPaymentRequired}}
}

const silence = 20 * time.Second // time limit of a call in the test's configuration

// phase is a position in a response: after the first event that contains the
// mark.
type phase struct {
	name string
	mark map[llmtest.Wire]string // "": at the beginning
	torn bool                    // and a part of the next event
}

func phases() []phase {
	same := func(s string) map[llmtest.Wire]string {
		return map[llmtest.Wire]string{llmtest.Anthropic: s, llmtest.OpenAI: s}
	}
	return []phase{
		{"after the headers", same(""), false},
		{"before the first content",
			map[llmtest.Wire]string{llmtest.Anthropic: "content_block_start", llmtest.OpenAI: `"role":"assistant"`}, false},
		{"after the first content", same("PARTIAL-ONE"), false},
		{"in the text", same("PARTIAL-TWO"), true},
		{"in the arguments of a call", same("ghost.txt"), true},
		{"before the end", same("-ghost-end-"), false},
	}
}

// streamFaults are the faults inside a response, at each of its phases.
func streamFaults(w llmtest.Wire) []serviceFault {
	event := func(data string) string { return "data: " + data + "\n\n" }
	overloaded := event(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	var all []serviceFault
	for _, p := range phases() {
		for _, f := range []struct {
			serviceFault
			tail string // a complete event in place of the truncated one
		}{
			{serviceFault{name: "hangs", class: llm.ClassTimeout, takes: silence, fault: llmtest.Fault{Hang: llmtest.HangEnd}},
				""},
			{serviceFault{name: "sends keep-alives only", class: llm.ClassTimeout, takes: silence,
				fault: llmtest.Fault{Hang: llmtest.HangEnd, Ping: time.Second}}, ":\n\n"},
			{serviceFault{name: "ends normally", class: llm.ClassNetwork}, ""},
			{serviceFault{name: "breaks", class: llm.ClassNetwork, fault: llmtest.Fault{Abort: true}}, ""},
			{serviceFault{name: "is overloaded", class: llm.ClassOverload}, overloaded},
			{serviceFault{name: "sends garbage", class: llm.ClassNetwork}, event("{]")},
		} {
			t := f.serviceFault
			t.name, t.cooldown = t.name+" "+p.name, time.Minute
			t.reported = w == llmtest.Anthropic && p.mark[w] != ""
			t.fault.Body = func(body []byte) []byte { return append(p.cut(body, w, f.tail == ""), f.tail...) }
			all = append(all, t)
		}
	}
	return all
}

// cut returns the body up to the phase.
func (p *phase) cut(body []byte, w llmtest.Wire, torn bool) []byte {
	mark := p.mark[w]
	if mark == "" {
		return nil
	}
	at := bytes.Index(body, []byte(mark))
	if at < 0 {
		panic("the response has no " + mark)
	}
	end := at + bytes.Index(body[at:], []byte("\n\n")) + 2
	if torn && p.torn {
		end += 30
	}
	return slices.Clone(body[:end])
}

// Configurations in which another key or model can answer.
const (
	alone  = "one key"
	second = "two keys"
	other  = "a fallback with the other wire format"
)

// TestFaults injects every fault of a service into the middle of a turn, after
// a tool call: without an alternative, with a second key, and with a fallback
// that uses the other wire format. Each turn ends in time, with one answer from
// the expected model and without a trace of the failed one. The tool is not run
// again. The next message is answered, and after the cooldowns the chosen model
// is used again.
func TestFaults(t *testing.T) {
	for i, s := range testServices() {
		faults := append(append(refusals(), streamFaults(s.wire)...), broke())
		for _, help := range []string{alone, second, other} {
			t.Run(s.name+" with "+help, func(t *testing.T) {
				t.Parallel()
				wrong := make([][]string, len(faults))
				synctest.Test(t, func(t *testing.T) {
					b := newFailoverTest(t, s, testServices()[1-i], help)
					for n := range faults {
						wrong[n] = b.runCase(n, &faults[n])
					}
					b.end()
				})
				for n := range faults {
					t.Run(faults[n].id()+" "+faults[n].name, func(t *testing.T) {
						for _, w := range wrong[n] {
							t.Error(w)
						}
					})
				}
			})
		}
	}
}

// failoverTest is an application with a service that fails repeatedly.
type failoverTest struct {
	t        *testing.T
	first    service
	standIn  service
	help     string
	services services
	g        *Gateway
	c        *Client

	mu    sync.Mutex
	fault *serviceFault // nil: no fault
	id    string        // id of the tool call of this case

	wrong  []string
	broken int // calls of this case that failed after the service reported usage
}

func newFailoverTest(t *testing.T, first, standIn service, help string) *failoverTest {
	b := &failoverTest{t: t, first: first, standIn: standIn, help: help}
	var hc *http.Client
	b.services, hc = network(t, b.answer)
	models, env := []string{first.ref()}, keys(nil)
	switch help {
	case second:
		env = keys(map[string]string{strings.ToUpper(first.name) + "_API_KEYS": "k1;k2"})
	case other:
		models = append(models, standIn.ref())
	}
	conf := asks(`{"thinkingDefault": "low", "skipBootstrap": true}`, models...)
	conf["tools"] = json.RawMessage(`{"allow": ["write"]}`) // hundreds of requests are checked and compared
	b.g = Start(t, Options{HTTP: hc, Env: env, Config: conf, Wrap: withoutSync})
	b.c = b.g.Client()
	return b
}

func (b *failoverTest) end() {
	b.c.Close()
	b.g.Stop()
	b.services.close()
}

// ghost is the effect of a call in a response that fails. The call is sent in
// several pieces.
const unusedArgs = `{"path":"ghost.txt", "content":"nothing that anybody will ever read, nor should -ghost-end-"}`

// Each answer of a model costs the same.
const costs = 10

// answer is the response of the services.
func (b *failoverTest) answer(name string, _ int, got llmtest.ReceivedRequest) llmtest.Step {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := llmtest.Think("It is decided.", "sig-of-"+name, llmtest.Say("fine from "+name+" "+keyOf(got)))
	if !bytes.Contains(got.Body, []byte(b.id)) {
		s = llmtest.Think("Let me see.", "sig-of-"+name,
			llmtest.Call(b.id, "write", fmt.Sprintf(`{"path":"%s.txt","content":"x"}`, b.id)))
	} else if b.fault != nil && name == b.first.name && keyOf(got) == "k1" {
		s = llmtest.Think("MUSING about the matter.", "sig-of-"+name,
			llmtest.Step{Chunk: 60, Fault: b.fault.fault, Parts: []llm.Part{
				llm.Text(fmt.Sprintf("%-60s%-60s%-60s", "PARTIAL-ONE", "PARTIAL-TWO", "PARTIAL-END")),
				{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "ghost", Name: "write", Args: []byte(unusedArgs)}},
			}})
	}
	s.Usage = &llm.Usage{Input: costs, Output: costs}
	return s
}

// errorf records what is wrong with the case.
func (b *failoverTest) errorf(format string, args ...any) {
	b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
}

// runCase runs one case and returns what is wrong.
func (b *failoverTest) runCase(n int, f *serviceFault) []string {
	b.wrong = nil
	session := fmt.Sprintf("case-%d", n)
	b.mu.Lock()
	b.fault, b.id = f, fmt.Sprintf("call_%d_", n)
	b.mu.Unlock()
	asked := b.asked()
	begun := time.Now()
	end := b.c.Ask(session, "do it")
	took := time.Since(begun)
	b.mu.Lock()
	b.fault = nil
	b.mu.Unlock()

	who := b.answers(f)
	b.broken = 0
	if f.reported {
		b.broken = b.asked()[b.first.name] - asked[b.first.name] - 1
		if b.help == second && who != "" {
			b.broken--
		}
	}
	b.check(f, end, took, who)
	b.checkRequests(f, who, asked, b.asked())
	b.checkTranscript(session, end, who)
	synctest.Wait()
	for name, s := range b.services {
		if s.Active() > 0 {
			b.errorf("a connection to %s is still in use", name)
		}
	}
	b.checkNextRun(f, session, who)
	return b.wrong
}

// answers returns the expected final answer, or "" for an error.
func (b *failoverTest) answers(f *serviceFault) string {
	switch {
	case b.help == second && f.rotates():
		return "fine from " + b.first.name + " k2"
	case b.help == other && (f.rotates() || f.class == llm.ClassNoModel):
		return "fine from " + b.standIn.name + " k1"
	}
	return ""
}

// check checks how the turn ended.
func (b *failoverTest) check(f *serviceFault, end Ended, took time.Duration, who string) {
	limit := f.takes + time.Second
	if b.help == alone {
		limit += 8 * time.Second // because the same service is asked again
	}
	if took > limit {
		b.errorf("took %s, want at most %s", took, limit)
	}
	switch {
	case who != "" && (end.State != wire.StateFinal || end.Text != who):
		b.errorf("ended %s: %q %s; want %q", end.State, end.Text, end.Error, who)
	case who == "" && (end.State != wire.StateError || end.Error == "" || strings.ContainsAny(end.Error, "\n{}")):
		b.errorf("ended %s: %q %q; want an error for people", end.State, end.Text, end.Error)
	}
	for _, ev := range end.Seen {
		mixed := func(a, b string) bool {
			return bytes.Contains(ev.Payload, []byte(a)) && bytes.Contains(ev.Payload, []byte(b))
		}
		if mixed("PARTIAL", "fine") || mixed("MUSING", "decided") {
			b.errorf("clients show text of two answers: %s", ev.Payload)
		}
	}
	steps := traceOf(b.t, end.Seen, end.Run)
	begun := 0
	for _, s := range steps.tools {
		if s.Phase == wire.PhaseStart {
			begun++
		}
	}
	if begun != 1 || steps.ends() != 1 {
		b.errorf("%d calls were started and the run ended %d times; want one each", begun, steps.ends())
	}
	if _, err := os.Stat(filepath.Join(b.g.Dir, "workspace", "ghost.txt")); err == nil {
		b.errorf("a call of a failed response was run")
	}
}

// asked returns how often each service has been asked.
func (b *failoverTest) asked() map[string]int {
	n := map[string]int{}
	for name, s := range b.services {
		n[name] = len(s.Requests())
	}
	return n
}

// checkRequests checks which services were asked in the turn.
func (b *failoverTest) checkRequests(f *serviceFault, who string, before, after map[string]int) {
	first, standIn := after[b.first.name]-before[b.first.name], after[b.standIn.name]-before[b.standIn.name]
	least, most := 2, 2 // the call, and the failed request
	switch {
	case b.help == second && who != "":
		least, most = 3, 3
	case b.help == alone && f.rotates():
		most = 5 // three retries
	case f.class == llm.ClassContext:
		most = 3 // once more, with less of the conversation
	}
	if first < least || first > most {
		b.errorf("%s was asked %d times, want %d to %d", b.first.name, first, least, most)
	}
	want := 0
	if b.help == other && who != "" {
		want = 1
	}
	if standIn != want {
		b.errorf("%s was asked %d times, want %d", b.standIn.name, standIn, want)
	}
}

// checkTranscript checks the transcript of the turn.
func (b *failoverTest) checkTranscript(session string, end Ended, who string) {
	lines := b.c.lines(session)
	all := strings.Join(lines, "\n")
	if strings.Contains(all, "PARTIAL") || strings.Contains(all, "ghost") {
		b.errorf("the transcript contains text of a failed response:\n%s", all)
	}
	answers, notices := 0, 0
	for _, l := range lines {
		if strings.HasPrefix(l, "assistant: fine") {
			answers++
		}
		if strings.Contains(l, "↪️ Model Fallback: "+b.standIn.ref()) {
			notices++
		}
	}
	want, note := 0, 0
	if who != "" {
		want = 1
	}
	if b.help == other && who != "" {
		note = 1
	}
	if answers != want || notices != note || strings.Count(all, "<write>") != 1 {
		b.errorf("%d answers and %d notices, want %d and %d, and one call:\n%s", answers, notices, want, note, all)
	}
	b.checkTokens(session, 1+want)
}

// checkTokens checks the usage of the session: the answers, and the calls that
// failed after the service reported usage at the start.
func (b *failoverTest) checkTokens(session string, answers int) {
	in, out := int64((answers+b.broken)*costs), int64(answers*costs+b.broken)
	if d := b.c.describe(session); d.InputTokens != in || d.OutputTokens != out {
		b.errorf("%d tokens in, %d out; want %d and %d", d.InputTokens, d.OutputTokens, in, out)
	}
}

// checkNextRun checks the next message, and one after all cooldowns.
func (b *failoverTest) checkNextRun(f *serviceFault, session, who string) {
	answers := 1
	if who != "" {
		answers++
	}
	healthy := "fine from " + b.first.name + " k1"
	next := healthy
	if who != "" && f.rotates() {
		next = who
	}
	if end := b.c.Ask(session, "and now?"); end.Text != next {
		b.errorf("next message: %s %q %s; want %q", end.State, end.Text, end.Error, next)
	}
	last := healthy
	if f.cooldown == 0 {
		last = next
	}
	time.Sleep(f.cooldown + time.Second)
	if b.help == second {
		last = next // a conversation keeps its key
	}
	if end := b.c.Ask(session, "and later?"); end.Text != last {
		b.errorf("after the cooldowns: %s %q %s; want %q", end.State, end.Text, end.Error, last)
	}
	b.checkTokens(session, answers+2)
}
