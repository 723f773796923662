package shell_test

import (
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/chela-ai/chela/internal/core/shell"
)

// The verdicts on a command.
const (
	reads  = "reads"
	may    = "may change files"
	denied = "is denied"
)

func verdict(p shell.Plan) string {
	switch {
	case p.Denied != "":
		return denied
	case p.Changes != "":
		return may
	}
	return reads
}

func verdicts(t *testing.T, want string, commands []string) {
	t.Helper()
	for _, c := range commands {
		if p := (shell.Judge{}).Parse(c); verdict(p) != want {
			t.Errorf("Parse(%.200q): it %s (%q, %q), want: it %s", c, verdict(p), p.Denied, p.Changes, want)
		}
	}
}

// disguises are ways to write a simple command so that a search of the text
// does not find it. %s stands for the command.
var disguises = []string{
	"%s", "  %s  ", "true && %s", "false || %s", "ls; %s", "ls | %s", "%s | cat", "(%s)", "{ %s; }", "%s &", "! %s",
	"if true; then %s; fi", "for i in 1 2; do %s; done", "while true; do %s; done", "case x in *) %s;; esac",
	"sudo %s", "sudo -u root -n %s", "doas %s", "env %s", "env -i A=b %s", "A=b %s", "nohup %s", "nice -n 19 %s",
	"nice -5 %s", "timeout 5 %s", "timeout -k 1 5 %s",
	"time %s", "command %s", "exec %s", "setsid %s", "stdbuf -oL %s", "busybox %s", "ionice -c 3 %s",
	"unknown-wrapper --flag %s", "sudo env nice %s",
	"sh -c '%s'", `bash -c "%s"`, "bash -ceu '%s'", "/bin/sh -c '%s'", "sudo sh -c '%s'", "sh -c \"sh -c '%s'\"",
	"eval '%s'", "eval %s", "bash <<< '%s'", "bash <<EOF\n%s\nEOF",
	"echo $(%s)", "echo `%s`", `echo "$(%s)"`, "cat <(%s)", "X=$(%s)", "trap '%s' EXIT", "f() { %s; }; f",
	"function f { %s; }; f", "flock /tmp/l %s", "flock /tmp/l -c '%s'", "watch %s",
}

