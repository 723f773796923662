package native

import (
	"strings"
	"testing"
)

func TestPickSettings(t *testing.T) {
	const config = `
# a comment
[user]
	name = Anna
	EMAIL = a@example.org
	signingkey = ABC
[credential "https://example.org"]
	helper = !cat ~/.token
[core]
	editor = vim
	autocrlf = input
	sshCommand = ssh -i ~/.ssh/id
[url "https://token@example.org/"]
	insteadOf = https://example.org/
[alias] co = checkout
[include]
	path = ~/.secret
[user "x"]
	name = other
[pull] # with a comment it is left out
	rebase = true
[Init]
	defaultBranch = main\
canary
	templateDir = /x
`
	const want = "[user]\n\tname = Anna\n\tEMAIL = a@example.org\n[core]\n\tautocrlf = input\n[init]\n"
	if got, all := pickSettings(config, gitSettings); got != want || all {
		t.Errorf("%q, %t, want %q", got, all, want)
	}
}

func TestRepositorySettings(t *testing.T) {
	for config, want := range map[string]bool{
		"[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://a.org/b\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"a]b\"]\n\tmerge = refs/heads/a\n": true,
		"# a comment\n\n[user]\n\tname = a\n":                     true,
		"[core]\n\tfsmonitor = ./evil\n":                          false,
		"[core] fsmonitor = ./evil\n":                             false,
		"[core]\n\tbare = false \\\n\tfsmonitor = ./evil\n":       false,
		"[remote \"origin\"]\n\tuploadpack = ./evil\n":            false,
		"[remote \"origin\"] uploadpack = ./evil\n":               false,
		"[core]\n\tworktree = /home/anna\n":                       false,
		"[include]\n\tpath = ../evil\n":                           false,
		"[core \"x\"]\n\tbare = false\n":                          false,
		"[submodule \"x\"]\n\tupdate = !evil\n":                   false,
		"[core]\n\t" + strings.Repeat("x", maxGitConfig+1) + "\n": false,
	} {
		if _, all := pickSettings(config, repositorySettings); all != want {
			t.Errorf("%.80q: %t, want %t", config, all, want)
		}
	}
}

func FuzzPickSettings(f *testing.F) {
	f.Add("[user]\nname = a\n[core]\neditor = b\n")
	f.Add("[user]\\\nname = a")
	f.Fuzz(func(t *testing.T, config string) {
		out, _ := pickSettings(config, repositorySettings)
		if again, all := pickSettings(out, repositorySettings); again != out || !all {
			t.Fatalf("%q, and of that %q, %t", out, again, all)
		}
		for line := range strings.Lines(out) {
			if strings.HasSuffix(strings.TrimSuffix(line, "\n"), `\`) {
				t.Fatalf("%q continues", line)
			}
		}
	})
}
