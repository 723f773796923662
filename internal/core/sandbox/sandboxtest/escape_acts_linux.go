package sandboxtest

import "strings"

// Reasons why an act is not tried outside of a sandbox.
const (
	harmsHost   = "outside it would change this machine"
	endsOthers  = "outside it would end other programs"
	needsRoot   = "outside it works for root only, and would change this machine"
	onlySandbox = "it is about a sandbox"
)

// escapeActs are the attempts to get out, by class.
func escapeActs() []act {
	// a limit holds for this user; the next act looks at the limit itself
	forks := `bash -c "ulimit -u 100 && exec $X forkbomb 200"`
	if Count(0, 1) > 0 {
		forks = `$X forkbomb 6000`
	}
	var all []act
	add := func(class string, acts ...act) {
		for _, a := range acts {
			a.class = class
			all = append(all, a)
		}
	}
	add("write outside", writeActs("$D")...)
	add("write the workspace", lookOnly(writeActs("$L"))...)
	add("reach outside", []act{
		{name: "path with ..", script: `echo x > "$WS/../outside/$N/new"`, trace: "$D"},
		{name: "relative path", script: `cd "$WS/d" && echo x > ../../outside/$N/new`, trace: "$D"},
		{name: "symlink in the workspace", script: `echo x > "$WS/out/$N/new"`, trace: "$D"},
		{name: "own symlink", script: `ln -s "$OUT" "$T/l" && echo x > "$T/l/$N/new"`, trace: "$D"},
		{name: "cd -P through a symlink", script: `cd -P "$WS/out/$N" && echo x > new`, trace: "$D"},
		{name: "/proc/self/cwd/..", script: `echo x > /proc/self/cwd/../outside/$N/new`, trace: "$D"},
		{name: "/proc/self/root", script: `echo x > "/proc/self/root$D/new"`, trace: "$D"},
		{name: "/proc/1/root", script: `echo x > "/proc/1/root$D/new"`, trace: "$D"},
		{name: "/proc/*/root", script: `for p in /proc/[0-9]*; do echo x > "$p/root$D/new"; done`, trace: "$D"},
		{name: "/proc/VICTIM/cwd", script: `echo x > "/proc/$VICTIM/cwd/$N/new"`, trace: "$D"},
		{name: "/proc/*/cwd/..", script: `for p in /proc/[0-9]*; do echo x > "$p/cwd/../../${A##*/}/outside/$N/new"; done`,
			trace: "$D"},
		{name: "/proc/VICTIM/fd", script: `echo x >> "/proc/$VICTIM/fd/7"`, trace: "$OUT/held"},
		{name: "/proc/*/fd", script: `find /proc/[0-9]*/fd -lname "$OUT/*" 2>/dev/null | grep -q .`},
		{name: "parent of the root", script: `cd / && cd ../../../../.. && grep -q "$CANARY" ".$OUT/secret"`},
		{name: "inherited descriptors",
			script:  `find /proc/self/fd -lname 'socket:*' -o -lname "$OUT/*" -o -lname '/sys/*' -o -lname "$STATE/*" | grep .`,
			control: onlySandbox},
		{name: "fchdir out of pivot_root", script: `$X chroot`, control: inBox},
		{name: "name_to_handle_at and open_by_handle_at", script: `$X handle "$WS/notes"`},
		{name: "detached old root", script: `ls -d /.old /oldroot /.lower/* /.upper/* 2>/dev/null | grep -q .`,
			control: onlySandbox},
	}...)
	add("read outside", []act{
		read("file outside", `"$OUT/secret"`), read("other workspace", `"$A/other/notes"`),
		read("state: configuration", `"$STATE/chela.json"`), read("state: database", `"$STATE/chela.db"`),
		read("state: credentials", `"$STATE/credentials/key"`), read("key in home", `"$HOME/.ssh/id_rsa"`),
		read("token in home", `"$HOME/.config/app/token"`), read("history", `"$HOME/.bash_history"`),
		read(".netrc", `"$HOME/.netrc"`), read("docker's login", `"$HOME/.docker/config.json"`),
		read("cargo's credentials", `"$HOME/.cargo/credentials.toml"`), read("maven's settings", `"$HOME/.m2/settings.xml"`),
		read("symlink to outside", `"$WS/plain"`), read("environment of a process", `"/proc/$VICTIM/environ"`),
		read("descriptor of a process", `"/proc/$VICTIM/fd/8"`),
		read("cwd of a process", `"/proc/$VICTIM/cwd/secret"`), read("root of a process", `"/proc/$VICTIM/root$OUT/secret"`),
		{name: "environment of all processes", script: `cat /proc/[0-9]*/environ 2>/dev/null | grep -qa "SECRET=$CANARY"`},
		{name: "find in home", script: `grep -rqs "$CANARY" "$HOME"`},
		{name: "find everywhere", script: `[ -e "$OUT" ] || [ -e "$STATE" ] || [ -e "$A/other" ]`},
		{name: "shadow", script: `grep -q : /etc/shadow`}, {name: "gshadow", script: `grep -q : /etc/gshadow`},
		{name: "sudoers", script: `grep -q . /etc/sudoers`},
		{name: "cp -r of home", script: `cp -r "$HOME/.ssh" "$T/" && [ -s "$T/.ssh/id_rsa" ]`},
		{name: "tar of the state", script: `tar cf "$T/x.tar" -C "$STATE" . && grep -q "$CANARY" "$T/x.tar"`},
		{name: "host's /tmp", script: `ls -d /tmp/escape-*/outside /tmp/escape-*/state 2>/dev/null | grep -q .`},
		{name: "dmesg", script: `dmesg | grep -q .`}, {name: "kernel addresses", script: `grep -qv '^0*  *' /proc/kallsyms`},
		{name: "kernel memory", script: `head -c 64 /proc/kcore | grep -qa ELF`},
		{name: "keys", script: `grep -q . /proc/keys`},
	}...)
	add("private files", []act{
		read(".env", `"$WS/.env"`), read(".env below", `"$WS/sub/.env"`), read(".env.local", `"$WS/deep/er/.env.local"`),
		read("pem", `"$WS/keys/server.pem"`), read("key", `"$WS/id_rsa"`),
		read(".npmrc", `"$WS/.npmrc"`), read("credentials", `"$WS/.aws/credentials"`), read("symlink", `"$WS/config-link"`),
		read("dot segments", `"$WS/sub/../.env"`), read("/proc/self/cwd", `/proc/self/cwd/.env`),
		{name: "glob", script: `cat "$WS"/.e* | grep -q "$CANARY"`},
		{name: "grep -r", script: `grep -rq "$CANARY" "$WS/sub"`},
		{name: "find -exec", script: `find "$WS/deep" -type f -exec cat {} + | grep -q "$CANARY"`},
		{name: "xargs", script: `printf '%s' "$WS/.env" | xargs cat | grep -q "$CANARY"`},
		{name: "own symlink", script: `ln -s "$WS/.env" "$T/l" && grep -q "$CANARY" "$T/l"`},
		{name: "hard link", script: `ln "$WS/.env" "$WS/d/$N/l" && grep -q "$CANARY" "$WS/d/$N/l"`, only: "work"},
		{name: "hard link in /tmp", script: `ln -L "$WS/.env" "$T/l" && grep -q "$CANARY" "$T/l"`},
		{name: "copy", script: `cp "$WS/id_rsa" "$T/k" && grep -q "$CANARY" "$T/k"`},
		{name: "tar", script: `tar cf - -C "$WS" .env | grep -qa "$CANARY"`},
		{name: "rename", script: `mv "$WS/.npmrc" "$WS/d/$N/x" && grep -q "$CANARY" "$WS/d/$N/x"`, only: "work"},
		{name: "rename of the parent", script: `mv "$WS/deep" "$WS/d/$N/deep" && grep -rq "$CANARY" "$WS/d/$N"`,
			only: "work"},
		{name: "chmod", script: `chmod 644 "$WS/.env"; grep -q "$CANARY" "$WS/.env"`},
		{name: "mmap and sendfile", script: `$X sendfile "$WS/.env"`},
		{name: "truncate", script: `: > "$WS/.env"`, trace: "$WS/.env"},
		{name: "remove", script: `rm -f "$WS/id_rsa"`, trace: "$WS/id_rsa"},
		{name: "exchange", script: `$X exchange "$WS/keys/server.pem" "$WS/d/$N/old" && grep -q "$CANARY" "$WS/d/$N/old"`,
			only: "work"},
		{name: "upper case on a plain file system", script: `grep -q "$CANARY" "$WS/.ENV"`,
			control: "this file system tells upper from lower case"},
	}...)
	add("protected names", protectedActs()...)
	add("system", []act{
		{name: "write /usr", script: `: > /usr/escape-$N`, control: harmsHost},
		{name: "write /etc", script: `: > /etc/escape-$N`, control: harmsHost},
		{name: "write /bin", script: `: > /bin/escape-$N`, control: harmsHost},
		{name: "append to /etc/passwd", script: `: >> /etc/passwd`, control: needsRoot},
		{name: "write the root", script: `: > /escape-$N`, control: harmsHost},
		{name: "write /opt", script: `: > /opt/escape-$N`, control: harmsHost},
		{name: "remount /usr", script: `mount -o remount,rw /usr`, control: harmsHost},
		{name: "core_pattern", script: `cat /proc/sys/kernel/core_pattern > $T/c && cat $T/c > /proc/sys/kernel/core_pattern`,
			control: needsRoot},
		{name: "/proc/sys/kernel/hostname", script: `echo escaped > /proc/sys/kernel/hostname`, control: inBox},
		{name: "/proc/sys/net", script: `echo 1 > /proc/sys/net/ipv4/ip_forward`, control: inBox},
		{name: "sysrq", script: `echo h > /proc/sysrq-trigger`, control: harmsHost},
		{name: "drop_caches", script: `echo 1 > /proc/sys/vm/drop_caches`, control: needsRoot},
		{name: "modprobe path", script: `cat /proc/sys/kernel/modprobe > $T/c && cat $T/c > /proc/sys/kernel/modprobe`,
			control: needsRoot}, {name: "oom_score_adj", script: `echo 0 > /proc/self/oom_score_adj`, control: inBox},
		{name: "write /proc/self/mem of the first process", script: `: >> /proc/1/mem`, control: inBox},
		{name: "uid_map", script: `echo '0 0 1' > /proc/1/uid_map`, control: onlySandbox},
		{name: "/sys is there", script: `ls /sys/kernel`},
		{name: "write /sys", script: `cat /sys/kernel/mm/transparent_hugepage/enabled > $T/c && echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`, control: needsRoot},
		{name: "cgroup release_agent",
			script: `find /sys/fs/cgroup -name release_agent -o -name cgroup.procs 2>/dev/null | grep -q .`},
		{name: "mount a cgroup", script: `mkdir -p $T/g && mount -t cgroup -o memory none $T/g`, control: needsRoot},
		{name: "uevent_helper", script: `: >> /sys/kernel/uevent_helper`, control: needsRoot},
		{name: "binfmt_misc", script: `: >> /proc/sys/fs/binfmt_misc/register`, control: needsRoot},
		{name: "the gateway's program", script: `: >> /proc/1/exe`, control: onlySandbox},
		{name: "first process's descriptors", script: `ls -l /proc/1/fd | grep ' /[^dp]'`, control: onlySandbox},
		{name: "set the time", script: `$X settime`, control: harmsHost}, {name: "host name", script: `$X sethostname`,
			control: inBox}, {name: "reboot", script: `$X reboot`, control: harmsHost},
		{name: "load a module", script: `$X module`, control: harmsHost},
		{name: "kexec", script: `$X kexec`, control: harmsHost}, {name: "swap", script: `$X swapoff`, control: needsRoot},
		{name: "accounting", script: `$X acct`, control: needsRoot}, {name: "syslog", script: `$X syslog`},
	}...)
	add("devices", []act{
		{name: "mknod block device", script: `mknod $T/sda b 254 0 && head -c 1 $T/sda`, control: needsRoot},
		{name: "mknod in the workspace", script: `mknod "$WS/d/$N/null" c 1 3`},
		{name: "disks", script: `head -c 1 /dev/vda || head -c 1 /dev/sda || head -c 1 /dev/nvme0n1`},
		{name: "memory", script: `head -c 1 /dev/mem || [ -e /dev/port ] || [ -e /dev/kmem ]`},
		{name: "kernel messages", script: `[ -e /dev/kmsg ]`},
		{name: "kvm, fuse and tun", script: `[ -e /dev/kvm ] || [ -e /dev/fuse ] || [ -e /dev/net/tun ]`},
		{name: "loop devices", script: `[ -e /dev/loop-control ] || [ -e /dev/loop0 ]`},
		{name: "the host's terminals", script: `[ -e /dev/tty1 ] || [ -e /dev/console ]`},
		{name: "the host's pts", script: `ls /dev/pts | grep -q '^[0-9]'`, control: onlySandbox},
		{name: "the host's shm", script: `ls /dev/shm | grep -q .`, control: onlySandbox},
		{name: "mode of /dev/null", script: `chmod 666 /dev/null`, control: needsRoot},
		{name: "TIOCSTI", script: `$X tiocsti`}, {name: "TIOCLINUX", script: `$X tioclinux`},
	}...)
	add("namespaces and mounts", []act{
		{name: "unshare a user namespace", script: `unshare -U true`}, {name: "user and mount namespace",
			script: `unshare -Urm true`}, {name: "network namespace", script: `unshare -Urn true`},
		{name: "mount a tmpfs", script: `mount -t tmpfs none $T`, control: inBox},
		{name: "bind mount", script: `mount --bind "$WS" $T`, control: inBox},
		{name: "unmount what hides", script: `umount "$WS/.env" || umount -l /proc`, control: inBox},
		{name: "mount proc", script: `mount -t proc none $T`, control: inBox},
		{name: "remount the workspace", script: `mount -o remount,bind,rw "$WS"`, control: onlySandbox},
		{name: "clone a user namespace", script: `$X clone`}, {name: "clone3 a user namespace", script: `$X clone3`},
		{name: "setns", script: `$X setns`, control: inBox},
		{name: "chroot", script: `PATH=$PATH:/usr/sbin:/sbin; chroot / true`, control: inBox},
		{name: "pivot_root", script: `$X pivot`, control: inBox}, {name: "fsopen", script: `$X fsopen`, control: inBox},
		{name: "open_tree", script: `$X opentree`, control: inBox},
		{name: "open_tree_attr", script: `$X opentreeattr`, control: inBox},
		{name: "mount_setattr", script: `$X mountsetattr`, control: inBox},
		{name: "move_mount", script: `$X movemount`, control: inBox}, {name: "fanotify", script: `$X fanotify`},
		{name: "overlay's own attributes", script: `setfattr -n trusted.overlay.opaque -v y "$WS/d/$N"`,
			control: "outside it works for root only"},
	}...)
	add("rights", []act{
		{name: "capabilities", script: `grep -Eq '^Cap(Prm|Eff|Bnd|Amb|Inh):.*[1-9a-f]' /proc/self/status`},
		{name: "programs can gain rights", script: `grep -Eq '^NoNewPrivs:.*0$' /proc/self/status`},
		{name: "no filter", script: `grep -Eq '^Seccomp:.*0$' /proc/self/status`},
		{name: "setuid", script: `$X setuid`}, {name: "setgroups", script: `$X setgroups`},
		{name: "su", script: `su -c true nobody </dev/null`, control: "it depends on this machine"},
		{name: "mount allows setuid", script: `awk '$4 !~ /nosuid/ {bad=1} END {exit !bad}' /proc/mounts`},
		{name: "setuid file in the workspace",
			script: `cp /bin/true "$WS/d/$N/s" && chmod 4755 "$WS/d/$N/s" && [ -u "$WS/d/$N/s" ]`, only: "work"},
		{name: "setgid file in the workspace",
			script: `cp /bin/true "$WS/d/$N/s" && chmod 2755 "$WS/d/$N/s" && [ -g "$WS/d/$N/s" ]`, only: "work"},
		{name: "setuid file made by open", script: `$X suidopen "$WS/d/$N/s"; [ -u "$WS/d/$N/s" ]`, only: "work"},
		{name: "setuid file made by openat2", script: `$X suidopenat2 "$WS/d/$N/s"; [ -u "$WS/d/$N/s" ]`, only: "work"},
		{name: "setuid file made by fchmodat2",
			script: `: > "$WS/d/$N/s"; $X suidfchmodat2 "$WS/d/$N/s"; [ -u "$WS/d/$N/s" ]`, only: "work"},
		{name: "setuid file made by mknod", script: `$X suidmknod "$WS/d/$N/s"; [ -u "$WS/d/$N/s" ]`, only: "work"},
		{name: "other groups", script: `id -G | tr ' ' '\n' | sort -u | grep -qv "^$(id -g)\$"`, control: onlySandbox},
	}...)
	add("processes", []act{
		{name: "see a process", script: `[ -d "/proc/$VICTIM" ]`},
		{name: "see many processes", script: `[ "$(ls -d /proc/[0-9]* | wc -l)" -gt 14 ]`},
		{name: "signal a process", script: `kill -0 "$VICTIM"`},
		{name: "stop the first process", script: `kill -STOP 1 && kill -0 1 && grep -q 'State:.T' /proc/1/status`,
			control: onlySandbox}, {name: "pidfd", script: `$X pidfd "$VICTIM"`},
		{name: "ptrace a process", script: `$X ptrace "$VICTIM"`},
		{name: "ptrace the first process", script: `$X ptrace 1`, control: inBox},
		{name: "ptrace a child", script: `$X ptracechild`}, {name: "process_vm_readv", script: `$X vmread 1`, control: inBox},
		{name: "kcmp", script: `$X kcmp 1`, control: inBox},
		{name: "pidfd_getfd", script: `$X getfd 1`, control: inBox}, {name: "memory of the first process",
			script: `$X openwrite /proc/1/mem`, control: inBox},
		{name: "priority of the user's processes", script: `$X nice "$VICTIM"`},
		{name: "limits of a process", script: `prlimit --pid "$VICTIM" --nofile`},
		{name: "core of a process", script: `ulimit -c unlimited && [ "$(ulimit -c)" = unlimited ]`, control: inBox},
		{name: "scheduler of a process", script: `$X affinity "$VICTIM"`},
	}...)
	add("network", []act{
		{name: "TCP to the host's loopback", script: `$X dial tcp4 127.0.0.1:$PORT`},
		{name: "TCP over IPv6", script: `$X dial tcp6 "[::1]:$PORT6"`},
		{name: "localhost by name", script: `$X dial tcp localhost:$PORT`},
		{name: "0.0.0.0", script: `$X dial tcp4 0.0.0.0:$PORT`},
		{name: "mapped address", script: `$X dial tcp "[::ffff:127.0.0.1]:$PORT"`},
		{name: "127.1.2.3", script: `$X dial tcp4 127.0.0.1:$PORT || $X dial tcp4 127.1.2.3:$PORT`},
		{name: "UDP", script: `$X send udp4 127.0.0.1:$UDP`, trace: "$OUT/udp"},
		{name: "bash's /dev/tcp", script: `bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT; cat <&3' | grep -q "$CANARY"`},
		{name: "curl without the proxy", script: `curl -s --noproxy '*' -m 30 http://127.0.0.1:$PORT/ | grep -q "$CANARY"`},
		{name: "interfaces of the host", script: `ls /sys/class/net 2>/dev/null | grep -qv '^lo$' || grep -q '[a-z0-9]*: ' /proc/net/dev && [ "$(grep -c : /proc/net/dev)" -gt 1 ]`},
		{name: "a route", script: `[ "$(wc -l < /proc/net/route)" -gt 1 ]`},
		{name: "the host's sockets", script: `grep -q "$(printf '%04X' $PORT)" /proc/net/tcp`},
		{name: "the host's unix sockets", script: `grep -q "$A" /proc/net/unix`},
		{name: "DNS", script: `$X dns`, control: "there may be no name server"},
		{name: "raw socket", script: `$X socket 2 3 1`, control: inBox}, {name: "packet socket", script: `$X socket 17 3 768`,
			control: inBox}, {name: "netlink audit", script: `$X socket 16 3 9`},
		{name: "netlink netfilter", script: `$X socket 16 3 12`}, {name: "netlink kobject", script: `$X socket 16 3 15`},
		{name: "netlink generic", script: `$X socket 16 3 16`},
		{name: "add an address", script: `ip link add dummy0 type dummy`, control: inBox},
		{name: "vsock", script: `$X socket 40 1 0`}, {name: "crypto sockets", script: `$X socket 38 5 0`},
		{name: "bluetooth", script: `$X socket 31 3 1`}, {name: "CAN", script: `$X socket 29 3 1`},
		{name: "multipath TCP", script: `$X socket 2 1 262`}, {name: "SCTP", script: `$X socket 2 1 132`},
		{name: "XDP", script: `$X socket 44 3 0`, control: inBox},
		{name: "unix stream socket outside", script: `$X dial unix "$OUT/s.sock"`},
		{name: "the gateway's socket", script: `$X dial unix "$STATE/gateway.sock"`},
		{name: "unix stream socket in the workspace", script: `$X dial unix "$WS/s.sock"`},
		{name: "abstract socket", script: `$X dial unix "$ABS"`},
		{name: "unix datagram outside", script: `$X send unixgram "$OUT/d.sock"`, trace: "$OUT/dgram-out"},
		{name: "unix datagram in the workspace", script: `$X send unixgram "$WS/d.sock"`, trace: "$OUT/dgram-ws"},
		{name: "unix datagram, abstract", script: `$X send unixgram "$ABS-d"`, trace: "$OUT/dgram-abs"},
		{name: "datagram from a socket pair", script: `$X pairsend "$WS/pair.sock"`, trace: "$OUT/dgram-pair"},
		{name: "socket through /proc/self/root", script: `$X dial unix "/proc/self/root$WS/s.sock"`},
		{name: "socket through a symlink", script: `ln -s "$WS/s.sock" $T/l && $X dial unix $T/l`},
		{name: "D-Bus and docker", script: `$X dial unix /run/dbus/system_bus_socket || $X dial unix /var/run/docker.sock`,
			control: "this host may have neither"},
		{name: "mDNS and multicast", script: `$X send udp4 224.0.0.251:5353`, control: "it is a datagram to the network"},
		{name: "to the internet", script: `$X dial tcp4 1.1.1.1:443`, control: "this host may have no network"},
	}...)
	add("proxy", proxyActs()...)
	add("kernel", []act{
		{name: "bpf", script: `$X bpf`, control: needsRoot}, {name: "perf_event_open", script: `$X perf`},
		{name: "userfaultfd", script: `$X userfaultfd`}, {name: "io_uring", script: `$X iouring`},
		{name: "keyctl", script: `$X keyctl`}, {name: "add_key", script: `$X addkey`},
		{name: "x32 system calls", script: `$X x32`}, {name: "i386 system calls", script: `$X i386 $T/i386`},
		{name: "modify_ldt", script: `$X ldt`}, {name: "iopl", script: `$X iopl`, control: needsRoot},
		{name: "vhangup", script: `$X vhangup`, control: harmsHost},
		{name: "quotactl", script: `$X quotactl`, control: needsRoot},
		{name: "process_madvise", script: `$X madvise 1`, control: inBox},
	}...)
	add("bombs", []act{
		{name: "processes", script: forks, control: "it depends on this host's limits", alone: true},
		{name: "limit of processes", script: `n=$(sed -n 's/^Max processes *[^ ]* *\([^ ]*\).*/\1/p' /proc/self/limits); [ "$n" = unlimited ] || [ "$n" -gt 4096 ]`, control: "it depends on this host's limits"},
		{name: "terminals", script: `$X ptybomb 600`, alone: true},
		{name: "a large file", script: `truncate -s 20G "$T/big"`, control: "it depends on this file system"},
		{name: "files in /tmp", script: `[ "$(df --output=itotal /tmp | tail -n 1)" -gt 250000 ]`},
		{name: "memory is taken from it first", script: `[ "$(cat /proc/self/oom_score_adj)" -lt 500 ]`},
		{name: "a core file", script: `[ "$(ulimit -Hc)" != 0 ]`, control: "it depends on this host's limits"},
	}...)
	add("ends others", []act{
		{name: "kill -1", script: `[ -d "/proc/$VICTIM" ] || kill -9 -1`, control: endsOthers, trace: "/proc/$VICTIM/comm",
			alone: true}, {name: "TERM to a process", script: `kill -TERM "$VICTIM"`, alone: true},
		{name: "KILL to the first process", script: `kill -KILL 1; sleep 0.2; kill -0 1; exit 1`,
			control: onlySandbox, alone: true},
		{name: "survivor",
			script:  `setsid sh -c 'while :; do echo x >> "$L/beat"; sleep 0.05; done' >/dev/null 2>&1 & sleep 0.2; exit 1`,
			control: "the other suite tries it", alone: true},
	}...)
	return all
}

