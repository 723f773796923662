package workshop_test

import (
	"path/filepath"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/proposal"
	"github.com/chela-ai/chela/internal/core/tool/tooltest"
	"github.com/chela-ai/chela/internal/plugin/tool/workshop"
)

func TestConformance(t *testing.T) {
	dir := t.TempDir()
	shelf := &proposal.Shelf{Dir: filepath.Join(dir, "proposals"),
		Skills: func(chela.AgentID) string { return filepath.Join(dir, "skills") }}
	p, err := shelf.Create(proposal.Draft{
		Agent:       "main",
		Name:        "tea",
		Description: "Make tea.",
		Content:     "Boil water.",
		By:          proposal.ByAgent,
	})
	if err != nil {
		t.Fatal(err)
	}
	tl, err := workshop.Configured(nil, shelf)
	if err != nil {
		t.Fatal(err)
	}
	tooltest.Run(t, tl, tooltest.Options{Args: []string{`{"action":"list"}`, `{"action":"inspect","id":"` + p.ID + `"}`,
		`{"action":"read","id":"` + p.ID + `"}`}})
}
