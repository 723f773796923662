package chelatest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/plugin/sandbox/docker"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
	"github.com/chela-ai/chela/wire"
)

// fakeDocker is a program that logs its arguments and keeps files instead of
// containers. exec runs the command on this machine, with the variables of -e only;
// of the probe it prints the arguments.
const fakeDocker = `#!/bin/sh
dir=$(dirname "$0")
line=$1; for a in "${@}"; do line="$line [$a]"; done; printf '%s\n' "$line" >> "$dir/log" # at once: two may run
case $1 in
version) ;;
image) if [ -e "$dir/noimage" ]; then echo "No such image: $3" >&2; exit 1; fi ;;
inspect) [ -e "$dir/c-$4" ] || exit 1; cat "$dir/c-$4" ;;
create)
	while [ $# -gt 0 ]; do
		case $1 in --name) name=$2 ;; --label) case $2 in chela.configHash=*) hash=${2#*=} ;; esac ;; esac
		shift
	done
	if [ -e "$dir/meet" ]; then # wait for a second one
		n=0
		while [ $(grep -c '^create' "$dir/log") -lt 2 ]; do
			sleep 0.02; n=$((n+1)); [ $n -lt 500 ] || { echo "alone" >&2; exit 1; }
		done
	fi
	echo "true $hash" > "$dir/c-$name" ;;
start) if [ -e "$dir/nostart" ]; then echo "no start today" >&2; exit 1; fi ;;
rm) [ -e "$dir/c-$3" ] || { echo "Error: No such container: $3" >&2; exit 1; }; rm "$dir/c-$3" ;;
exec)
	shift; vars=
	while :; do
		case $1 in
		-i|-t) shift ;;
		-w) shift 2 ;;
		-e) vars="$vars $2"; shift 2 ;;
		*) break ;;
		esac
	done
	shift
	case "$*" in
	*"/proc/[0-9]"*) exit 0 ;;
	*chela-probe*) while [ $# -gt 2 ]; do shift; done; echo "held $1 $2"; exit 0 ;; # the probe would change this machine
	esac
	exec /usr/bin/env -i PATH=/usr/bin:/bin $vars "$@" ;;
esac
`

// newDocker starts a gateway with the fake program. conf is the section
// agents.defaults.sandbox without backend.
func newDocker(t *testing.T, dir, state, conf string) *boxed {
	t.Helper()
	return newContainers(t, "docker", dir, state, conf)
}

// newContainers is newDocker for a program, docker or podman.
func newContainers(t *testing.T, program, dir, state, conf string) *boxed {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, program), []byte(fakeDocker), 0o755); err != nil {
		t.Fatal(err)
	}
	return newBoxed(t, `{"defaults": {"sandbox": {"backend": "`+program+`", `+conf+`}}}`, `{"exec": {"mode": "full"}}`,
		Options{Dir: state, Env: map[string]string{"PATH": dir + ":/usr/bin:/bin", "SECRET": "1"}})
}

