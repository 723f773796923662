package shell

import (
	"path"
	"strings"
)

// Private reports whether an absolute path is private: keys, credentials,
// hidden files in a home folder.
func (j Judge) Private(path string) bool {
	return newWalker(j).private(Word{Text: path, Literal: true})
}

// private reports whether a word names private files: keys, credentials,
// hidden files in a home folder.
func (w *walker) private(x Word) bool {
	word := x.Text
	if strings.HasPrefix(word, "-") {
		if _, value, ok := strings.Cut(word, "="); ok {
			word = value
		}
	}
	p := w.join(word)
	if rest, ok := strings.CutPrefix(p+"/", w.Workspace+"/"); ok && w.Workspace != "" {
		p = path.Clean(rest)
	}
	home := strings.ToLower(w.Home)
	p = strings.ToLower(p)
	for _, prefix := range []string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssl/private", "/dev/", "/var/lib/chela"} {
		if strings.HasPrefix(p, prefix) && p != "/dev/null" && !strings.HasPrefix(p, "/dev/fd/") && !strings.HasPrefix(p, "/dev/std") {
			return true
		}
	}
	parts := strings.Split(p, "/")
	if len(parts) > 2 && parts[0] == "" && parts[1] == "proc" {
		last := parts[len(parts)-1]
		return strings.ContainsAny(p, "*?[") || last == "environ" || last == "mem" || last == "cmdline" || strings.Contains(p, "/fd/") || strings.Contains(p, "/root") || strings.Contains(p, "/cwd")
	}
	for i, part := range parts {
		if at := strings.Join(parts[:i], "/"); i > 0 && hidden(part) && (at == home || w.home(at)) || secretName(part) || x.Glob && hidden(part) && pattern(part) {
			return true
		}
	}
	return false
}

// hidden reports whether a path element is, or may match, a hidden name.
func hidden(part string) bool {
	return len(part) > 1 && part[0] == '.' && part != ".."
}

// secretName reports whether a file or folder with that name holds secrets.
func secretName(part string) bool {
	switch part {
	case ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".git-credentials",
		".password-store", ".vault-token", ".bash_history", ".zsh_history", ".env", ".envrc", "credentials", "credentials.json",
		"id_rsa", "id_ed25519", "id_ecdsa", "id_dsa", "secrets.json", "secrets.yaml", "secrets.yml", "token.json":
		return true
	}
	if strings.HasPrefix(part, ".chela") || strings.HasPrefix(part, ".openclaw") || strings.HasPrefix(part, "chela.db") {
		return true
	}
	if strings.HasPrefix(part, ".env.") {
		ext := path.Ext(part)
		return ext != ".example" && ext != ".sample" && ext != ".template"
	}
	switch path.Ext(part) {
	case ".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore", ".jks":
		return true
	}
	return false
}

// wholeTree reports whether a word names a whole system or home folder,
// including its hidden folders.
func (w *walker) wholeTree(word string) bool {
	p := w.join(word)
	return system(p) || w.home(p) || p == ".." || strings.HasSuffix(p, "/..")
}
