package hookdir

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/frontmatter"
	"github.com/chela-ai/chela/internal/kit/folder"
)

// FileName is the name of the file that describes a hook.
const FileName = "HOOK.md"

// maxFile is the maximum size of a HOOK.md, in bytes.
const maxFile = 256 << 10

// limits are those of a hook's folder.
var limits = folder.Limits{Files: 500, Bytes: 20 << 20}

// Source is where a hook comes from.
type Source string

// The sources.
const (
	Bundled   Source = "bundled"
	Extra     Source = "extra"
	Managed   Source = "managed"
	Plugin    Source = "plugin"
	Workspace Source = "workspace"
)

// Hook is a hook of the person.
type Hook struct {
	Name        string
	Description string
	Homepage    string
	Emoji       string
	Key         string // of its entry in the configuration
	Events      []string
	Export      string // of a module; empty: default
	Always      bool   // requirements are not checked
	Requires    Requires

	Source  Source
	Plugin  string   // id of the plug-in that it is part of
	Dir     string   // empty: it is part of Chela
	File    string   // its HOOK.md
	Handler string   // the program or script
	Argv    []string // how to run it
	Agent   string   // whose workspace it is in; empty: it is for all agents
	Hash    string   // of the content of the folder, if it is in a workspace

	Entry    Entry    // its configuration
	Enabled  bool     // by the configuration
	Missing  Requires // what it requires and does not have
	Reasons  []string // why it cannot be used; empty: it can be
	Warnings []string
}

// Loadable reports whether the hook is used.
func (h *Hook) Loadable() bool { return h.Enabled && len(h.Reasons) == 0 }

// Satisfied reports whether the hook has what it requires.
func (h *Hook) Satisfied() bool {
	m := h.Missing
	return len(m.OS)+len(m.Bins)+len(m.AnyBins)+len(m.Env)+len(m.Config) == 0
}

// Requires is what a hook needs.
type Requires struct {
	OS      frontmatter.List `yaml:"-"`
	Bins    frontmatter.List `yaml:"bins"`    // programs, all of them
	AnyBins frontmatter.List `yaml:"anyBins"` // programs, one of them
	Env     frontmatter.List `yaml:"env"`     // variables
	Config  frontmatter.List `yaml:"config"`  // paths in the configuration whose values are neither empty nor false
}

// meta is metadata.openclaw.
type meta struct {
	Emoji    string           `yaml:"emoji"`
	Events   frontmatter.List `yaml:"events"`
	Export   string           `yaml:"export"`
	OS       frontmatter.List `yaml:"os"`
	Requires Requires         `yaml:"requires"`
	Always   bool             `yaml:"always"`
	Key      string           `yaml:"hookKey"`
	Homepage string           `yaml:"homepage"`
}

// Parse parses a HOOK.md. folder is the default name.
func Parse(folder string, text []byte) (Hook, error) {
	var f struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
		Homepage    string `yaml:"homepage"`
		Metadata    struct {
			Chela    *meta `yaml:"chela"`
			OpenClaw *meta `yaml:"openclaw"`
		} `yaml:"metadata"`
	}
	if _, err := frontmatter.Decode(text, &f); err != nil {
		return Hook{}, err
	}
	m := f.Metadata.Chela
	if m == nil {
		m = f.Metadata.OpenClaw
	}
	if m == nil {
		m = new(meta)
	}
	h := Hook{
		Name:        strings.TrimSpace(f.Name),
		Description: strings.Join(strings.Fields(f.Description), " "),
		Homepage:    f.Homepage,
		Emoji:       m.Emoji,
		Events:      m.Events,
		Export:      m.Export,
		Always:      m.Always,
		Requires:    m.Requires,
		Key:         m.Key,
	}
	h.Requires.OS = m.OS
	if h.Name == "" {
		h.Name = folder
	}
	if h.Homepage == "" {
		h.Homepage = m.Homepage
	}
	if h.Key == "" {
		h.Key = h.Name
	}
	if !validName(h.Name) || !validName(h.Key) {
		return Hook{}, fmt.Errorf("name %q: want letters, digits, -, _ and ., at most 64", h.Name)
	}
	if len(h.Events) == 0 {
		return h, errors.New("it names no events (metadata.openclaw.events)")
	}
	return h, nil
}

