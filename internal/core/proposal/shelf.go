package proposal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/installdir"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/folder"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Shelf holds the proposals of an installation. It is safe for concurrent use; one
// process uses it.
type Shelf struct {
	// Dir is the folder of the proposals, in the state directory. It need not exist.
	Dir string
	// Skills returns the folder of the skills of an agent's workspace.
	Skills func(chela.AgentID) string
	// Step is called before each change of files. Tests stop in it; nil: nothing is called.
	Step func(name string)
	// Record returns what keeps a record of a change of the skills of an agent; nil: nobody
	// records them.
	Record func(context.Context, chela.AgentID) installdir.Record

	mu sync.Mutex
}

// Names of what a folder of skills holds besides skills, which the search for skills
// passes over.
const (
	newPrefix = ".proposal-"          // then the id: the new skill, or one that is removed
	keptDir   = ".proposals-replaced" // skills that proposals replaced, by id
)

const (
	metaFile = "proposal.json"
	filesDir = "files"
	freshDir = "files.new" // a revision is made in it
	oldDir   = "files.old" // what a revision replaces
)

// limits is the limits of a whole skill.
var limits = folder.Limits{Files: MaxFiles + 1, Bytes: MaxTotal}

// anySkill is the limits of a skill that a person wrote, which is only compared.
var anySkill = folder.Limits{Files: 5000, Bytes: 256 << 20}

func (s *Shelf) step(name string) {
	if s.Step != nil {
		s.Step(name)
	}
}

func (s *Shelf) dir(id string) string { return filepath.Join(s.Dir, id) }

// target is the folder of the skill.
func (s *Shelf) target(p *Proposal) string { return filepath.Join(s.Skills(p.Agent), p.Name) }

func (s *Shelf) fresh(p *Proposal) string {
	return filepath.Join(s.Skills(p.Agent), newPrefix+p.ID)
}

func (s *Shelf) kept(p *Proposal) string {
	return filepath.Join(s.Skills(p.Agent), keptDir, p.ID)
}

// hashOf returns the hash of a skill; "": there is none.
func hashOf(dir string) (string, error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", invalid("%s is not a folder, or a link, which proposals do not change", dir)
	}
	return folder.Hash(dir, anySkill)
}

// List returns the proposals of an agent, or of all for the empty id, newest first.
func (s *Shelf) List(agent chela.AgentID) ([]Proposal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.all()
	return slices.DeleteFunc(all, func(p Proposal) bool { return agent != "" && p.Agent != agent }), err
}

// Get returns a proposal and its files, SKILL.md first. The id may be cut as long as it
// is unambiguous.
func (s *Shelf) Get(id string) (Proposal, []File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(id)
	if err != nil {
		return p, nil, err
	}
	files, err := readFiles(filepath.Join(s.dir(p.ID), filesDir))
	return p, files, err
}

// all returns all proposals, newest first, after it has completed what was interrupted.
func (s *Shelf) all() ([]Proposal, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return []Proposal{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("proposals: %w", err)
	}
	out := []Proposal{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(s.dir(e.Name()), metaFile))
		if err != nil {
			continue // it is being made, or deleted
		}
		var p Proposal
		if json.Unmarshal(b, &p) != nil || p.ID != e.Name() {
			continue
		}
		if err := s.complete(&p); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Proposal) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.ID, b.ID))
	})
	return out, nil
}

func (s *Shelf) find(id string) (Proposal, error) {
	all, err := s.all()
	if err != nil {
		return Proposal{}, err
	}
	var found []Proposal
	for _, p := range all {
		if p.ID == id {
			return p, nil
		}
		if len(id) >= 4 && strings.HasPrefix(p.ID, id) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Proposal{}, &chela.Error{Code: chela.CodeNotFound, Message: fmt.Sprintf("there is no proposal %.60q", id),
			Hint: "chela skills proposals list"}
	}
	return Proposal{}, invalid("the id %s is ambiguous", id)
}

