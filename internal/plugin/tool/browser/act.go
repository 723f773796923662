package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// point is a place in the window of a page, in CSS pixels.
type point struct{ x, y float64 }

// covered is what hitTest says of an element that cannot be clicked.
const hitTest = `function() {
	const r = [...this.getClientRects()].find(r => r.width > 0 && r.height > 0)
	if (!r) return "hidden"
	if (this.matches?.(":disabled")) return "disabled"
	const e = this.getRootNode().elementFromPoint?.(r.x + r.width / 2, r.y + r.height / 2)
	if (!e) return "outside"
	if (e === this || this.contains(e) || e.contains(this) || e.shadowRoot?.contains(this)) return ""
	if (e.closest("label")?.control === this || this.closest("label")?.contains(e)) return ""
	return "covered by <" + e.localName.replace(/[^a-z0-9-]/g, "").slice(0, 40) + ">"
}`

const (
	hitPause = 100 * time.Millisecond // between attempts
	hitTime  = 2 * time.Second        // for an element to become reachable
)

// reach scrolls an element into view and returns its middle.
func (t *tab) reach(ctx context.Context, n node) (point, error) {
	by, cancel := context.WithTimeout(ctx, hitTime)
	defer cancel()
	for {
		// what has no box is found below
		_ = t.callIn(ctx, n.session, "DOM.scrollIntoViewIfNeeded", map[string]any{"backendNodeId": n.id}, nil)
		var why string
		if err := t.js(ctx, n, hitTest, &why); err != nil {
			return point{}, err
		}
		if why == "" {
			return t.middle(ctx, n)
		}
		select {
		case <-time.After(hitPause):
		case <-by.Done():
			if ctx.Err() != nil {
				return point{}, context.Cause(ctx)
			}
			switch why {
			case "hidden":
				return point{}, errors.New("the element is not visible; take a snapshot")
			case "disabled":
				return point{}, errors.New("the element is disabled")
			case "outside":
				return point{}, errors.New("the element cannot be scrolled into view")
			}
			return point{}, fmt.Errorf("the element is %s; close what covers it first", why)
		}
	}
}

// middle returns the middle of an element.
func (t *tab) middle(ctx context.Context, n node) (point, error) {
	var q struct {
		Quads [][]float64 `json:"quads"`
	}
	if err := t.callIn(ctx, n.session, "DOM.getContentQuads", map[string]any{"backendNodeId": n.id}, &q); err != nil {
		return point{}, err
	}
	i := slices.IndexFunc(q.Quads, func(q []float64) bool { return len(q) == 8 && (q[4] != q[0] || q[5] != q[1]) })
	if i < 0 {
		return point{}, errors.New("the element is not visible; take a snapshot")
	}
	box := q.Quads[i]
	p := point{(box[0] + box[2] + box[4] + box[6]) / 4, (box[1] + box[3] + box[5] + box[7]) / 4}
	off, err := t.offset(ctx, n.session, 0)
	return point{p.x + off.x, p.y + off.y}, err
}

// offset returns where the content of a frame in another process begins in the page.
func (t *tab) offset(ctx context.Context, session string, depth int) (point, error) {
	if session == t.conn || depth > maxFrames {
		return point{}, nil
	}
	t.mu.Lock()
	frame := ""
	sessions := []string{t.conn}
	for f, s := range t.children {
		if s == session {
			frame = f
		} else {
			sessions = append(sessions, s)
		}
	}
	t.mu.Unlock()
	owner, err := t.frameOwner(ctx, sessions, frame)
	if err != nil {
		return point{}, err
	}
	var box struct {
		Model struct {
			Content []float64 `json:"content"`
		} `json:"model"`
	}
	if err := t.callIn(ctx, owner.session, "DOM.getBoxModel", map[string]any{"backendNodeId": owner.id},
		&box); err != nil {
		return point{}, err
	}
	if len(box.Model.Content) < 2 {
		return point{}, errors.New("the frame is not visible")
	}
	outer, err := t.offset(ctx, owner.session, depth+1)
	return point{box.Model.Content[0] + outer.x, box.Model.Content[1] + outer.y}, err
}