// validName reports whether a name is a safe name of a folder and of a key.
func validName(s string) bool {
	return s != "" && len(s) <= 64 && s[0] != '.' && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	})
}

// endings are the endings of handlers, in the order in which they are looked for,
// with the programs that run them.
var endings = [...]struct {
	ending  string
	program string // empty: the file itself is a program
}{
	{"", ""}, {".exe", ""}, {".sh", "sh"}, {".py", "python3"}, {".js", "node"}, {".mjs", "node"},
	{".cjs", "node"}, {".ts", "node"},
}

// shim runs a JavaScript module of OpenClaw as a program: it passes the event to the
// exported function and prints the event as the function left it.
const shim = `import{readFileSync}from"node:fs";import{pathToFileURL}from"node:url";
const[,file,name]=process.argv;const e=JSON.parse(readFileSync(0,"utf8"));
const m=await import(pathToFileURL(file));const f=m[name]??m.default?.[name]??m.default??m.handler;
if(typeof f!=="function")throw new Error("no function is exported as "+name);
const log=console.error;console.log=console.info=console.debug=log;
const typed=e.hook!==undefined;if(!typed&&e.timestamp)e.timestamp=new Date(e.timestamp);
const r=await f(e);const out=typed?r:{messages:e.messages,context:{bootstrapFiles:e.context?.bootstrapFiles}};
process.stdout.write(JSON.stringify(out??null));`

// Handler finds the program of a hook: the file handler in its folder, or one with a
// known ending. look finds a program by name; "": there is none. A script that is
// not executable is run by sh, python3 or node. A JavaScript module gets the event as
// in OpenClaw.
func Handler(dir, export string, look func(name string) string) (file string, argv []string, err error) {
	for _, e := range endings {
		file = filepath.Join(dir, "handler"+e.ending)
		info, err := os.Stat(file)
		if err != nil {
			continue
		}
		if err := checkFile(dir, file, info); err != nil {
			return file, nil, err
		}
		if e.ending != ".exe" && e.program != "node" {
			if err := checkLines(file); err != nil {
				return file, nil, err
			}
		}
		if e.program == "" || e.program != "node" && runtime.GOOS != "windows" && info.Mode()&0o111 != 0 {
			if runtime.GOOS != "windows" && info.Mode()&0o111 == 0 {
				return file, nil, fmt.Errorf("%s is not executable: chmod +x %s", filepath.Base(file), file)
			}
			return file, []string{file}, nil
		}
		program := look(e.program)
		if program == "" {
			return file, nil, fmt.Errorf("%s needs the program %s, which is not found", filepath.Base(file), e.program)
		}
		if e.program != "node" {
			return file, []string{program, file}, nil
		}
		if export == "" {
			export = "default"
		}
		return file, []string{program, "--input-type=module", "-e", shim, file, export}, nil
	}
	return "", nil,
		errors.New("it has no handler: want an executable file handler, or handler.sh, .py, .js, .mjs, .cjs or .ts")
}

// checkFile returns why a handler must not be run.
func checkFile(dir, file string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", filepath.Base(file))
	}
	realDir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	realFile, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	if filepath.Dir(realFile) != realDir && !strings.HasPrefix(realFile, realDir+string(filepath.Separator)) {
		return fmt.Errorf("%s is a link that leaves the folder of the hook", filepath.Base(file))
	}
	if runtime.GOOS != "windows" {
		for _, name := range [...]string{realDir, realFile} {
			if i, err := os.Stat(name); err == nil && i.Mode()&0o002 != 0 && i.Mode()&fs.ModeSticky == 0 {
				return fmt.Errorf("everybody may change %s: chmod o-w %s", name, name)
			}
		}
	}
	return nil
}

// fileIn returns the name of the file in a folder that describes a hook, which may be in
// lower case, or that may be meant to; "": there is none.
func fileIn(dir string) (name string) {
	entries, _ := os.ReadDir(dir) // one that cannot be read has no hook
	for _, e := range entries {
		switch {
		case e.Name() == FileName:
			return FileName
		case strings.EqualFold(e.Name(), FileName), name == "" && frontmatter.Misnamed(e.Name(), FileName):
			name = e.Name()
		}
	}
	return name
}

