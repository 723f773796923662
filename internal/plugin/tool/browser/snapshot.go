package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// efficient is the mode of snapshots with the elements that can be used only.
const efficient = "efficient"

const (
	maxFrames     = 32     // of a page
	maxSnapshot   = 80_000 // characters that a call may ask for
	snapshotChars = 20_000
	efficientChar = 10_000
	maxName       = 400  // characters of the name of an element
	maxText       = 2000 // characters of a text
	maxDepth      = 200
	maxFields     = 60 // text fields whose values are shown
)

// snapshotOptions select what a snapshot shows.
type snapshotOptions struct {
	interactive bool   // only elements that can be used
	compact     bool   // no elements that only give structure
	urls        bool   // with the addresses of links
	depth       int    // 0: all
	maxChars    int    // 0: the default
	maxLines    int    // 0: unlimited
	selector    string // only the first element that matches
	frame       string // only the frame of the iframe with the ref or selector
}

// axNode is a node of the accessibility tree.
type axNode struct {
	ID         string   `json:"nodeId"`
	Ignored    bool     `json:"ignored"`
	Role       axValue  `json:"role"`
	Name       axValue  `json:"name"`
	Value      axValue  `json:"value"`
	Children   []string `json:"childIds"`
	Parent     string   `json:"parentId"`
	Backend    int      `json:"backendDOMNodeId"`
	Properties []struct {
		Name  string  `json:"name"`
		Value axValue `json:"value"`
	} `json:"properties"`
}

type axValue struct {
	Value any `json:"value"`
}

