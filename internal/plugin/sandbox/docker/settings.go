package docker

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
)

// settings is agents.defaults.sandbox.docker.
type settings struct {
	Image       string            `json:"image"`
	Prefix      string            `json:"containerPrefix"`
	Workdir     string            `json:"workdir"`
	ReadOnly    *bool             `json:"readOnlyRoot"`
	Tmpfs       []string          `json:"tmpfs"`
	Network     string            `json:"network"`
	User        string            `json:"user"`
	CapDrop     []string          `json:"capDrop"`
	Env         map[string]string `json:"env"`
	Setup       string            `json:"setupCommand"`
	Pids        int               `json:"pidsLimit"`
	Memory      any               `json:"memory"`
	MemorySwap  any               `json:"memorySwap"`
	CPUs        float64           `json:"cpus"`
	GPUs        string            `json:"gpus"`
	Ulimits     map[string]any    `json:"ulimits"`
	Seccomp     string            `json:"seccompProfile"`
	AppArmor    string            `json:"apparmorProfile"`
	DNS         []string          `json:"dns"`
	Hosts       []string          `json:"extraHosts"`
	Binds       []string          `json:"binds"`
	JoinNetwork bool              `json:"dangerouslyAllowContainerNamespaceJoin"`
	External    bool              `json:"dangerouslyAllowExternalBindSources"`

	keepID bool // without it, the user's files would be root's in a container of Podman
}

// parse returns the settings of a sandbox, with the defaults.
func (b *Broker) parse(s *sandbox.Session) (settings, error) {
	c := settings{keepID: b.o.Program == "podman" && os.Geteuid() > 0}
	if len(s.Settings) > 0 {
		d := json.NewDecoder(bytes.NewReader(s.Settings))
		d.UseNumber() // docker takes no 1.048576e+06
		if err := d.Decode(&c); err != nil {
			return c, fmt.Errorf("docker: %w", err)
		}
	}
	c.Image, c.Prefix = cmp.Or(c.Image, defaultImage), cmp.Or(c.Prefix, "chela-sbx-")
	c.Workdir, c.Network = cmp.Or(c.Workdir, "/workspace"), cmp.Or(c.Network, "none")
	if c.Tmpfs == nil {
		c.Tmpfs = []string{"/tmp", "/var/tmp", "/run"}
	}
	if c.CapDrop == nil {
		c.CapDrop = []string{"ALL"}
	}
	if c.Env == nil {
		c.Env = map[string]string{"LANG": "C.UTF-8"}
	}
	c.Pids, c.CPUs = cmp.Or(c.Pids, 256), cmp.Or(c.CPUs, 1)
	c.Memory, c.MemorySwap = cmp.Or(c.Memory, any("1g")), cmp.Or(c.MemorySwap, any("2g"))
	return c, nil
}

const defaultImage = "chela-sandbox:bookworm-slim"

// recipe returns the command that gets the image.
func (c settings) recipe(program string) string {
	if c.Image != defaultImage {
		return program + " pull " + c.Image
	}
	return `printf 'FROM debian:bookworm-slim\nRUN apt-get update && apt-get install -y --no-install-recommends bash ca-certificates curl git jq python3 ripgrep\n' | ` + program + " build -t " + c.Image + " -"
}

// Prepare sets the name of the container and the folders in it.
func (b *Broker) Prepare(s *sandbox.Session) error {
	c, err := b.parse(s)
	if err != nil {
		return err
	}
	s.Container, s.Workdir = c.Prefix+sandbox.Slug(s.Key), c.Workdir
	if s.Access == sandbox.ReadOnly {
		s.Scratch, s.Workdir = s.Workdir, agentDir
	}
	return nil
}

// agentDir is where a container has the agent's workspace if it is read-only.
const agentDir = "/agent"

// Check returns an error if the settings would open the container to the host.
func (b *Broker) Check(s *sandbox.Session) error {
	c, err := b.parse(s)
	if err != nil {
		return err
	}
	return b.check(c, s)
}

// check checks the settings, and that the container gets nothing of Never.
func (b *Broker) check(c settings, s *sandbox.Session) error {
	if err := c.check(s); err != nil || b.o.Never == nil {
		return err
	}
	never := b.o.Never()
	workspace, private := pathpolicy.Real(s.AgentWorkspace), pathpolicy.Real(filepath.Dir(s.Private))
	for _, n := range never {
		if s.Access != sandbox.NoAccess && pathpolicy.Inside(n, workspace) {
			return fmt.Errorf("the workspace holds %s, which no sandbox shows; move it, or set workspaceAccess to none", n)
		}
		for _, bind := range c.Binds {
			source, _, _ := strings.Cut(bind, ":")
			source = pathpolicy.Real(source)
			shared := pathpolicy.Exposed(source, workspace, []string{n}) == "" ||
				pathpolicy.Exposed(source, private, []string{n}) == ""
			if !shared || pathpolicy.Inside(n, source) {
				return fmt.Errorf("docker.binds: %s is refused: no sandbox shows %s", bind, n)
			}
		}
	}
	return nil
}

func (c settings) check(s *sandbox.Session) error {
	errs := []error{}
	switch {
	case c.Network == "host":
		errs = append(errs, errors.New("docker.network host is refused: commands would reach all ports of this machine"))
	case strings.HasPrefix(c.Network, "container:") && !c.JoinNetwork:
		errs = append(errs, fmt.Errorf("docker.network %s is refused without dangerouslyAllowContainerNamespaceJoin",
			c.Network))
	}
	if !path.IsAbs(c.Workdir) || path.Clean(c.Workdir) == "/" {
		errs = append(errs, fmt.Errorf("docker.workdir %q: want an absolute path below /", c.Workdir))
	}
	for _, bind := range c.Binds {
		if err := c.checkBind(s, bind); err != nil {
			errs = append(errs, fmt.Errorf("docker.binds: %s is refused: %w", bind, err))
		}
	}
	return errors.Join(errs...)
}

