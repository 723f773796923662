package launch

// Arg is the argument that makes the program a launcher. No command of
// the program has that name.
const Arg = "__sandbox"

// FD is the launcher's end of its connection to the gateway.
const FD = 3

// ProxyAddr is where the proxy listens inside of a cage. The network of a cage
// is its own, so the port is always free.
const ProxyAddr = "127.0.0.1:3128"

const proxyPort = 3128

// Port is where a server listens on the loopback interface.
type Port struct {
	Number int  `json:"number"`
	Six    bool `json:"six,omitempty"` // in version 6 of IP
}

// Request is what the gateway sends to a launcher: first Setup, then Command,
// then any number of signals.
type Request struct {
	Setup   *Setup   `json:"setup,omitempty"`
	Command *Command `json:"command,omitempty"`
	Signal  int      `json:"signal,omitempty"` // for all processes of the cage
	List    bool     `json:"list,omitempty"`   // asks for the ports on which the command listens
	Serve   *[]Port  `json:"serve,omitempty"`  // ports of servers of other commands, from now on
	Join    *Port    `json:"join,omitempty"`   // a connection to a server of the command comes with it
}

// Setup describes a cage.
type Setup struct {
	Mounts []Mount `json:"mounts"`
	Layers []Layer `json:"layers,omitempty"`
	Below  int     `json:"below"` // number of Mounts that are made before Layers
	Slot   string  `json:"slot"`  // folder in Upper of each layer, of which there can be one mount at a time
	Host   string  `json:"host"`  // host name
	// Sockets lets the command use sockets with names in the file system.
	Sockets bool `json:"sockets,omitempty"`
}

// Mount is an entry of the root directory. Entries are made in order.
type Mount struct {
	Kind  Kind   `json:"kind"`
	From  string `json:"from,omitempty"` // path on the host, or the target of a link
	To    string `json:"to"`             // path in the cage
	Write bool   `json:"write,omitempty"`
	Size  int64  `json:"size,omitempty"` // limit of a temp
	Own   bool   `json:"own,omitempty"`  // a temp is not for all users, as /tmp is
	// Tree is the position, from 1, of a detached mount of From among the
	// descriptors that come with the setup. 0: the launcher makes the mount, with
	// the rights of its user.
	Tree int `json:"tree,omitempty"`
	// Masks are those of the files in the place of what is hidden: of a file with the name
	// ".", of all files of a folder with their paths in it. Without them, there are an
	// empty file and a folder in which nothing can be looked up.
	Masks map[string]Mask `json:"masks,omitempty"`
}

// Mask is what a file in the place of a hidden one has in common with it: what Git compares
// before it reads a file. So Git takes the hidden file for the one that it knows, unless that
// was changed.
type Mask struct {
	Size    int64 `json:"size"`
	Changed int64 `json:"changed"` // nanoseconds since 1970
	Runs    bool  `json:"runs,omitempty"`
}

// Layer is a folder of the host of which the cage has some parts, at the same
// paths. What is written to them goes to Upper/SLOT/upper. Cages can share a
// layer.
type Layer struct {
	From      string   `json:"from"`
	Parts     []string `json:"parts"`            // relative to From; they are made in the layer if they do not exist
	Closed    []string `json:"closed,omitempty"` // those of them that their owner has closed
	Upper     string   `json:"upper"`
	Tree      int      `json:"tree,omitempty"` // of From, as in mount
	UpperTree int      `json:"upperTree,omitempty"`
	// Merged is the position of a detached mount of the whole layer, which another
	// cage gave. 0: the launcher makes it. A mount of each layer comes with the first
	// reply.
	Merged int `json:"merged,omitempty"`
}

// Kind is what a mount puts in its place.
type Kind string

const (
	Bind   Kind = "bind"   // a file or folder of the host
	Temp   Kind = "temp"   // an empty folder in memory
	Link   Kind = "link"   // a symbolic link
	Text   Kind = "text"   // a file with the content From
	Hide   Kind = "hide"   // an unreadable file or folder; nothing if To does not exist
	Freeze Kind = "freeze" // what is there, read-only; nothing if To does not exist
	Pin    Kind = "pin"    // what is there, which cannot be renamed; nothing if To does not exist
	ProcFS Kind = "proc"
	DevPTS Kind = "devpts"
)

// Command is the program that a cage runs. Its standard files are sent with
// it.
type Command struct {
	Path     string   `json:"path"`
	Argv     []string `json:"argv"`
	Dir      string   `json:"dir"`
	Env      []string `json:"env"`
	Terminal *Size    `json:"terminal,omitempty"` // its terminal, which the launcher opens; it has no standard files then
	// to make above the layers, and private files that appeared after the cage was built
	Cover []Mount `json:"cover,omitempty"`
	Serve []Port  `json:"serve,omitempty"` // as in Request
	Grace int64   `json:"grace"`           // nanoseconds between TERM and KILL for what is left
}

// Size is the size of a terminal in characters.
type Size struct {
	Rows int `json:"rows"`
	Cols int `json:"cols"`
}

// Exit is how a command ended.
type Exit struct {
	Code   int    `json:"code"`             // -1 when a signal ended it
	Signal string `json:"signal,omitempty"` // name of that signal
	Left   int    `json:"left,omitempty"`   // descendants that were still running and were ended
}

// Reply is what a launcher sends to the gateway.
type Reply struct {
	Ready   bool    `json:"ready,omitempty"`
	Started bool    `json:"started,omitempty"` // the other end of its terminal comes with it
	Conn    bool    `json:"conn,omitempty"`    // a connection to the proxy comes with it, or to Port
	Port    Port    `json:"port,omitzero"`     // of a server of another command
	Ports   *[]Port `json:"ports,omitempty"`   // on which the command listens
	Exit    *Exit   `json:"exit,omitempty"`
	Error   string  `json:"error,omitempty"`
	Errno   int     `json:"errno,omitempty"` // of Error, if a system call caused it
	Stage   string  `json:"stage,omitempty"` // where Error happened
}
