package pathpolicy_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
)

// TestRuns tells what other programs run by themselves, what a person runs later, and what
// neither is.
func TestRuns(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		".exrc", "a/.nvim.lua", ".nvimrc", ".lvimrc", ".zed/settings.json", "a/.zed/tasks.json", ".gemini/settings.json",
		".codex/config.toml", ".kiro/settings/mcp.json",
		".windsurf/hooks.json", "a/opencode.json", "opencode.jsonc", ".opencode/plugin/x.ts", "lefthook.yml",
		".lefthook.yaml", "lefthook-local.yml",
		".helix/languages.toml", "a/.roo/mcp.json", ".qwen/settings.json", ".aider.conf.yml", "crush.json",
	} {
		t.Run("RN-01 by itself "+name, func(t *testing.T) {
			if pathpolicy.RunsIn(name) == "" {
				t.Error("not known")
			}
		})
	}
	for _, name := range []string{
		".cargo/config.toml", "a/.cargo/config", ".circleci/config.yml", ".forgejo/workflows/x.yml",
		".gitea/workflows/x.yaml", ".lintstagedrc", "a/.lintstagedrc.json", "lint-staged.config.mjs",
		".bazelrc", ".gdbinit", "a/.lldbinit", ".dir-locals.el", "Makefile", "a/package.json",
		".vimrc", ".Rprofile", "a/.pdbrc", ".latexmkrc", "eslint.config.js", "a/vite.config.ts", ".mvn/extensions.xml",
		"x.gemspec", "shop.code-workspace", ".venv/bin/python", "a/venv/bin/activate", "ansible.cfg",
	} {
		t.Run("RN-02 later "+name, func(t *testing.T) {
			if pathpolicy.RunsIn(name) != "" || !pathpolicy.Script(name) {
				t.Errorf("by itself: %q, later: %t", pathpolicy.RunsIn(name), pathpolicy.Script(name))
			}
		})
	}
	for _, name := range []string{"a/lefthook.yml", "config.toml", ".cargo/registry/x", "vimrc", "a.circleci/x",
		".clang-format", "AGENTS.md", "bazelrc", ".config.js", "config.js", "bin/python", ".venv/bin/black", "helix"} {
		t.Run("RN-03 neither "+name, func(t *testing.T) {
			if pathpolicy.RunsIn(name) != "" || pathpolicy.Script(name) {
				t.Errorf("by itself: %q, later: %t", pathpolicy.RunsIn(name), pathpolicy.Script(name))
			}
		})
	}
}