// writeActs are the ways to change a folder, which holds the file old.
func writeActs(dir string) []act {
	list := []act{
		{name: "create", script: `echo x > "DIR/new"`}, {name: "append", script: `echo x >> "DIR/old"`},
		{name: "truncate", script: `: > "DIR/old"`}, {name: "remove", script: `rm -f "DIR/old"`},
		{name: "rename", script: `mv "DIR/old" "DIR/new"`}, {name: "move in", script: `echo x > $T/f; mv $T/f "DIR/new"`},
		{name: "mkdir", script: `mkdir "DIR/dir"`}, {name: "remove the folder", script: `rm -rf "DIR"`},
		{name: "chmod", script: `chmod 600 "DIR/old"`},
		{name: "utimes", script: `touch -d 2001-01-01 "DIR/old"`}, {name: "symlink", script: `ln -s / "DIR/l"`},
		{name: "hard link", script: `ln "DIR/old" "DIR/hard"`}, {name: "fifo", script: `mkfifo "DIR/fifo"`},
		{name: "dd without truncation", script: `echo x | dd of="DIR/old" conv=notrunc 2>/dev/null`},
		{name: "mmap", script: `$X mmap "DIR/old"`}, {name: "truncate(2)", script: `$X truncate "DIR/old"`},
		{name: "fallocate", script: `fallocate -l 4096 "DIR/old"`},
		{name: "copy_file_range", script: `cp --reflink=never /etc/hostname "DIR/old"`},
		{name: "open for writing through /proc/self/fd", script: `exec 9<"DIR/old"; echo x > /proc/self/fd/9`},
		{name: "O_TMPFILE and linkat", script: `$X tmpfile "DIR"`},
		{name: "rename exchange", script: `echo x > "DIR/two"; $X exchange "DIR/old" "DIR/two"`},
		{name: "unix socket", script: `$X listen "DIR/sock"`},
	}
	for i := range list {
		list[i].script, list[i].trace = strings.ReplaceAll(list[i].script, "DIR", dir), dir
	}
	return list
}

