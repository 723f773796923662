package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Version is the protocol version that this package speaks, and Oldest the one
// that the gateway speaks with clients of former times.
const (
	Version = 4
	Oldest  = 3
)

// DefaultPort is where a gateway listens when it is told no other port.
const DefaultPort = 18789

// Limits that both sides keep.
const (
	MaxHandshake = 64 << 10 // bytes of a frame before the hello
	MaxPayload   = 25 << 20 // bytes of a frame after it
	MaxBuffered  = 50 << 20 // bytes that wait for one slow client
	TickInterval = 30 * time.Second
)

// The types of frames.
const (
	TypeRequest  = "req"
	TypeResponse = "res"
	TypeEvent    = "event"
)

// Close codes of a connection, beside the standard ones.
const (
	CloseNormal   = 1000
	CloseProtocol = 1002 // no common protocol version
	ClosePolicy   = 1008 // not allowed, or too slow
	CloseRestart  = 1012 // the gateway stops or restarts
	CloseStarting = 1013
	CloseAuth     = 4001 // the credential is no longer good
)

// Request asks for a method.
type Request struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
	Trace  string          `json:"traceparent,omitempty"`       // W3C trace context
	Viewer string          `json:"expectedProfileId,omitempty"` // who the client believes to be
}

// Response answers a request.
type Response struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	OK      bool            `json:"ok"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// Event tells of something that happened.
type Event struct {
	Type    string          `json:"type"`
	Name    string          `json:"event"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Seq     int64           `json:"seq,omitempty"` // per connection, from 1; 0: sent to this connection alone
	State   *StateVersion   `json:"stateVersion,omitempty"`
	Cursor  int64           `json:"cursor,omitempty"` // where a client with CapCursor may go on; 0: of an event that is not kept
}

// Decode stores the payload in v.
func (e Event) Decode(v any) error {
	if err := json.Unmarshal(e.Payload, v); err != nil {
		return fmt.Errorf("event %s: %w", e.Name, err)
	}
	return nil
}

// StateVersion counts the changes of what the snapshot of a hello holds.
type StateVersion struct {
	Presence int64 `json:"presence"`
	Health   int64 `json:"health"`
}

// ErrNotJSON says that a frame is not JSON at all.
var ErrNotJSON = errors.New("frame is not JSON")

// ParseRequest decodes a request strictly: other properties than those of
// [Request] are refused. The request that is returned with an error holds the
// id when it could be read, so that the error can be answered.
func ParseRequest(b []byte) (Request, error) {
	var r Request
	if !json.Valid(b) {
		return r, ErrNotJSON
	}
	err := r.read(b)
	switch {
	case err != nil:
		return Request{ID: looseID(b)}, err
	case r.Type != TypeRequest:
		return r, fmt.Errorf("type is %q, want %q", r.Type, TypeRequest)
	case r.ID == "":
		return r, errors.New("id is empty")
	case r.Method == "":
		return r, errors.New("method is empty")
	}
	return r, nil
}

// read takes what a frame holds. The parameters are a part of it and no copy:
// they may be large.
func (r *Request) read(b []byte) error {
	if bytes.TrimLeft(b, blanks)[0] != '{' {
		return mistyped("", json.Unmarshal(b, r))
	}
	for name, value := range Members(b) {
		var err error
		switch name {
		case "type":
			r.Type, err = unquote(value)
		case "id":
			r.ID, err = unquote(value)
		case "method":
			r.Method, err = unquote(value)
		case "traceparent":
			r.Trace, err = unquote(value)
		case "expectedProfileId":
			r.Viewer, err = unquote(value)
		case "params":
			r.Params = value
		default:
			err = fmt.Errorf("unknown field %q", name)
		}
		if err != nil {
			return mistyped(name, err)
		}
	}
	return nil
}

// mistyped says what a property must not be.
func mistyped(name string, err error) error {
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("at /%s: must not be %s", name, te.Value)
	}
	return err
}

// looseID returns the id of a frame that is not a request; "" when it has none.
func looseID(b []byte) string {
	var loose struct{ ID any }
	if json.Unmarshal(b, &loose) != nil {
		return ""
	}
	id, _ := loose.ID.(string)
	return id
}

// Parse decodes a frame of any type: it returns a [Request], a [Response] or
// an [Event]. Properties that it does not know are ignored.
func Parse(b []byte) (any, error) {
	var f struct {
		Type string `json:"type"`

		ID      string          `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
		OK      bool            `json:"ok"`
		Error   *Error          `json:"error"`
		Payload json.RawMessage `json:"payload"`
		Event   string          `json:"event"`
		Seq     int64           `json:"seq"`
		State   *StateVersion   `json:"stateVersion"`
		Cursor  int64           `json:"cursor"`
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	switch f.Type {
	case TypeRequest:
		return Request{Type: f.Type, ID: f.ID, Method: f.Method, Params: f.Params}, nil
	case TypeResponse:
		return Response{Type: f.Type, ID: f.ID, OK: f.OK, Payload: f.Payload, Error: f.Error}, nil
	case TypeEvent:
		return Event{Type: f.Type, Name: f.Event, Payload: f.Payload, Seq: f.Seq, State: f.State, Cursor: f.Cursor}, nil
	}
	return nil, fmt.Errorf("frame: unknown type %q", f.Type)
}

// Encode returns v as JSON without escaping what is safe in a text frame and
// without a line end.
func Encode(v any) ([]byte, error) { return appendJSON(make([]byte, 0, usual/2), v) }

// usual is room for most frames.
const usual = 512

// EncodeResponse returns a [Response] as a frame. It encodes a payload that is
// not encoded yet once, and not once more as a part of the frame.
func EncodeResponse(id string, payload any, fault *Error) (b []byte, err error) {
	b = append(make([]byte, 0, usual), `{"type":"res","id":`...)
	b = appendText(b, id)
	if fault == nil {
		b = append(b, `,"ok":true`...)
	} else {
		b = append(b, `,"ok":false,"error":`...)
		if b, err = appendJSON(b, fault); err != nil {
			return nil, err
		}
	}
	if payload != nil {
		b = append(b, `,"payload":`...)
		if b, err = appendJSON(b, payload); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// EncodeEvent returns an [Event] without a sequence number as a frame, as
// [EncodeResponse] does.
func EncodeEvent(name string, payload any) ([]byte, error) {
	b := append(make([]byte, 0, usual), `{"type":"event","event":`...)
	b = append(appendText(b, name), `,"payload":`...)
	b, err := appendJSON(b, payload)
	if err != nil {
		return nil, err
	}
	return append(b, '}'), nil
}

// Millis is an instant in milliseconds since 1970, as the protocol writes it.
type Millis int64

// At returns t in milliseconds; 0 for the zero time.
func At(t time.Time) Millis {
	if t.IsZero() {
		return 0
	}
	return Millis(t.UnixMilli())
}

// Time returns the instant; the zero time for 0.
func (m Millis) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m))
}
