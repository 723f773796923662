package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/json5"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// removal is an Undo in progress.
type removal struct {
	m      Migrator
	start  cli.Start
	record *record
	db     standard.Database
	items  [groupCount][]cli.MigratedItem
}

// groupOf returns the group under which a step is shown.
func groupOf(s step) group {
	switch s.Kind {
	case kindConfig:
		return groupConfig
	case kindSession:
		return groupSessions
	case kindJob:
		return groupJobs
	case kindPerson:
		return groupPeople
	case kindDevice:
		return groupDevices
	}
	return groupWorkspaces
}

// Undo takes back what the last Apply made, in the opposite order.
func (m Migrator) Undo(ctx context.Context, s cli.Start) (_ cli.Migrated, err error) {
	if last, err := lastRecord(s.State); err != nil || last == nil {
		if err == nil {
			err = &chela.Error{Code: chela.CodeNotFound, Message: "nothing was migrated from OpenClaw into " + s.State,
				Hint: "chela migrate openclaw"}
		}
		return cli.Migrated{}, err
	}
	lock, err := own(ctx, s)
	if err != nil {
		return cli.Migrated{}, err
	}
	defer release(lock, &err)
	u := &removal{m: m, start: s}
	if u.record, err = lastRecord(s.State); err != nil {
		return cli.Migrated{}, err
	}
	if u.db, err = m.openStore(ctx, s); err != nil {
		return cli.Migrated{}, err
	}
	defer func() { err = errors.Join(err, u.db.Close()) }()
	if err := u.run(ctx); err != nil {
		return cli.Migrated{}, &chela.Error{Code: chela.CodeOf(err), Message: "the migration was not undone completely",
			Err: err, Hint: "chela migrate openclaw --undo, which continues"}
	}
	out := u.shown()
	out.Report = filepath.Join(u.record.dir, "undo.txt")
	if err := report(out.Report, out, "Taken back"); err != nil {
		return cli.Migrated{}, err
	}
	u.record.State = undone
	return out, u.record.save()
}

// run undoes the steps.
func (u *removal) run(ctx context.Context) error {
	if err := u.m.before("undo"); err != nil {
		return err
	}
	u.record.State = undoing
	if err := u.record.sweep(); err != nil {
		return err
	}
	if err := u.record.save(); err != nil {
		return err
	}
	for _, s := range slices.Backward(u.record.Steps) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := u.m.before("undo " + s.Kind + " " + s.Name); err != nil {
			return err
		}
		i := cli.MigratedItem{What: s.Name}
		var err error
		switch s.Kind {
		case kindFile:
			err = u.file(s, &i)
		case kindConfig:
			err = u.config(s, &i)
		default:
			err = u.db.Update(ctx, store.Synced, func(tx store.Tx) error {
				i.Action, i.Note = "", ""
				return u.row(tx, s, &i)
			})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, pathError(err))
		}
		if i.Action != "" {
			g := groupOf(s)
			u.items[g] = append(u.items[g], i)
		}
	}
	for _, dir := range slices.Backward(u.record.Dirs) {
		_ = os.Remove(dir) // one with other files stays
	}
	return nil
}

// file takes back a file.
func (u *removal) file(s step, i *cli.MigratedItem) error {
	have, err := hashFile(s.Name)
	switch {
	case errors.Is(err, errIrregular):
		i.Action, i.Note = cli.ItemKeep, "it is not a file any more"
		return nil
	case err != nil:
		return err
	case have == s.Before, have == "": // it was not made, or removed since
		return nil
	case have != s.After:
		i.Action, i.Note = cli.ItemKeep, "it was changed since"
		return nil
	case s.Before == "":
		i.Action = cli.ItemRemove
		return os.Remove(s.Name)
	}
	i.Action = cli.ItemRestore
	return u.restore(s)
}

// restore puts the copy of a replaced file back.
func (u *removal) restore(s step) error {
	old, err := os.ReadFile(u.record.kept(s.Before))
	if err != nil {
		return err
	}
	return atomicfile.Write(s.Name, old, 0o600)
}

