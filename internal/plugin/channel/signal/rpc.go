package signal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of requests.
const (
	readTimeout  = 30 * time.Second
	sendTimeout  = 2 * time.Minute // a message to a group is encrypted for each device of each member
	mediaTimeout = 5 * time.Minute
	maxAnswer    = 4 << 20
	maxLists     = 32 << 20 // of contacts and groups
	longestPause = 24 * time.Hour
)

// Codes of signal-cli's errors.
const (
	codeUser      = -1
	codeIO        = -3
	codeUntrusted = -4
	codeRateLimit = -5
	codeMethod    = -32601
	codeParams    = -32602
	codeInternal  = -32603
)

// params are the parameters of a method.
type params map[string]any

// rpcError is an error that the daemon answered.
type rpcError struct {
	Method  string `json:"-"`
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		Response sent `json:"response"`
	} `json:"data"`
}

// Error returns what the daemon said, shortened.
func (e *rpcError) Error() string {
	return fmt.Sprintf("signal-cli refused %s: %s (code %d)", e.Method, oneLine(e.Message), e.Code)
}

// oneLine returns a text of the daemon for an error or the log.
func oneLine(s string) string {
	const most = 300
	return humanize.TruncateBytes(humanize.OneLine(strings.ToValidUTF8(s, "")), most)
}

// read calls a method that changes nothing.
func (b *bot) read(ctx context.Context, method string, p params, most int64, out any) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := b.call(ctx, method, p, most, out)
	if errors.Is(err, channel.ErrAmbiguous) {
		return errors.New("signal: signal-cli did not answer " + method + ": the connection broke")
	}
	return err
}

// call calls a method. An error wraps channel.ErrAmbiguous if the daemon may have done what
// it was asked for.
func (b *bot) call(ctx context.Context, method string, p params, most int64, out any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	all := params{"account": b.c.Account}
	for k, v := range p {
		all[k] = v
	}
	id := strconv.FormatInt(b.requests.Add(1), 10)
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": all})
	if err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.c.base.String()+"/api/v1/rpc", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := channel.Call(b.client, r, most)
	if err != nil {
		return fmt.Errorf("signal: signal-cli did not answer %s: %w", method, err)
	}
	if answer.Status != http.StatusOK {
		return b.refusedStatus(method, answer)
	}
	var res struct {
		Result json.RawMessage `json:"result"`
		Error  *rpcError       `json:"error"`
		ID     any             `json:"id"`
	}
	switch err := json.Unmarshal(answer.Body, &res); {
	case err != nil:
		return fmt.Errorf("signal: the answer to %s is not JSON as expected: %w: %w", method, channel.ErrAmbiguous, err)
	case res.Error != nil:
		res.Error.Method = method
		return b.refused(res.Error)
	case res.ID != id || res.Result == nil:
		return fmt.Errorf("signal: the answer to %s belongs to another request: %w", method, channel.ErrAmbiguous)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(res.Result, out); err != nil {
		return fmt.Errorf("signal: the result of %s is not as expected: %w: %w", method, channel.ErrAmbiguous, err)
	}
	return nil
}

// refusedStatus returns what a status other than 200 means.
func (b *bot) refusedStatus(method string, a channel.Answer) error {
	err := fmt.Errorf("signal: %s answered %s with status %d", b.c.base, method, a.Status)
	switch a.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return &channel.Error{RetryAfter: min(a.RetryAfter(), longestPause), Err: err}
	case http.StatusNotFound, http.StatusUnauthorized, http.StatusForbidden:
		return &channel.Error{Err: fmt.Errorf("%w: want signal-cli's HTTP daemon there (check channels.signal.httpUrl)", err)}
	case http.StatusMisdirectedRequest:
		return &channel.Error{
			Err: fmt.Errorf(
				"%w: signal-cli accepts only the host name at which it listens (use that one in channels.signal.httpUrl)", err)}
	}
	if a.Status >= 400 && a.Status < 500 {
		return &channel.Error{Permanent: true, Err: err}
	}
	// The daemon itself answers with status 200. What is in front of it may have passed the
	// request on.
	return fmt.Errorf("%w: %w", err, channel.ErrAmbiguous)
}