func TestDenied(t *testing.T) {
	t.Parallel()
	plans := map[string][]string{
		"delete the root": {
			"rm -rf /", "rm -r -f /", "rm -f -r /", "rm --recursive --force /", "rm --rec --fo /", "rm -Rf /",
			"rm   -rf    /", "rm -rf -- /",
			"rm / -rf", "rm -rf /*", "rm -rf //", "rm -rf /.", "rm -rf /tmp/..", "/bin/rm -rf /", "\\rm -rf /",
			"rm --no-preserve-root -rf /", "rm -rf x /", "rm -rf /etc",
			"cd / && rm -rf *", "cd /; rm -rf .", "cd -P / && rm -rf *", "RM -rf /", "find / -delete",
			"find / -xdev -mount -depth -type f -mindepth 1 -delete", "find x / -exec /bin/rm {} +", "find / -okdir rm {} ;",
			"rm -rf {/,x}", "rm -rf {..,/}", "rm -rf /[a-z]*", "rm -rf /?*", "rm -rf / # " + strings.Repeat("x", 20_000),
		},
		"delete the home": {"rm -rf ~", "rm -rf ~/", "rm -rf ~/*", "rm -rf $HOME", "rm -rf ${HOME}/", "cd && rm -rf *",
			"rm -rf /root", "rm -rf /home/anna"},
		"mkfs": {"mkfs /dev/sda1", "mkfs.ext4 /dev/sda1", "mkfs -t ext4 /dev/sdb"},
		"dd":   {"dd if=/dev/zero of=/dev/sda", "dd of=x if=y", "dd of=/dev/nvme0n1"},
		"device": {"echo x > /dev/sda", "cat x >/dev/sdb1", "echo x >> /dev/hda", "echo x >| /dev/nvme0n1",
			"echo x &> /dev/sda", "ls | tee /dev/sda", "cp x /dev/sda"},
		"rights": {"chmod -R 777 /", "chmod 777 -R /", "chmod --recursive 0777 /",
			"chmod -R a+rwx /", "chmod -R 777 /*"},
	}
	for name, commands := range plans {
		t.Run("EX-09 "+name, func(t *testing.T) { verdicts(t, denied, commands) })
		t.Run("SEED-03 "+name+" in disguise", func(t *testing.T) {
			var all []string
			for _, d := range disguises {
				if strings.Contains(commands[0], "&>") && strings.Contains(d, "eval %") {
					continue
				}
				all = append(all, strings.ReplaceAll(d, "%s", commands[0]))
			}
			verdicts(t, denied, all)
		})
	}
	t.Run("EX-09 fork bomb", func(t *testing.T) {
		verdicts(t, denied, []string{":(){ :|:& };:", ": () { : | : & }; :", "b() { b | b & }; b", "sh -c ':(){ :|:& };:'",
			"eval ':(){ :|:& };:'"})
	})
	t.Run("EX-09 look-alikes are not denied", func(t *testing.T) {
		verdicts(t, may, []string{
			"rm -rf ./build", "rm -rf build/*", "rm -rf /tmp/x", "rm -rf ~/project/build", "dd --help", "mkfs --help",
			"chmod -R 755 ./x", "chmod 777 /tmp/x", "rm /tmp/file", "rm -f /tmp/x",
			"git commit -m 'never rm -rf /'", "echo x > sda", "echo x > ./dev/sda", `rm -rf "${DIR:?}/"`,
			"T=$(mktemp -d); rm -rf \"$T\"", "T=$(mktemp -d); rm -rf \"$T\"/*", "find . -name '*.o' -delete", "rm -rf ~/*.tmp",
			"rm -rf /tmp*", "find / -name '*.bak' -delete", "find / -depth -type f; rm x", "find / -xdev -exec; rm x",
			"find ./x -delete", "find -delete",
		})
		verdicts(t, reads, []string{"echo rm -rf /", "grep -rn 'rm -rf /' .", "echo 'mkfs /dev/sda'"})
	})
	t.Run("EX-20 every listed plan", func(t *testing.T) {
		verdicts(t, denied, []string{"rm -r -f /", "rm --recursive --force /", "sudo rm -rf /", `sh -c "rm -rf /"`,
			"sh -c 'rm -rf /' x y"})
		// What is known only when the command runs is not followed. Package exec
		// confines such a command, or asks.
		for _, c := range []string{
			"X=/; rm -rf $X", "X=rm; $X -rf /", "X=-rf; rm $X /", "A=/; B=$A; rm -rf $B", "rm -rf $EMPTY/",
			"export X=/; rm -rf $X", "for d in a /; do rm -rf $d; done", "D=/dev/sda; echo x > $D",
			"alias r=rm; r -rf ~", "echo / | xargs rm -rf", "printf '%s\n' / | xargs rm -rf", "echo -e 'rm -rf /' | sh",
			"X=/; echo \"rm -rf $X\" | bash -s", "echo / | xargs -n 1 rm -rf",
			"sh -c 'rm -rf $1' x /", "r() { rm -rf $1; }; r /", "if x; then D=/; else D=y; fi; rm -rf $D", "eval \"$X\"",
			"rm -rf $(echo /)", "sh <(base64 -d x)", "source <(base64 -d x)", "base64 -d x | sh /dev/stdin",
			"base64 -d x | . /dev/fd/0", "bash -c \"$(cat x)\"", "env -S \"$X\"", "sudo $X", "find / -exec $X {} +",
			"coproc dd if=/dev/zero of=/dev/sda", "r'm' -rf \"$X\"", "rm -rf $'/'\"$X\"",
			"cat <<E | sh\nrm -rf /\nE", "sh <<E\nrm -rf $X\nE", "X=/ sh -c 'rm -rf $X'", "sh -c \"$X\"",
			"find $X -delete", "trap \"$X\" EXIT",
		} {
			if p := (shell.Judge{}).Parse(c); verdict(p) != may || !p.Unclear {
				t.Errorf("Parse(%q): it %s, unclear %v", c, verdict(p), p.Unclear)
			}
		}
		for _, c := range []string{"ls", "rm -rf build", "cd x && make -j4 | tail -5", "sh -c 'a b'", "bash <<E\nls\nE",
			"rm -rf {a,b}", "rm *.o", "sudo ls ~/x", "ls $X", "for f in *.go; do gofmt -l $f; done",
			"./build.sh $X > out/$Y 2>/dev/null", "echo $(date)", "exec bash -i", "bash $SCRIPT x", "source x.sh",
			"head -c 5 /dev/zero | tr x $i"} {
			if p := (shell.Judge{}).Parse(c); p.Unclear {
				t.Errorf("Parse(%q): unclear", c)
			}
		}
	})
}