// save writes the metadata of a proposal.
func (s *Shelf) save(p *Proposal) error {
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	s.step("save " + string(p.State))
	if err := atomicfile.Write(filepath.Join(s.dir(p.ID), metaFile), append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("proposal %s: %w", p.ID, err)
	}
	return nil
}

// move saves a proposal in a new state.
func (s *Shelf) move(p *Proposal, to State, by, note string) error {
	p.State, p.Updated = to, time.Now()
	p.Events = append(p.Events, Event{p.Updated, to, by, humanize.Truncate(note, maxReason)})
	p.Events = p.Events[max(0, len(p.Events)-maxEvents):]
	return s.save(p)
}

// Create makes a pending proposal. It fails if a new skill exists already, or if one that
// is to be updated does not.
func (s *Shelf) Create(d Draft) (Proposal, error) {
	if err := d.check(); err != nil {
		return Proposal{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.all()
	if err != nil {
		return Proposal{}, err
	}
	pending := 0
	for _, p := range all {
		if p.State == Pending {
			pending++
		}
	}
	if pending >= MaxPending {
		return Proposal{}, chela.Errorf(chela.CodeUnavailable, "%d proposals are pending; apply or reject some first",
			pending)
	}
	if err := s.prune(all); err != nil {
		return Proposal{}, err
	}
	now := time.Now()
	p := Proposal{
		ID:      strings.ReplaceAll(uuid.NewString(), "-", "")[:12],
		Agent:   d.Agent,
		Name:    d.Name,
		Update:  d.Update,
		By:      d.By,
		Session: d.Session,
		Reason:  d.Reason,
		Created: now,
	}
	target := s.target(&p)
	if p.Base, err = hashOf(target); err != nil {
		return p, err
	}
	switch {
	case p.Base == "" && d.Update:
		return p, chela.Errorf(chela.CodeNotFound, "there is no skill %s in the workspace", d.Name)
	case p.Base != "" && !d.Update:
		return p, chela.Errorf(chela.CodeConflict, "the skill %s exists already; propose an update", d.Name)
	}
	p.Own = ownedBy(all, &p)
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return p, err
	}
	temp, err := os.MkdirTemp(s.Dir, ".new-")
	if err != nil {
		return p, err
	}
	defer os.RemoveAll(temp)
	base := ""
	if d.Update {
		base = target
	}
	if err := s.fill(&p, d, base, filepath.Join(temp, filesDir)); err != nil {
		return p, err
	}
	p.State, p.Updated, p.Events = Pending, now, []Event{{now, Pending, d.By, d.Reason}}
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return p, err
	}
	if err := atomicfile.Write(filepath.Join(temp, metaFile), b, 0o600); err != nil {
		return p, err
	}
	s.step("create")
	if err := os.Rename(temp, s.dir(p.ID)); err != nil {
		return p, err
	}
	return p, atomicfile.SyncDir(s.Dir)
}

// ownedBy reports whether only the assistant has written the present skill of a proposal.
func ownedBy(all []Proposal, p *Proposal) bool {
	if p.Base == "" {
		return p.By == ByAgent
	}
	return slices.ContainsFunc(all, func(o Proposal) bool {
		return o.State == Applied && o.Agent == p.Agent && o.Name == p.Name && o.Hash == p.Base && o.Own && o.By == ByAgent
	})
}