// config takes back the settings: the whole file if it was not changed since, else the
// values that are still as they were set.
func (u *removal) config(s step, i *cli.MigratedItem) error {
	have, err := hashFile(s.Name)
	switch {
	case err != nil:
		return err
	case have == s.Before, have == "":
		return nil
	case have == s.After && s.Before != "":
		i.Action = cli.ItemRestore
		old, err := os.ReadFile(u.record.kept(s.Before))
		if err != nil {
			return err
		}
		return u.writeConfig(s.Name, old)
	case have == s.After && exists(u.start.LastGood): // a missing file would be taken for a lost one
		i.Action, i.Note = cli.ItemRestore, "it is empty, as the one that was in force before"
		return u.writeConfig(s.Name, []byte("{}\n"))
	case have == s.After:
		i.Action = cli.ItemRemove
		return os.Remove(s.Name)
	}
	return u.values(s, i)
}

// writeConfig writes the configuration, also the copy of the last valid one: what is taken
// back, such as keys, is not to stay there.
func (u *removal) writeConfig(file string, text []byte) error {
	if exists(u.start.LastGood) {
		if err := atomicfile.Write(u.start.LastGood, text, 0o600); err != nil {
			return err
		}
	}
	return atomicfile.Write(file, text, 0o600)
}

// values takes back single settings.
func (u *removal) values(s step, i *cli.MigratedItem) error {
	text, err := os.ReadFile(s.Name)
	if err != nil {
		return err
	}
	i.Action = cli.ItemKeep
	tree, err := (config.Options{Env: func(string) string { return "" }}).Read(s.Name)
	if err != nil {
		i.Note = "it is invalid, so its settings were not undone"
		return nil
	}
	kept, removed := 0, 0
	for _, v := range s.Values {
		now := tree.Section(v.Path)
		switch {
		case now == nil || v.Old != nil && bytes.Equal(canonical(now), canonical(v.Old)):
			continue
		case hashOf(canonical(now)) != v.After:
			kept++
			continue
		}
		next, err := config.Edited(text, config.Edit{Path: v.Path, Value: v.Old})
		if err != nil {
			kept++
			continue
		}
		text = pruned(next, v)
		removed++
	}
	i.Note = fmt.Sprintf("%d settings undone; %d that were changed since are kept, with all others", removed, kept)
	if removed == 0 {
		return nil
	}
	return u.writeConfig(s.Name, text)
}

// pruned removes the objects that became empty because a value was removed from them.
func pruned(text []byte, v value) []byte {
	steps, err := config.ParsePath(v.Path)
	if v.Old != nil || err != nil {
		return text
	}
	for n := len(steps) - 1; n > 0; n-- {
		doc, err := json5.Parse(text)
		if err != nil {
			return text
		}
		node := doc.Get(steps[:n]...)
		if node == nil || node.Kind != json5.Object || len(node.Slots) > 0 {
			return text
		}
		next, ok := doc.Unset(steps[:n])
		if !ok {
			return text
		}
		text = next
	}
	return text
}

// row takes back a row of the database.
func (u *removal) row(tx store.Tx, s step, i *cli.MigratedItem) error {
	switch s.Kind {
	case kindSession:
		return undoSession(tx.Sessions(), s, i)
	case kindJob:
		return undoJob(tx, s, i)
	case kindPerson:
		return undoPerson(tx, s, i)
	case kindDevice:
		return undoDevice(tx, s, i)
	}
	return fmt.Errorf("unknown kind of step %q", s.Kind)
}

