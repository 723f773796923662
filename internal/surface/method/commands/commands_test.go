package commands_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

func TestCommands(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	t.Run("CMD-10 commands.list and /commands list the same registry", func(t *testing.T) {
		run, err := h.Send(t.Context(), "main", "/commands")
		if err != nil {
			t.Fatal(err)
		}
		said := h.End(run).Message.Text()
		var listed, known []string
		for _, c := range methodtest.Do[wire.CommandsList](t, h, wire.MethodCommandsList, nil).Commands {
			listed = append(listed, c.Name)
			if !strings.Contains(said, "/"+c.Name) || !strings.Contains(said, c.Description) {
				t.Errorf("/commands does not name %s (%s)", c.Name, c.Description)
			}
			if c.Aliases[0] != "/"+c.Name || c.Category == "" {
				t.Errorf("%+v", c)
			}
		}
		for _, c := range inbound.Commands() {
			known = append(known, c.Name)
		}
		if !slices.Equal(listed, known) {
			t.Errorf("listed %v, want %v", listed, known)
		}
		if n := strings.Count(said, "\n- /"); n != len(known) {
			t.Errorf("/commands has %d lines, want %d", n, len(known))
		}
	})
	for _, withArgs := range []bool{false, true} {
		got := methodtest.Do[wire.CommandsList](t, h, wire.MethodCommandsList,
			wire.CommandsGet{IncludeArgs: withArgs, Scope: "text"})
		for _, c := range got.Commands {
			if (c.Args != nil) != (withArgs && c.AcceptsArgs) {
				t.Errorf("with arguments %v: %+v", withArgs, c)
			}
		}
	}
	for params, want := range map[wire.CommandsGet]string{
		{AgentID: "nope"}:             `unknown agent id "nope"`,
		{SessionKey: "agent:nope:x"}:  `unknown agent id "nope"`,
		{Scope: "every"}:              "at /scope: must be equal to one of the allowed values",
		{SessionKey: "agent:main:\n"}: "invalid commands.list params",
	} {
		if err := h.Call(t.Context(), wire.MethodCommandsList, params, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", params, err, want)
		}
	}
}
