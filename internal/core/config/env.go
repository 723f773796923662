package config

import (
	"regexp"
	"slices"
	"sync"
)

// variable matches ${NAME}, and the escape $${NAME}.
var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$?\$\{([A-Z_][A-Z0-9_]*)\}`) })

// unresolved reports whether a text still refers to a variable.
func unresolved(s string) bool { return variable().MatchString(s) }

// substitute replaces the variables in all strings of v. It calls from for each
// path with a variable, and missing for each variable that is not set, whose text
// remains.
func substitute(v any, path []string, env func(string) string, missing func(path []string, name string),
	from func(path []string)) any {
	switch v := v.(type) {
	case string:
		return variable().ReplaceAllStringFunc(v, func(m string) string {
			if m[1] == '$' {
				return m[1:]
			}
			from(path)
			name := m[2 : len(m)-1]
			if value := env(name); value != "" {
				return value
			}
			missing(path, name)
			return m
		})
	case []any:
		for i := range v {
			v[i] = substitute(v[i], join(path, itoa(i)), env, missing, from)
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			v[k] = substitute(v[k], join(path, k), env, missing, from)
		}
	}
	return v
}

// join returns path with one more step, without changing path.
func join(path []string, step string) []string {
	return append(slices.Clip(path), step)
}

// fileEnv returns the variables that the configuration sets: env.vars, and the
// strings directly in env.
func fileEnv(root map[string]any) map[string]string {
	vars := map[string]string{}
	env, _ := root["env"].(map[string]any)
	more, _ := env["vars"].(map[string]any)
	for _, m := range []map[string]any{env, more} {
		for k, v := range m {
			if s, ok := v.(string); ok && s != "" {
				vars[k] = s
			}
		}
	}
	return vars
}
