package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Version is the protocol version of this package. Oldest is the oldest version
// the gateway accepts.
const (
	Version = 4
	Oldest  = 3
)

// DefaultPort is the gateway's default port.
const DefaultPort = 18789

// Limits for both sides.
const (
	MaxHandshake = 64 << 10 // bytes of a frame before the hello
	MaxPayload   = 25 << 20 // bytes of a frame after it
	MaxBuffered  = 50 << 20 // bytes queued for one slow client
	TickInterval = 30 * time.Second
)

// Types of frames.
const (
	TypeRequest  = "req"
	TypeResponse = "res"
	TypeEvent    = "event"
)

// Close codes of a connection in addition to the standard ones.
const (
	CloseNormal   = 1000
	CloseProtocol = 1002 // no common protocol version
	ClosePolicy   = 1008 // not allowed, or too slow
	CloseRestart  = 1012 // the gateway stops or restarts
	CloseStarting = 1013
	CloseAuth     = 4001 // the credential is no longer valid
)

// ReasonStandby is the reason in the details of an Unavailable error when another gateway
// serves, which their owner names.
const ReasonStandby = "standby"

// Request calls a method.
type Request struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
	Trace  string          `json:"traceparent,omitempty"`       // W3C trace context
	Viewer string          `json:"expectedProfileId,omitempty"` // the profile the client expects to be
}

// Response answers a request.
type Response struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	OK      bool            `json:"ok"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// Event is a notification from the gateway.
type Event struct {
	Type    string          `json:"type"`
	Name    string          `json:"event"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Seq     int64           `json:"seq,omitempty"` // per connection, from 1; 0: not broadcast
	State   *StateVersion   `json:"stateVersion,omitempty"`
	// where a client with CapCursor can resume; 0: the event is not retained
	Cursor int64 `json:"cursor,omitempty"`
}

// Decode stores the payload in v.
func (e Event) Decode(v any) error {
	if err := json.Unmarshal(e.Payload, v); err != nil {
		return fmt.Errorf("event %s: %w", e.Name, err)
	}
	return nil
}

// StateVersion counts the changes of the state in a hello's snapshot.
type StateVersion struct {
	Presence int64 `json:"presence"`
	Health   int64 `json:"health"`
}

// ErrNotJSON reports a frame that is not JSON.
var ErrNotJSON = errors.New("frame is not JSON")

// ParseRequest decodes a request strictly: it rejects unknown properties. The
// request returned with an error holds the id, if there is one, so that the
// caller can answer.
func ParseRequest(b []byte) (Request, error) {
	var r Request
	if !json.Valid(b) {
		if id, deep := tooDeep(b); deep {
			return Request{ID: id}, fmt.Errorf("more than %d levels of nesting", maxDepth)
		}
		return r, ErrNotJSON
	}
	err := r.read(b)
	switch {
	case err != nil:
		return Request{ID: requestID(b)}, err
	case r.Type != TypeRequest:
		return r, fmt.Errorf("type is %q, want %q", r.Type, TypeRequest)
	case r.ID == "":
		return r, errors.New("id is empty")
	case r.Method == "":
		return r, errors.New("method is empty")
	}
	return r, nil
}

// read decodes the members of a frame. The parameters alias the frame, because
// they may be large.
func (r *Request) read(b []byte) error {
	if bytes.TrimSpace(b)[0] != '{' {
		return mistyped("", json.Unmarshal(b, r))
	}
	for name, value := range Members(b) {
		var err error
		switch name {
		case "type":
			err = json.Unmarshal(value, &r.Type)
		case "id":
			err = json.Unmarshal(value, &r.ID)
		case "method":
			err = json.Unmarshal(value, &r.Method)
		case "traceparent":
			err = json.Unmarshal(value, &r.Trace)
		case "expectedProfileId":
			err = json.Unmarshal(value, &r.Viewer)
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

// mistyped returns an error that names the property and its wrong type.
func mistyped(name string, err error) error {
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("at /%s: must not be %s", name, te.Value)
	}
	return err
}

// requestID returns the id of an invalid request; "" if there is none.
func requestID(b []byte) string {
	var loose struct{ ID any }
	if json.Unmarshal(b, &loose) != nil {
		return ""
	}
	id, _ := loose.ID.(string)
	return id
}

// maxDepth is how deeply arrays and objects may be nested, a limit of encoding/json.
const maxDepth = 10_000

// tooDeep reports whether a frame is JSON but for its nesting, and returns its id.
func tooDeep(b []byte) (id string, deep bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	level, deepest, name, isName := 0, 0, "", false
	for {
		t, err := d.Token()
		switch {
		case err == io.EOF:
			return id, level == 0 && deepest > maxDepth
		case err != nil:
			return "", false
		}
		switch v, _ := t.(string); {
		case t == json.Delim('{') || t == json.Delim('['):
			level++
			deepest = max(deepest, level)
			isName = level == 1
			continue
		case t == json.Delim('}') || t == json.Delim(']'):
			level--
		case level == 1 && isName:
			name, isName = v, false
			continue
		case level == 1 && name == "id":
			id = v
		}
		isName = level == 1
	}
}

// Parse decodes a frame of any type and returns a [Request], a [Response] or an
// [Event]. It ignores unknown properties.
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

// Encode returns v as JSON without HTML escaping and without a trailing
// newline.
func Encode(v any) ([]byte, error) { return appendJSON(make([]byte, 0, frameCapacity/2), v) }

// frameCapacity is the initial capacity of a frame, enough for most.
const frameCapacity = 512

// EncodeResponse returns a [Response] as a frame. The payload is encoded only
// once, directly into the frame.
func EncodeResponse(id string, payload any, fault *Error) (b []byte, err error) {
	b = append(make([]byte, 0, frameCapacity), `{"type":"res","id":`...)
	if b, err = appendJSON(b, id); err != nil {
		return nil, err
	}
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

// EncodeEvent returns an [Event] without a sequence number as a frame. Like
// [EncodeResponse] it encodes the payload only once.
func EncodeEvent(name string, payload any) (b []byte, err error) {
	b = append(make([]byte, 0, frameCapacity), `{"type":"event","event":`...)
	if b, err = appendJSON(b, name); err != nil {
		return nil, err
	}
	if b, err = appendJSON(append(b, `,"payload":`...), payload); err != nil {
		return nil, err
	}
	return append(b, '}'), nil
}

// appendJSON appends v as JSON without HTML escaping.
func appendJSON(b []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return buf.Bytes()[:buf.Len()-1], nil // without the trailing newline
}

// Millis is a time in milliseconds since 1970.
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
