package tool

import "strings"

// maxName is the longest tool name that all model services accept.
const maxName = 64

// callable reports whether every model service accepts a tool with this name.
func callable(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// rename returns t under another name.
func rename(t Tool, name string) Tool {
	r := renamed{t, name}
	if p, ok := t.(Planner); ok {
		return struct {
			renamed
			Planner
		}{r, p}
	}
	return r
}

type renamed struct {
	Tool
	name string
}

// Spec implements Tool.
func (r renamed) Spec() Spec {
	s := r.Tool.Spec()
	s.Name = r.name
	return s
}