// fill writes the files of a draft to a new folder: those of the folder base, changed.
func (s *Shelf) fill(p *Proposal, d Draft, base, to string) error {
	if base == "" {
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
	} else if err := folder.Copy(base, to, limits); err != nil {
		return invalid("the skill %s: %w", p.Name, err)
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	old, err := root.ReadFile(skill.FileName)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = nil, nil
	}
	if err != nil {
		return err
	}
	text, err := d.compose(old)
	if err != nil {
		return err
	}
	for _, name := range d.Remove {
		if err := root.Remove(filepath.FromSlash(name)); err != nil {
			return invalid("remove %s: %w", name, err)
		}
	}
	for _, f := range append([]File{{skill.FileName, string(text)}}, d.Files...) {
		name := filepath.FromSlash(f.Path)
		if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		perm := fs.FileMode(0o600)
		if info, err := root.Stat(name); err == nil {
			perm = info.Mode().Perm()
		}
		if err := atomicfile.WriteIn(root, name, []byte(f.Content), perm); err != nil {
			return err
		}
	}
	p.Description = d.Description
	if p.Hash, err = folder.Hash(to, limits); err != nil {
		return invalid("the skill %s: %w", p.Name, err)
	}
	p.Findings, err = skill.Scan(root.FS())
	return err
}

// pending returns a proposal that is pending.
func (s *Shelf) pending(id string) (Proposal, error) {
	p, err := s.find(id)
	if err == nil && p.State != Pending {
		err = chela.Errorf(chela.CodeConflict, "the proposal %s is %s", p.ID, p.State)
	}
	return p, err
}

// Revise replaces the content of a pending proposal: the draft is applied to its files.
func (s *Shelf) Revise(id string, d Draft) (Proposal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.pending(id)
	if err != nil {
		return p, err
	}
	if err := p.expect(d.Expect); err != nil {
		return p, err
	}
	d.Name = p.Name
	p.Own = p.Own && d.By == ByAgent
	if err := d.check(); err != nil {
		return p, err
	}
	files, fresh, old := filepath.Join(s.dir(p.ID), filesDir), filepath.Join(s.dir(p.ID), freshDir),
		filepath.Join(s.dir(p.ID), oldDir)
	if err := errors.Join(os.RemoveAll(fresh), os.RemoveAll(old)); err != nil {
		return p, err
	}
	if err := s.fill(&p, d, files, fresh); err != nil {
		return p, err
	}
	s.step("revise")
	if err := os.Rename(files, old); err != nil {
		return p, err
	}
	s.step("revise, second move")
	if err := os.Rename(fresh, files); err != nil {
		return p, errors.Join(err, os.Rename(old, files))
	}
	if err := os.RemoveAll(old); err != nil {
		return p, err
	}
	return p, s.move(&p, Pending, d.By, cmp.Or(d.Reason, "revised"))
}

// Close rejects or quarantines a pending proposal. hash is that of the files that a person
// decided about; "": any.
func (s *Shelf) Close(id, hash string, to State, by, reason string) (Proposal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.pending(id)
	if err != nil {
		return p, err
	}
	if err := p.expect(hash); err != nil {
		return p, err
	}
	return p, s.move(&p, to, by, reason)
}

// readFiles returns the files of a folder, SKILL.md first.
func readFiles(dir string) ([]File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var out []File
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := root.ReadFile(name)
		out = append(out, File{name, string(b)})
		return err
	})
	slices.SortStableFunc(out, func(a, b File) int {
		switch {
		case a.Path == skill.FileName:
			return -1
		case b.Path == skill.FileName:
			return 1
		}
		return 0
	})
	return out, err
}

// prune deletes the oldest proposals that are closed, with what they replaced, and what
// was left of proposals that were being made.
func (s *Shelf) prune(all []Proposal) error {
	temps, err := filepath.Glob(filepath.Join(s.Dir, ".new-*"))
	if err != nil {
		return err
	}
	for _, dir := range temps {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("proposals: %w", err)
		}
	}
	closed := 0
	for _, p := range all { // newest first
		if p.State == Pending {
			continue
		}
		if closed++; closed < maxClosed {
			continue
		}
		if err := errors.Join(os.RemoveAll(s.kept(&p)), os.RemoveAll(s.dir(p.ID))); err != nil {
			return fmt.Errorf("proposals: %w", err)
		}
	}
	return nil
}
