package modelapi

import (
	"context"
	"net/http"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/surface/access"
)

// answer is what a run answered.
type answer struct {
	text  string
	stop  llm.StopReason
	usage llm.Usage
}

// reply follows the run and answers the request.
func (a *API) reply(w http.ResponseWriter, r *http.Request, x *exchange) {
	w.Header().Set("X-Chela-Session-Key", string(x.session))
	ctx := r.Context()
	var out stream
	var sent *events
	if x.stream {
		sent = newEvents(w)
		defer sent.close()
		out = x.form.stream(x, sent)
		out.start()
	}
	ping := time.NewTicker(pingTime)
	defer ping.Stop()
	over := !x.receipt.New || x.receipt.Command || x.receipt.State == "" // perhaps
	for {
		if over {
			ans, f, ended := a.outcome(ctx, x)
			if ctx.Err() != nil {
				return
			}
			if ended {
				x.finish(w, out, ans, f)
				return
			}
		}
		select {
		case <-x.follower.ready:
			var text string
			if text, over = x.follower.take(); text != "" && out != nil {
				out.delta(text)
			}
		case <-ping.C:
			over = true // perhaps another process carried out the run
			if sent != nil {
				sent.ping()
			}
		case <-a.closing:
			ans, f, ended := a.outcome(ctx, x)
			if !ended {
				f = &fault{
					status: http.StatusServiceUnavailable, after: 2, final: !x.keyed, // a request without a key would be another one
					text: "the gateway is stopping; the work resumes at its next start, and the answer will be in the session " +
						string(x.session),
				}
			}
			x.finish(w, out, ans, f)
			return
		case <-ctx.Done():
			return
		}
		if sent != nil && sent.err != nil {
			return
		}
	}
}

// finish answers the request with the answer, or with the fault if there is one.
func (x *exchange) finish(w http.ResponseWriter, out stream, ans answer, f *fault) {
	switch {
	case out != nil && f != nil:
		out.fail(f)
	case out != nil:
		if rest := x.follower.rest(ans.text); rest != "" {
			out.delta(rest)
		}
		out.end(ans)
	case f != nil:
		write(w, x.form, f)
	default:
		access.WriteJSON(w, http.StatusOK, x.form.answer(x, ans))
	}
	_ = http.NewResponseController(w).Flush() // before the gateway may close the connection
}

// outcome returns what a message led to. ended reports whether that is known.
func (a *API) outcome(ctx context.Context, x *exchange) (ans answer, f *fault, ended bool) {
	if x.receipt.Command && x.receipt.State != queue.Waiting {
		return answer{text: x.receipt.Reply}, nil, true
	}
	if x.receipt.State == "" {
		return answer{}, nil, true
	}
	r, err := a.o.Runs.Find(ctx, x.id)
	if err == nil && !r.State.Final() {
		if r.ID == x.id {
			return ans, nil, false
		}
		r, err = a.o.Runs.Wait(ctx, x.id) // another run took the message
	}
	if err == nil {
		ans, err = a.answer(ctx, r)
	}
	if err != nil {
		f = faultOf(a.o.Log, err)
		f.final = true
		return ans, f, true
	}
	return ans, failure(r), true
}

// answer reads the answer of a run.
func (a *API) answer(ctx context.Context, r run.Run) (ans answer, err error) {
	ans.text = r.Text
	if r.SessionID == "" { // it did not begin
		return ans, nil
	}
	err = a.o.Store.View(ctx, func(rd store.Reader) error {
		var sum usage.Sum
		var err error
		if sum, err = rd.Usage().OfRun(r.ID); err != nil {
			return err
		}
		ans.usage = sum.Tokens
		ans.stop, err = session.StopOf(rd.Sessions(), r.SessionID, r.ID, r.Started)
		return err
	})
	return ans, err
}

// failure returns why a run gave no answer; nil: it did.
func failure(r run.Run) *fault {
	f := &fault{status: http.StatusInternalServerError, code: "run_" + string(r.State), text: r.Error, final: true}
	switch {
	case r.State == run.OK:
		return nil
	case r.State == run.TimedOut:
		f.status = http.StatusGatewayTimeout
	}
	if f.text == "" {
		f.text = "the run was " + string(r.State)
	}
	return f
}