// undoSession deletes a conversation that did not go on here.
func undoSession(t session.Table, s step, i *cli.MigratedItem) error {
	meta, err := t.Get(chela.SessionKey(s.Name))
	if errors.Is(err, chela.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	past, err := t.Past(meta.Key)
	if err != nil {
		return err
	}
	if meta.ID != s.Transcripts[0] {
		if slices.ContainsFunc(past, func(p session.Past) bool { return p.ID == s.Transcripts[0] }) {
			i.Action, i.Note = cli.ItemKeep, "it went on here"
		}
		return nil
	}
	n, err := t.Count(meta.ID)
	if err != nil {
		return err
	}
	if n != s.Entries || mark(meta) != s.After {
		i.Action, i.Note = cli.ItemKeep, "it went on here"
		return nil
	}
	others := slices.ContainsFunc(past, func(p session.Past) bool { return !slices.Contains(s.Transcripts, p.ID) })
	if s.Old == nil && !others {
		i.Action = cli.ItemRemove
		return t.Delete(meta.Key)
	}
	i.Action = cli.ItemRestore
	return restoreSession(t, s, meta)
}

// restoreSession deletes the transcripts of a conversation, and makes the one that it
// replaced the current one again.
func restoreSession(t session.Table, s step, meta session.Meta) error {
	var old session.Meta
	if err := json.Unmarshal(s.Old, &old); err != nil {
		return err
	}
	if err := t.Unarchive(meta.Key, old.ID); err != nil {
		return err
	}
	if err := t.Put(old); err != nil {
		return err
	}
	const ended = 1 // second of 1970: before all others
	for i, id := range s.Transcripts {
		if i > 0 {
			if err := t.Unarchive(meta.Key, id); err != nil {
				return err
			}
		}
		if err := t.Archive(meta.Key, session.Past{ID: id, Started: time.Unix(ended, 0), Ended: time.Unix(ended, 0),
			Reason: "deleted"}); err != nil {
			return err
		}
	}
	_, err := t.PrunePast(meta.Key, time.Unix(ended+1, 0))
	return err
}

func undoJob(tx store.Tx, s step, i *cli.MigratedItem) error {
	j, err := tx.Jobs().Get(job.ID(s.Name))
	if errors.Is(err, chela.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	i.What = j.Title()
	if definition(j) != s.After {
		if s.Old == nil {
			i.Action, i.Note = cli.ItemKeep, "it was changed since"
		}
		return nil
	}
	tx.Wake(store.Topic{Kind: store.TopicJobs})
	if s.Old == nil {
		i.Action = cli.ItemRemove
		_, err := tx.Jobs().Delete(j.ID)
		return err
	}
	i.Action = cli.ItemRestore
	var old job.Job
	if err := json.Unmarshal(s.Old, &old); err != nil {
		return err
	}
	return tx.Jobs().Put(old)
}

func undoPerson(tx store.Tx, s step, i *cli.MigratedItem) error {
	var name [3]string
	if err := json.Unmarshal([]byte(s.Name), &name); err != nil {
		return err
	}
	i.What = name[0] + " " + name[2]
	g, err := tx.Guests().Get(name[0], chela.AccountID(name[1]), name[2])
	if errors.Is(err, chela.ErrNotFound) || err == nil && g.Admitted.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	i.Action = cli.ItemRemove
	return tx.Guests().Delete(g.Channel, g.Account, g.ID)
}

func undoDevice(tx store.Tx, s step, i *cli.MigratedItem) error {
	d, err := tx.Devices().Device(s.Name)
	if errors.Is(err, chela.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if d.Via != pairing.ViaImport || !d.Paired() {
		i.Action, i.Note = cli.ItemKeep, "it was approved or removed here since"
		return nil
	}
	i.Action = cli.ItemRemove
	return tx.Devices().DeleteDevice(d.ID)
}

// shown returns what was taken back.
func (u *removal) shown() cli.Migrated {
	m := cli.Migrated{
		From:     u.record.From,
		State:    u.start.State,
		Groups:   []cli.MigratedGroup{},
		Left:     []cli.NotMigrated{},
		Problems: []cli.NotMigrated{},
	}
	for g, items := range u.items {
		if len(items) == 0 {
			continue
		}
		count := map[string]int{}
		for _, i := range items {
			count[i.Action]++
		}
		name := groupNames[g]
		if group(g) == groupWorkspaces {
			name = "Files"
		}
		m.Groups = append(m.Groups, cli.MigratedGroup{
			Name: name, Items: items,
			Summary: fmt.Sprintf("%d removed, %d restored, %d kept", count[cli.ItemRemove],
				count[cli.ItemRestore], count[cli.ItemKeep]),
		})
	}
	return m
}
