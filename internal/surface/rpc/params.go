package rpc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// paramSpec describes the properties of a struct of parameters.
type paramSpec struct {
	any      bool // see Any
	known    map[string]bool
	idle     map[string]bool // see Method.Ignoring
	refused  map[string]bool // see Method.Refusing
	required []string        // in the order of the struct
	integers []integer
	types    map[string]string // JSON Schema types of the properties for which null is no value
}

// integer is a property that is an integer.
type integer struct {
	name string
	min  int64 // the tag min of its field; math.MinInt64: none
}

// fault returns what is wrong with a value of the property; "": nothing, or decoding reports it.
func (i integer) fault(value json.RawMessage) string {
	n, err := strconv.ParseInt(string(value), 10, 64)
	switch {
	case string(value) == "null": // which would be decoded as 0
		return fmt.Sprintf("at /%s: must be integer", i.name)
	case err == nil && n < i.min:
		return fmt.Sprintf("at /%s: must be >= %d", i.name, i.min)
	}
	return ""
}

// accepted returns the properties that are accepted by name.
func (s paramSpec) accepted() map[string]bool {
	all := maps.Clone(s.idle)
	maps.Copy(all, s.known)
	return all
}

// isRestricting reports whether the name is that of a condition under which a call is
// wanted, or of something that it must not do. A method that ignored one of these would do what
// the client wanted to prevent. The rule is by the form of the name, so that it holds for
// properties of later versions of the protocol, too.
func isRestricting(name string) bool {
	lower := strings.ToLower(name)
	return strings.Contains(lower, "expected") || strings.HasPrefix(lower, "disable") ||
		strings.HasPrefix(lower, "deny") ||
		strings.HasSuffix(name, "Deny") || strings.HasSuffix(name, "Allow") || strings.HasPrefix(name, "base") ||
		strings.HasPrefix(name, "tools") ||
		slices.Contains(restricting[:], name)
}

// restricting are other names of conditions and prohibitions in OpenClaw's protocol.
var restricting = [...]string{
	"archivedOnly", "cwd", "incognito", "inputProvenance", "permissionMode", "sandbox", "sandboxMode", "sessionEffects",
	"suppressCommandInterpretation",
	"suppressDelivery", "suppressPromptPersistence", "toolBindings", "toolOverrides", "visibility",
}

// Any is the parameters of a method that reads them itself. It accepts all properties.
type Any struct{ Raw json.RawMessage }

// UnmarshalJSON keeps the parameters.
func (a *Any) UnmarshalJSON(b []byte) error {
	a.Raw = slices.Clone(b)
	return nil
}

// specOf returns the paramSpec of a struct type. It panics about a field without a json name: it
// is called when the program starts, so that a mistake is seen by every test.
func specOf(method string, t reflect.Type) paramSpec {
	if t == reflect.TypeFor[Any]() {
		return paramSpec{any: true, idle: map[string]bool{}}
	}
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("rpc: parameters of %s are %v, want a struct", method, t))
	}
	s := paramSpec{known: map[string]bool{}, idle: map[string]bool{}, refused: map[string]bool{},
		types: map[string]string{}}
	for f := range t.Fields() {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			panic(fmt.Sprintf("rpc: parameters of %s: field %s has no json name", method, f.Name))
		}
		s.known[name] = true
		if !reflect.PointerTo(f.Type).Implements(reflect.TypeFor[json.Unmarshaler]()) {
			s.types[name] = schemaType(f.Type)
		}
		if !strings.Contains(opts, "omit") {
			s.required = append(s.required, name)
		}
		least, bounded := f.Tag.Lookup("min")
		i := integer{name: name, min: math.MinInt64}
		if bounded {
			var err error
			if i.min, err = strconv.ParseInt(least, 10, 64); err != nil {
				panic(fmt.Sprintf("rpc: parameters of %s: field %s: min %q is not an integer", method, f.Name, least))
			}
		}
		if k := f.Type.Kind(); bounded || k == reflect.Int || k == reflect.Int64 {
			s.integers = append(s.integers, i)
		}
	}
	return s
}

// Params decodes parameters, or the object at a path within them. It rejects
// missing and unknown properties, null for a property whose type does not decode it
// itself, and integers below the tag min of their field.
func Params[P any](raw json.RawMessage, path string) (P, error) {
	var p P
	t := reflect.TypeFor[P]()
	s := specOf(t.Name(), t)
	if _, err := s.check(raw, path, false); err != nil {
		return p, err
	}
	for name, value := range wire.Members(raw) {
		// which would be decoded as the zero value
		if kind := s.types[name]; kind != "" && string(bytes.TrimSpace(value)) == "null" {
			return p, Invalid("at %s: must be %s", strings.TrimSuffix("/"+path, "/")+"/"+name, kind)
		}
	}
	err := decode(raw, &p)
	return p, err
}

