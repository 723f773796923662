// Package skillsource fetches skills from where people install them: a folder or archive
// on this machine, an archive on the web, a Git repository, or a registry. Nothing of what
// is fetched is run.
package skillsource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/kit/folder"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// The sources, see skill.Origin.
const (
	Path     = "path" // a folder or an archive
	URL      = "url"  // an archive
	Git      = "git"
	Registry = "registry"
)

// Limits of what is fetched.
const (
	maxArchive = 20 << 20  // bytes
	maxClone   = 500 << 20 // bytes of a repository
	timeout    = 2 * time.Minute
)

// limits returns the maximum size of what is fetched. A repository may have more than a
// skill.
func limits() folder.Limits { return folder.Limits{Files: 5000, Bytes: 100 << 20} }

// Fetcher fetches skills.
type Fetcher struct {
	Broker   sandbox.Broker // runs git
	Environ  []string       // variables from which those of git are taken
	HTTP     *http.Client   // for public addresses; it follows redirects
	Registry *Client        // nil: none is configured
}

// Fetch fills a folder, which does not exist yet, with what an origin names, and completes
// the origin.
func (f *Fetcher) Fetch(ctx context.Context, to string, o *skill.Origin) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch o.Source {
	case Path:
		return f.path(to, o)
	case URL:
		return f.archive(ctx, f.HTTP, o.From, "", to, o)
	case Git:
		return f.git(ctx, to, o)
	case Registry:
		return f.registry(ctx, to, o)
	}
	return chela.Errorf(chela.CodeInvalid, "the source %q of skills is unknown: want %s, %s, %s or %s", o.Source,
		Path, URL, Git, Registry)
}

// path copies a folder or unpacks an archive.
func (f *Fetcher) path(to string, o *skill.Origin) error {
	if !filepath.IsAbs(o.From) {
		return chela.Errorf(chela.CodeInvalid, "%s: want an absolute path", o.From)
	}
	info, err := os.Stat(o.From)
	if err == nil && info.IsDir() {
		err = folder.Copy(o.From, to, limits())
	} else if err == nil {
		if o.Archive, err = fileHash(o.From); err == nil {
			err = folder.Extract(o.From, to, limits())
		}
	}
	if err != nil {
		return chela.Errorf(chela.CodeInvalid, "%s: %w", o.From, err)
	}
	return nil
}

func fileHash(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if n, err := io.Copy(sum, io.LimitReader(f, maxArchive+1)); err != nil || n > maxArchive {
		return "", errors.Join(err, fmt.Errorf("it has more than %d bytes", maxArchive))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// archive downloads and unpacks an archive, which must have the hash, unless that is empty.
func (f *Fetcher) archive(ctx context.Context, c *http.Client, address, hash, to string, o *skill.Origin) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && hash == "" {
		return chela.Errorf(chela.CodeInvalid, "the address of an archive must begin with https://")
	}
	body, err := get(ctx, c, u.String(), nil, maxArchive)
	if err != nil {
		return fmt.Errorf("download %s: %w", u.Redacted(), err)
	}
	sum := sha256.Sum256(body)
	o.Archive = hex.EncodeToString(sum[:])
	if hash != "" && !strings.EqualFold(hash, o.Archive) {
		return chela.Errorf(chela.CodeConflict, "the archive %s has the hash %s, and not %s", u.Redacted(), o.Archive, hash)
	}
	file := to + ".archive" // beside it, in the temporary folder
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return err
	}
	if err := folder.Extract(file, to, limits()); err != nil {
		return chela.Errorf(chela.CodeInvalid, "%s: %w", u.Redacted(), err)
	}
	return nil
}