// lookOnly returns acts that a program may do that changes the workspace.
func lookOnly(list []act) []act {
	for i := range list {
		list[i].only = "look"
	}
	return list
}

// read returns the act of reading a file that holds the canary.
func read(name, file string) act { return act{name: name, script: `grep -qa "$CANARY" ` + file} }

// protectedActs change names that make other programs run something.
func protectedActs() []act {
	list := []act{
		{name: ".git/config", script: `echo x >> "$WS/.git/config"`, trace: "$WS/.git/config"},
		{name: "git config", script: `cd "$WS" && git config core.fsmonitor ./evil`, trace: "$WS/.git/config"},
		{name: "rename onto .git/config", script: `echo x > "$WS/.git/c"; mv -f "$WS/.git/c" "$WS/.git/config"`,
			trace: "$WS/.git/config"}, {name: "remove .git/config", script: `rm -f "$WS/.git/config"`, trace: "$WS/.git/config"},
		{name: "a hook", script: `echo x > "$WS/.git/hooks/pre-commit"`, trace: "$WS/.git/hooks"},
		{name: "rename of the hooks", script: `mv "$WS/.git/hooks" "$WS/.git/h"`, trace: "$WS/.git/hooks"},
		{name: "mode of a hook", script: `chmod 755 "$WS/.git/hooks/pre-commit.sample"`, trace: "$WS/.git/hooks"},
		{name: "rename of .git",
			script: `mv "$WS/.git" "$WS/g" && mkdir -p "$WS/.git/hooks" && echo x > "$WS/.git/hooks/pre-commit"`,
			trace:  "$WS/.git/hooks"},
		{name: "exchange of .git", script: `mkdir -p "$WS/e/hooks"; $X exchange "$WS/e" "$WS/.git"`, trace: "$WS/.git/hooks"},
		{name: "symlink for .git", script: `mv "$WS/.git" "$WS/g" && ln -s g "$WS/.git"`, trace: "$WS/.git/hooks"},
		{name: "commondir", script: `mkdir -p "$WS/evil"; echo ../evil > "$WS/.git/commondir"`, trace: "$WS/.git/commondir"},
		{name: "attributes", script: `echo '* filter=x' > "$WS/.git/info/attributes"`, trace: "$WS/.git/info/attributes"},
		{name: "rename of info",
			script: `mv "$WS/.git/info" "$WS/.git/i" && mkdir "$WS/.git/info" && echo x > "$WS/.git/info/attributes"`,
			trace:  "$WS/.git/info/attributes"},
		{name: "nested repository", script: `echo x >> "$WS/lib/.git/config"`, trace: "$WS/lib/.git/config"},
		{name: "nested repository, rename of .git",
			script: `mv "$WS/lib/.git" "$WS/lib/g" && mkdir "$WS/lib/.git" && echo x > "$WS/lib/.git/config"`,
			trace:  "$WS/lib/.git/config"},
		{name: "file .git", script: `echo 'gitdir: evil' > "$WS/tree/.git"`, trace: "$WS/tree/.git"},
		{name: "editor settings", script: `echo x > "$WS/.vscode/tasks.json"`, trace: "$WS/.vscode"},
		{name: "rename of editor settings", script: `mv "$WS/.vscode" "$WS/v"`, trace: "$WS/.vscode"},
		{name: "husky", script: `echo x > "$WS/.husky/pre-commit"`, trace: "$WS/.husky"},
		{name: "workflows", script: `echo x >> "$WS/.github/workflows/ci.yml"`, trace: "$WS/.github/workflows"},
		{name: "rename of .github", script: `mv "$WS/.github" "$WS/gh" && mkdir -p "$WS/.github/workflows"`,
			trace: "$WS/.github/workflows"},
		{name: "MCP servers", script: `echo x > "$WS/.mcp.json"`, trace: "$WS/.mcp.json"},
		{name: "submodules", script: `echo x > "$WS/.gitmodules"`, trace: "$WS/.gitmodules"},
		{name: "the workspace itself", script: `mv "$WS" "$WS-2" && mv "$WS-2" "$WS"`},
		{name: "hooks where there are none", script: `mkdir "$WS/bare/.git/hooks"; echo x > "$WS/bare/.git/hooks/pre-commit"`,
			trace: "$WS/bare/.git/hooks/pre-commit"}, {name: "configuration where there is none",
			script: `printf '[core]\n\tfsmonitor = ./evil\n' > "$WS/bare/.git/config"; git -C "$WS/bare" config core.fsmonitor | grep evil`, trace: "$WS/bare/.git/config"},
		{name: "configuration of a worktree", script: `printf '[core]\n\tfsmonitor = ./evil\n' > "$WS/.git/config.worktree"`,
			trace: "$WS/.git/config.worktree"}, {name: "hook of a submodule",
			script: `mkdir -p "$WS/bare/.git/modules/m/hooks"; : > "$WS/bare/.git/modules/m/HEAD"; : > "$WS/bare/.git/modules/m/hooks/post-checkout"`, trace: "$WS/bare/.git/modules/m/hooks/post-checkout"},
		{name: "new repository with a hook",
			script: `mkdir -p "$WS/fresh/.git/hooks"; : > "$WS/fresh/.git/hooks/post-commit"`,
			trace:  "$WS/fresh/.git/hooks/post-commit"},
		{name: "new file .git", script: `mkdir "$WS/fresh2"; echo 'gitdir: ../evil' > "$WS/fresh2/.git"`,
			trace: "$WS/fresh2/.git"},
		{name: "settings of another editor", script: `mkdir "$WS/.idea"; echo x > "$WS/.idea/workspace.xml"`,
			trace: "$WS/.idea"}, {name: "container of an editor",
			script: `mkdir "$WS/.devcontainer"; echo x > "$WS/.devcontainer/devcontainer.json"`, trace: "$WS/.devcontainer"},
		{name: "settings of assistants", script: `mkdir "$WS/.claude" "$WS/.cursor"; echo x > "$WS/.claude/settings.json"`,
			trace: "$WS/.claude"}, {name: "pipeline", script: `echo x > "$WS/.gitlab-ci.yml"`, trace: "$WS/.gitlab-ci.yml"},
		{name: "hooks of pre-commit", script: `echo x > "$WS/.pre-commit-config.yaml"`, trace: "$WS/.pre-commit-config.yaml"},
		{name: "direnv", script: `echo x > "$WS/.envrc"`, trace: "$WS/.envrc"},
		{name: "a program of home", script: `echo x >> "$HOME/go/bin/tool"; echo x >> "$HOME/.local/bin/tool"`,
			trace: "$HOME"},
		{name: "start files of home",
			script: `echo x >> "$HOME/.bashrc"; echo x > "$HOME/.profile"; echo x > "$HOME/.cargo/config.toml"`, trace: "$HOME"},
		{name: "attributes of an overlay in home",
			script: `setfattr -n user.overlay.redirect -v /../.. "$HOME/go/bin"; setfattr -n user.overlay.opaque -v y "$HOME/go"`, trace: "$HOME", control: "outside it changes nothing that is looked at"},
	}
	return list
}

