package skillsource

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/skill"
)

// Client is a client of a registry of skills. The registry answers two requests in JSON:
//
//	GET URL/v1/skills?q=WORDS&limit=N   {"skills": [Listing]}
//	GET URL/v1/skills/NAME              Detail
//
// The address of an archive may be relative to that of the registry.
type Client struct {
	URL   string
	Token string       // sent as a bearer token to the registry; "": none
	HTTP  *http.Client // that reaches the registry
}

// Listing is a skill as it is found.
type Listing struct {
	Slug        string `json:"slug"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version"`
}

// Detail is a skill with its versions, the newest first.
type Detail struct {
	Listing
	Homepage string    `json:"homepage,omitempty"`
	Versions []Version `json:"versions"`
}

// Version is a version of a skill.
type Version struct {
	Version string    `json:"version"`
	SHA256  string    `json:"sha256"` // of the archive
	URL     string    `json:"url"`    // of the archive
	Created time.Time `json:"createdAt,omitzero"`
	Changes string    `json:"changelog,omitempty"` // what it changes, for people
}

// Limits of the answers of a registry.
const (
	maxAnswer   = 2 << 20 // bytes
	maxFound    = 50
	maxVersions = 200
)

// Search returns the skills that fit some words.
func (c *Client) Search(ctx context.Context, words string, limit int) ([]Listing, error) {
	if limit <= 0 || limit > maxFound {
		limit = maxFound
	}
	var out struct {
		Skills []Listing `json:"skills"`
	}
	err := c.get(ctx, "v1/skills?"+url.Values{"q": {words}, "limit": {strconv.Itoa(limit)}}.Encode(), &out)
	out.Skills = slices.DeleteFunc(out.Skills, func(l Listing) bool { return !ValidSlug(l.Slug) })
	out.Skills = out.Skills[:min(len(out.Skills), limit)]
	for i := range out.Skills {
		out.Skills[i].clean()
	}
	return out.Skills, err
}

// Limits of the texts of a registry, in characters.
const (
	maxWord     = 64
	maxSentence = 500
)

// clean makes the texts of strangers short ones on one line.
func (l *Listing) clean() {
	l.Name, l.Description, l.Version = skill.OneLine(l.Name, maxWord), skill.OneLine(l.Description, maxSentence),
		skill.OneLine(l.Version, maxWord)
}

// Detail returns a skill.
func (c *Client) Detail(ctx context.Context, slug string) (d Detail, err error) {
	if !ValidSlug(slug) {
		return d, chela.Errorf(chela.CodeInvalid, "%.100q is not the name of a skill", slug)
	}
	err = c.get(ctx, "v1/skills/"+slug, &d)
	d.Slug = slug
	d.clean()
	d.Homepage = skill.OneLine(d.Homepage, maxSentence)
	d.Versions = d.Versions[:min(len(d.Versions), maxVersions)]
	return d, err
}

// get decodes an answer of the registry.
func (c *Client) get(ctx context.Context, path string, into any) error {
	header := http.Header{"Accept": {"application/json"}}
	if c.Token != "" {
		header.Set("Authorization", "Bearer "+c.Token)
	}
	body, err := get(ctx, c.HTTP, strings.TrimSuffix(c.URL, "/")+"/"+path, header, maxAnswer)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return chela.Errorf(codeOf(err), "registry %s: %w", c.URL, err)
	}
	return nil
}

func codeOf(err error) chela.Code {
	if chela.CodeOf(err) == chela.CodeNotFound {
		return chela.CodeNotFound
	}
	return chela.CodeUnavailable
}

// errNone says that there is no registry.
func errNone() error {
	return &chela.Error{Code: chela.CodeInvalid, Message: "no registry of skills is configured",
		Hint: "chela config set skills.registry.url https://…"}
}

// Search returns the skills of the registry that fit some words.
func (f *Fetcher) Search(ctx context.Context, words string, limit int) ([]Listing, error) {
	if f.Registry == nil {
		return nil, errNone()
	}
	return f.Registry.Search(ctx, words, limit)
}

// Detail returns a skill of the registry.
func (f *Fetcher) Detail(ctx context.Context, slug string) (Detail, error) {
	if f.Registry == nil {
		return Detail{}, errNone()
	}
	return f.Registry.Detail(ctx, slug)
}

// registry fetches a version of a skill; without one, the newest.
func (f *Fetcher) registry(ctx context.Context, to string, o *skill.Origin) error {
	d, err := f.Detail(ctx, o.From)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(d.Versions, func(v Version) bool { return o.Version == "" || v.Version == o.Version })
	if i < 0 {
		return chela.Errorf(chela.CodeNotFound, "the registry has no version %s of %s", o.Version, o.From)
	}
	v := d.Versions[i]
	if len(v.SHA256) != 64 {
		return fmt.Errorf("registry %s: %s %s has no SHA-256", f.Registry.URL, o.From, v.Version)
	}
	at, err := url.Parse(strings.TrimSuffix(f.Registry.URL, "/") + "/")
	if err != nil {
		return err
	}
	u, err := at.Parse(v.URL)
	if err != nil {
		return fmt.Errorf("registry %s: the address of %s is invalid", f.Registry.URL, o.From)
	}
	client := f.HTTP
	if u.Host == at.Host && u.Scheme == at.Scheme {
		client = f.Registry.HTTP
	} else if u.Scheme != "https" {
		return fmt.Errorf("registry %s: the address of %s must begin with https://", f.Registry.URL, o.From)
	}
	o.Version = v.Version
	return f.archive(ctx, client, u.String(), v.SHA256, to, o)
}