// text returns a value on one line.
func (v axValue) text() string {
	switch x := v.Value.(type) {
	case nil:
		return ""
	case string:
		return strings.Join(strings.Fields(strings.ToValidUTF8(x, "\uFFFD")), " ")
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return fmt.Sprint(v.Value)
}

func (n *axNode) property(name string) string {
	for _, p := range n.Properties {
		if p.Name == name {
			return p.Value.text()
		}
	}
	return ""
}

// axTree is the accessibility tree of a frame.
type axTree struct {
	session string // of the connection
	root    string
	nodes   map[string]*axNode
}

func newTree(session string, nodes []*axNode) axTree {
	t := axTree{session: session, nodes: make(map[string]*axNode, len(nodes))}
	for _, n := range nodes {
		t.nodes[n.ID] = n
		if n.Parent == "" && t.root == "" {
			t.root = n.ID
		}
	}
	return t
}

// page is the accessibility trees of all frames.
type page struct {
	main   axTree
	frames map[node]axTree // by the iframe
	hidden map[node]bool   // fields whose values are not shown, such as passwords
}

// frameTree is a frame with those in it that are in the same process.
type frameTree struct {
	Frame struct {
		ID string `json:"id"`
	} `json:"frame"`
	Children []frameTree `json:"childFrames"`
}

// read reads the accessibility trees of the tab.
func (t *tab) read(ctx context.Context) (*page, error) {
	p := &page{frames: map[node]axTree{}, hidden: map[node]bool{}}
	t.mu.Lock()
	sessions := []string{t.conn}
	for _, s := range t.children {
		sessions = append(sessions, s)
	}
	t.mu.Unlock()
	seen := 0
	for _, session := range sessions {
		var tree struct {
			Tree frameTree `json:"frameTree"`
		}
		if err := t.callIn(ctx, session, "Page.getFrameTree", nil, &tree); err != nil {
			if session == t.conn || ctx.Err() != nil {
				return nil, err
			}
			continue // the frame is gone
		}
		queue := []frameTree{tree.Tree}
		for first := true; len(queue) > 0 && seen < maxFrames; first = false {
			f := queue[0]
			queue = append(queue[1:], f.Children...)
			seen++
			var ax struct {
				Nodes []*axNode `json:"nodes"`
			}
			err := t.callIn(ctx, session, "Accessibility.getFullAXTree", map[string]any{"frameId": f.Frame.ID}, &ax)
			if first && session == t.conn {
				if err != nil {
					return nil, err
				}
				p.main = newTree(session, ax.Nodes)
				if root := p.main.nodes[p.main.root]; root != nil { // the browser tells of the title later
					t.mu.Lock()
					t.title = root.Name.text()
					t.mu.Unlock()
				}
				continue
			}
			if err != nil {
				if ctx.Err() != nil {
					return nil, err
				}
				continue
			}
			if owner, err := t.frameOwner(ctx, sessions, f.Frame.ID); err == nil {
				p.frames[owner] = newTree(session, ax.Nodes)
			}
		}
	}
	return p, t.findSecrets(ctx, p)
}

// frameOwner returns the iframe of a frame.
func (t *tab) frameOwner(ctx context.Context, sessions []string, frame string) (node, error) {
	var owner struct {
		Backend int `json:"backendNodeId"`
	}
	for _, s := range sessions {
		err := t.callIn(ctx, s, "DOM.getFrameOwner", map[string]any{"frameId": frame}, &owner)
		if err == nil && owner.Backend != 0 {
			return node{s, owner.Backend}, nil
		}
	}
	return node{}, errors.New("the frame has no element")
}

// fields are the roles of elements that a person types into.
var fields = map[string]bool{"textbox": true, "searchbox": true, "combobox": true, "spinbutton": true}

// findSecrets finds the fields whose values are secret. It asks for each field that has a
// value; those beyond a limit count as secret.
func (t *tab) findSecrets(ctx context.Context, p *page) error {
	trees := []axTree{p.main}
	for _, tree := range p.frames {
		trees = append(trees, tree)
	}
	asked := 0
	for _, tree := range trees {
		for _, n := range tree.nodes {
			if !fields[n.Role.text()] || n.Value.text() == "" {
				continue
			}
			at := node{tree.session, n.Backend}
			p.hidden[at] = true
			if asked++; asked > maxFields {
				continue
			}
			var d struct {
				Node struct {
					Attributes []string `json:"attributes"`
				} `json:"node"`
			}
			err := t.callIn(ctx, tree.session, "DOM.describeNode", map[string]any{"backendNodeId": n.Backend}, &d)
			if err != nil {
				if ctx.Err() != nil {
					return err
				}
				continue
			}
			if !isPassword(d.Node.Attributes) {
				delete(p.hidden, at)
			}
		}
	}
	return nil
}

// isPassword reports whether the attributes of a field are those of one for a secret.
func isPassword(attributes []string) bool {
	for i := 0; i+1 < len(attributes); i += 2 {
		name, value := strings.ToLower(attributes[i]), strings.ToLower(attributes[i+1])
		switch name {
		case "type":
			if value == "password" {
				return true
			}
		case "autocomplete":
			if strings.Contains(value, "password") || strings.Contains(value, "one-time-code") ||
				strings.HasPrefix(value, "cc-") {
				return true
			}
		}
	}
	return false
}

// usable are the roles of elements that have a ref.
var usable = map[string]bool{
	"button":           true,
	"link":             true,
	"textbox":          true,
	"searchbox":        true,
	"combobox":         true,
	"checkbox":         true,
	"radio":            true,
	"switch":           true,
	"slider":           true,
	"spinbutton":       true,
	"option":           true,
	"listbox":          true,
	"menuitem":         true,
	"menuitemcheckbox": true,
	"menuitemradio":    true,
	"tab":              true,
	"treeitem":         true,

	"DisclosureTriangle": true,
	"PopUpButton":        true,
}

// plain are the roles of nodes that are left out, with their content kept.
var plain = map[string]bool{
	"":                 true,
	"none":             true,
	"generic":          true,
	"presentation":     true,
	"RootWebArea":      true,
	"WebArea":          true,
	"GenericContainer": true,
	"LayoutTable":      true,
	"LayoutTableRow":   true,
	"LayoutTableCell":  true,
	"MenuListPopup":    true,
}

// states are the properties that are shown, in this order.
var states = [...]string{"level", "checked", "pressed", "expanded", "selected", "disabled", "required",
	"invalid", "modal", "readonly"}

// printer writes a snapshot.
type printer struct {
	page *page
	o    snapshotOptions
	ref  func(node) string

	b     strings.Builder
	chars int
	lines int
	refs  int
	left  int // lines that were left out
}

// print writes a node and what is in it.
func (w *printer) print(t axTree, id string, depth, nesting int) {
	n := t.nodes[id]
	if n == nil || nesting > maxDepth {
		return
	}
	role, name := n.Role.text(), n.Name.text()
	at := node{t.session, n.Backend}
	focusable := n.property("focusable") == "true"
	inner := depth
	switch {
	case role == "InlineTextBox" || role == "LineBreak" || role == "ListMarker":
		return
	case role == "LabelText" && onlyText(t, n) == "":
		// What it labels has it as its name.
		for _, c := range n.Children {
			if child := t.nodes[c]; child != nil && child.Role.text() != "StaticText" {
				w.print(t, c, depth, nesting+1)
			}
		}
		return
	case n.Ignored || plain[role] && !(focusable && role != "RootWebArea" && role != "WebArea"):
		// The content stands for it.
	case role == "StaticText":
		if !w.o.interactive && name != "" {
			w.line(depth, "text: "+humanize.Truncate(name, maxText))
		}
		return
	default:
		line, structure := role, true
		if name != "" {
			line, structure = line+" "+strconv.Quote(humanize.Truncate(name, maxName)), false
		}
		for _, s := range states {
			switch v := n.property(s); {
			case v == "" || v == "false":
			case v == "true":
				line += " [" + s + "]"
			default:
				line += " [" + s + "=" + v + "]"
			}
		}
		hasRef := n.Backend != 0 && (usable[role] || focusable || role == "Iframe" ||
			(role == "image" || role == "heading") && name != "" && !w.o.interactive)
		if hasRef {
			line, structure = line+" [ref="+w.ref(at)+"]", false
		}
		text := ""
		switch {
		case fields[role] && w.page.hidden[at]:
			text = "[not shown]"
		case fields[role], role == "slider", role == "progressbar", role == "meter":
			text = n.Value.text()
		default:
			text = onlyText(t, n)
			if text != "" && name != "" {
				text = "" // the name says it
			}
		}
		if text != "" {
			line, structure = line+": "+humanize.Truncate(text, maxText), false
		}
		if all := options(t, n); role == "combobox" && len(all) > 0 {
			line += " (options: " + humanize.Truncate(strings.Join(all, " | "), maxText) + ")"
		}
		if w.o.urls && role == "link" {
			if u := n.property("url"); u != "" {
				line += " <" + humanize.Truncate(u, maxName) + ">"
			}
		}
		switch {
		case w.o.interactive && !hasRef, w.o.compact && structure:
		default:
			if hasRef {
				w.refs++
			}
			w.line(depth, line)
			if !w.o.interactive {
				inner++
			}
		}
		if fields[role] && role != "combobox" || text != "" || name != "" && onlyText(t, n) != "" {
			return
		}
	}
	if w.o.depth > 0 && inner > w.o.depth {
		return
	}
	for _, c := range n.Children {
		w.print(t, c, inner, nesting+1)
	}
	if frame, ok := w.page.frames[at]; ok {
		w.print(frame, frame.root, inner, nesting+1)
	}
}

// options returns the names of the options of a list.
func options(t axTree, n *axNode) (all []string) {
	for _, id := range n.Children {
		switch c := t.nodes[id]; {
		case c == nil:
		case c.Role.text() == "option":
			all = append(all, humanize.Truncate(c.Name.text(), maxName))
		case plain[c.Role.text()] || c.Role.text() == "group":
			all = append(all, options(t, c)...)
		}
	}
	return all
}

// onlyText returns the text of a node that contains nothing else; "": it does, or it is empty.
func onlyText(t axTree, n *axNode) string {
	var parts []string
	for _, id := range n.Children {
		c := t.nodes[id]
		switch {
		case c == nil:
		case c.Role.text() == "StaticText":
			parts = append(parts, c.Name.text())
		case c.Role.text() == "LineBreak" || c.Role.text() == "ListMarker":
		case (c.Ignored || plain[c.Role.text()]) && c.property("focusable") != "true":
			s := onlyText(t, c)
			if s == "" && len(c.Children) > 0 {
				return ""
			}
			parts = append(parts, s)
		default:
			return ""
		}
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// line writes a line, unless the snapshot is long enough.
func (w *printer) line(depth int, s string) {
	s = strings.Repeat("  ", min(depth, 20)) + "- " + s + "\n"
	n := utf8.RuneCountInString(s)
	if w.left > 0 || w.chars+n > w.o.maxChars || w.o.maxLines > 0 && w.lines >= w.o.maxLines {
		w.left++
		return
	}
	w.chars += n
	w.lines++
	w.b.WriteString(s)
}

// shot is a snapshot.
type shot struct {
	text        string
	lines, refs int
	left        int // lines that were left out
}

// snapshot returns the page as text.
func (t *tab) snapshot(ctx context.Context, o snapshotOptions) (shot, error) {
	if o.maxChars <= 0 {
		o.maxChars = snapshotChars
		if o.interactive {
			o.maxChars = efficientChar
		}
	}
	o.maxChars = min(o.maxChars, maxSnapshot)
	_, at := t.state()
	if err := allowed(at); err != nil {
		return shot{}, err
	}
	p, err := t.read(ctx)
	if err != nil {
		return shot{}, err
	}
	w := &printer{page: p, o: o, ref: t.refOf}
	tree, root := p.main, p.main.root
	if o.frame != "" {
		iframe, err := t.find(ctx, o.frame, o.frame)
		if err != nil {
			return shot{}, err
		}
		var ok bool
		if tree, ok = p.frames[iframe]; !ok {
			return shot{}, errors.New("frame: the element is no iframe, or its content cannot be read")
		}
		root = tree.root
	}
	if o.selector != "" {
		within, err := t.find(ctx, "", o.selector)
		if err != nil {
			return shot{}, err
		}
		root = ""
		for id, n := range tree.nodes {
			if n.Backend == within.id && tree.session == within.session {
				root = id
			}
		}
		if root == "" {
			return shot{}, errors.New("selector: the element has no content that is visible")
		}
	}
	w.print(tree, root, 0, 0)
	return shot{strings.TrimRight(w.b.String(), "\n"), w.lines, w.refs, w.left}, nil
}

// refOf returns the ref of a node.
func (t *tab) refOf(n node) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ref, ok := t.refs[n]; ok {
		return ref
	}
	t.lastRef++
	ref := "e" + strconv.Itoa(t.lastRef)
	t.refs[n], t.nodes[ref] = ref, n
	return ref
}

// cleanRef returns a ref as snapshots show it.
func cleanRef(s string) string {
	s = strings.Trim(strings.TrimSpace(s), "[]@")
	return strings.TrimPrefix(s, "ref=")
}

// isRef reports whether s has the form of a ref.
func isRef(s string) bool {
	digits, ok := strings.CutPrefix(cleanRef(s), "e")
	_, err := strconv.Atoi(digits)
	return ok && err == nil
}

// stale is the error for a ref whose element is gone.
func stale(ref string) error {
	return fmt.Errorf("%s is not on the page (any more): take a snapshot and use a ref from it", ref)
}

// find returns the node of a ref, or else the first that a CSS selector matches.
func (t *tab) find(ctx context.Context, ref, selector string) (node, error) {
	if isRef(ref) {
		ref = cleanRef(ref)
		t.mu.Lock()
		n, ok := t.nodes[ref]
		t.mu.Unlock()
		if !ok {
			return n, stale(ref)
		}
		var connected bool
		if err := t.js(ctx, n, `function() { return this.isConnected }`, &connected); err != nil {
			if _, ok := errors.AsType[*protocolError](err); ok {
				return n, stale(ref)
			}
			return n, err
		}
		if !connected {
			return n, stale(ref)
		}
		return n, nil
	}
	if ref != "" && selector == "" {
		return node{}, fmt.Errorf("%q is no ref; refs are like e12, from a snapshot", ref)
	}
	if selector == "" {
		return node{}, errors.New("ref is missing: take a snapshot and use a ref from it")
	}
	var found struct {
		Result struct {
			Object string `json:"objectId"`
		} `json:"result"`
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	quoted, _ := json.Marshal(selector) // a string
	if err := t.call(ctx, "Runtime.evaluate",
		map[string]any{"expression": "document.querySelector(" + string(quoted) + ")"}, &found); err != nil {
		return node{}, err
	}
	switch {
	case found.Exception != nil:
		return node{}, fmt.Errorf("selector: %q is no CSS selector", selector)
	case found.Result.Object == "":
		return node{}, fmt.Errorf("selector: no element matches %q", selector)
	}
	var d struct {
		Node struct {
			Backend int `json:"backendNodeId"`
		} `json:"node"`
	}
	err := t.call(ctx, "DOM.describeNode", map[string]any{"objectId": found.Result.Object}, &d)
	return node{t.conn, d.Node.Backend}, err
}

// js calls a function with a node as this, and decodes what it returns, unless result is nil.
func (t *tab) js(ctx context.Context, n node, function string, result any, args ...any) error {
	var o struct {
		Object struct {
			ID string `json:"objectId"`
		} `json:"object"`
	}
	if err := t.callIn(ctx, n.session, "DOM.resolveNode", map[string]any{"backendNodeId": n.id}, &o); err != nil {
		return err
	}
	params := map[string]any{
		"objectId":            o.Object.ID,
		"functionDeclaration": function,
		"returnByValue":       true,
		"awaitPromise":        true,
		"userGesture":         true,
	}
	values := []map[string]any{}
	for _, a := range args {
		values = append(values, map[string]any{"value": a})
	}
	params["arguments"] = values
	return t.value(ctx, n.session, "Runtime.callFunctionOn", params, result)
}

// thrown is an exception of a script.
type thrown struct{ text string }

// Error returns the exception.
func (e thrown) Error() string { return e.text }

// value carries out a command of the domain Runtime and decodes the value of its result.
func (t *tab) value(ctx context.Context, session, method string, params, result any) error {
	var v struct {
		Result struct {
			Type  string          `json:"type"`
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if err := t.callIn(ctx, session, method, params, &v); err != nil {
		return err
	}
	switch {
	case v.Exception != nil:
		return thrown{humanize.Truncate(strings.TrimSpace(v.Exception.Text+" "+v.Exception.Exception.Description), maxText)}
	case result == nil || len(v.Result.Value) == 0:
		return nil
	}
	return json.Unmarshal(v.Result.Value, result)
}
