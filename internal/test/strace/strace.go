// Package strace reads the record of system calls that the program strace
// keeps of a program and of all processes that come from it.
//
// A call is reported when it has returned, in the order of the record. The calls
// of a new process may be in the record before the call that made it.
package strace

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Arguments returns the arguments of strace, before the program and its own, to
// record calls in a file. Strings that are no paths are cut after length bytes.
// A name with a ? in front may be unknown to strace.
func Arguments(file string, length int, calls ...string) []string {
	return []string{
		"-f", "-q", "--seccomp-bpf", "-y", "-x", "-s", strconv.Itoa(length), "--decode-pids=pidns",
		"-e", "trace=" + strings.Join(calls, ","), "-e", "signal=!CHLD,URG,WINCH,CONT", "-o", file,
	}
}

// Process is a process or thread.
type Process struct {
	PID    int
	Parent *Process // nil: the first one
	Flags  string   // of the call that made it
}

// Call is a system call that has returned.
type Call struct {
	Process *Process
	Name    string
	Args    []string // as strace writes them; see Text, File and Words
	Value   string   // such as "3</etc/passwd>" or "-1 ENOENT (No such file or directory)"
	Child   *Process // that the call made, unless it has ended
}

// Failed reports whether the call failed, or did not return.
func (c *Call) Failed() bool {
	return strings.HasPrefix(c.Value, "-1 ") || strings.HasPrefix(c.Value, "?")
}

// Arg returns an argument; "": there are fewer.
func (c *Call) Arg(i int) string {
	if i >= len(c.Args) {
		return ""
	}
	return c.Args[i]
}

// Makes reports whether the call makes processes.
func (c *Call) Makes() bool {
	return makes(c.Name) && !c.Failed()
}

func makes(name string) bool {
	return name == "clone" || name == "clone3" || name == "fork" || name == "vfork"
}

// outside is the number of a process that another one has in its own namespace.
var outside = regexp.MustCompile(`^-?\d+ /\* (\d+) in strace's PID NS \*/`)

// PID returns the number of a process that an argument or value is, as strace
// sees it. known is false if the number is that of another namespace.
func PID(text string) (pid int, known bool) {
	if m := outside.FindStringSubmatch(text); m != nil {
		text, known = m[1], true
	}
	pid, _ = strconv.Atoi(text)
	return pid, known
}

// Read calls f with each call of a record.
func Read(file string, f func(*Call)) error {
	list, err := processes(file)
	if err != nil {
		return err
	}
	r := reader{open: map[int]string{}}
	r.call = func(c *Call) {
		if c.Makes() {
			pid, _ := PID(c.Value)
			if all := list[pid]; len(all) > 0 && all[0].Parent == c.Process {
				c.Child = all[0]
			}
		}
		f(c)
	}
	r.find = func(pid int) *Process { return list[pid][0] }
	r.end = func(pid int) { list[pid] = list[pid][1:] }
	return r.read(file)
}

// processes returns the processes of a record by their numbers, in order.
func processes(file string) (map[int][]*Process, error) {
	f := family{list: map[int][]*Process{}, live: map[int]*Process{}, guess: map[*Process]*Process{}}
	f.reader = reader{open: map[int]string{}, find: f.find, call: f.made, end: func(pid int) { delete(f.live, pid) }}
	err := f.read(file)
	for pid, all := range f.list {
		for _, p := range all {
			if p.Parent == nil && p != f.first {
				p.Parent = f.guess[p]
			}
			if p.Parent == nil && p != f.first && err == nil {
				err = fmt.Errorf("%s: no call made process %d", file, pid)
			}
		}
	}
	return f.list, err
}

// family finds out which process made which.
type family struct {
	reader
	first *Process
	list  map[int][]*Process
	live  map[int]*Process
	guess map[*Process]*Process // parents that may have been killed before their call returned
	lost  *Process              // the last one that was
}

func (f *family) begin(pid int) *Process {
	p := &Process{PID: pid}
	f.list[pid], f.live[pid] = append(f.list[pid], p), p
	return p
}

// find returns the process that has a number now.
func (f *family) find(pid int) *Process {
	p := f.live[pid]
	if p == nil {
		p = f.begin(pid)
		f.guess[p] = f.lost
		for _, parent := range slices.Sorted(maps.Keys(f.open)) {
			if name, _, _ := strings.Cut(f.open[parent], "("); makes(name) {
				f.guess[p] = f.live[parent]
			}
		}
	}
	if f.first == nil {
		f.first = p
	}
	return p
}

