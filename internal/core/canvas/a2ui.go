package canvas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of A2UI messages.
const (
	MaxLines      = 256 << 10 // bytes of one push
	maxMessages   = 500       // of one push
	maxComponents = 1000      // of a message, and of a surface
	maxID         = 200       // bytes of an id or a path
	maxProblems   = 10        // that an error lists
)

// Op is what a message does, in the words of its version.
type Op string

// The messages of version 0.8, and those of 0.9 and later.
const (
	BeginRendering   Op = "beginRendering"
	SurfaceUpdate    Op = "surfaceUpdate"
	DataModelUpdate  Op = "dataModelUpdate"
	DeleteSurface    Op = "deleteSurface" // of all versions
	CreateSurface    Op = "createSurface"
	UpdateComponents Op = "updateComponents"
	UpdateDataModel  Op = "updateDataModel"
)

var (
	ops = [...]Op{BeginRendering, SurfaceUpdate, DataModelUpdate, DeleteSurface, CreateSurface,
		UpdateComponents, UpdateDataModel}
	olderOps = ops[:3]
	newerOps = ops[4:]
	// unsupported are messages of version 1.0 that need an answer of the screen.
	unsupported = [...]string{"callFunction", "callRendererFunction", "actionResponse", "agentFunctionResponse"}
)

// catalog is the standard components, with the names of all versions.
var catalog = [...]string{
	"Text", "Image", "Icon", "Video", "AudioPlayer", "Row", "Column", "List", "Card", "Tabs", "Modal", "Divider", "Button",
	"TextField", "CheckBox",
	"ChoicePicker", "MultipleChoice", "Slider", "DateTimeInput", "ProgressBar",
}

// Message is one valid A2UI message.
type Message struct {
	Op      Op
	Surface string
	Older   bool // of version 0.8; meaningless for DeleteSurface without a version
	Raw     json.RawMessage

	path       string      // of data, without a slash at its end; "": all data
	root       string      // of BeginRendering
	components []component // of SurfaceUpdate, UpdateComponents and CreateSurface
	versioned  bool
}

// component is what matters of a component beside its look.
type component struct {
	id     string
	refs   []string // components that it names
	action string   // that it sends to the assistant; "": none
}

// Parse decodes JSON lines. All that is wrong is in one error, by line.
func Parse(lines string) ([]Message, error) {
	switch {
	case len(lines) > MaxLines:
		return nil, fmt.Errorf("A2UI: %d bytes, at most %d can be pushed at once", len(lines), MaxLines)
	case !utf8.ValidString(lines):
		return nil, errors.New("A2UI: the text is not UTF-8")
	}
	var out []Message
	var wrong []string
	number := 0
	for line := range strings.SplitSeq(strings.TrimPrefix(lines, "\ufeff"), "\n") {
		number++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		m, err := parseLine(line)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("line %d: %v", number, err))
			continue
		}
		if out = append(out, m); len(out) > maxMessages {
			return nil, fmt.Errorf("A2UI: more than %d messages; push them in parts", maxMessages)
		}
	}
	if n := len(wrong); n > maxProblems {
		wrong = append(wrong[:maxProblems], fmt.Sprintf("and %d more", n-maxProblems))
	}
	switch {
	case wrong != nil:
		return nil, fmt.Errorf("A2UI: nothing was shown: %s", strings.Join(wrong, "; "))
	case out == nil:
		return nil, errors.New("A2UI: there is no message; each line is one, as JSON")
	}
	return out, nil
}

// parseLine decodes one message.
func parseLine(line string) (Message, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &fields); err != nil || fields == nil {
		if err == nil || line[0] != '{' {
			err = errors.New("it is not a JSON object")
		}
		return Message{}, err
	}
	m := Message{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch {
		case name == "version":
		case slices.Contains(ops[:], Op(name)):
			if m.Op != "" {
				return m, fmt.Errorf("%s and %s in one message; each line has one", min(m.Op, Op(name)), max(m.Op, Op(name)))
			}
			m.Op = Op(name)
		case slices.Contains(unsupported[:], name):
			return m, fmt.Errorf("%s is not supported here", name)
		default:
			return m, fmt.Errorf("unknown message or field %q; the messages are %s, or in version 0.8 %s and deleteSurface",
				clip(name), join(append(slices.Clone(newerOps), DeleteSurface)), join(olderOps))
		}
	}
	if m.Op == "" {
		return m, fmt.Errorf("no message in it; one of %s is needed", join(ops[:]))
	}
	if err := m.version(fields["version"]); err != nil {
		return m, err
	}
	var raw bytes.Buffer
	if err := json.Compact(&raw, []byte(line)); err != nil {
		return m, err
	}
	m.Raw = raw.Bytes()
	return m, m.body(fields[string(m.Op)])
}