// get returns the body of an answer.
func get(ctx context.Context, c *http.Client, address string, header http.Header, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	res, err := c.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok { // the address is named anyway
			err = u.Err
		}
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotFound {
		return nil, chela.Errorf(chela.CodeNotFound, "it does not exist (status 404)")
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return body, err
}

// git clones a repository. Hooks, filters, submodules and templates are off, and the
// configuration of the person is not read.
func (f *Fetcher) git(ctx context.Context, to string, o *skill.Origin) error {
	switch u, err := url.Parse(o.From); {
	case strings.HasPrefix(o.From, "-"), strings.Contains(o.From, "::"):
		return chela.Errorf(chela.CodeInvalid, "%q is not the address of a repository", o.From)
	case err == nil && u.User != nil && (u.Scheme != "ssh" || hasPassword(u)): // it would be shown, and kept in the origin
		return &chela.Error{
			Code: chela.CodeInvalid, Message: "the address of a repository on " + u.Host + " must not have a password or token",
			Hint: "use ssh, or clone it and install the folder: chela skills install FOLDER",
		}
	case err == nil && (u.Scheme == "https" || u.Scheme == "ssh" || u.Scheme == "file"):
	case !scp(o.From):
		return chela.Errorf(chela.CodeInvalid, "the address of a repository must begin with https:// or ssh://")
	}
	git := sandbox.Look(f.Environ)("git")
	if git == "" {
		return chela.Errorf(chela.CodeUnavailable, "git is not installed; install from a folder or an archive instead")
	}
	clone := to + ".git"
	argv := []string{"git", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c",
		"protocol.ext.allow=never", "-c", "submodule.recurse=false",
		"clone", "--quiet", "--depth", "1", "--single-branch", "--no-tags", "--no-recurse-submodules", "--template="}
	if o.Ref != "" {
		argv = append(argv, "--branch="+o.Ref)
	}
	env := []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_LFS_SKIP_SMUDGE=1", "LC_ALL=C"}
	for _, v := range f.Environ {
		if name, _, _ := strings.Cut(v, "="); name == "PATH" || name == "HOME" || name == "SSH_AUTH_SOCK" ||
			strings.HasSuffix(strings.ToLower(name), "_proxy") {
			env = append(env, v)
		}
	}
	limited, stop := limitSize(ctx, clone, maxClone)
	res, err := sandbox.Output(limited, f.Broker,
		sandbox.Plan{Path: git, Argv: append(argv, "--", o.From, clone), Dir: filepath.Dir(to), Env: env}, 64<<10)
	if large := stop(); large != nil {
		return chela.Errorf(chela.CodeInvalid, "git clone %s: %w", o.From, large)
	}
	if err == nil && res.Exit.Code != 0 {
		err = errors.New(lastLine(res.Stderr))
	}
	if err != nil {
		return chela.Errorf(chela.CodeUnavailable, "git clone %s: %w", o.From, err)
	}
	o.Commit = commit(filepath.Join(clone, ".git"))
	if err := os.RemoveAll(filepath.Join(clone, ".git")); err != nil {
		return err
	}
	if err := folder.Copy(clone, to, limits()); err != nil {
		return chela.Errorf(chela.CodeInvalid, "%s: %w", o.From, err)
	}
	return os.RemoveAll(clone)
}

// lookSize is how often the size of a folder is compared with its limit.
const lookSize = 250 * time.Millisecond

// limitSize returns a context that ends when the files in a folder, which need not exist
// yet, have more than limit bytes. stop ends it, and returns whether they had.
func limitSize(ctx context.Context, dir string, limit int64) (limited context.Context, stop func() error) {
	large := fmt.Errorf("it has more than %s", humanize.Bytes(limit))
	limited, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(lookSize)
		defer t.Stop()
		for {
			select {
			case <-limited.Done():
				return
			case <-t.C:
				if size(dir) > limit {
					cancel(large)
				}
			}
		}
	}()
	return limited, func() error {
		cancel(nil)
		<-done
		if context.Cause(limited) == large { //nolint:errorlint // this one
			return large
		}
		return nil
	}
}

// size returns the number of bytes of the files in a folder that may be changing.
func size(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is gone, or is not there yet
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n
}

func hasPassword(u *url.URL) bool {
	_, ok := u.User.Password()
	return ok
}

// scp reports whether an address has the form user@host:path.
func scp(s string) bool {
	ok, _ := regexp.MatchString(`^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^\s:-][^\s:]*$`, s)
	return ok
}

// lastLine returns the last line of the messages of a program.
func lastLine(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		s = s[i+1:]
	}
	return strings.TrimPrefix(s, "fatal: ")
}

// commit returns the commit of a repository; "": it is not known.
func commit(dir string) string {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || len(b) > 4096 {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	head := read("HEAD")
	if ref, ok := strings.CutPrefix(head, "ref: "); ok && filepath.IsLocal(filepath.FromSlash(ref)) {
		return read(ref)
	}
	return head
}

// Parse returns the origin that a person's text names: the address of an archive or of a
// repository, with #REF for a branch or tag, a path, or NAME[@VERSION] in the registry.
// isPath reports whether a text that may be both is a path.
func Parse(text string, isPath func(string) bool) (o skill.Origin, err error) {
	base, ref, _ := strings.Cut(text, "#")
	u, err := url.Parse(base)
	switch {
	case text == "":
		return o, chela.Errorf(chela.CodeInvalid, "the skill is not named")
	case strings.HasPrefix(text, "git+"):
		return skill.Origin{Source: Git, From: strings.TrimPrefix(base, "git+"), Ref: ref}, nil
	case scp(base):
		return skill.Origin{Source: Git, From: base, Ref: ref}, nil
	case err == nil && (u.Scheme == "ssh" || u.Scheme == "file" || u.Scheme == "git"):
		return skill.Origin{Source: Git, From: base, Ref: ref}, nil
	case err == nil && (u.Scheme == "https" || u.Scheme == "http"):
		if isArchive(u.Path) {
			return skill.Origin{Source: URL, From: base}, nil
		}
		return skill.Origin{Source: Git, From: base, Ref: ref}, nil
	case strings.HasPrefix(text, ".") || strings.HasPrefix(text, "~") || filepath.IsAbs(text) ||
		strings.ContainsRune(text, os.PathSeparator) && isPath(text) || isPath(text):
		return skill.Origin{Source: Path, From: text}, nil
	}
	name, version, _ := strings.Cut(text, "@")
	if !ValidSlug(name) {
		return o, chela.Errorf(chela.CodeInvalid, "%q is neither a path, an address, nor the name of a skill", text)
	}
	return skill.Origin{Source: Registry, From: name, Version: version}, nil
}

// isArchive reports whether a path has the name of an archive.
func isArchive(path string) bool {
	for _, end := range [...]string{".zip", ".tar", ".tar.gz", ".tgz", ".skill"} {
		if strings.HasSuffix(strings.ToLower(path), end) {
			return true
		}
	}
	return false
}

// ValidSlug reports whether a text can be the name of a skill in a registry.
func ValidSlug(s string) bool {
	ok, _ := regexp.MatchString(`^[a-z0-9][a-z0-9._-]{0,63}(/[a-z0-9][a-z0-9._-]{0,63})?$`, s)
	return ok
}
