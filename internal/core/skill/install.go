package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/frontmatter"
	"github.com/chela-ai/chela/internal/core/installdir"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/folder"
)

// maxInstall is the maximum size of an installed skill.
var maxInstall = folder.Limits{Files: 500, Bytes: 20 << 20}

// originName is the file in the folder of an installed skill that says where it is from,
// so that a skill is replaced together with its origin.
const originName = ".origin.json"

// Origin says where an installed skill is from.
type Origin struct {
	Source    string    `json:"source"` // folder, archive, git, registry
	From      string    `json:"from"`   // its path, address or name
	Sub       string    `json:"path,omitempty"`
	Version   string    `json:"version,omitempty"`
	Ref       string    `json:"ref,omitempty"`    // branch or tag that was asked for
	Commit    string    `json:"commit,omitempty"` // of a repository
	Archive   string    `json:"archiveSha256,omitempty"`
	Hash      string    `json:"sha256"` // of the files
	Installed time.Time `json:"installed"`
}

// Request asks for an installation.
type Request struct {
	// Fetch fills a folder, which does not exist yet, and completes the origin.
	Fetch   func(to string, o *Origin) error
	Origin  Origin // as far as it is known
	Only    string // the name that the skill must have; "": any
	Replace bool   // a skill with the same name
	Force   bool   // also if it was changed by hand, or has critical findings
	Preview bool   // nothing is installed
	Hash    string // that the files must have; "": any
	Now     time.Time
	Record  installdir.Record // keeps a record of the change; may be nil
}

// Change is how a file differs from that of the installed skill.
type Change struct {
	File string `json:"file"`
	How  string `json:"how"` // added, changed, removed
}

// Candidate is a skill that was fetched.
type Candidate struct {
	Skill    *Skill
	Dir      string // its name in the folder
	Origin   Origin
	Warning  string // about its SKILL.md
	Findings []Finding
	Old      *Origin  // of the skill that it replaces; nil: there is none, or it was not installed
	Exists   bool     // it replaces a skill
	Edited   bool     // that skill was changed after it was installed, or was not installed
	Changes  []Change // to that skill
}

// Recover completes or undoes an installation that was interrupted. dir is the folder of
// the skills. Install and Remove do the same.
func Recover(dir string) error { return installdir.Recover(dir) }

// Install installs a skill in a folder. Nothing of it is run. An installation is complete
// or has no effect, also when it is interrupted. The Candidate is returned also with an
// error about what it contains.
func Install(dir string, r Request) (Candidate, error) {
	d, err := installdir.Lock(dir)
	if err != nil {
		return Candidate{}, err
	}
	defer d.Unlock()
	d.Record = r.Record
	return install(d, r, func(string) {})
}

// install is Install with the lock. It calls before with the name of each step.
func install(d *installdir.Locked, r Request, before func(step string)) (c Candidate, err error) {
	before("make a temporary folder")
	fresh, err := d.Temp()
	if err != nil {
		return c, err
	}
	before("fetch")
	c.Origin = r.Origin
	if err := r.Fetch(fresh, &c.Origin); err != nil {
		return c, err
	}
	before("check")
	if fresh, err = find(fresh, &c.Origin); err == nil {
		err = c.check(fresh, d)
	}
	if err != nil {
		return c, chela.Errorf(chela.CodeInvalid, "%s: %w", r.Origin.From, err)
	}
	if err := c.refuse(r); err != nil || r.Preview {
		return c, err
	}
	c.Origin.Installed = r.Now
	text, err := json.MarshalIndent(c.Origin, "", "  ")
	if err != nil {
		return c, err
	}
	before("write the origin")
	if err := atomicfile.Write(filepath.Join(fresh, originName), append(text, '\n'), 0o600); err != nil {
		return c, err
	}
	return c, d.Put(fresh, c.Dir, before)
}

// refuse returns why a candidate is not installed.
func (c *Candidate) refuse(r Request) error {
	switch {
	case r.Only != "" && c.Dir != r.Only && c.Skill.Name != r.Only:
		return chela.Errorf(chela.CodeConflict, "the skill in %s has another name now: %s", r.Origin.From, c.Skill.Name)
	case r.Hash != "" && c.Origin.Hash != r.Hash:
		return chela.Errorf(chela.CodeConflict, "the skill %s was changed since it was shown; look at it again", c.Skill.Name)
	case r.Preview:
		return nil
	case c.Exists && !r.Replace && !r.Force:
		return chela.Errorf(chela.CodeConflict, "the skill %s is installed already", c.Skill.Name)
	case c.Edited && !r.Force:
		return chela.Errorf(chela.CodeConflict, "the skill %s was changed by hand; with force, the changes are lost",
			c.Skill.Name)
	case Worst(c.Findings) == Critical && !r.Force:
		i := slices.IndexFunc(c.Findings, func(f Finding) bool { return f.Severity == Critical })
		return chela.Errorf(chela.CodeConflict, "the skill %s is not installed without force: %s",
			c.Skill.Name, c.Findings[i])
	}
	return nil
}

// maxSearch is the number of folders in which a skill is looked for.
const maxSearch = 2000

