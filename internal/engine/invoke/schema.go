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

	"github.com/chela-ai/chela/internal/core/schema"
	"github.com/chela-ai/chela/internal/core/tool"
)

// schemas caches the schemas of tools by the text of their definitions.
type schemas struct {
	mu     sync.Mutex
	byText map[string]*arguments
}

// maxSchemas is the size of the cache. External tool servers may change their
// schemas.
const maxSchemas = 4096

// arguments is the schema of a tool's arguments. Its validator is created at the
// first call, because creating those of all tools takes longer than a turn. If it
// is unknown whether that succeeds, it is created before a model gets the schema.
type arguments struct {
	text   json.RawMessage // the definition as an object schema
	plain  bool            // creating a validator cannot fail
	err    error           // why the schema cannot be used
	logged bool            // err was logged

	top      *jsonschema.Schema // nil: no validator yet
	compiled *jsonschema.Resolved
	doc      *schema.Doc
}

// of returns the arguments of a tool with their validator.
func (ss *schemas) of(spec tool.Spec) (*arguments, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	a := ss.readLocked(spec.Schema)
	a.prepare()
	return a, a.unusable(spec.Name)
}

// forModel returns the schema for a model. It reports false if the schema cannot
// be used, which is logged once.
func (ss *schemas) forModel(spec tool.Spec, log *slog.Logger) (json.RawMessage, bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	a := ss.readLocked(spec.Schema)
	if !a.plain {
		a.prepare()
	}
	if a.err != nil && !a.logged {
		a.logged = true
		log.Warn("tool is not available to models", "tool", spec.Name, "err", a.unusable(spec.Name))
	}
	return a.text, a.err == nil
}

// readLocked returns the arguments for a definition.
func (ss *schemas) readLocked(definition json.RawMessage) *arguments {
	if a := ss.byText[string(definition)]; a != nil {
		return a
	}
	a := newArguments(definition)
	if ss.byText == nil || len(ss.byText) >= maxSchemas {
		ss.byText = make(map[string]*arguments)
	}
	ss.byText[string(definition)] = a
	return a
}

// newArguments parses a definition. An empty one accepts any object.
func newArguments(definition json.RawMessage) *arguments {
	a := &arguments{text: definition, plain: schema.Plain(definition)}
	if !a.plain {
		a.text, a.err = schema.Object(definition)
	}
	return a
}

// unusable returns why the tool cannot be called, or nil.
func (a *arguments) unusable(tool string) error {
	if a.err == nil {
		return nil
	}
	return fmt.Errorf("the schema of tool %s cannot be used: %w", tool, a.err)
}

// prepare creates the validator unless it exists.
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
	a.compiled, a.err = a.top.Resolve(nil) // remote schemas are not fetched
}

// maxSteps limits the work of one validation to a few milliseconds.
const maxSteps = 20_000

var errSteps = errors.New("they are nested too deeply")

// check validates a value.
func (a *arguments) check(v any) error {
	if !a.doc.WithinSteps(v, maxSteps) {
		return errSteps
	}
	return a.compiled.Validate(v)
}

// validate checks the arguments. The error is written for the model: it names the
// invalid fields, the expected types, and all fields.
func (a *arguments) validate(args json.RawMessage) error {
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return fmt.Errorf("the arguments are not JSON: %w", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("the arguments are %s, want an object. %s", typeOf(v), a.fields())
	}
	err := a.check(m)
	if err == nil {
		return nil
	}
	return errors.New("invalid arguments: " + a.explain(m, err) + ". " + a.fields())
}

// decode parses one JSON value. Numbers remain as they are written.
func decode(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("unexpected data after the value")
	}
	return v, nil
}
