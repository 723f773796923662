package exec

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// keySequences returns what named keys send without modifiers. For keys in
// xterm's form it returns the number or letter of the sequence.
func keySequences() map[string]string {
	return map[string]string{
		"enter": "\r", "return": "\r", "tab": "\t", "escape": "\x1b", "esc": "\x1b", "space": " ",
		"backspace": "\x7f", "bspace": "\x7f", "btab": "\x1b[Z",
		"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F",
		"f1": "P", "f2": "Q", "f3": "R", "f4": "S",
		"insert": "2~", "ic": "2~", "delete": "3~", "dc": "3~", "del": "3~",
		"pageup": "5~", "pgup": "5~", "ppage": "5~", "pagedown": "6~", "pgdn": "6~", "npage": "6~",
		"f5": "15~", "f6": "17~", "f7": "18~", "f8": "19~", "f9": "20~", "f10": "21~", "f11": "23~", "f12": "24~",
	}
}

// key returns what a key sends. The key is a name as written by tmux and
// OpenClaw (Enter, C-c, M-x, S-Tab, Up, F5), or literal text.
func key(name string, arrows bool) (string, error) {
	rest, mods := name, 0
	for len(rest) > 2 && rest[1] == '-' {
		bit := map[byte]int{'S': 1, 's': 1, 'M': 2, 'm': 2, 'C': 4, 'c': 4}[rest[0]]
		if bit == 0 {
			break
		}
		mods |= bit
		rest = rest[2:]
	}
	if len(rest) == 2 && rest[0] == '^' && mods == 0 {
		rest, mods = rest[1:], 4
	}
	seq, ok := keySequences()[strings.ToLower(rest)]
	switch {
	case ok && (len(seq) == 1 && seq >= "A" && seq <= "Z" || strings.HasSuffix(seq, "~")):
		return cursorKey(seq, mods, arrows), nil
	case ok && seq == "\t" && mods == 1:
		return "\x1b[Z", nil
	case ok:
		return withModifiers(seq, mods&^1), nil
	case mods == 0:
		return rest, nil
	case utf8.RuneCountInString(rest) != 1:
		return "", fmt.Errorf("key %q is unknown; known keys are %s, with the prefixes C-, M- and S-", name,
			strings.Join(slices.Sorted(maps.Keys(keySequences())), ", "))
	}
	if mods&1 != 0 {
		rest = strings.ToUpper(rest)
	}
	if mods&4 == 0 {
		return withModifiers(rest, mods), nil
	}
	c, err := controlChar(rest)
	if err != nil {
		return "", fmt.Errorf("key %q: %w", name, err)
	}
	return withModifiers(c, mods&^4), nil
}

// withModifiers returns what a key sends with Meta or Control.
func withModifiers(seq string, mods int) string {
	if mods&4 != 0 && seq == " " {
		seq = "\x00"
	}
	if mods&2 != 0 {
		return "\x1b" + seq
	}
	return seq
}

// controlChar returns the control character of a key.
func controlChar(k string) (string, error) {
	switch c := strings.ToUpper(k)[0]; {
	case len(k) == 1 && c >= '@' && c <= '_':
		return string(rune(c - '@')), nil
	case k == "?":
		return "\x7f", nil
	}
	return "", fmt.Errorf("%q has no control character", k)
}

// cursorKey returns the sequence of a cursor or function key.
func cursorKey(seq string, mods int, arrows bool) string {
	n, end := strings.TrimSuffix(seq, "~"), "~"
	if n == seq {
		n, end = "1", seq
	}
	switch {
	case mods != 0:
		return "\x1b[" + n + ";" + strconv.Itoa(mods+1) + end
	case end == "~":
		return "\x1b[" + seq
	case seq >= "P" || arrows:
		return "\x1bO" + seq
	}
	return "\x1b[" + seq
}

// keyInput returns the bytes of a send-keys call.
func keyInput(keys, raw []string, literal string, arrows bool) ([]byte, error) {
	var b []byte
	for _, k := range keys {
		s, err := key(k, arrows)
		if err != nil {
			return nil, err
		}
		b = append(b, s...)
	}
	for _, h := range raw {
		h = strings.TrimPrefix(strings.ToLower(strings.ReplaceAll(h, " ", "")), "0x")
		x, err := hex.DecodeString(h)
		if err != nil {
			return nil, fmt.Errorf("hex %q: %w", h, err)
		}
		b = append(b, x...)
	}
	b = append(b, literal...)
	if len(b) == 0 {
		return nil, fmt.Errorf("no keys: give keys, hex or literal")
	}
	return b, nil
}

// pasteInput returns text as a terminal sends pasted text. The text cannot
// end the brackets early.
func pasteInput(text string, brackets bool) []byte {
	if !brackets {
		return []byte(text)
	}
	for strings.Contains(text, "\x1b[201~") {
		text = strings.ReplaceAll(text, "\x1b[201~", "")
	}
	return []byte("\x1b[200~" + text + "\x1b[201~")
}
