package pathpolicy

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Private reports whether a file or folder with that name is hidden from
// commands that nobody was asked about: keys, passwords, tokens, the history
// of a shell.
func Private(name string) bool {
	name = strings.ToLower(name)
	if Secret(name) {
		return true
	}
	switch name {
	case ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass",
		".my.cnf", ".git-credentials",
		".password-store", ".vault-token", ".vault_pass", ".dockercfg", ".htpasswd", ".s3cfg", ".boto", "rclone.conf",
		"kubeconfig", ".bash_history", ".zsh_history", ".psql_history", ".mysql_history", "credentials", "credentials.json",
		"id_rsa", "id_ed25519", "id_ecdsa", "id_dsa", "secret.json", "secrets.json", "secrets.yaml", "secrets.yml",
		"secrets.toml", "token.json":
		return true
	}
	if strings.HasPrefix(name, ".chela") || strings.HasPrefix(name, ".openclaw") || strings.HasPrefix(name, "chela.db") ||
		strings.HasPrefix(name, "terraform.tfstate") {
		return true
	}
	switch path.Ext(name) {
	case ".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore", ".jks", ".ppk", ".ovpn":
		return true
	case ".json":
		return strings.HasPrefix(strings.ReplaceAll(name, "_", "-"), "service-account")
	}
	return false
}

// HasPrivate reports whether an element of a path has a private name; see [Private].
func HasPrivate(path string) bool {
	return slices.ContainsFunc(strings.Split(path, string(filepath.Separator)), Private)
}

// PrivatePath reports whether an absolute path is private: it has a private
// name or is below such a folder, is a hidden file of a home folder, holds the
// passwords of the system, or shows the memory and files of a process.
func PrivatePath(file, home string) bool {
	file, home = strings.ToLower(filepath.ToSlash(file)), strings.ToLower(filepath.ToSlash(home))
	for _, prefix := range []string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssl/private", "/var/lib/chela"} {
		if strings.HasPrefix(file, prefix) {
			return true
		}
	}
	parts := strings.Split(file, "/")
	switch {
	case len(parts) < 3 || parts[0] != "":
	case parts[1] == "proc":
		return !slices.Contains([]string{"cpuinfo", "meminfo", "version", "uptime", "loadavg", "stat", "filesystems",
			"devices"}, parts[2])
	case parts[1] == "dev":
		return !slices.Contains([]string{"null", "zero", "stdin", "stdout", "stderr"}, parts[2])
	}
	for i, part := range parts {
		above := strings.Join(parts[:i], "/")
		inHome := above != "" &&
			(above == home || above == "/root" || path.Dir(above) == "/home" || path.Dir(above) == "/users")
		if Private(part) || inHome && len(part) > 1 && part[0] == '.' {
			return true
		}
	}
	return false
}