func TestDocker(t *testing.T) {
	log := func(dir string) string { b, _ := os.ReadFile(filepath.Join(dir, "log")); return string(b) }
	count := func(dir, call string) int { return strings.Count("\n"+log(dir), "\n"+call+" [") }
	t.Run("SB-01 in mode non-main the main session runs on the host, a group in a container", func(t *testing.T) {
		dir := t.TempDir()
		s := newDocker(t, dir, "", `"mode": "non-main"`)
		if end := s.Ask("main", execCall("echo a", "")); !strings.Contains(end.Text, "a") || log(dir) != "" {
			t.Errorf("main: %q %s", end.Text, log(dir))
		}
		if got := s.say(groupOf("g1"), "boss", execCall("echo b", "")); !strings.Contains(got, "b") ||
			!strings.Contains(log(dir), "[sh] [-lc] [echo b]") && !strings.Contains(log(dir), "[/bin/sh] [-lc] [echo b]") {
			t.Errorf("group: %q %s", got, log(dir))
		}
	})
	t.Run("SB-02 SB-12 a container has no network, capabilities and variables of the host", func(t *testing.T) {
		dir := t.TempDir()
		t.Setenv("SECRET", "1")
		s := newDocker(t, dir, "", `"mode": "all"`)
		if got := s.Ask("main", execCall("env", "")).Text; strings.Contains(got, "SECRET") ||
			!strings.Contains(got, "CHELA_SHELL=exec") {
			t.Errorf("env: %q", got)
		}
		for _, want := range []string{"[--network] [none]", "[--read-only]", "[--cap-drop] [ALL]",
			"[--security-opt] [no-new-privileges]", "[--tmpfs] [/tmp]", "[--tmpfs] [/var/tmp]", "[--tmpfs] [/run]",
			"[--label] [chela.sandbox=1]", "[--label] [chela.sessionKey=agent:main]", "[--label] [chela.createdAtMs=",
			"[--label] [chela.configHash=", "[sleep] [infinity]", ":/workspace]"} {
			if !strings.Contains(log(dir), want) {
				t.Errorf("no %s in\n%s", want, log(dir))
			}
		}
	})
	t.Run("every setting is passed on, and numbers as they were written", func(t *testing.T) {
		dir := t.TempDir()
		bound := filepath.Join(dir, "bound")
		s := newDocker(t, dir, "", `"mode": "all", "docker": {
			"image": "mine:1", "containerPrefix": "own-", "workdir": "/w", "readOnlyRoot": false, "tmpfs": ["/t1", "/t2"], "network": "inner",
			"user": "7:8", "capDrop": ["A", "B"], "env": {"ONE": "1", "TWO": "2"}, "pidsLimit": 99, "memory": 2147483648, "memorySwap": 4294967296,
			"cpus": 1.5, "gpus": "all", "ulimits": {"core": "0", "nofile": {"soft": 1048576, "hard": 2097152}, "nproc": 1000000},
			"seccompProfile": "/sec.json", "apparmorProfile": "armor", "dns": ["1.1.1.1", "9.9.9.9"], "extraHosts": ["a:1.2.3.4"],
			"binds": ["`+bound+`:/bound:ro"], "dangerouslyAllowExternalBindSources": true}`)
		s.Ask("main", execCall("true", ""))
		for _, want := range []string{
			"[--name] [own-", "[--network] [inner]", "[--user] [7:8]", "[--security-opt] [no-new-privileges]",
			"[--tmpfs] [/t1] [--tmpfs] [/t2]",
			"[--cap-drop] [A] [--cap-drop] [B]", "[--pids-limit] [99]", "[--memory] [2147483648]",
			"[--memory-swap] [4294967296]", "[--cpus] [1.5]", "[--gpus] [all]",
			"[--ulimit] [core=0] [--ulimit] [nofile=1048576:2097152] [--ulimit] [nproc=1000000]",
			"[--security-opt] [seccomp=/sec.json]", "[--security-opt] [apparmor=armor]",
			"[--dns] [1.1.1.1] [--dns] [9.9.9.9]", "[--add-host] [a:1.2.3.4]", "[-e] [ONE=1] [-e] [TWO=2]", ":/w]",
			"[-v] [" + bound + ":/bound:ro]", "[-w] [/w] [mine:1] [sleep] [infinity]",
		} {
			if !strings.Contains(log(dir), want) {
				t.Errorf("no %s in\n%s", want, log(dir))
			}
		}
		if strings.Contains(log(dir), "[--read-only]") {
			t.Errorf("the root is read-only:\n%s", log(dir))
		}
	})
	for access, want := range map[string]string{"none": "rw", "ro": "ro", "rw": "rw"} {
		t.Run("a trial in a container with access "+access, func(t *testing.T) {
			s := newDocker(t, t.TempDir(), "", `"mode": "all", "workspaceAccess": "`+access+`"`)
			var r wire.SandboxTest
			s.must(wire.MethodSandboxTest, wire.SandboxGet{}, &r)
			if r.Level != "container" || len(r.Effects) != 1 || !r.Effects[0].Held || r.Effects[0].Name != s.Dir+" "+want {
				t.Errorf("tried %+v, want %s", r, want)
			}
		})
	}
	for scope, want := range map[string]int{"session": 2, "agent": 1, "shared": 1} {
		t.Run("SB-03 containers of two groups in scope "+scope, func(t *testing.T) {
			dir := t.TempDir()
			s := newDocker(t, dir, "", `"mode": "all", "scope": "`+scope+`"`)
			s.say(groupOf("g1"), "boss", execCall("true", ""))
			s.say(groupOf("g2"), "boss", execCall("true", ""))
			if n := count(dir, "create"); n != want {
				t.Errorf("%d containers, want %d", n, want)
			}
		})
	}
	t.Run("SB-04 read-only access: no tools that write, and the workspace at /agent", func(t *testing.T) {
		dir := t.TempDir()
		s := newDocker(t, dir, "", `"mode": "all", "workspaceAccess": "ro"`)
		s.Ask("main", execCall("true", ""))
		if want := "[" + filepath.Join(s.Dir, "workspace") + ":/agent:ro]"; !strings.Contains(log(dir), want) {
			t.Errorf("no %s in %s", want, log(dir))
		}
		for call, want := range map[string]string{
			execCall("true", ""):                            "[-w] [/workspace]",
			execCall("true", `, "workdir": "/workspace/x"`): "[-w] [/workspace/x]",
			execCall("true", `, "workdir": "/agent"`):       "[-w] [/agent]",
		} {
			before := len(log(dir))
			s.Ask("main", call)
			if got := log(dir)[before:]; !strings.Contains(got, want) {
				t.Errorf("%s: no %s in %s", call, want, got)
			}
		}
		if got := strings.Join(s.offered(), " "); strings.Contains(got, "write") || strings.Contains(got, "edit") ||
			strings.Contains(got, "apply_patch") {
			t.Errorf("tools: %s", got)
		}
		if err := os.WriteFile(filepath.Join(s.Dir, "workspace", "x.txt"), []byte("here\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.Ask("main", `read {"path": "/agent/x.txt"}`).Text; !strings.Contains(got, "here") {
			t.Errorf("a path of the container: %q", got)
		}
	})
	t.Run("SB-05 SB-06 binds of protected folders and the host's network are refused at the start", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink("/etc", link); err != nil {
			t.Fatal(err)
		}
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		state, file := t.TempDir(), filepath.Join(t.TempDir(), "chela.json")
		plant(t, file, "{}")
		for conf, want := range map[string]string{
			`"binds": ["` + state +
				`:/x"], "dangerouslyAllowExternalBindSources": true`: "no sandbox shows " + state,
			`"binds": ["` + state +
				`/credentials:/x"], "dangerouslyAllowExternalBindSources": true`: "no sandbox shows " + state,
			`"binds": ["` + filepath.Dir(file) +
				`:/x"], "dangerouslyAllowExternalBindSources": true`: "no sandbox shows " + file,
			`"binds": ["` + state + `/workspace/sub:/x"]`: "",
			`"binds": ["` + filepath.Dir(file) + `:/x"]}}, "workspace": "` + filepath.Dir(file) +
				`", "x": {"x": {`: "no sandbox shows " + file,
			`"binds": []}, "workspaceAccess": "rw"}, "workspace": "` + filepath.Dir(file) +
				`", "x": {"x": {`: "the workspace holds " + file,
			`"binds": ["/var/run/docker.sock:/sock"], "dangerouslyAllowExternalBindSources": true`: "docker.sock",
			`"binds": ["/var:/x"], "dangerouslyAllowExternalBindSources": true`:                    "/var/run",
			`"binds": ["` + home + `:/x"], "dangerouslyAllowExternalBindSources": true`:            home,
			`"binds": ["` + link + `/new:/x"], "dangerouslyAllowExternalBindSources": true`:        "/etc",
			`"binds": ["` + state +
				`/workspace/sub:/x:other"]`: "want HOST:CONTAINER",
			`"binds": ["sub:/x"]`: "want HOST:CONTAINER",
			`"binds": ["` + state + `/workspace/sub:/workspace/x"]`: "the sandbox itself uses /workspace",
			`"binds": ["` + t.TempDir() + `:/x"]`:                   "outside the workspaces",
			`"workdir": "relative"`:                                 "docker.workdir",
			`"network": "host"`:                                     "docker.network host is refused",
		} {
			g, err := TryStart(t, Options{Dir: state, File: file, Config: section("agents.defaults",
				`{"sandbox": {"mode": "all", "docker": {`+conf+`}}}`)})
			if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", conf, err)
			}
			if g != nil {
				g.Stop()
			}
		}
	})
	t.Run("SB-07 a missing image: the error has the command that builds it", func(t *testing.T) {
		dir := t.TempDir()
		s := newDocker(t, dir, "", `"mode": "all"`)
		if err := os.WriteFile(filepath.Join(dir, "noimage"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.Ask("main", execCall("true", "")).Text; !strings.Contains(got,
			"docker build -t chela-sandbox:bookworm-slim") {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a container that does not start is removed, and is not set up", func(t *testing.T) {
		dir := t.TempDir()
		s := newDocker(t, dir, "", `"mode": "all", "docker": {"setupCommand": "echo set up"}`)
		plant(t, filepath.Join(dir, "nostart"), "")
		if got := s.Ask("main", execCall("true", "")).Text; !strings.Contains(got, "no start today") ||
			count(dir, "rm") != 1 || count(dir, "exec") != 0 {
			t.Errorf("got %q\n%s", got, log(dir))
		}
		if err := os.Remove(filepath.Join(dir, "nostart")); err != nil {
			t.Fatal(err)
		}
		if got := s.Ask("main", execCall("echo up", "")).Text; !strings.Contains(got, "up") ||
			strings.Count(log(dir), "[echo set up]") != 1 {
			t.Errorf("later: %q\n%s", got, log(dir))
		}
	})
	t.Run("SB-08 SB-11 changed settings: a new container; setupCommand runs once; recreate removes it",
		func(t *testing.T) {
			dir, state := t.TempDir(), t.TempDir()
			s := newDocker(t, dir, state, `"mode": "all", "docker": {"setupCommand": "echo set up"}`)
			s.Ask("main", execCall("true", ""))
			s.Ask("main", execCall("true", ""))
			if n := strings.Count(log(dir), "[echo set up]"); n != 1 || count(dir, "create") != 1 {
				t.Errorf("set up %d times: %s", n, log(dir))
			}
			s.Client.Close()
			s.Gateway.Stop()
			s = newDocker(t, dir, state, `"mode": "all", "docker": {"setupCommand": "echo set up", "memory": "3g"}`)
			s.Ask("main", execCall("true", ""))
			if count(dir, "rm") != 1 || count(dir, "create") != 2 || !strings.Contains(log(dir), "[3g]") {
				t.Errorf("after the change: %s", log(dir))
			}
			var r wire.SandboxRecreated
			s.must(wire.MethodSandboxRecreate, wire.SandboxRecreate{All: true}, &r)
			if left, _ := filepath.Glob(filepath.Join(dir, "c-*")); r.Removed != 1 || len(r.Names) != 1 ||
				!strings.HasPrefix(r.Names[0], "chela-sbx-") || len(left) != 0 {
				t.Errorf("removed %d, left %q", r.Removed, left)
			}
		})
	t.Run("two sessions make their containers at the same time", func(t *testing.T) {
		dir := t.TempDir()
		s := newDocker(t, dir, "", `"mode": "all", "scope": "session"`)
		if err := os.WriteFile(filepath.Join(dir, "meet"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		other := s.Gateway.Client()
		first := other.Send("one", execCall("echo one", ""))
		if end := s.Ask("two", execCall("echo two", "")); !strings.Contains(end.Text, "two") || count(dir, "create") != 2 {
			t.Errorf("two: %q\n%s", end.Text, log(dir))
		}
		if end := other.Await(first); !strings.Contains(end.Text, "one") {
			t.Errorf("one: %q", end.Text)
		}
	})
	t.Run("a container in which a command runs is kept by recreate; one that is gone is forgotten", func(t *testing.T) {
		dir := t.TempDir()
		s := newDocker(t, dir, "", `"mode": "all"`)
		s.Ask("main", execCall("sleep 600", `, "background": true`))
		var r wire.SandboxRecreated
		s.must(wire.MethodSandboxRecreate, wire.SandboxRecreate{All: true}, &r)
		if r.Removed != 0 || len(r.Busy) != 1 || count(dir, "rm") != 0 {
			t.Errorf("while a command runs: %+v\n%s", r, log(dir))
		}
		s.Client.Close()
		s.Gateway.Stop()

		s = newDocker(t, dir, s.Dir, `"mode": "all"`)
		left, _ := filepath.Glob(filepath.Join(dir, "c-*"))
		for _, name := range left {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		s.must(wire.MethodSandboxRecreate, wire.SandboxRecreate{All: true}, &r)
		if len(left) != 1 || r.Removed != 1 || count(dir, "rm") != 1 {
			t.Errorf("%d containers; after one was removed by hand: %+v\n%s", len(left), r, log(dir))
		}
	})
	t.Run("SB-08 a container in which a command runs is kept when the settings change, and created again afterwards",
		func(t *testing.T) {
			dir := t.TempDir()
			s := newDocker(t, dir, "", `"mode": "all"`)
			_, id, _ := strings.Cut(s.Ask("main", execCall("sleep 600", `, "background": true`)).Text, "sessionId ")
			id, _, _ = strings.Cut(id, ",")
			s.patch(`{"agents": {"list": [{"id": "main", "sandbox": {"docker": {"memory": "3g"}}}]}}`)
			for range 2 {
				if got := s.Ask("main", execCall("echo beside", "")).Text; !strings.Contains(got, "beside") ||
					count(dir, "rm") != 0 || count(dir, "create") != 1 {
					t.Errorf("while a command runs: %q\n%s", got, log(dir))
				}
			}
			kept, _ := filepath.Glob(filepath.Join(dir, "c-*"))
			state, err := os.ReadFile(strings.Join(kept, " "))
			list, lerr := os.ReadFile(filepath.Join(s.Dir, "sandbox", "docker.json"))
			if _, hash, _ := strings.Cut(strings.TrimSpace(string(state)), " "); err != nil || lerr != nil ||
				!strings.Contains(string(list), `"`+hash+`"`) {
				t.Errorf("the container is %q, %v; listed as %s, %v", state, err, list, lerr)
			}
			if got := s.Ask("main", `process {"action":"kill","sessionId":"`+id+`"}`).Text; !strings.Contains(got, "Ended") {
				t.Fatalf("the command was not ended: %q", got)
			}
			for range 2 {
				if got := s.Ask("main", execCall("echo after", "")).Text; !strings.Contains(got, "after") ||
					count(dir, "rm") != 1 ||
					count(dir, "create") != 2 || !strings.Contains(log(dir), "[3g]") {
					t.Errorf("afterwards: %q\n%s", got, log(dir))
				}
			}
		})
	t.Run("podman is called like docker", func(t *testing.T) {
		dir := t.TempDir()
		s := newContainers(t, "podman", dir, "", `"mode": "all"`)
		if got := s.Ask("main", execCall("echo in a pod", "")).Text; !strings.Contains(got, "in a pod") ||
			count(dir, "create") != 1 {
			t.Errorf("got %q\n%s", got, log(dir))
		}
		if mapped := strings.Contains(log(dir), "[--userns] [keep-id]"); mapped != (os.Geteuid() != 0) {
			t.Errorf("the user is mapped: %v\n%s", mapped, log(dir))
		}
	})
	t.Run("containers are removed at the ages of sandbox.prune", func(t *testing.T) {
		for conf, want := range map[string]map[time.Duration]int{
			`{"idleHours": 2}`:                  {time.Hour: 0, 3 * time.Hour: 1},
			`{"idleHours": 0, "maxAgeDays": 1}`: {23 * time.Hour: 0, 25 * time.Hour: 1},
			`{"idleHours": 0, "maxAgeDays": 0}`: {9999 * time.Hour: 0},
		} {
			dir := t.TempDir()
			s := newDocker(t, dir, "", `"mode": "all", "prune": `+conf)
			s.Ask("main", execCall("true", ""))
			b := docker.New(docker.Options{Program: "docker", Host: host.Broker{}, State: s.Dir, Getenv: func(string) string {
				return dir + ":/usr/bin:/bin"
			}})
			for _, age := range slices.Sorted(maps.Keys(want)) {
				if n, err := b.Prune(t.Context(), time.Now().Add(age)); n != want[age] || err != nil {
					t.Errorf("%s after %v: %d, %v; want %d", conf, age, n, err, want[age])
				}
			}
		}
	})
	t.Run("SB-09 a container that was idle for 25 hours is removed", func(t *testing.T) {
		dir := t.TempDir()
		s := newDocker(t, dir, "", `"mode": "all"`)
		s.Ask("main", execCall("true", ""))
		b := docker.New(docker.Options{Program: "docker", Host: host.Broker{}, State: s.Dir, Getenv: func(string) string {
			return dir + ":/usr/bin:/bin"
		}})
		if n, err := b.Prune(t.Context(), time.Now().Add(23*time.Hour)); n != 0 || err != nil {
			t.Errorf("after 23 hours: %d, %v", n, err)
		}
		if n, err := b.Prune(t.Context(), time.Now().Add(25*time.Hour)); n != 1 || err != nil {
			t.Errorf("after 25 hours: %d, %v", n, err)
		}
		list, err := os.ReadFile(filepath.Join(s.Dir, "sandbox", "docker.json"))
		if left, _ := filepath.Glob(filepath.Join(dir, "c-*")); len(left) != 0 || err != nil ||
			strings.TrimSpace(string(list)) != "[]" {
			t.Errorf("left %q; list %s, %v", left, list, err)
		}
	})
}