// refused returns what an error of the daemon means.
func (b *bot) refused(e *rpcError) error {
	err := fmt.Errorf("signal: %w", e)
	if results := e.Data.Response.Results; len(results) > 0 {
		return b.unsent(e, results)
	}
	text := strings.ToLower(e.Message)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	switch {
	case e.Code == codeMethod:
		return &channel.Error{Permanent: true, Err: fmt.Errorf("%w (install the current version of signal-cli)", err)}
	case e.Code == codeParams && has("account"):
		return &channel.Error{Permanent: true,
			Err: fmt.Errorf("%w (the daemon has no account %s; link it: signal-cli link -n Chela)", err, b.c.Account)}
	case e.Code == codeRateLimit:
		return &channel.Error{RetryAfter: time.Minute, Err: err}
	case e.Code == codeUntrusted:
		return &channel.Error{Permanent: true, Err: err}
	case e.Code == codeIO, e.Code == codeInternal && !has("attachmentinvalid"):
		return &channel.Error{Err: err}
	case has("not registered", "unregistered", "group not found", "not a member in group", "could not find attachment"):
		return &channel.Error{Permanent: true, Err: fmt.Errorf("%w: %w", err, channel.ErrGone)}
	}
	return &channel.Error{Permanent: true, Err: err}
}

// sent is the result of a method that sends something.
type sent struct {
	Timestamp int64    `json:"timestamp"`
	Results   []result `json:"results"`
}

// result says whether the message was sent to one person.
type result struct {
	Recipient struct {
		UUID   string `json:"uuid"`
		Number string `json:"number"`
	} `json:"recipientAddress"`
	Type       string `json:"type"`
	Token      string `json:"token"` // of a challenge
	RetryAfter int64  `json:"retryAfterSeconds"`
}

func (r *result) name() string { return cmp.Or(r.Recipient.UUID, r.Recipient.Number, "somebody") }

// unsent returns the error for a message that nobody got. A retry is useful if it is for at
// least one person.
func (b *bot) unsent(e *rpcError, results []result) error {
	var untrusted, unregistered *result
	var pause time.Duration
	retry := false
	err := fmt.Errorf("signal: %w", e)
	for i := range results {
		r := &results[i]
		err = fmt.Errorf("%w: %s for %s", err, oneLine(r.Type), oneLine(r.name()))
		if i == 3 && len(results) > 5 {
			err = fmt.Errorf("%w and %d more", err, len(results)-4)
			break
		}
	}
	for i := range results {
		switch r := &results[i]; r.Type {
		case "UNREGISTERED_FAILURE":
			unregistered = r
		case "IDENTITY_FAILURE":
			untrusted = r
		case "RATE_LIMIT_FAILURE":
			retry = true
			pause = max(pause, time.Duration(min(max(r.RetryAfter, 0), int64(longestPause/time.Second)))*time.Second)
			if r.Token != "" {
				err = fmt.Errorf("%w (Signal wants proof that a person writes; solve the captcha at https://signalcaptchas.org/challenge/generate.html and type: signal-cli -a %s submitRateLimitChallenge --challenge %s --captcha CAPTCHA)", err, b.c.Account, oneLine(r.Token))
			}
		default: // NETWORK_FAILURE, INVALID_PRE_KEY_FAILURE
			retry = true
		}
	}
	switch {
	case retry:
		return &channel.Error{RetryAfter: pause, Err: err}
	case untrusted != nil:
		name := oneLine(untrusted.name())
		return &channel.Error{Permanent: true, Err: fmt.Errorf(
			"%w (the safety number has changed; compare it with the person, then type: signal-cli -a %s trust -v SAFETY_NUMBER %s)", err, b.c.Account, name)}
	case unregistered != nil:
		return &channel.Error{Permanent: true, Err: fmt.Errorf("%w: not on Signal: %w", err, channel.ErrGone)}
	}
	return &channel.Error{Permanent: true, Err: err}
}