// find returns the folder with a SKILL.md in a fetched folder: that of the origin, the
// folder itself, or the only one in it.
func find(dir string, o *Origin) (string, error) {
	if o.Sub != "" {
		if !filepath.IsLocal(filepath.FromSlash(o.Sub)) {
			return "", fmt.Errorf("the path %q is not in it", o.Sub)
		}
		dir = filepath.Join(dir, filepath.FromSlash(o.Sub))
		ok, err := rename(dir)
		if err == nil && !ok {
			err = fmt.Errorf("%s has no %s", o.Sub, FileName)
		}
		return dir, err
	}
	if ok, err := rename(dir); ok || err != nil {
		return dir, err
	}
	var found, misnamed []string
	n := 0
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		switch n++; {
		case err != nil:
			return err
		case n > maxSearch:
			return fs.SkipAll
		case strings.EqualFold(e.Name(), FileName):
			if dir := path.Dir(name); !slices.Contains(found, dir) {
				found = append(found, dir)
			}
		case frontmatter.Misnamed(e.Name(), FileName):
			misnamed = append(misnamed, name)
		}
		return nil
	})
	switch {
	case err != nil:
		return "", err
	case len(found) == 0 && len(misnamed) > 0:
		return "", fmt.Errorf("it has no %s; is %s one with the wrong ending?", FileName, misnamed[0])
	case len(found) == 0:
		return "", errors.New("it has no " + FileName)
	case len(found) > 1:
		return "", fmt.Errorf("it has %d skills; choose one with its path: %s", len(found),
			strings.Join(found[:min(len(found), 20)], ", "))
	}
	o.Sub = found[0]
	dir = filepath.Join(dir, filepath.FromSlash(found[0]))
	_, err = rename(dir)
	return dir, err
}

// rename reports whether a fetched folder describes a skill, in a file that it gives its
// proper name, which may be in lower case.
func rename(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	switch name := fileIn(entries); {
	case err != nil || name == "":
		return false, err
	case name != FileName:
		return true, os.Rename(filepath.Join(dir, name), filepath.Join(dir, FileName))
	}
	return true, nil
}

// check reads a fetched skill, and compares it with the installed one.
func (c *Candidate) check(fresh string, d *installdir.Locked) (err error) {
	if err := os.RemoveAll(filepath.Join(fresh, originName)); err != nil { // it would be that of another installation
		return err
	}
	text, err := os.ReadFile(filepath.Join(fresh, FileName)) // its size is limited
	if err != nil {
		return err
	}
	if c.Skill, c.Warning, err = Parse(strings.TrimPrefix(path.Base("/"+c.Origin.Sub), "/"), text); err != nil {
		return fmt.Errorf("%s: %w", FileName, err)
	}
	if c.Dir = DirName(c.Skill.Name); c.Dir == "" {
		return fmt.Errorf("%q cannot be the name of a folder", c.Skill.Name)
	}
	files, hash, err := contents(fresh)
	if err != nil {
		return err
	}
	c.Origin.Hash = hash
	if c.Findings, err = Scan(os.DirFS(fresh)); err != nil {
		return err
	}
	if c.Exists = d.Has(c.Dir); !c.Exists {
		return nil
	}
	was, oldHash, err := contents(d.Path(c.Dir))
	if err != nil { // it is not as it was installed
		c.Edited = true
		return nil
	}
	if o, err := ReadOrigin(d.Path(c.Dir)); err == nil {
		c.Old = &o
	}
	c.Edited = c.Old == nil || c.Old.Hash != oldHash
	c.Changes = compare(was, files)
	return nil
}

// compare returns the changes from one set of files to another.
func compare(was, is map[string]string) (out []Change) {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, ok := is[name]; !ok {
			out = append(out, Change{name, "removed"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		switch old, ok := was[name]; {
		case !ok:
			out = append(out, Change{name, "added"})
		case old != is[name]:
			out = append(out, Change{name, "changed"})
		}
	}
	return out
}

// contents returns the hashes of the files of a skill, and one of all of them, without
// that of the origin.
func contents(dir string) (files map[string]string, hash string, err error) {
	files = map[string]string{}
	sum := sha256.New()
	_, err = folder.HashFiles(dir, maxInstall, func(name string, content [sha256.Size]byte) {
		if name = filepath.ToSlash(name); name != originName {
			files[name] = hex.EncodeToString(content[:])
			fmt.Fprintf(sum, "%q %x\n", name, content)
		}
	})
	return files, hex.EncodeToString(sum.Sum(nil)), err
}

// DirName returns the name of the folder of a skill; "": there is none that is valid on all
// systems.
func DirName(name string) string {
	name = strings.Join(strings.Fields(strings.ToLower(name)), "-")
	if strings.HasPrefix(name, ".") || strings.Contains(name, "/") || !folder.ValidName(name) {
		return ""
	}
	return name
}

// maxOrigin is the maximum size of the file of an origin.
const maxOrigin = 64 << 10

// ReadOrigin returns the origin of the skill in a folder. The error is fs.ErrNotExist for
// one that was not installed.
func ReadOrigin(dir string) (o Origin, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return o, err
	}
	defer root.Close()
	text, err := folder.Read(root, originName, maxOrigin)
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(text, &o)
}

// Edited reports whether an installed skill was changed since.
func Edited(dir string, o Origin) bool {
	_, hash, err := contents(dir)
	return err != nil || hash != o.Hash
}

// Remove removes a skill from a folder. record keeps a record of it; it may be nil.
func Remove(dir, name string, record installdir.Record) error {
	if name == "" || name != DirName(name) {
		return chela.Errorf(chela.CodeInvalid, "%.100q is not the folder of a skill", name)
	}
	d, err := installdir.Lock(dir)
	if err != nil {
		return err
	}
	defer d.Unlock()
	d.Record = record
	if _, err := os.Lstat(filepath.Join(d.Path(name), FileName)); err != nil || !d.Has(name) {
		return chela.Errorf(chela.CodeNotFound, "the skill %s is not installed in %s", name, dir)
	}
	return d.Remove(name)
}