// version checks the version of a message.
func (m *Message) version(raw json.RawMessage) error {
	m.Older = slices.Contains(olderOps, m.Op)
	if raw == nil {
		return nil
	}
	var v string
	if err := json.Unmarshal(raw, &v); err != nil {
		return errors.New(`version: it is a text, such as "v0.9"`)
	}
	m.versioned = true
	number := strings.TrimPrefix(v, "v")
	older := number == "0.8" || strings.HasPrefix(number, "0.8.")
	newer := slices.ContainsFunc([]string{"0.9", "0.10", "1"},
		func(s string) bool { return number == s || strings.HasPrefix(number, s+".") })
	switch {
	case !older && !newer:
		return fmt.Errorf("version %q is not supported; 0.8, 0.9 and 1.0 are", clip(v))
	case older && slices.Contains(newerOps, m.Op):
		return fmt.Errorf("%s is no message of version %s; use %s", m.Op, v, join(olderOps))
	case newer && m.Older:
		return fmt.Errorf("%s is no message of version %s; use %s", m.Op, v, join(newerOps))
	}
	m.Older = older
	return nil
}

// body decodes what a message says.
func (m *Message) body(raw json.RawMessage) error {
	var b struct {
		Surface    string            `json:"surfaceId"`
		Root       string            `json:"root"`
		Path       *string           `json:"path"`
		Components []json.RawMessage `json:"components"`
		Contents   json.RawMessage   `json:"contents"`
	}
	if err := json.Unmarshal(raw, &b); err != nil || len(raw) == 0 || raw[0] != '{' {
		return fmt.Errorf("%s: it is not an object as the format has it%s", m.Op, because(err))
	}
	if err := checkID("surfaceId", b.Surface); err != nil {
		return fmt.Errorf("%s: %w", m.Op, err)
	}
	m.Surface = b.Surface
	switch m.Op {
	case BeginRendering:
		m.root = b.Root
		return named(m.Op, checkID("root", b.Root))
	case SurfaceUpdate, UpdateComponents:
		if len(b.Components) == 0 {
			return fmt.Errorf("%s: components is missing or empty", m.Op)
		}
	case DataModelUpdate:
		if err := checkContents(b.Contents); err != nil {
			return fmt.Errorf("%s: %w", m.Op, err)
		}
	case DeleteSurface:
		return nil
	}
	if b.Path != nil {
		if m.path = strings.TrimRight(*b.Path, "/"); len(m.path) > maxID {
			return fmt.Errorf("%s: path has more than %d bytes", m.Op, maxID)
		}
		if m.path != "" && m.path[0] != '/' {
			m.path = "/" + m.path
		}
	}
	if len(b.Components) > maxComponents {
		return fmt.Errorf("%s: %d components, at most %d are possible", m.Op, len(b.Components), maxComponents)
	}
	for i, raw := range b.Components {
		c, err := parseComponent(raw, m.Older)
		if err != nil {
			return fmt.Errorf("%s: components[%d]: %w", m.Op, i, err)
		}
		m.components = append(m.components, c)
	}
	return nil
}

// checkContents checks the data of a message of version 0.8: a list of keys with values.
func checkContents(raw json.RawMessage) error {
	var list []struct {
		Key    *string          `json:"key"`
		String *json.RawMessage `json:"valueString"`
		Number *json.RawMessage `json:"valueNumber"`
		Bool   *json.RawMessage `json:"valueBoolean"`
		Map    *json.RawMessage `json:"valueMap"`
	}
	if json.Unmarshal(raw, &list) != nil || len(raw) == 0 || raw[0] != '[' {
		return errors.New(`contents: a list such as [{"key": "name", "valueString": "Ann"}] is needed`)
	}
	for i, c := range list {
		n := 0
		for _, v := range [...]*json.RawMessage{c.String, c.Number, c.Bool, c.Map} {
			if v != nil {
				n++
			}
		}
		if c.Key == nil || n != 1 {
			return fmt.Errorf("contents[%d]: a key and one of valueString, valueNumber, valueBoolean and valueMap are needed", i)
		}
		if c.Map != nil {
			if err := checkContents(*c.Map); err != nil {
				return fmt.Errorf("contents[%d]: valueMap: %w", i, err)
			}
		}
	}
	return nil
}

