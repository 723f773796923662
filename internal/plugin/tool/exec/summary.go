package exec

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/shell"
)

// maxSummary is the number of things that a summary names.
const maxSummary = 8

// summary returns what a command does in words, on one line: "deletes build ·
// uploads a.tgz to example.com". It helps to read the plan and does not
// replace it. Programs that it does not know are named.
func summary(sp shell.Plan) string {
	var all []string
	for _, s := range sp.Segments {
		all = append(all, segmentSummary(s)...)
	}
	var out []string
	for _, what := range all {
		if !slices.Contains(out, what) {
			out = append(out, what)
		}
	}
	if len(out) > maxSummary {
		out = append(out[:maxSummary], "and more")
	}
	return shell.Escape(strings.Join(out, " · "))
}

// segmentSummary returns what a simple command does. It is empty for programs
// that only read, and for those that only run the next segment.
func segmentSummary(s shell.Segment) []string {
	var out []string
	if len(s.Argv) > 0 && !shell.Reads(s.Argv) {
		if what := action(s.Argv); what != "" {
			out = append(out, what)
		}
	}
	for _, r := range s.Redirects {
		if r.Writes && r.File.Text != "/dev/null" {
			out = append(out, "writes "+r.File.Text)
		}
	}
	return out
}

// action returns what a program does with its arguments.
func action(argv []shell.Word) string {
	if !argv[0].Literal {
		return "runs a program that is not known before"
	}
	name := filepath.Base(argv[0].Text)
	var files []string // the operands
	for _, a := range argv[1:] {
		if !strings.HasPrefix(a.Text, "-") {
			files = append(files, a.Text)
		}
	}
	list := strings.Join(files, ", ")
	to, from := "", ""
	if len(files) > 1 {
		to, from = files[len(files)-1], strings.Join(files[:len(files)-1], ", ")
	}
	rest := strings.Join(files[min(1, len(files)):], ", ") // without a mode or subcommand
	switch name {
	case "cd", "set", "export", "sh", "bash", "dash", "zsh", "eval", "env", "nice", "nohup", "timeout", "time", "xargs",
		"command", "exec", "stdbuf", "find", "sleep", "alias":
		if name == "find" && slices.ContainsFunc(argv, func(a shell.Word) bool { return a.Text == "-delete" }) {
			return "deletes files that find selects"
		}
		if name == "sh" || name == "bash" || name == "dash" || name == "zsh" {
			return shellAction(name, argv[1:])
		}
		return ""
	case "sudo", "doas":
		return "acts as the administrator"
	case "rm", "rmdir", "unlink":
		return "deletes " + list
	case "mv":
		return "moves " + from + " to " + to
	case "cp", "ln", "install", "rsync", "scp":
		return "copies " + from + " to " + to
	case "mkdir":
		return "creates the folder " + list
	case "touch", "tee", "truncate":
		return "writes " + list
	case "chmod", "chown", "chgrp":
		return "changes the rights of " + rest
	case "kill", "pkill", "killall":
		return "ends the process " + list
	case "curl", "wget":
		return transfer(name, argv[1:])
	case "ssh":
		return "runs commands on " + first(files)
	case "sed", "perl":
		if slices.ContainsFunc(argv, func(a shell.Word) bool { return strings.HasPrefix(a.Text, "-i") }) {
			return "changes " + rest
		}
	case "git":
		return gitAction(gitWords(argv[1:]))
	case "npm", "pnpm", "yarn", "pip", "pip3", "uv", "go", "cargo", "make", "apt", "apt-get", "brew",
		"docker", "podman", "systemctl":
		return toolAction(name, files)
	}
	return "runs " + name
}

// shellAction returns what a shell does that is given a file or its input.
// The text of sh -c has segments of its own.
func shellAction(name string, args []shell.Word) string {
	for _, a := range args {
		switch {
		case strings.HasPrefix(a.Text, "-") && strings.Contains(a.Text, "c"):
			return ""
		case !strings.HasPrefix(a.Text, "-"):
			return "runs the script " + a.Text
		}
	}
	return "runs what " + name + " is given as input"
}

// transfer returns what curl or wget does.
func transfer(name string, args []shell.Word) string {
	host, sent := "", ""
	for i, a := range args {
		if u, err := url.Parse(a.Text); err == nil && u.Host != "" {
			host = u.Hostname()
		} else if name == "curl" && host == "" && !strings.HasPrefix(a.Text, "-") && strings.Contains(a.Text, ".") &&
			(i == 0 || !strings.HasPrefix(args[i-1].Text, "-")) {
			host, _, _ = strings.Cut(a.Text, "/")
		}
		switch flag, value, _ := strings.Cut(a.Text, "="); flag {
		case "-T", "--upload-file", "-d", "--data", "--data-binary", "--data-raw", "--data-urlencode", "--json", "-F",
			"--form", "--post-file", "--post-data", "--body-file", "--body-data":
			if value == "" && i+1 < len(args) {
				value = args[i+1].Text
			}
			sent = value
		}
	}
	switch {
	case host == "":
		return "uses the network (" + name + ")"
	case sent != "":
		return "uploads " + strings.TrimPrefix(sent, "@") + " to " + host
	}
	return "downloads from " + host
}

// gitWords returns the subcommand of git and its operands.
func gitWords(args []shell.Word) (words []string) {
	for i := 0; i < len(args); i++ {
		switch a := args[i].Text; {
		case len(words) == 0 && slices.Contains([]string{"-C", "-c", "--git-dir", "--work-tree", "--namespace"}, a):
			i++ // its value
		case !strings.HasPrefix(a, "-"):
			words = append(words, a)
		}
	}
	return words
}

// gitAction returns what a git command does.
func gitAction(words []string) string {
	switch first(words) {
	case "push":
		return "uploads commits to " + orWord(second(words), "the remote repository")
	case "pull", "fetch", "clone":
		return "downloads commits from " + orWord(second(words), "the remote repository")
	case "commit":
		return "commits changes"
	case "add":
		return "stages files for a commit"
	case "reset", "clean", "checkout", "restore", "switch", "stash", "rebase", "merge":
		return "changes the files of the repository (git " + first(words) + ")"
	}
	return strings.TrimSpace("runs git " + first(words))
}

// toolAction returns what a tool with subcommands does.
func toolAction(name string, words []string) string {
	rest := strings.Join(words[min(1, len(words)):], ", ")
	switch sub := first(words); {
	case name == "make":
		return "builds " + orWord(strings.Join(words, ", "), "the project") + " with make"
	case sub == "install" || sub == "add" || sub == "ci" || sub == "get" || sub == "i" ||
		sub == "" && (name == "yarn" || name == "npm"):
		return "installs " + orWord(rest, "packages") + " with " + name
	case sub == "uninstall" || sub == "remove" || sub == "purge":
		return "removes " + rest + " with " + name
	case sub == "test" || sub == "check" || sub == "vet":
		return "tests the project with " + name
	case sub == "build":
		return "builds the project with " + name
	case sub == "publish":
		return "publishes the project with " + name
	default:
		return strings.TrimSpace("runs " + name + " " + sub)
	}
}

func first(words []string) string  { return strings.Join(words[:min(1, len(words))], "") }
func second(words []string) string { return first(words[min(1, len(words)):]) }

// orWord returns word, or other if it is empty.
func orWord(word, other string) string {
	if word == "" {
		return other
	}
	return word
}
