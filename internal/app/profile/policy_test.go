package profile

import (
	"encoding/json"
	"testing"

	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/plugin/tool/fs"
)

// read returns the settings with a section tools.
func read(t *testing.T, tools string) *settings.Settings {
	t.Helper()
	o := new(settings.Settings)
	if err := json.Unmarshal([]byte(tools), &o.Tools); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestPatchOfSomeModels(t *testing.T) {
	set := tool.NewSet(fs.New(fs.Options{})...)
	p := Generation{catalogs: map[chela.AgentID]policy.Catalog{"main": policy.NewCatalog(set)},
		Settings: read(t, `{"exec": {"applyPatch": {"allowModels": ["gpt-5", "anthropic/opus"]}}}`)}
	for _, tt := range []struct {
		provider, model string
		offered         bool
	}{{"openai", "gpt-5", true}, {"anthropic", "opus", true}, {"anthropic", "haiku", false}, {"other", "opus", false}} {
		e := p.pipeline("main", policy.Conversation{Provider: tt.provider, Model: tt.model}).Explain(
			"apply_patch", set.Specs())
		if e.Allowed != tt.offered || !e.Allowed && e.Steps[len(e.Steps)-1].Key != "tools.exec.applyPatch.allowModels" {
			t.Errorf("%s/%s: %+v", tt.provider, tt.model, e)
		}
	}
	if e := (&Generation{Settings: read(t, "{}")}).pipeline("main", policy.Conversation{}).Explain("apply_patch",
		set.Specs()); !e.Allowed {
		t.Errorf("without the key: %+v", e)
	}
}