func TestDangerousPatterns(t *testing.T) {
	t.Parallel()
	j := shell.Judge{Deny: []*regexp.Regexp{regexp.MustCompile(`shutdown\s+now`)}}
	for _, c := range []string{"shutdown now", "shutdown   now", "'shut'down now", "sh -c 'shutdown now'"} {
		if p := j.Parse(c); p.Denied == "" {
			t.Errorf("Parse(%q) is not denied", c)
		}
	}
	if p := j.Parse("rm -rf /"); p.Denied == "" {
		t.Error("a built-in denied command is not denied")
	}
	if p := j.Parse("ls"); verdict(p) != reads {
		t.Errorf("Parse(ls): it %s", verdict(p))
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	verdicts(t, reads, []string{
		"ls", "/bin/ls -la", "ls -la | head -5", "cat a.txt b.txt", "head -n 20 main.go", "tail -n 5 log.txt 2>/dev/null",
		"wc -l a b", "grep -rn foo --include='*.go' .", "rg -n foo src", "cat -- -o", "cat -",
		"find . -name '*.go' -type f", "find . -type f | wc -l", "find . -mtime -5 -not -path './x/*'",
		"find . \\( -name a -o -name b \\) -printf '%p\\n'", "pwd", "echo hello", "echo -e 'rm -rf /'", "date +%s",
		"date -d yesterday", "date -u '+%F %T'", "du -sh . 2>&1", "df -h",
		"stat main.go", "stat -c %s x", "file x", "which go", "sort -u a | uniq -c | sort -rn", "sort -t, -k 2 x",
		"sort -k2,2n x", "cut -d: -f1 x | tr a-z A-Z", "cut -d ' ' -f 1-3 x", "jq '.a' x.json", "uname -a", "whoami", "id",
		"hostname -f", "md5sum x",
		"test -f x && echo yes", "[ -d x ] || echo no", "[ 1 -lt 2 ]", "if [ -f x ]; then cat x; else echo none; fi",
		"cd sub && ls", "(cd sub; ls)", "{ ls; pwd; }", "LC_ALL=C sort x", "ls > /dev/null 2>&1", "cat < x", "time ls",
		"! grep -q x y", "true", "xxd -l 16 x", "od -c x", "head -n -5 x", "tail -n +10 x",
		"basename a/b .x", "realpath x", "tree -L 2", "comm -12 a b", "cmp a b", "diff -u a b", "nl x", "tac x",
		"printf '%s\\n' a b", "printf '%5.2f %%\\n' 1 2", "ls --color=never -I x", "echo rm -rf /",
		"grep -rn 'rm -rf /' .", "type ls", "printf x",
		// The sandbox bounds what is known only when the command runs.
		"cat *", "cat $X", "echo $(ls)", "cat <(ls)", "echo $((a[$(ls)]))", "cat {1..3}", "cat < $X", "cat <<E\n$(ls)\nE",
		"cat <<< x", "X=1 ls", "LC_ALL=$X ls", "export X=1; ls", "for i in a b; do cat $i; done", "while true; do ls; done",
		"case x in x) ls;; esac", "[[ -v x ]] && ls", "f() { ls; }; f() { cat x; }; ls", "printf -v x y", "test -v x",
		"env ls", "xargs cat", "ls | xargs -n 1 wc -l", "nice ls", "timeout 5 ls", "sh -c 'ls | wc -l'",
		"eval ls", "bash <<E\nls\nE",
	})
}

// What is not in the table with exactly these options is not read-only.
func TestAsk(t *testing.T) {
	t.Parallel()
	verdicts(t, may, []string{
		// programs
		"touch x", "./ls", "../bin/ls", "/tmp/ls", "bin/cat x", "LS", "'ls x'", "ls/", "git status", "git log", "sed -n 1p x",
		"awk '{print}' x", "tar -tf x", "env", "printenv", "less x", "more x", "man ls", "go version",
		"python3 --version", "make", "ps aux",
		"vim x", "tee x", "rgrep x", "zgrep x y", "curl x", "source x", ". x", "alias l=ls", "set -x", "read x", "cd a b",
		"pushd x", "history", "hash -p x ls", "enable -n ls", "help", "unknown",
		// options that write, run programs, read lists of files, or are not known
		"sort -o x y", "sort -ox y", "sort -uo x y", "sort --output=x y", "sort --output x y", "sort --out=x y", "sort --o x",
		"sort -T /tmp x", "sort --compress-program=x y", "sort --comp x y", "sort --files0-from=x", "sort -S -o x y",
		"sort -k -o x y", "sort --random-source=x y", "sort x -o x", "sort --key -o x",
		"uniq a b", "uniq -c a b", "uniq - b", "uniq -- a b", "uniq -f 1 a b", "uniq -c -w3 a b", "xxd a b", "xxd -r a",
		"xxd -r a b", "xxd -ps a b", "xxd -pr a", "xxd -revert a", "xxd -c 5 a b", "xxd -l5 a b",
		"rg --pre x y", "rg --pre=x y", "rg --pr x y", "rg --hostname-bin x y", "rg -z x", "rg -nz x", "rg --search-zip x",
		"rg -f x y", "rg --files-from x", "rg --ignore-file x y", "rg --config x",
		"grep -f x y", "grep -fx y", "grep -nf x y", "grep --file=x y", "grep --file x y", "grep --fil=x y",
		"grep --exclude-from=x y z", "grep -d recurse x y", "grep --directories=recurse x", "grep --rec x", "grep -Z x",
		"find . -delete", "find . -exec rm {} +", "find . -execdir ls ';'", "find . -ok ls ';'", "find . -fprint x",
		"find . -fprintf x y", "find . -fls x", "find . -fprint0 x", "find -files0-from x", "find . -name -delete",
		"find . -name", "find . -D exec", "find . -dele", "find . -newermt -exec",
		"date -s x", "date --set=x", "date --se x", "date 0101", "date -f x", "date -r x", "date -d x 0101", "date -- 0101",
		"date -u 0101", "hostname x", "hostname -F x", "hostname -b x", "hostname -- x", "uname x", "pwd x", "whoami x",
		"file -C x", "file -m x y", "file -f x", "file -z x", "file --compile x", "file --magic-file=x y", "file -p x",
		"tree -o x", "tree -Lo 2 x", "tree -dL 2 x", "tree -LIo 2 x y", "tree -R -H x", "tree --fromfile x", "tree -o=x",
		"du --files0-from=x", "du -X x", "wc --files0-from=x", "md5sum -c x", "md5sum --check x",
		"jq -f x y", "jq --from-file x", "jq 'import \"x\" as y; y'", "jq 'include \"x\"; y'", "jq --slurpfile a b .",
		"jq --rawfile a b .", "jq '\"x\" | modulemeta'", "jq -L x .", "jq -nL x .", "jq --args . x", "diff -X x a b",
		"diff -l a b", "diff --paginate a b", "diff --exclude-from=x a b", "od --traditional x",
		"hexdump -f x y", "hexdump -e x y",
		"head -n5 -f x", "tail -f x", "tail -F x", "tail --follow x", "cut --files x", "stat --unknown x", "ls --unknown",
		"ls -Z --col", "ls --colo=x", "cat --show-al x", "cmp --help=x", "comm --outp=x a b",
		"realpath --unknown", "tail --pid=1 x",
		// redirects, jobs and unknown commands
		"ls > f", "ls >> f", "ls >| f", "ls &> f", "ls 2> f", "ls <> f", "echo x > /dev/tcp/1.2.3.4/80", "ls | cat > f",
		"ls > /dev/null/../../f", "ls >& f", "ls 3<> f", "ls &", "coproc ls", "ls > /dev/stdout", "{ ls; } > f", "(ls) > f",
		"exec 3>f", "cat x > $X",
		"$X", "l$X", "*", "X=ls; $X", "ls() { rm x; }; ls", "f() { ls; }; f", "echo $(rm x)", "cat <(rm x)", "X=$(rm x) ls",
		"xargs rm", "sudo ls", "strace -o x ls", "zsh -c ls", "sudo rm x", "sh x.sh", "sh", "ls | sh", "eval $X",
		"trap 'rm x' EXIT; ls", "for i in a; do rm $i; done", "cat <<E\n$(rm x)\nE", "unset -f ls", "find . -exec cat {} +",
		"env", "ls | xargs -I{} sh -c 'cat {}; rm {}'",
		"true && rm x", "ls; rm x", "ls\nrm x", "ls || touch x", "if rm x; then ls; fi", "echo 'x", "ls )", "if", "", "#",
		"ls\x00", "ls \x1b[31m", "ls \u202e", "ls \u200b", "ls \xff",
	})
	t.Run("too long and too deep", func(t *testing.T) {
		deep := "ls"
		for range 12 {
			deep = "echo $(" + deep + ")"
		}
		verdicts(t, may, []string{"echo " + strings.Repeat("x", 9000), deep, strings.Repeat("while true; do ", 14) + "rm x" +
			strings.Repeat("; done", 14)})
	})
}

// TestDirect checks which commands may run where there is no sandbox: single
// programs of the table that need no shell, with known words.
func TestDirect(t *testing.T) {
	t.Parallel()
	direct := func(command string) bool { return shell.Judge{Home: "/home/anna"}.Parse(command).Direct() }
	for _, c := range []string{"ls", "/bin/ls -la", "cat 'a b' -n", "head -n 20 main.go", "find . -name '*.go' -type f",
		"grep -n x f", "printf '%s\\n' a", "test -f x", "jq .a x.json", "uniq -c x", "date +%s", "wc -l -- -x"} {
		if !direct(c) {
			t.Errorf("%q needs a sandbox", c)
		}
	}
	for _, c := range []string{
		// a shell
		"ls; ls", "ls && ls", "ls | cat", "ls &", "! ls", "(ls)", "{ ls; }", "time ls", "coproc ls", "f() { ls; }",
		"if ls; then ls; fi", "for i in a; do ls; done", "[[ -v x ]]", "((a[$(rm x)]))", "let 'a[$(rm x)]=1'", "ls\nls",
		"X=1", "X=1 ls", "LD_PRELOAD=./x.so ls", "PATH=. ls", "LC_ALL=C ls", "export X=1", "[ -v 'a[$(rm x)]' ]",
		// redirects
		"ls > f", "ls >> f", "ls 2>&1", "ls >/dev/null", "ls <> f", "cat < f", "cat < /dev/tcp/1.2.3.4/80", "cat <<< x",
		"cat <<E\nx\nE", "cat <<E\n$(rm x)\nE", "ls {fd}> f",
		// words that are not known
		"cat *", "cat x*", "ls -?", "cat $X", "cat \"$X\"", "echo $X", "echo $(ls)", "echo `ls`", "cat <(ls)",
		"echo $((a[$(ls)]))", "cat {1..3}", "cat ${X:-y}", "echo ${!X}", "ls @(a|b)", "echo ${x@P}", "$X", "l$X",
		"*", "X=ls; $X", "cat [a]",
		"cat ~/x", "cat ~anna/x", "cat {a,b}", "cat $HOME/x", "cat \"$HOME\"", "cat $'a'", "cat $'a'\"$X\"",
		"cat \"$X\"\"$(rm x)\"", "cat $'\\x2d'", "cat a$'\\n'", "cat $\"x\"", "cat @(a|b)", "cat !(a)", "cat ?(a)",
		"ls -\"$X\"", "\"l\"$X", "cat [!a]", "cat a[b]", "cat {a,}", "cat a{1..2}b", "cat <(rm x)", "cat >(rm x)",
		"cat ${X/a/b}", "cat ${X@P}", "cat ${#X}", "cat $1", "cat $@", "cat $?", "cat `rm x`",
		"cat \"$(rm x)\"", "cat \"`rm x`\"",
		// other programs, shells and wrappers
		"sh", "sh x", "sh -c ls", "sh -c ''", "bash -c 'ls'", "eval ls", "exec ls", "command ls", "builtin echo", "source x",
		". x", "env ls", "env", "nice ls", "nohup ls", "timeout 5 ls", "stdbuf -oL ls", "xargs cat", "sudo ls", "busybox ls",
		"find . -exec cat {} +", "find . -delete", "find . -fprint x", "find . -fls x", "find . -files0-from x", "watch ls",
		"time -o x ls", "strace -o x ls", "alias ls=rm", "trap ls EXIT", "hash -p x ls", "git status", "git diff", "awk 1 x",
		"sed -n 1p x", "python3 x", "make", "tee x", "less x", "man ls", "tar -tf x", "env -S 'rm x'",
		"./ls", "/tmp/ls", "../bin/ls", "bin/ls", "~/ls", "LS", "ls/", "/bin/../tmp/ls", "//bin/ls", "/usr/bin/../../tmp/ls",
		"l\u0455", "\"ls x\"", "''", "",
		// searches of whole folders
		"grep -r x .", "grep -nR x .", "grep --recursive x .", "grep --dereference-recursive x", "rg x",
		"diff a b", "rg --files",
		// options
		"sort -o x y", "sort x -o y", "sort -uo x y", "sort --output=x y", "sort --outp x y", "sort -T /tmp x",
		"sort --compress-program=x y", "sort -k -o x y", "uniq a b", "uniq -- a b", "uniq a -- b", "xxd a b", "xxd -r a",
		"xxd -c 5 a b", "rg --pre x y", "grep -f x y", "grep --file=x y", "date -s x", "date 0101", "date -- 0101",
		"date -f x", "hostname x", "tail -f x", "tail --follow x", "file -C", "file -m x y", "file -f x", "tree -o x",
		"tree -Lo 2 x", "wc --files0-from=x", "du --files0-from=x", "md5sum -c x", "jq -f x y", "jq 'import \"x\" as y; y'",
		"jq -n 'include \"x\"; y'", "jq --slurpfile a b .", "jq -L x .", "diff -X x a b", "hexdump -f x y",
		"od --traditional x", "ls --col", "ls --colo=x", "cat --help=x", "head -n -x f",
		"jq . -f x", "jq -- 'import \"x\" as y; y'", "find -L . -newermt -exec", "find . -name -delete",
		"find . -regextype -delete", "find . -printf -fls", "tree --fromfile x", "tree -R", "realpath --x", "cut --files x",
		"id --x", "pwd x", "uname x", "whoami x", "type -x",
		// what a person cannot read
		"ls \x00", "ls \x1b[2J", "ls \u202ex", "ls \u200b", "ls \ufeff", "ls \u2028x", "ls \xff", "ls \rrm x",
		"cat " + strings.Repeat("x", 9000),
		// denied
		"find / -delete", "rm -rf /",
	} {
		if direct(c) {
			t.Errorf("%q would run without a sandbox", c)
		}
	}
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	j := shell.Judge{Dir: "/home/anna/.chela/workspace/sub/..", Home: "/home/anna"}
	for _, tt := range []struct {
		command string
		want    string
	}{
		{"rm -rf ./*", may},
		{"rm -rf ../..", denied},
		{"rm -rf ../../*", denied},
		{"rm -rf ../../../../../..", denied},
		{"rm -rf /home/anna", denied},
		{"rm -rf ~", denied},
	} {
		if p := j.Parse(tt.command); verdict(p) != tt.want {
			t.Errorf("Parse(%q): it %s (%q), want: it %s", tt.command, verdict(p), p.Denied, tt.want)
		}
	}
	if p := (shell.Judge{Dir: "/srv/data", Home: "/srv/data"}).Parse("rm -rf *"); p.Denied == "" {
		t.Error("the home folder as the workspace may be deleted")
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ command, want string }{
		{"ls -la", "ls -la\n"},
		{"ls \u202ex\x1b", "ls \\u202ex\\x1b\n"},
		{"sudo sh -c 'rm -r x' && ls  >out", "sudo sh -c 'rm -r x' && ls  >out\n"}, // nothing to add
		{"sudo rm -r {x,y}", "sudo rm -r {x,y}\nwhich runs\n  sudo rm -r x y\n    rm -r x y\n"},
		{"ls | $'\\162m' x >out", "ls | $'\\162m' x >out\nwhich runs\n  | rm x >out\n"},
		{"cat ~/x $HOME/y \"${HOME}/z\" ~", "cat ~/x $HOME/y \"${HOME}/z\" ~\n"},
		{"cat > x <<E\na b\nE", "cat > x <<E\na b\nE\n"},
		{"cat ~/x {b,c}", "cat ~/x {b,c}\nwhich runs\n  cat /home/anna/x b c\n"},
	} {
		if got := (shell.Judge{Home: "/home/anna"}).Parse(tt.command).Text(); got != tt.want {
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
	for _, c := range []string{"sort -k2 a | uniq -c", "printf '%s' a", "find . -name x", "xxd -l 4 a",
		"if [ -f x ]; then cat x; fi"} {
		f.Add(c)
	}
	for _, c := range []string{"echo ${x@P} ${!x} ${x:1:2} ${x/a/b}", "a[1]=2; a+=(b c)", "{1..9}", "[[ a =~ b ]]",
		"x=$((1+2))", "f(){ f; }; f", "@(a|b)", "cat <<-E\n\tx\n\tE"} {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, command string) {
		p := shell.Judge{}.Parse(command)
		if p.Direct() && (p.Unclear || p.Denied != "") {
			t.Errorf("%q would run without a sandbox: %+v", command, p)
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

// Judging a command takes bounded work, as the number of allocations shows. Not parallel:
// those of other tests would count too.
func TestBoundedWork(t *testing.T) {
	const most = 2_000_000
	wide, nested := "echo x", "rm $a$b"
	for range 5 {
		wide = "echo $(" + wide + ") $(" + wide + ") $(" + wide + ")"
		nested = "for a in 1 2 3 4 5 6 7 8; do for b in $a x y; do " + nested + "; done; done"
	}
	for _, c := range []string{
		wide[:min(len(wide), 8000)], wide[:min(len(wide), 2000)], nested,
		strings.Repeat("{a,b}", 1500), strings.Repeat("echo "+strings.Repeat("{1..99}", 4)+";", 200),
		strings.Repeat("{1..16000};", 700), "echo " + strings.Repeat("{"+strings.Repeat("a,", 400)+"b}", 4),
		strings.Repeat(" {a,b}{a,b}{a,b}{a,b}", 20_000), strings.Repeat("f() { f; f; f; }; f;", 300),
		strings.Repeat("sh -c '", 500),
		"X=a; " + strings.Repeat("X=$X$X$X$X$X$X$X$X; Y=$X$X$X$X$X$X$X; X=$Y; ", 150), "echo {1..99999999}",
		strings.Repeat("echo $X |", 800) + "cat",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		shell.Judge{}.Parse(c)
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > most {
			t.Errorf("Parse(%.60q…) made %d allocations, want at most %d", c, n, most)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		shell.Judge{}.Parse(`cd sub && git log --oneline | head -20; for f in *.go; do wc -l "$f"; done`)
	}
}