// parseComponent decodes a component.
func parseComponent(raw json.RawMessage, older bool) (component, error) {
	var b struct {
		ID        string          `json:"id"`
		Component json.RawMessage `json:"component"`
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return component{}, fmt.Errorf("it is not an object as the format has it%s", because(err))
	}
	if err := checkID("id", b.ID); err != nil {
		return component{}, err
	}
	var kind string
	props := raw
	if older {
		var wrapped map[string]json.RawMessage
		if json.Unmarshal(b.Component, &wrapped) != nil || len(wrapped) != 1 {
			return component{}, fmt.Errorf(`%q: component is an object with one type, such as {"Text": {…}}`, clip(b.ID))
		}
		for kind, props = range wrapped {
		}
	} else if json.Unmarshal(b.Component, &kind) != nil || kind == "" {
		return component{}, fmt.Errorf(`%q: component is the name of a type, such as "Text"`, clip(b.ID))
	}
	if !slices.Contains(catalog[:], kind) {
		return component{}, fmt.Errorf("%q: unknown component %q; the components are %s", clip(b.ID), clip(kind),
			strings.Join(catalog[:], ", "))
	}
	c := component{id: b.ID}
	if err := c.read(props); err != nil {
		return c, fmt.Errorf("%q: %w", clip(b.ID), err)
	}
	return c, nil
}

// read finds the components that one names, and its action.
func (c *component) read(raw json.RawMessage) error {
	type named struct {
		Child string `json:"child"`
	}
	var p struct {
		Child    string          `json:"child"`
		Entry    string          `json:"entryPointChild"`
		Content  string          `json:"contentChild"`
		Trigger  string          `json:"trigger"`
		Newer    json.RawMessage `json:"content"`
		Tabs     []named         `json:"tabs"`
		Items    []named         `json:"tabItems"`
		Children json.RawMessage `json:"children"`
		Action   json.RawMessage `json:"action"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("it is not as the format has it%s", because(err))
	}
	var content string
	_ = json.Unmarshal(p.Newer, &content) // only Modal has one
	c.refs = append(c.refs, p.Child, p.Entry, p.Content, p.Trigger, content)
	for _, t := range append(p.Tabs, p.Items...) {
		c.refs = append(c.refs, t.Child)
	}
	if len(p.Children) > 0 && string(p.Children) != "null" {
		var list []string
		var template struct {
			List     []string `json:"explicitList"`
			ID       string   `json:"componentId"`
			Template struct {
				ID string `json:"componentId"`
			} `json:"template"`
		}
		if json.Unmarshal(p.Children, &list) != nil && json.Unmarshal(p.Children, &template) != nil {
			return errors.New("children: ids of components are needed, not the components themselves")
		}
		c.refs = append(append(c.refs, list...), append(template.List, template.ID, template.Template.ID)...)
	}
	c.refs = slices.DeleteFunc(c.refs, func(s string) bool { return s == "" })
	if len(c.refs) > maxComponents {
		return fmt.Errorf("it names more than %d others", maxComponents)
	}
	var a struct {
		Name  string `json:"name"`
		Event struct {
			Name string `json:"name"`
		} `json:"event"`
	}
	if len(p.Action) > 0 && json.Unmarshal(p.Action, &a) != nil {
		return errors.New("action: it is not as the format has it")
	}
	if c.action = a.Name; a.Event.Name != "" {
		c.action = a.Event.Name
	}
	if len(c.action) > maxID {
		return fmt.Errorf("action: its name has more than %d bytes", maxID)
	}
	return nil
}

func checkID(field, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%s is missing", field)
	case len(id) > maxID:
		return fmt.Errorf("%s has more than %d bytes", field, maxID)
	}
	return nil
}

func named(op Op, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// because returns what an error of decoding says about a field.
func because(err error) string {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && t.Field != "" {
		return fmt.Sprintf(": %s is a %s", clip(t.Field), t.Value)
	}
	return ""
}

// clip shortens a text for an error.
func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

func join(list []Op) string {
	var out []string
	for _, o := range list {
		out = append(out, string(o))
	}
	return strings.Join(out, ", ")
}

// Text returns messages that show a text.
func Text(text string) string {
	value, _ := json.Marshal(text) // a string
	return `{"surfaceUpdate":{"surfaceId":"main","components":[{"id":"root","component":{"Column":{"children":{"explicitList":["text"]}}}},` +
		`{"id":"text","component":{"Text":{"text":{"literalString":` + string(value) + `},"usageHint":"body"}}}]}}` + "\n" +
		`{"beginRendering":{"surfaceId":"main","root":"root"}}`
}
