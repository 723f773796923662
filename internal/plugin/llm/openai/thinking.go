package openai

import (
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// thought is the thinking configuration of a request.
type thought struct {
	on     bool // thinking is requested
	fields []field
}

// field is a request field with its JSON value.
type field struct{ name, value string }

// anyLevel are the assumed levels of an unknown model.
var anyLevel = [...]llm.Level{llm.Minimal, llm.Low, llm.Medium, llm.High}

// think returns the thinking configuration for the model, in the service's
// form. An unsupported level is replaced by the nearest supported one. A model
// without thinking gets none.
func (q *quirks) think(r *llm.Request, m llm.Model) thought {
	if q.form == noForm || m.ID != "" && len(m.Levels) == 0 {
		return thought{}
	}
	words := q.words
	for prefix, own := range q.modelWords {
		if strings.HasPrefix(r.Model, prefix) {
			words = own
		}
	}
	on := r.Thinking != "" && r.Thinking != llm.Off
	word := words[llm.Off]
	if on {
		word = wordOf(r.Thinking, words, m)
	}
	return thought{on: on, fields: q.form.fields(on, word)}
}

// wordOf returns the service's name of a level, or "" for the model's default.
func wordOf(want llm.Level, words map[llm.Level]string, m llm.Model) string {
	var have []llm.Level
	for _, l := range llm.Levels {
		if words[l] != "" && l != llm.Off {
			have = append(have, l)
		}
	}
	if len(have) == 0 {
		have = dialect.LevelsOf(m, anyLevel[:])
	}
	level := dialect.Nearest(want, have)
	if w := words[level]; w != "" || level == llm.Adaptive {
		return w
	}
	return string(level)
}

// fields returns the fields of a form. word is the service's name of the level,
// or "".
func (f form) fields(on bool, word string) []field {
	quoted := string(dialect.AppendString(nil, word))
	kind := `{"type":"disabled"}`
	if on {
		kind = `{"type":"enabled"}`
	}
	switch f {
	case effort:
		if word != "" {
			return []field{{"reasoning_effort", quoted}}
		}
	case router:
		switch {
		case on && word == "":
			return []field{{"reasoning", `{"enabled":true}`}}
		case on:
			return []field{{"reasoning", `{"effort":` + quoted + `}`}}
		}
	case deepseek:
		if on && word != "" {
			return []field{{"thinking", kind}, {"reasoning_effort", quoted}}
		}
		return []field{{"thinking", kind}}
	case switched:
		return []field{{"thinking", kind}}
	case enabled:
		return []field{{"enable_thinking", strconv.FormatBool(on)}}
	case templated:
		return []field{{"chat_template_kwargs", `{"enable_thinking":` + strconv.FormatBool(on) + `}`}}
	case toggled:
		return []field{{"reasoning", `{"enabled":` + strconv.FormatBool(on) + `}`}}
	}
	return nil
}
