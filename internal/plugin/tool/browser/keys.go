package browser

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The modifiers of input events.
const (
	alt     = 1
	control = 2
	meta    = 4
	shift   = 8
)

// key is a key of the keyboard.
type key struct {
	name string // KeyboardEvent.key
	code string // KeyboardEvent.code
	num  int    // of Windows
	text string // that it writes; "": none
}

// named are the keys that write nothing, or not their name, by the lower-case names that
// people use.
var named = map[string]key{
	"enter":     {"Enter", "Enter", 13, "\r"},
	"return":    {"Enter", "Enter", 13, "\r"},
	"tab":       {"Tab", "Tab", 9, ""},
	"escape":    {"Escape", "Escape", 27, ""},
	"esc":       {"Escape", "Escape", 27, ""},
	"backspace": {"Backspace", "Backspace", 8, ""},
	"delete":    {"Delete", "Delete", 46, ""},

	"del":    {"Delete", "Delete", 46, ""},
	"insert": {"Insert", "Insert", 45, ""},
	"home":   {"Home", "Home", 36, ""},
	"end":    {"End", "End", 35, ""},
	"pageup": {"PageUp", "PageUp", 33, ""},

	"pagedown":  {"PageDown", "PageDown", 34, ""},
	"arrowleft": {"ArrowLeft", "ArrowLeft", 37, ""},
	"arrowup":   {"ArrowUp", "ArrowUp", 38, ""},

	"arrowright": {"ArrowRight", "ArrowRight", 39, ""},
	"arrowdown":  {"ArrowDown", "ArrowDown", 40, ""},
	"left":       {"ArrowLeft", "ArrowLeft", 37, ""},
	"up":         {"ArrowUp", "ArrowUp", 38, ""},

	"right":       {"ArrowRight", "ArrowRight", 39, ""},
	"down":        {"ArrowDown", "ArrowDown", 40, ""},
	"space":       {" ", "Space", 32, " "},
	"contextmenu": {"ContextMenu", "ContextMenu", 93, ""},
	"shift":       {"Shift", "ShiftLeft", 16, ""},
	"control":     {"Control", "ControlLeft", 17, ""},

	"alt":  {"Alt", "AltLeft", 18, ""},
	"meta": {"Meta", "MetaLeft", 91, ""},
}

var modifiers = map[string]int{
	"alt":           alt,
	"option":        alt,
	"control":       control,
	"ctrl":          control,
	"controlormeta": control,
	"meta":          meta,
	"cmd":           meta,
	"command":       meta,
	"super":         meta,
	"win":           meta,
	"shift":         shift,
}

// parseKey reads a key with modifiers, such as Control+Shift+T.
func parseKey(s string) (k key, mods int, err error) {
	rest := strings.TrimSpace(s)
	for {
		i := strings.IndexByte(rest, '+')
		if i <= 0 || i == len(rest)-1 {
			break
		}
		m, ok := modifiers[strings.ToLower(strings.TrimSpace(rest[:i]))]
		if !ok {
			return key{}, 0, fmt.Errorf("key: %q is no modifier; there are Control, Shift, Alt, Meta", rest[:i])
		}
		mods |= m
		rest = strings.TrimSpace(rest[i+1:])
	}
	if n, ok := named[strings.ToLower(rest)]; ok {
		return n, mods, nil
	}
	var f int
	if n, _ := fmt.Sscanf(strings.ToUpper(rest), "F%d", &f); n == 1 && f >= 1 && f <= 24 && len(rest) > 1 {
		name := fmt.Sprintf("F%d", f)
		return key{name, name, 111 + f, ""}, mods, nil
	}
	if utf8.RuneCountInString(rest) != 1 {
		return key{}, 0, fmt.Errorf("key: %q is unknown; use names like Enter, Tab, Escape, ArrowDown, Control+A", s)
	}
	r, _ := utf8.DecodeRuneInString(rest)
	k = character(r)
	if mods&shift != 0 && unicode.IsLower(r) {
		k.name, k.text = strings.ToUpper(k.name), strings.ToUpper(k.text)
	}
	return k, mods, nil
}

// character returns the key of a character.
func character(r rune) key {
	k := key{name: string(r), text: string(r)}
	switch u := unicode.ToUpper(r); {
	case u >= 'A' && u <= 'Z':
		k.code, k.num = "Key"+string(u), int(u)
	case r >= '0' && r <= '9':
		k.code, k.num = "Digit"+string(r), int(r)
	case r == '\n' || r == '\r':
		k = named["enter"]
	case r == '\t':
		k = named["tab"]
	case r == ' ':
		k = named["space"]
	}
	return k
}
