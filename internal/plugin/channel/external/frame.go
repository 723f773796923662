package external

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
)

// Limits of what the program and the gateway write.
const (
	maxLine  = 32 << 20 // bytes of a line
	maxIDLen = 100      // bytes of the id of a request of the program
)

// Codes of errors. Those of JSON-RPC 2.0 have their names.
const (
	codeUnknownMethod = -32601
	codeInvalidParams = -32602
	codeRefused       = -32001 // a message of somebody who may not write
	codeBusy          = -32002 // later, it may succeed
)

// frame is a line: a request, a notification (a request without an id) or a response.
type frame struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *fault          `json:"error,omitempty"`
}

// fault is an error of JSON-RPC.
type fault struct {
	Code    int       `json:"code"`
	Message string    `json:"message"`
	Data    faultData `json:"data,omitzero"`
}

// faultData says what an error means.
type faultData struct {
	Permanent    bool    `json:"permanent,omitempty"`    // a retry cannot succeed
	RetryAfterMS float64 `json:"retryAfterMs,omitempty"` // do not try again before
	Ambiguous    bool    `json:"ambiguous,omitempty"`    // it may have happened
	Gone         bool    `json:"gone,omitempty"`         // the message or the chat does not exist
}

// UnmarshalJSON ignores data of another form.
func (d *faultData) UnmarshalJSON(b []byte) error {
	type plain faultData
	var p plain
	if json.Unmarshal(b, &p) == nil {
		*d = faultData(p)
	}
	return nil
}

// parse parses a line of the program.
func parse(line []byte) (frame, error) {
	var f frame
	if err := json.Unmarshal(line, &f); err != nil {
		return f, fmt.Errorf("want an object of JSON-RPC: %w", err)
	}
	if string(f.ID) == "null" {
		f.ID = nil
	}
	switch {
	case f.Version != "2.0":
		return f, errors.New(`jsonrpc is not "2.0"`)
	case len(f.ID) > maxIDLen:
		return f, fmt.Errorf("the id has more than %d bytes", maxIDLen)
	case len(f.ID) > 0 && bytes.IndexByte([]byte(`"-0123456789`), f.ID[0]) < 0:
		return f, errors.New("the id is neither a number nor a text")
	case f.Method == "" && f.Result == nil && f.Error == nil:
		return f, errors.New("there is neither method, result nor error")
	case f.Method != "" && (f.Result != nil || f.Error != nil):
		return f, errors.New("there is both a method and a result or an error")
	case f.Method == "" && f.Result != nil && f.Error != nil:
		return f, errors.New("there is both a result and an error")
	case f.Method == "" && f.Error == nil && f.ID == nil:
		return f, errors.New("there is a result without an id")
	}
	return f, nil
}

// line returns a frame as a line.
func (f frame) line() ([]byte, error) {
	f.Version = "2.0"
	b, err := json.Marshal(f)
	if err == nil && len(b) >= maxLine {
		err = fmt.Errorf("the request has more than %d bytes", maxLine)
	}
	return append(b, '\n'), err
}

const maxRetry = 24 * time.Hour // a longer one is shortened

// err returns what an error of the program means to the gateway. text is its message, in
// one line.
func (e *fault) err(text string) error {
	d := e.Data
	err := errors.New(text)
	switch {
	case d.Ambiguous:
		return fmt.Errorf("%w: %w", channel.ErrAmbiguous, err)
	case d.Gone:
		err = fmt.Errorf("%w: %w", channel.ErrGone, err)
	}
	retry := time.Duration(min(max(0, d.RetryAfterMS), float64(maxRetry.Milliseconds()))) * time.Millisecond
	return &channel.Error{Permanent: d.Permanent || d.Gone || e.Code == codeUnknownMethod || e.Code == codeInvalidParams,
		RetryAfter: retry, Err: err}
}
