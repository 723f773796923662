package proposal

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/frontmatter"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/kit/folder"
)

// State is the state of a proposal.
type State string

// The states. Only a pending proposal can be revised, applied, rejected or quarantined,
// and only an applied one rolled back.
const (
	Pending     State = "pending"
	Applied     State = "applied"
	Rejected    State = "rejected"
	Quarantined State = "quarantined"
	Stale       State = "stale"       // the skill that it would replace has changed
	RolledBack  State = "rolled-back" // it was applied, and the skill is as it was before
	applying    State = "applying"
	returning   State = "returning" // it is being rolled back
)

// Limits of a proposal.
const (
	MaxDescription = 160       // bytes
	MaxBody        = 40_000    // bytes of SKILL.md
	MaxFiles       = 64        // besides SKILL.md
	MaxFile        = 256 << 10 // bytes of a file
	MaxTotal       = 2 << 20   // bytes of all files
	MaxPending     = 50
	maxClosed      = 200 // proposals that are not pending; the oldest are deleted
	maxReason      = 500 // bytes
	maxEvents      = 50
)

// Who made a proposal.
const (
	ByAgent    = "agent"
	ByOperator = "operator" // a person, through a client
)

// Proposal is a proposal.
type Proposal struct {
	ID          string          `json:"id"`
	Agent       chela.AgentID   `json:"agentId"`
	Name        string          `json:"name"` // of the skill
	Description string          `json:"description"`
	Update      bool            `json:"update"` // the skill exists already
	By          string          `json:"by"`
	Session     string          `json:"sessionKey,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	State       State           `json:"state"`
	Base        string          `json:"base,omitempty"` // hash of the skill that it replaces
	Hash        string          `json:"hash"`           // of its files
	Own         bool            `json:"own"`            // nobody but the assistant has written the skill that it replaces
	Findings    []skill.Finding `json:"findings,omitempty"`
	Created     time.Time       `json:"createdAt"`
	Updated     time.Time       `json:"updatedAt"`
	Events      []Event         `json:"events"`
}

// Event is a change of a proposal.
type Event struct {
	Time  time.Time `json:"at"`
	State State     `json:"state"`
	By    string    `json:"by"`
	Note  string    `json:"note,omitempty"`
}

// Draft is the content of a new proposal or of a revision.
type Draft struct {
	Agent       chela.AgentID
	Name        string // of the skill
	Update      bool   // the skill exists already
	Description string // ignored if Content has front matter
	Content     string // of SKILL.md, with or without front matter; "": as it was
	Files       []File // others, that are added or replaced
	Remove      []string
	Reason      string
	By          string
	Session     string
	Expect      string // hash that the files of a revised proposal must have; "": any
}

// File is a file of a skill.
type File struct {
	Path    string `json:"path"` // with slashes, relative to the folder of the skill
	Content string `json:"content"`
}

// validName matches the names of skills that can be proposed.
var validName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`) })

func invalid(format string, args ...any) error {
	return chela.Errorf(chela.CodeInvalid, format, args...)
}

// check returns what is wrong with a draft, before it meets the skill that it changes.
func (d *Draft) check() error {
	switch {
	case !validName().MatchString(d.Name):
		return invalid("name %.80q: want lower-case letters, digits and dashes, at most 64", d.Name)
	case len(d.Description) > MaxDescription:
		return invalid("the description has %d bytes, at most %d", len(d.Description), MaxDescription)
	case len(d.Reason) > maxReason:
		return invalid("the reason has %d bytes, at most %d", len(d.Reason), maxReason)
	case len(d.Content) > MaxBody:
		return invalid("the skill has %d bytes, at most %d", len(d.Content), MaxBody)
	case len(d.Files) > MaxFiles || len(d.Remove) > MaxFiles:
		return invalid("more than %d files", MaxFiles)
	}
	seen := map[string]bool{}
	for _, f := range d.Files {
		if err := checkPath(f.Path); err != nil {
			return err
		}
		if seen[strings.ToLower(f.Path)] {
			return invalid("the file %s is named twice", f.Path)
		}
		seen[strings.ToLower(f.Path)] = true
		if len(f.Content) > MaxFile {
			return invalid("%s has %d bytes, at most %d", f.Path, len(f.Content), MaxFile)
		}
	}
	for _, p := range d.Remove {
		if err := checkPath(p); err != nil {
			return err
		}
	}
	return nil
}

