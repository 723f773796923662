package proposal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/folder"
)

// Apply puts a pending proposal in the place of the skill. hash is that of the files that
// a person accepted; "": any. The proposal is stale if the skill has changed, and
// quarantined if the scanner finds something critical; then nothing else happens.
func (s *Shelf) Apply(ctx context.Context, id, hash, by string) (Proposal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.pending(id)
	if err != nil {
		return p, err
	}
	files := filepath.Join(s.dir(p.ID), filesDir)
	now, err := folder.Hash(files, limits)
	switch {
	case err != nil:
		return p, fmt.Errorf("proposal %s: %w", p.ID, err)
	case now != p.Hash:
		return p, chela.Errorf(chela.CodeConflict, "the files of the proposal %s were changed by hand; reject it", p.ID)
	}
	if err := p.expect(hash); err != nil {
		return p, err
	}
	base, err := hashOf(s.target(&p))
	if err != nil {
		return p, err
	}
	if base != p.Base {
		return p, errors.Join(s.move(&p, Stale, by, ""), &chela.Error{Code: chela.CodeConflict, Err: ErrStale})
	}
	if p.Findings, err = skill.Scan(os.DirFS(files)); err != nil {
		return p, err
	}
	if skill.Worst(p.Findings) == skill.Critical {
		return p, errors.Join(s.move(&p, Quarantined, by, p.Findings[0].String()), &chela.Error{Code: chela.CodeForbidden,
			Err: ErrQuarantined})
	}
	if err := os.MkdirAll(filepath.Dir(s.kept(&p)), 0o700); err != nil {
		return p, err
	}
	if err := os.RemoveAll(s.fresh(&p)); err != nil {
		return p, err
	}
	s.step("copy")
	if err := folder.Copy(files, s.fresh(&p), limits); err != nil {
		return p, err
	}
	if err := s.move(&p, applying, by, ""); err != nil {
		return p, err
	}
	if err := s.record(ctx, &p, s.fresh(&p), s.swap); err != nil {
		return p, errors.Join(err, s.complete(&p))
	}
	return p, s.move(&p, Applied, by, "")
}

// record calls change, which puts the folder next in the place of the skill, or removes it
// if next is empty.
func (s *Shelf) record(ctx context.Context, p *Proposal, next string, change func(*Proposal) error) error {
	if s.Record == nil {
		return change(p)
	}
	return s.Record(ctx, p.Agent)(s.target(p), next, func() error { return change(p) })
}

// swap moves the present skill aside, and the new one to its place.
func (s *Shelf) swap(p *Proposal) error {
	dir, target := s.Skills(p.Agent), s.target(p)
	if p.Base != "" {
		s.step("move the old skill")
		if err := os.Rename(target, s.kept(p)); err != nil {
			return err
		}
	}
	s.step("move the new skill")
	if err := os.Rename(s.fresh(p), target); err != nil {
		return err
	}
	return atomicfile.SyncDir(dir)
}

// Rollback puts back what an applied proposal replaced. It fails if the skill has changed
// since.
func (s *Shelf) Rollback(ctx context.Context, id, by string) (Proposal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(id)
	if err != nil {
		return p, err
	}
	if p.State != Applied {
		return p, chela.Errorf(chela.CodeConflict, "the proposal %s is %s, not applied", p.ID, p.State)
	}
	now, err := hashOf(s.target(&p))
	switch {
	case err != nil:
		return p, err
	case now != p.Hash:
		return p, chela.Errorf(chela.CodeConflict, "the skill %s has changed since the proposal was applied", p.Name)
	}
	if p.Base != "" {
		old, err := hashOf(s.kept(&p))
		if err != nil {
			return p, err
		}
		if old != p.Base {
			return p, chela.Errorf(chela.CodeConflict, "what the proposal replaced is not in %s any more", s.kept(&p))
		}
	}
	if err := s.move(&p, returning, by, ""); err != nil {
		return p, err
	}
	next := ""
	if p.Base != "" {
		next = s.kept(&p)
	}
	if err := s.record(ctx, &p, next, s.back); err != nil {
		return p, errors.Join(err, s.complete(&p))
	}
	return p, s.move(&p, RolledBack, by, "")
}

// back moves the new skill away, and the old one to its place.
func (s *Shelf) back(p *Proposal) error {
	target := s.target(p)
	s.step("move the new skill away")
	if err := os.Rename(target, s.fresh(p)); err != nil {
		return err
	}
	if p.Base != "" {
		s.step("move the old skill back")
		if err := os.Rename(s.kept(p), target); err != nil {
			return err
		}
	}
	if err := atomicfile.SyncDir(s.Skills(p.Agent)); err != nil {
		return err
	}
	s.step("remove the new skill")
	return os.RemoveAll(s.fresh(p))
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// complete completes or undoes an operation that was interrupted.
func (s *Shelf) complete(p *Proposal) error {
	const interrupted = "interrupted"
	target, fresh, kept := s.target(p), s.fresh(p), s.kept(p)
	switch p.State {
	case Pending:
		if err := os.RemoveAll(fresh); err != nil { // it was to be applied
			return err
		}
		return s.completeRevision(p)
	case applying:
		if !there(fresh) { // the last move was made
			return s.move(p, Applied, "", interrupted)
		}
		if p.Base != "" && !there(target) && there(kept) {
			if err := os.Rename(kept, target); err != nil {
				return err
			}
		}
		return errors.Join(os.RemoveAll(fresh), s.move(p, Pending, "", interrupted))
	case returning:
		switch {
		case p.Base != "" && there(kept) && there(target), p.Base == "" && there(target): // nothing was moved
			return s.move(p, Applied, "", interrupted)
		case p.Base != "" && there(kept):
			if err := os.Rename(kept, target); err != nil {
				return err
			}
		}
		return errors.Join(os.RemoveAll(fresh), s.move(p, RolledBack, "", interrupted))
	}
	return nil
}

// completeRevision puts back files that an interrupted revision moved away, or takes its
// new ones.
func (s *Shelf) completeRevision(p *Proposal) error {
	files := filepath.Join(s.dir(p.ID), filesDir)
	if there(files) {
		hash, err := folder.Hash(files, limits)
		if err != nil || hash == p.Hash {
			return nil // a damaged one cannot be applied
		}
		p.Hash = hash // the metadata were not written
		return s.move(p, Pending, "", "revised")
	}
	if old := filepath.Join(s.dir(p.ID), oldDir); there(old) {
		return os.Rename(old, files)
	}
	return nil
}