// ReadOrigin checks the property conversationReadOrigin of a method: only the client itself
// reads the conversations that it names.
func ReadOrigin(origin string) error {
	if origin == "" || origin == wire.OriginOperator {
		return nil
	}
	return Invalid("at /conversationReadOrigin: must be %s", wire.OriginOperator)
}

// check returns an error that lists missing, unknown and refused properties. It
// returns the properties that have no effect: those that the method knows not to
// support, and, if it only reads, unknown ones. The rule is the same for all methods:
// a property has its effect, or the log says that it has none, or it is refused.
// Conditions and prohibitions are never ignored.
func (s paramSpec) check(raw json.RawMessage, path string, reads bool) (idle []string, err error) {
	missing, unknown := "", "at root: "
	if path != "" {
		missing = "at /" + path + ": "
		unknown = missing
	}
	if len(raw) == 0 || string(raw) == "null" {
		raw = []byte("{}")
	}
	if raw[0] != '{' {
		return nil, Invalid("at root: must be object")
	}
	if s.any {
		return nil, nil
	}
	var faults, strange []string
	there := make([]bool, len(s.required))
	for name, value := range wire.Members(raw) {
		if i := slices.IndexFunc(s.integers, func(i integer) bool { return i.name == name }); i >= 0 {
			if f := s.integers[i].fault(bytes.TrimSpace(value)); f != "" {
				faults = append(faults, f)
			}
		}
		if i := slices.Index(s.required, name); i >= 0 {
			there[i] = true
			continue
		}
		switch {
		case s.known[name]:
		case s.refused[name]:
			if text := string(value); text != "null" && text != "false" {
				strange = append(strange, fmt.Sprintf("%sproperty '%s' is not supported", unknown, name))
			}
		case s.idle[name], reads && !isRestricting(name):
			// A value that asks for nothing has lost nothing.
			if !slices.Contains([]string{"null", "false", `""`, "0", "[]", "{}"}, string(value)) {
				idle = append(idle, name)
			}
		default:
			strange = append(strange, fmt.Sprintf("%sunexpected property '%s'", unknown, name))
		}
	}
	for i, name := range s.required {
		if !there[i] {
			faults = append(faults, fmt.Sprintf("%smust have required property '%s'", missing, name))
		}
	}
	if strange != nil {
		slices.Sort(strange)
		faults = append(faults, slices.Compact(strange)...)
	}
	if faults != nil {
		return nil, Invalid("%s", strings.Join(faults, "; "))
	}
	return idle, nil
}

// decode stores raw in params. The error names the property of the wrong type.
func decode(raw json.RawMessage, params any) error {
	if len(raw) == 0 {
		return nil
	}
	err := json.Unmarshal(raw, params)
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return Invalid("at /%s: must be %s", strings.ReplaceAll(te.Field, ".", "/"), schemaType(te.Type))
	}
	if err != nil {
		return Invalid("%v", err)
	}
	return nil
}

// schemaType returns the JSON Schema name of a Go type.
func schemaType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return schemaType(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64, reflect.Int32:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "base64 string"
		}
		return "array"
	}
	return "object"
}

// invalid is the fault in the parameters of a method.
type invalid string

// Error returns the fault, without the method.
func (e invalid) Error() string { return string(e) }

// Invalid returns the error for invalid parameters. [Set.Call] adds the method.
func Invalid(format string, args ...any) error { return invalid(fmt.Sprintf(format, args...)) }

// Named returns err. If it is [Invalid], the method is added.
func Named(method string, err error) error {
	if e, ok := errors.AsType[invalid](err); ok {
		return wire.Errorf(wire.InvalidRequest, "invalid %s params: %s", method, e)
	}
	return err
}

// SessionKey returns the session that the parameters of a method name: key,
// which may be short, of agent or, if that is empty, of def.
func SessionKey(key, agent string, def chela.AgentID) (chela.SessionKey, error) {
	k, err := chela.ParseSessionKey(key, cmp.Or(chela.AgentID(agent), def))
	if err != nil {
		return "", Invalid("%v", err)
	}
	return k, nil
}

// AgentOf returns the agent of a request: the named one, the session's, or the
// default. It must exist.
func AgentOf(id, session string, def chela.AgentID, exists func(chela.AgentID) bool) (chela.AgentID, error) {
	agent := cmp.Or(chela.AgentID(id), def)
	if id == "" && session != "" {
		key, err := SessionKey(session, "", def)
		if err != nil {
			return "", err
		}
		agent = key.Agent()
	}
	if !exists(agent) {
		return "", UnknownAgent(agent)
	}
	return agent, nil
}

// UnknownAgent returns the error for an agent that does not exist.
func UnknownAgent(id chela.AgentID) error {
	return wire.Errorf(wire.InvalidRequest, "unknown agent id %q", id).With(map[string]any{
		"code": wire.DetailUnknownAgent, "agentId": id,
	})
}

// Limit returns the limit n of a request, at most limit; def if n is not set.
func Limit(n, def, limit int) int {
	if n <= 0 {
		return def
	}
	return min(n, limit)
}