// checkPath reports what is wrong with the path of a file besides SKILL.md.
func checkPath(p string) error {
	parts := strings.Split(p, "/")
	bad := path.Clean(p) != p || len(p) > 200 ||
		slices.ContainsFunc(parts, func(e string) bool { return !folder.ValidName(e) || strings.HasPrefix(e, ".") })
	if bad || strings.EqualFold(p, skill.FileName) || strings.EqualFold(parts[len(parts)-1], skill.FileName) {
		return invalid("file %.100q: want a path in the skill, such as references/notes.md", p)
	}
	return nil
}

// compose returns the SKILL.md of a draft. old is the present one; nil: there is none.
func (d *Draft) compose(old []byte) ([]byte, error) {
	text := []byte(strings.ReplaceAll(d.Content, "\r\n", "\n"))
	switch {
	case len(text) == 0 && old == nil:
		return nil, invalid("the content of the skill is missing")
	case len(text) == 0:
		text = old
		if d.Description != "" && d.Description != described(d.Name, old) {
			return nil, invalid("to change the description, give the whole SKILL.md with its front matter")
		}
	case !strings.HasPrefix(string(text), "---\n") && old != nil:
		if d.Description != "" && d.Description != described(d.Name, old) {
			return nil, invalid("to change the description, give the whole SKILL.md with its front matter")
		}
		body, err := frontmatter.Decode(old, &struct{}{})
		if err != nil {
			return nil, invalid("the front matter of the present SKILL.md is not valid, so give the whole file: %w", err)
		}
		head := string(old)
		if body != "" {
			head = head[:strings.LastIndex(head, body)]
		}
		text = []byte(strings.TrimRight(head, "\r\n") + "\n\n" + strings.TrimLeft(string(text), "\n"))
	case !strings.HasPrefix(string(text), "---\n"):
		quoted, err := json.Marshal(d.Description) // a string of JSON is one of YAML
		if err != nil {
			return nil, err
		}
		text = fmt.Appendf(nil, "---\nname: %s\ndescription: %s\n---\n\n%s", d.Name, quoted,
			strings.TrimLeft(string(text), "\n"))
	}
	s, _, err := skill.Parse(d.Name, text)
	switch {
	case err != nil:
		return nil, invalid("SKILL.md: %w", err)
	case s.Name != d.Name:
		return nil, invalid("SKILL.md has the name %s, want %s", s.Name, d.Name)
	case len(s.Description) > MaxDescription:
		return nil, invalid("the description has %d bytes, at most %d", len(s.Description), MaxDescription)
	case len(text) > MaxBody+4096:
		return nil, invalid("SKILL.md has %d bytes, at most %d", len(text), MaxBody)
	}
	d.Description = s.Description
	return text, nil
}

// ChangedError says that a proposal is not the revision that somebody expects.
type ChangedError struct {
	ID       string
	Expected string // hash of its files
	Current  string
}

// Error says which proposal it is.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("the proposal %s has changed; look at it again", e.ID)
}

// expect returns a [ChangedError] if the files of a proposal do not have a hash; "": any.
func (p *Proposal) expect(hash string) error {
	if hash == "" || strings.EqualFold(hash, p.Hash) {
		return nil
	}
	return &chela.Error{Code: chela.CodeConflict, Err: &ChangedError{p.ID, hash, p.Hash},
		Hint: "chela skills proposals show " + p.ID}
}

// described returns the description in a SKILL.md; "": it has none.
func described(name string, text []byte) string {
	s, _, err := skill.Parse(name, text)
	if err != nil {
		return ""
	}
	return s.Description
}

// Errors of operations.
var (
	// ErrStale says that the skill has changed since the proposal was made.
	ErrStale = errors.New("the skill has changed since it was proposed; the proposal is stale")
	// ErrQuarantined says that the scanner found something critical.
	ErrQuarantined = errors.New("the scanner found something critical; the proposal is quarantined")
)