// Read reads the hook in a folder, without its requirements and its configuration. On
// an error it returns what is known.
func Read(dir string, look func(name string) string) (Hook, error) {
	file := filepath.Join(dir, cmp.Or(fileIn(dir), FileName))
	known := Hook{Name: filepath.Base(dir), Key: filepath.Base(dir), Dir: dir, File: file}
	if name := filepath.Base(file); !strings.EqualFold(name, FileName) {
		return known, fmt.Errorf("%s: is it %s with the wrong ending?", name, FileName)
	}
	f, _, err := folder.OpenPath(file)
	if err != nil {
		return known, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return known, err
	}
	if len(text) > maxFile {
		return known, fmt.Errorf("%s has more than %d bytes", FileName, maxFile)
	}
	h, err := Parse(filepath.Base(dir), text)
	if err != nil {
		if h.Name != "" {
			known = h
		}
		known.Dir, known.File = dir, file
		return known, fmt.Errorf("%s: %w", FileName, err)
	}
	h.Dir, h.File = dir, file
	h.Handler, h.Argv, err = Handler(dir, h.Export, look)
	return h, err
}

// Hash returns the hash of the names, modes and contents of a folder's files.
func Hash(dir string) (string, error) { return folder.Hash(dir, limits) }

// Changed reports whether a hook of a workspace differs from the one that was
// enabled.
func (h *Hook) Changed() bool {
	if h.Source != Workspace {
		return false
	}
	sum, err := Hash(h.Dir)
	return err != nil || sum != h.Entry.Hash
}

// Check adds what is missing to the hook.
func (h *Hook) check(o *Options) {
	if h.Always {
		return
	}
	r, m := h.Requires, &h.Missing
	if len(r.OS) > 0 && !slices.ContainsFunc(r.OS, func(s string) bool { return goos(s) == runtime.GOOS }) {
		m.OS = r.OS
		h.Reasons = append(h.Reasons, "it is for "+strings.Join(r.OS, ", "))
	}
	for _, name := range r.Bins {
		if o.Look(name) == "" {
			m.Bins = append(m.Bins, name)
		}
	}
	if len(r.AnyBins) > 0 && !slices.ContainsFunc(r.AnyBins, func(name string) bool { return o.Look(name) != "" }) {
		m.AnyBins = r.AnyBins
	}
	for _, name := range r.Env {
		if h.Entry.Env[name] == "" && o.Getenv(name) == "" {
			m.Env = append(m.Env, name)
		}
	}
	for _, path := range r.Config {
		if !truthy(o.Section(path)) {
			m.Config = append(m.Config, path)
		}
	}
	for _, part := range [...]struct {
		what  string
		names []string
	}{{"missing program", m.Bins}, {"missing one of the programs", m.AnyBins}, {"missing variable", m.Env},
		{"missing configuration", m.Config}} {
		if len(part.names) > 0 {
			h.Reasons = append(h.Reasons, part.what+": "+strings.Join(part.names, ", "))
		}
	}
}

// goos returns the name of a system as Go has it.
func goos(name string) string {
	switch name {
	case "win32":
		return "windows"
	case "macos":
		return "darwin"
	}
	return name
}

// truthy reports whether a value of the configuration is neither empty nor false.
func truthy(raw json.RawMessage) bool {
	switch strings.TrimSpace(string(raw)) {
	case "", "null", "false", `""`, "0", "[]", "{}":
		return false
	}
	return true
}

// checkLines returns the error about a script whose first lines end as on Windows: the
// program that its first line names is not found then, and sh does not understand it.
func checkLines(file string) error {
	f, _, err := folder.OpenPath(file)
	if err != nil {
		return err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 4096))
	line, _, ok := bytes.Cut(head, []byte("\n"))
	if err == nil && ok && bytes.HasSuffix(line, []byte("\r")) &&
		(bytes.HasPrefix(line, []byte("#!")) || filepath.Ext(file) == ".sh") {
		return fmt.Errorf("%s has line ends of Windows (CRLF), with which it cannot be run: sed -i 's/\\r$//' %s",
			filepath.Base(file), file)
	}
	return err
}
