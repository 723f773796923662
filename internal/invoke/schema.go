package invoke

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/chela-ai/chela/internal/schema"
	"github.com/chela-ai/chela/internal/tool"
)

// schemas keeps what tools take by the text of their definitions.
type schemas struct {
	mu   sync.Mutex
	kept map[string]*arguments
}

// maxSchemas bounds what is kept: tools of servers outside may change theirs.
const maxSchemas = 4096

// arguments is what a tool takes. A validator is made of it when a call comes,
// or before the first model is told of it, if it may be that none can be made:
// all stock tools' together take longer than a turn.
type arguments struct {
	text  json.RawMessage // the object schema that the definition means
	plain bool            // a validator can be made
	err   error           // why the schema cannot be used
	said  bool            // the error was logged

	top      *jsonschema.Schema // nil: not made yet
	compiled *jsonschema.Resolved
	doc      *schema.Doc
}

// of returns what a tool takes, ready to hold a call against.
func (ss *schemas) of(spec tool.Spec) (*arguments, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	a := ss.readLocked(spec.Schema)
	a.prepare()
	return a, a.unusable(spec.Name)
}

// offered returns the schema that a model is told of, unless the tool could
// not be called: that is logged, once.
func (ss *schemas) offered(spec tool.Spec, log *slog.Logger) (json.RawMessage, bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	a := ss.readLocked(spec.Schema)
	if !a.plain {
		a.prepare()
	}
	if a.err != nil && !a.said {
		a.said = true
		log.Warn("no model is told of a tool", "tool", spec.Name, "err", a.unusable(spec.Name))
	}
	return a.text, a.err == nil
}

// readLocked returns what the tool with the definition takes.
func (ss *schemas) readLocked(definition json.RawMessage) *arguments {
	if a := ss.kept[string(definition)]; a != nil {
		return a
	}
	a := takes(definition)
	if ss.kept == nil || len(ss.kept) >= maxSchemas {
		ss.kept = make(map[string]*arguments)
	}
	ss.kept[string(definition)] = a
	return a
}

// takes reads a tool's definition; one that has no schema takes any object.
func takes(definition json.RawMessage) *arguments {
	a := &arguments{text: definition, plain: schema.Plain(definition)}
	if !a.plain {
		a.text, a.err = schema.Object(definition)
	}
	return a
}

// unusable returns why the tool cannot be called; nil: it can.
func (a *arguments) unusable(tool string) error {
	if a.err == nil {
		return nil
	}
	return fmt.Errorf("the schema of tool %s cannot be used: %w", tool, a.err)
}

// prepare makes the validator, unless it is there.
func (a *arguments) prepare() {
	if a.err != nil || a.top != nil {
		return
	}
	a.top = new(jsonschema.Schema)
	var relaxed json.RawMessage
	if relaxed, a.err = schema.Relax(a.text); a.err != nil {
		return
	}
	if a.doc, a.err = schema.Read(relaxed); a.err != nil {
		return
	}
	if a.err = json.Unmarshal(relaxed, a.top); a.err != nil {
		return
	}
	a.compiled, a.err = a.top.Resolve(nil) // nothing is fetched
}

// maxSteps bounds the work of one validation; a few milliseconds.
const maxSteps = 20_000

var errSteps = errors.New("they are nested too deeply to be checked")

// holds holds a value against the schema.
func (a *arguments) holds(v any) error {
	if !a.doc.Within(v, maxSteps) {
		return errSteps
	}
	return a.compiled.Validate(v)
}

// validate reports what is wrong with the arguments, for the model: the field,
// what is expected there, and which fields there are.
func (a *arguments) validate(args json.RawMessage) error {
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return fmt.Errorf("the arguments are no JSON: %w", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("the arguments are %s, want an object. %s", typeOf(v), a.fields())
	}
	err := a.holds(m)
	if err == nil {
		return nil
	}
	return errors.New("invalid arguments: " + a.explain(m, err) + ". " + a.fields())
}

// decode reads one JSON value, with its numbers as they are written.
func decode(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one value")
	}
	return v, nil
}
