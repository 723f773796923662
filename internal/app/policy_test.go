package app

import (
	"testing"

	"github.com/chela-ai/chela/internal/policy"
)

func TestPatchOfSomeModels(t *testing.T) {
	p := profiles{opts: read(t, conf{"tools": `{"exec": {"applyPatch": {"allowModels": ["gpt-5", "anthropic/opus"]}}}`})}
	for _, tt := range []struct {
		provider, model string
		offered         bool
	}{{"openai", "gpt-5", true}, {"anthropic", "opus", true}, {"anthropic", "haiku", false}, {"other", "opus", false}} {
		e := p.pipeline("main", policy.Conversation{Provider: tt.provider, Model: tt.model}).Explain("apply_patch", []string{"apply_patch", "read"})
		if e.Offered != tt.offered || !e.Offered && e.Steps[len(e.Steps)-1].Key != "tools.exec.applyPatch.allowModels" {
			t.Errorf("%s/%s: %+v", tt.provider, tt.model, e)
		}
	}
	if e := (&profiles{opts: read(t, nil)}).pipeline("main", policy.Conversation{}).Explain("apply_patch", nil); !e.Offered {
		t.Errorf("without the key: %+v", e)
	}
}
