package talk

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Limits of the words that wake apps.
const (
	MaxWakeWords = 32
	MaxWakeWord  = 64 // characters
)

// DefaultWakeWords are the words that wake apps until a person chooses others.
func DefaultWakeWords() []string { return []string{"chela", "openclaw", "computer"} }

// WakeWords returns a list of words as it is kept: without surrounding blanks, empty words
// and repetitions. The defaults stand for a list without words.
func WakeWords(list []string) ([]string, error) {
	var out []string
	for _, w := range list {
		w = strings.Join(strings.Fields(w), " ")
		switch {
		case w == "" || slices.ContainsFunc(out, func(o string) bool { return strings.EqualFold(o, w) }):
			continue
		case !utf8.ValidString(w) || strings.ContainsFunc(w, unicode.IsControl):
			return nil, chela.Errorf(chela.CodeInvalid, "the wake word %q has characters that nobody says", w)
		case utf8.RuneCountInString(w) > MaxWakeWord:
			return nil, chela.Errorf(chela.CodeInvalid, "the wake word %.40q has more than %d characters", w, MaxWakeWord)
		case len(out) == MaxWakeWords:
			return nil, chela.Errorf(chela.CodeInvalid, "there are more than %d wake words", MaxWakeWords)
		}
		out = append(out, w)
	}
	if len(out) == 0 {
		return DefaultWakeWords(), nil
	}
	return out, nil
}

// wakeSetting is the setting of the store that holds the words.
const wakeSetting = "voicewake"

// ReadWakeWords returns the words that are in force.
func ReadWakeWords(r interface{ Setting(string) (string, error) }) ([]string, error) {
	text, err := r.Setting(wakeSetting)
	if err != nil || text == "" {
		return DefaultWakeWords(), err
	}
	var list []string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("read the wake words: %w", err)
	}
	return list, nil
}

// WriteWakeWords keeps a list that [WakeWords] returned.
func WriteWakeWords(tx interface {
	SetSetting(name, value string) error
}, list []string) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return tx.SetSetting(wakeSetting, string(text))
}