// checkBind checks a bind mount by its name and by the real path that it has.
func (c settings) checkBind(s *sandbox.Session, bind string) error {
	parts := strings.Split(bind, ":")
	if len(parts) < 2 || len(parts) > 3 || !filepath.IsAbs(parts[0]) || !path.IsAbs(parts[1]) ||
		len(parts) == 3 && parts[2] != "ro" && parts[2] != "rw" {
		return errors.New("want HOST:CONTAINER, HOST:CONTAINER:ro or HOST:CONTAINER:rw, with absolute paths")
	}
	target := path.Clean(parts[1])
	for _, reserved := range [...]string{c.Workdir, agentDir, "/"} {
		if target == reserved || reserved != "/" && strings.HasPrefix(target, reserved+"/") {
			return fmt.Errorf("the sandbox itself uses %s", reserved)
		}
	}
	real, err := realPath(filepath.Clean(parts[0]))
	if err != nil {
		return err
	}
	for _, source := range [...]string{filepath.Clean(parts[0]), real} {
		if dir := protected(source); dir != "" {
			return fmt.Errorf("%s would be in the container", dir)
		}
	}
	if c.External {
		return nil
	}
	for _, root := range [...]string{s.AgentWorkspace, filepath.Dir(s.Private)} {
		if root, err := realPath(root); err == nil && pathpolicy.Inside(real, root) {
			return nil
		}
	}
	return errors.New("it is outside the workspaces (dangerouslyAllowExternalBindSources permits it)")
}

// protected returns the protected file or folder that a path is in or holds; "":
// none.
func protected(source string) string {
	dirs := []string{"/etc", "/proc", "/sys", "/dev", "/root", "/boot", "/run", "/var/run",
		"/var/run/docker.sock", "/run/docker.sock"}
	if home, err := os.UserHomeDir(); err == nil {
		for _, name := range [...]string{".aws", ".cargo", ".config", ".docker", ".gnupg", ".netrc", ".npm", ".ssh"} {
			dirs = append(dirs, filepath.Join(home, name))
		}
	}
	for _, dir := range dirs {
		if pathpolicy.Inside(source, dir) || pathpolicy.Inside(dir, source) {
			return dir
		}
	}
	return ""
}

// realPath resolves the links of the part of a path that exists.
func realPath(name string) (string, error) {
	rest := ""
	for at := name; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, os.ErrNotExist) || at == filepath.Dir(at) {
			return "", err
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// create returns the arguments that create the container.
func (c settings) create(s *sandbox.Session, hash, now string) []string {
	a := []string{
		"create", "--name", s.Container, "--label", "chela.sandbox=1", "--label", "chela.sessionKey=" + s.Key, "--label",
		"chela.createdAtMs=" + now,
		"--label", "chela.configHash=" + hash, "--init", "--network", c.Network, "--user", cmp.Or(c.User, owner(s.Workspace)),
		"--security-opt", "no-new-privileges",
	}
	add := func(flag string, values ...string) {
		for _, v := range values {
			if v != "" {
				a = append(a, flag, v)
			}
		}
	}
	if c.keepID {
		a = append(a, "--userns", "keep-id")
	}
	if c.ReadOnly == nil || *c.ReadOnly {
		a = append(a, "--read-only")
	}
	add("--tmpfs", c.Tmpfs...)
	add("--cap-drop", c.CapDrop...)
	add("--pids-limit", fmt.Sprint(c.Pids))
	add("--memory", fmt.Sprint(c.Memory))
	add("--memory-swap", fmt.Sprint(c.MemorySwap))
	add("--cpus", fmt.Sprint(c.CPUs))
	add("--gpus", c.GPUs)
	for _, name := range slices.Sorted(maps.Keys(c.Ulimits)) {
		add("--ulimit", name+"="+ulimit(c.Ulimits[name]))
	}
	if c.Seccomp != "" {
		add("--security-opt", "seccomp="+c.Seccomp)
	}
	if c.AppArmor != "" {
		add("--security-opt", "apparmor="+c.AppArmor)
	}
	add("--dns", c.DNS...)
	add("--add-host", c.Hosts...)
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		add("-e", name+"="+c.Env[name])
	}
	switch s.Access {
	case sandbox.ReadWrite:
		add("-v", s.AgentWorkspace+":"+c.Workdir)
	case sandbox.ReadOnly:
		add("-v", s.Private+":"+c.Workdir, s.AgentWorkspace+":"+agentDir+":ro")
	default:
		add("-v", s.Private+":"+c.Workdir)
	}
	add("-v", c.Binds...)
	return append(a, "-w", c.Workdir, c.Image, "sleep", "infinity")
}

// ulimit returns a limit as the program takes it: a number, or {soft, hard}.
func ulimit(v any) string {
	if m, ok := v.(map[string]any); ok {
		return fmt.Sprint(m["soft"], ":", m["hard"])
	}
	return fmt.Sprint(v)
}

// hash identifies what a container is created with.
func (c settings) hash(s *sandbox.Session) string {
	sum := sha256.Sum256([]byte(strings.Join(c.create(s, "", ""), "\x00") + "\x00" + c.Setup))
	return hex.EncodeToString(sum[:8])
}