// proxyActs misuse the proxy for allowed hosts. Outside there is one that allows
// everything.
func proxyActs() []act {
	return []act{
		{name: "other host", script: `$X http 'GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n'`},
		{name: "CONNECT to another host",
			script: `$X http 'CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n'`},
		{name: "Host of an allowed host",
			script: `$X http "GET http://127.0.0.1:$PORT/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n"`},
		{name: "CONNECT to loopback", script: `$X http "CONNECT 127.0.0.1:$PORT HTTP/1.1\r\nHost: allowed.test\r\n\r\n"`},
		{name: "CONNECT to localhost", script: `$X http "CONNECT localhost:$PORT HTTP/1.1\r\n\r\n"`},
		{name: "CONNECT to IPv6", script: `$X http "CONNECT [::1]:$PORT6 HTTP/1.1\r\n\r\n"`},
		{name: "CONNECT to a mapped address", script: `$X http "CONNECT [::ffff:127.0.0.1]:$PORT HTTP/1.1\r\n\r\n"`},
		{name: "decimal address", script: `$X http "CONNECT 2130706433:$PORT HTTP/1.1\r\n\r\n"`},
		{name: "octal address", script: `$X http "CONNECT 0177.0.0.1:$PORT HTTP/1.1\r\n\r\n"`},
		{name: "metadata", script: `$X http 'CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n'`},
		{name: "a name that means loopback", script: `$X http "CONNECT loopback.test:443 HTTP/1.1\r\n\r\n"`},
		{name: "a name that means metadata",
			script: `$X http "GET http://metadata.test/ HTTP/1.1\r\nHost: metadata.test\r\n\r\n"`},
		{name: "other port of an allowed host", script: `$X http "CONNECT allowed.test:$PORT HTTP/1.1\r\n\r\n"`},
		{name: "suffix", script: `$X http 'CONNECT evil-allowed.test:443 HTTP/1.1\r\n\r\n' || $X http 'CONNECT allowed.test.evil.test:443 HTTP/1.1\r\n\r\n'`},
		{name: "user information", script: `$X http "GET http://allowed.test@127.0.0.1:$PORT/ HTTP/1.1\r\n\r\n"`},
		{name: "null byte", script: `$X http 'CONNECT other.test\x00.allowed.test:443 HTTP/1.1\r\n\r\n'`},
		{name: "origin form", script: `$X http "GET / HTTP/1.1\r\nHost: 127.0.0.1:$PORT\r\n\r\n"`},
		{name: "other scheme", script: `$X http 'GET file:///etc/passwd HTTP/1.1\r\nHost: allowed.test\r\n\r\n'`},
		{name: "SOCKS5 to another host", script: `$X socks other.test 443`},
		{name: "SOCKS5 to loopback", script: `$X socks 127.0.0.1 $PORT`}, {name: "SOCKS5 BIND", script: `$X socksbind`},
		{name: "SOCKS4", script: `$X socks4 $PORT`},
		{name: "the gateway's own port",
			script: `curl -s -m 30 -x "$HTTP_PROXY" http://127.0.0.1:$PORT/ | grep -q "$CANARY"`},
		{name: "the gateway's port by SOCKS",
			script: `curl -s -m 30 -x "socks5h://${HTTP_PROXY#http://}" http://localhost:$PORT/ | grep -q "$CANARY"`},
		{name: "pipelined second request", script: `$X pipeline "$PORT"`},
		{name: "proxy of another sandbox", script: `$X dial tcp4 127.0.0.1:$PORT`},
	}
}