// mouse sends an event of the mouse.
func (t *tab) mouse(ctx context.Context, kind string, at point, button string, count, mods int) error {
	buttons := map[string]int{"left": 1, "right": 2, "middle": 4}[button]
	if kind == "mouseReleased" || kind == "mouseMoved" && count == 0 {
		buttons = 0
	}
	return t.call(ctx, "Input.dispatchMouseEvent", map[string]any{
		"type": kind, "x": at.x, "y": at.y, "button": button, "buttons": buttons, "clickCount": count, "modifiers": mods,
	}, nil)
}

// click clicks at a place.
func (t *tab) click(ctx context.Context, at point, button string, count, mods int, hold time.Duration) error {
	button = cmp.Or(button, "left")
	if button != "left" && button != "right" && button != "middle" {
		return fmt.Errorf("button: %q is unknown; there are left, right, middle", button)
	}
	if err := t.mouse(ctx, "mouseMoved", at, "none", 0, mods); err != nil {
		return err
	}
	for i := 1; i <= count; i++ {
		if err := t.mouse(ctx, "mousePressed", at, button, i, mods); err != nil {
			return err
		}
		if hold > 0 {
			select {
			case <-time.After(hold):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err := t.mouse(ctx, "mouseReleased", at, button, i, mods); err != nil {
			return err
		}
	}
	return nil
}

// press presses a key and releases it.
func (t *tab) press(ctx context.Context, k key, mods int) error {
	down := map[string]any{
		"type":                  "rawKeyDown",
		"key":                   k.name,
		"code":                  k.code,
		"windowsVirtualKeyCode": k.num,
		"modifiers":             mods,
	}
	if k.text != "" && mods&(control|alt|meta) == 0 {
		down["type"], down["text"] = "keyDown", k.text
	}
	if mods == control && k.code == "KeyA" { // the desktop does this, and there may be none
		down["commands"] = []string{"selectAll"}
	}
	if err := t.call(ctx, "Input.dispatchKeyEvent", down, nil); err != nil {
		return err
	}
	return t.call(ctx, "Input.dispatchKeyEvent", map[string]any{
		"type":                  "keyUp",
		"key":                   k.name,
		"code":                  k.code,
		"windowsVirtualKeyCode": k.num,
		"modifiers":             mods,
	}, nil)
}

// selectAll focuses an element that text can be typed into and selects its content.
const selectAll = `function() {
	const e = this.matches?.("input, textarea, [contenteditable]") ? this : this.querySelector?.("input, textarea, [contenteditable]") || this
	if (e.disabled || e.readOnly) return e.disabled ? "the element is disabled" : "the element cannot be changed"
	const kinds = ["checkbox", "radio", "button", "submit", "reset", "image", "file", "range", "color"]
	if (e.localName === "input" && kinds.includes(e.type)) return "text cannot be typed into an input of the type " + e.type
	if (!e.isContentEditable && e.localName !== "input" && e.localName !== "textarea") return "text cannot be typed into this element"
	e.scrollIntoView({block: "nearest"})
	e.focus()
	if (e.isContentEditable) { const r = document.createRange(); r.selectNodeContents(e); const s = getSelection(); s.removeAllRanges(); s.addRange(r) }
	else if (["date", "time", "month", "week", "datetime-local"].includes(e.type)) return "date"
	else e.select()
	return ""
}`

// setValue gives an element its value and tells the page.
const setValue = `function(v) {
	Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(this, v)
	this.dispatchEvent(new Event("input", {bubbles: true})); this.dispatchEvent(new Event("change", {bubbles: true}))
	return this.value === v ? "" : "the value has the wrong form for this type of input"
}`

// write replaces the content of an element by a text.
func (t *tab) write(ctx context.Context, n node, text string, slowly bool) error {
	var problem string
	if err := t.js(ctx, n, selectAll, &problem); err != nil {
		return err
	}
	switch problem {
	case "":
	case "date":
		if err := t.js(ctx, n, setValue, &problem, text); err != nil {
			return err
		}
		if problem != "date" && problem != "" {
			return errors.New(problem)
		}
		return nil
	default:
		return errors.New(problem)
	}
	switch {
	case text == "":
		return t.press(ctx, named["delete"], 0)
	case slowly:
		for _, r := range text {
			k := character(r)
			if err := t.press(ctx, k, 0); err != nil {
				return err
			}
		}
		return nil
	}
	return t.call(ctx, "Input.insertText", map[string]any{"text": text}, nil)
}

// choose selects options of a list by value or text.
const choose = `function(values) {
	const s = this.localName === "select" ? this : this.closest?.("select")
	if (!s) return "the element is no list of options; click it instead"
	if (s.disabled) return "the element is disabled"
	const found = values.map(v => [...s.options].find(o => o.value === v) || [...s.options].find(o => o.label.trim() === v.trim()) || [...s.options].find(o => o.label.trim().toLowerCase() === v.trim().toLowerCase()))
	const missing = found.findIndex(o => !o || o.disabled)
	if (missing >= 0) return "missing " + missing
	if (!s.multiple && values.length > 1) return "only one option can be selected"
	if (s.multiple) for (const o of s.options) o.selected = found.includes(o)
	else s.value = found[0]?.value, found[0] && (found[0].selected = true)
	s.dispatchEvent(new Event("input", {bubbles: true})); s.dispatchEvent(new Event("change", {bubbles: true}))
	return ""
}`

func (t *tab) choose(ctx context.Context, n node, values []string) error {
	if len(values) == 0 {
		return errors.New("values is missing")
	}
	var problem string
	if err := t.js(ctx, n, choose, &problem, values); err != nil {
		return err
	}
	var i int
	if c, _ := fmt.Sscanf(problem, "missing %d", &i); c == 1 && i < len(values) {
		return fmt.Errorf("there is no option %q that can be selected; take a snapshot to see them", values[i])
	}
	if problem != "" {
		return errors.New(problem)
	}
	return nil
}

// field is a field to be filled.
type field struct {
	Ref      string `json:"ref"`
	Selector string `json:"selector"`
	Type     string `json:"type"`
	Value    any    `json:"value"`
}

// kindOf says how an element is filled.
const kindOf = `function() {
	if (this.localName === "select") return "select"
	if (this.localName === "input" && (this.type === "checkbox" || this.type === "radio")) return this.checked ? "on" : "off"
	const c = this.getAttribute?.("aria-checked")
	return c === "true" ? "on" : c === "false" ? "off" : "text"
}`

// fill fills one field.
func (t *tab) fill(ctx context.Context, f field) error {
	n, err := t.find(ctx, f.Ref, f.Selector)
	if err != nil {
		return err
	}
	var kind string
	if err := t.js(ctx, n, kindOf, &kind); err != nil {
		return err
	}
	text := ""
	switch v := f.Value.(type) {
	case nil:
	case string:
		text = v
	default:
		text = strings.Trim(fmt.Sprint(v), "[]")
	}
	switch kind {
	case "select":
		values := []string{text}
		if list, ok := f.Value.([]any); ok {
			values = nil
			for _, v := range list {
				values = append(values, fmt.Sprint(v))
			}
		}
		return t.choose(ctx, n, values)
	case "on", "off":
		want := text == "true" || text == "on" || text == "1" || text == "yes" || text == "checked"
		if want == (kind == "on") {
			return nil
		}
		at, err := t.reach(ctx, n)
		if err != nil {
			return err
		}
		return t.click(ctx, at, "left", 1, 0, 0)
	}
	return t.write(ctx, n, text, false)
}

// dragSteps is the number of moves of a drag.
const dragSteps = 8

// drag drags from one element to another, also in the way in which pages handle files and
// texts that are dragged.
func (t *tab) drag(ctx context.Context, from, to node) error {
	a, err := t.reach(ctx, from)
	if err != nil {
		return err
	}
	b, err := t.middle(ctx, to)
	if err != nil {
		return err
	}
	if err := t.call(ctx, "Input.setInterceptDrags", map[string]any{"enabled": true}, nil); err != nil {
		return err
	}
	defer func() {
		_ = t.call(context.WithoutCancel(ctx), "Input.setInterceptDrags", map[string]any{"enabled": false}, nil)
	}() // the tab may be gone
	t.mu.Lock()
	t.dragged = nil
	t.mu.Unlock()
	if err := t.mouse(ctx, "mouseMoved", a, "none", 0, 0); err != nil {
		return err
	}
	if err := t.mouse(ctx, "mousePressed", a, "left", 1, 0); err != nil {
		return err
	}
	for i := 1; i <= dragSteps; i++ {
		f := float64(i) / dragSteps
		if err := t.mouse(ctx, "mouseMoved", point{a.x + (b.x-a.x)*f, a.y + (b.y-a.y)*f}, "left", 1, 0); err != nil {
			return err
		}
	}
	t.mu.Lock()
	data := t.dragged
	t.mu.Unlock()
	if data != nil {
		for _, kind := range [...]string{"dragEnter", "dragOver", "drop"} {
			if err := t.call(ctx, "Input.dispatchDragEvent", map[string]any{"type": kind, "x": b.x, "y": b.y, "data": data},
				nil); err != nil {
				return err
			}
		}
	}
	return t.mouse(ctx, "mouseReleased", b, "left", 1, 0)
}

// condition is what an action waits for.
type condition struct {
	text, gone, selector, url, load, function string
}

// conditionScript evaluates a condition in the page.
const conditionScript = `(c => {
	const body = () => document.body ? document.body.innerText : ""
	if (c.text && !body().includes(c.text)) return false
	if (c.gone && body().includes(c.gone)) return false
	if (c.selector) { const e = document.querySelector(c.selector); if (!e || !e.getClientRects().length) return false }
	return true
})`

const pollTime = 100 * time.Millisecond

// waitFor waits until a condition holds.
func (t *tab) waitFor(ctx context.Context, c condition) error {
	event := map[string]string{
		"":                 "",
		"load":             "load",
		"domcontentloaded": "DOMContentLoaded",
		"networkidle":      "networkIdle",
	}
	state, ok := event[strings.ToLower(c.load)]
	if !ok {
		return fmt.Errorf("loadState: %q is unknown; there are load, domcontentloaded, networkidle", c.load)
	}
	if state != "" {
		if err := t.until(ctx, func() bool { return t.reached[state] }); err != nil {
			return err
		}
	}
	args, err := json.Marshal(map[string]string{"text": c.text, "gone": c.gone, "selector": c.selector})
	if err != nil {
		return err
	}
	for {
		holds := true
		if c.url != "" {
			_, at := t.state()
			holds = matches(c.url, at)
		}
		if holds && c.text+c.gone+c.selector != "" {
			err := t.value(ctx, t.conn, "Runtime.evaluate",
				map[string]any{"expression": conditionScript + "(" + string(args) + ")", "returnByValue": true}, &holds)
			if e, ok := errors.AsType[thrown](err); ok {
				return e
			}
			if _, isProtocol := errors.AsType[*protocolError](err); err != nil && !isProtocol { // the document may be changing
				return err
			}
			holds = holds && err == nil
		}
		if holds && c.function != "" {
			err := t.value(ctx, t.conn, "Runtime.evaluate", map[string]any{"expression": "Promise.resolve((" + c.function +
				")()).then(v => !!v)", "returnByValue": true, "awaitPromise": true}, &holds)
			if err != nil {
				return err
			}
		}
		if holds {
			return nil
		}
		select {
		case <-time.After(pollTime):
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.gone:
			return errGone
		}
	}
}

// matches reports whether an address has the form of a pattern, in which * and ** stand for
// any text.
func matches(pattern, address string) bool {
	parts := strings.Split(strings.ReplaceAll(pattern, "**", "*"), "*")
	if len(parts) == 1 {
		return address == pattern || strings.TrimSuffix(address, "/") == strings.TrimSuffix(pattern, "/")
	}
	rest, ok := strings.CutPrefix(address, parts[0])
	if !ok {
		return false
	}
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, p)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// evaluate runs a function in the page, with the element of a ref as its argument if there is
// one, and returns its result as JSON.
func (t *tab) evaluate(ctx context.Context, function string, n *node) (string, error) {
	f := strings.TrimSpace(function)
	if f == "" {
		return "", errors.New("fn is missing: a function such as () => document.title")
	}
	if !strings.Contains(f, "=>") && !strings.HasPrefix(f, "function") && !strings.HasPrefix(f, "async") {
		f = "() => (" + strings.TrimSuffix(f, ";") + ")"
	}
	wrapped := `async function() { const v = await (` + f +
		`)(this); return v === undefined ? "undefined" : JSON.stringify(v) }`
	var out string
	var err error
	if n != nil {
		err = t.js(ctx, *n, wrapped, &out)
	} else {
		err = t.value(ctx, t.conn, "Runtime.evaluate", map[string]any{
			"expression":    "(" + wrapped + ").call(undefined)",
			"awaitPromise":  true,
			"returnByValue": true,
			"userGesture":   true,
		}, &out)
	}
	if ctx.Err() != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		_ = t.browser.process.conn.call(stop, t.conn, "Runtime.terminateExecution", nil, nil) // the tab may be gone
	}
	return out, err
}