// made notes the parent of a process.
func (f *family) made(c *Call) {
	if !c.Makes() {
		if makes(c.Name) && strings.HasPrefix(c.Value, "?") {
			f.lost = c.Process
		}
		return
	}
	pid, _ := PID(c.Value)
	child := f.live[pid]
	if all := f.list[pid]; child == nil && len(all) > 0 && all[len(all)-1].Parent == nil && all[len(all)-1] != f.first {
		child = all[len(all)-1] // it has ended before this call returned
	}
	if child == nil {
		child = f.begin(pid)
	}
	if child != f.first && child.Parent == nil {
		child.Parent, child.Flags = c.Process, strings.Join(c.Args, ", ")
	}
}

var (
	resumed = regexp.MustCompile(`^<\.\.\. \S+ resumed>`)
	thread  = regexp.MustCompile(`^\+\+\+ superseded by execve in pid (\d+)`)
)

// reader reads a record.
type reader struct {
	find func(pid int) *Process
	call func(*Call)
	end  func(pid int)
	open map[int]string // calls that have not returned
}

func (r *reader) read(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			return nil // a line without an end was not recorded completely
		}
		if err != nil {
			return err
		}
		if err := r.line(strings.TrimSuffix(line, "\n")); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
}

// line reads a line: a call, the beginning or end of a call, or the end of a
// process.
func (r *reader) line(line string) error {
	number, text, _ := strings.Cut(line, " ")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("%q is no call", line)
	}
	text = strings.TrimLeft(text, " ")
	p := r.find(pid)
	if strings.HasPrefix(text, "--- ") {
		return nil // a signal
	}
	if strings.HasPrefix(text, "+++ ") {
		if by := thread.FindStringSubmatch(text); by != nil { // the thread goes on with the number of its process
			n, _ := strconv.Atoi(by[1])
			r.open[pid] = r.open[n]
			pid = n
		}
		delete(r.open, pid)
		r.end(pid)
		return nil
	}
	if head := resumed.FindString(text); head != "" {
		begun, ok := r.open[pid]
		if !ok {
			return nil // it was killed before it was seen what it calls
		}
		text = begun + text[len(head):]
		delete(r.open, pid)
	}
	if begun, ok := strings.CutSuffix(text, " <unfinished ...>"); ok {
		r.open[pid] = begun
		return nil
	}
	name, rest, ok := strings.Cut(text, "(")
	args, rest, closed := split(rest, ')')
	_, value, returned := strings.Cut(rest, "= ")
	if !ok || !closed || !returned {
		return fmt.Errorf("%q is no call", line)
	}
	r.call(&Call{Process: p, Name: name, Args: args, Value: value})
	return nil
}

// split splits a list at its commas. It returns what follows the character that
// ends the list, and whether there is one.
func split(s string, end byte) (list []string, rest string, ok bool) {
	begin, depth, quoted := 0, 0, false
	add := func(to int) {
		if a := strings.TrimSpace(s[begin:to]); a != "" {
			list = append(list, a)
		}
		begin = to + 1
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		// the file of a descriptor; < and > in its name are escaped
		case c == '<' && i > 0 && (s[i-1] >= '0' && s[i-1] <= '9' || s[i-1] == 'D'):
			if n := strings.IndexByte(s[i:], '>'); n > 0 {
				i += n
			}
		case depth == 0 && c == end:
			add(i)
			return list, s[i+1:], true
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth--
		case c == ',' && depth == 0:
			add(i)
		}
	}
	return list, "", false
}

// Text returns the text of an argument that is a string. Long ones may be cut.
func Text(arg string) (string, bool) {
	s, ok := strings.CutPrefix(arg, `"`)
	if !ok {
		return "", false
	}
	s, ok = strings.CutSuffix(strings.TrimSuffix(s, "..."), `"`)
	return unescape(s), ok
}

// Words returns the texts of an argument that is a list of strings.
func Words(arg string) (words []string) {
	list, _, _ := split(strings.TrimPrefix(arg, "["), ']')
	for _, a := range list {
		if s, ok := Text(a); ok {
			words = append(words, s)
		}
	}
	return words
}

// File returns the path of the file that an argument or a value, a descriptor,
// is open for; "": it has none. It is the path that the process sees, without
// links.
func File(arg string) string {
	_, name, ok := strings.Cut(arg, "<")
	name, _, closed := strings.Cut(name, ">")
	if name = strings.TrimSuffix(unescape(name), " (deleted)"); !ok || !closed || !strings.HasPrefix(name, "/") {
		return ""
	}
	return name
}

// unescape returns what strace has escaped.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; {
		case c == 'x' && i+2 < len(s):
			n, _ := strconv.ParseUint(s[i+1:i+3], 16, 8)
			b.WriteByte(byte(n))
			i += 2
		case c >= '0' && c <= '7':
			n := 0
			for to := min(i+3, len(s)); i < to && s[i] >= '0' && s[i] <= '7'; i++ {
				n = n*8 + int(s[i]-'0')
			}
			b.WriteByte(byte(n))
			i--
		case strings.IndexByte("abfnrtv", c) >= 0:
			b.WriteByte("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
