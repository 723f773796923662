package pathpolicy

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// runs are the names that make other programs run something when a person opens the
// folder that they are in, or works there: settings of editors (Vim and Neovim read theirs
// in the folder that they are started in, if the person has set exrc) and of assistants
// (which start servers and hooks that they name).
var runs = map[string]bool{
	".vscode":            true,
	".idea":              true,
	".zed":               true,
	".devcontainer":      true,
	".devcontainer.json": true,
	".exrc":              true,
	".nvim.lua":          true,
	".nvimrc":            true,
	".lvimrc":            true,
	".mcp.json":          true,
	".claude":            true,
	".cursor":            true,
	".gemini":            true,
	".codex":             true,
	".kiro":              true,
	".windsurf":          true,

	".opencode":      true,
	"opencode.json":  true,
	"opencode.jsonc": true,
	".helix":         true,
	".qwen":          true,
	".roo":           true,
	".amazonq":       true,
	".junie":         true,
	".trae":          true,
	".continue":      true,

	".aider.conf.yml": true,
	"crush.json":      true,
	".crush.json":     true,
	".husky":          true,
	".githooks":       true,
	".envrc":          true,
}

// runsAtTop are those that do so at the top of a repository. What a manager of hooks runs
// with the next commit is among them.
var runsAtTop = []string{
	".gitmodules", ".github/workflows", ".gitlab-ci.yml", ".pre-commit-config.yaml",
	"lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", ".lefthook.yml", ".lefthook.yaml",
	".lefthook.toml", ".lefthook.json",
	"lefthook-local.yml", "lefthook-local.yaml", ".lefthook-local.yml", ".lefthook-local.yaml",
}

// Runs reports whether a file or folder with that name, in whatever folder, makes other
// programs run something: settings of editors and of other assistants, hooks.
func Runs(name string) bool { return runs[strings.ToLower(name)] }

// RunsAtTop returns the paths in a workspace that make other programs run something only
// there.
func RunsAtTop() []string { return runsAtTop }

// RunNames returns all paths at the top of a workspace that make other programs run
// something.
func RunNames() []string { return slices.Concat(slices.Sorted(maps.Keys(runs)), runsAtTop) }

// RunsIn returns the part of a path in a workspace that makes other programs run
// something, or "".
func RunsIn(name string) string {
	name = path.Clean(filepath.ToSlash(name))
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if Runs(strings.Map(Visible, part)) {
			return strings.Join(parts[:i+1], "/")
		}
	}
	folded := strings.ToLower(strings.Map(Visible, name))
	for _, top := range runsAtTop {
		if folded == top || strings.HasPrefix(folded, top+"/") {
			return top
		}
	}
	return ""
}

// later are folders with files for services that build what was pushed to them.
var later = map[string]bool{".circleci": true, ".forgejo": true, ".gitea": true}

// Script reports whether a file with that path is a script of a project: what a person runs
// later with the program that reads it, such as make or npm. That includes debuggers and
// Emacs, which ask before they run what a folder names, unless a person has told them not to.
func Script(name string) bool {
	parts := strings.Split(strings.ToLower(filepath.ToSlash(name)), "/")
	// .circleci/config.yml, .gitea/workflows/x.yml
	if n := len(parts) - 1; slices.ContainsFunc(parts[max(n-2, 0):n], func(dir string) bool { return later[dir] }) {
		return true
	}
	name = parts[len(parts)-1]
	if n := len(parts); n > 2 && parts[n-2] == "bin" && (parts[n-3] == ".venv" || parts[n-3] == "venv") {
		// editors start the interpreter that they find there
		return name == "activate" || name == "python" || name == "python3"
	}
	if len(parts) > 1 {
		switch parts[len(parts)-2] {
		case ".cargo":
			return name == "config.toml" || name == "config"
		case ".mvn":
			return name == "jvm.config" || name == "maven.config" || name == "extensions.xml"
		}
	}
	switch name {
	case "makefile", "gnumakefile", "justfile", ".justfile", "rakefile", "gemfile", "gulpfile.js", "gruntfile.js",
		"package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs",
		"pyproject.toml", "setup.py", "setup.cfg", "conftest.py", "noxfile.py", "tox.ini", "tasks.py", "build.rs",
		"build.gradle", "build.gradle.kts", "settings.gradle", "gradlew", "pom.xml", "mvnw",
		"build.sbt", "mix.exs", "cmakelists.txt", "meson.build", "configure", "taskfile.yml", "taskfile.yaml", "dockerfile",
		"compose.yml", "compose.yaml", "docker-compose.yml", "docker-compose.yaml",
		"vagrantfile", "jenkinsfile", "procfile", "flake.nix", "shell.nix", "default.nix", "magefile.go", "artisan",
		"composer.json", "deno.json", "build.zig", ".tool-versions", "mise.toml", ".mise.toml",
		".vimrc", "_vimrc", ".gvimrc", ".rprofile", ".pdbrc", ".irbrc", ".pryrc", ".ghci", ".ocamlinit", ".erlang",
		".iex.exs", ".octaverc", ".latexmkrc", "latexmkrc", ".rspec", ".pylintrc",
		"pylintrc", ".flake8", "bunfig.toml", ".eslintrc.js", ".eslintrc.cjs", ".prettierrc.js", ".prettierrc.cjs",
		"gradle.properties", "gradle-wrapper.properties", "guardfile",
		"brewfile", "podfile", "fastfile", "tiltfile", "ansible.cfg", "snakefile", "sconstruct", "wscript",
		".bazelrc", ".gdbinit", ".lldbinit", ".dir-locals.el", ".dir-locals-2.el":
		return true
	}
	return strings.HasPrefix(name, ".lintstagedrc") || strings.HasPrefix(name, "lint-staged.config.") ||
		strings.HasSuffix(name, ".code-workspace") || strings.HasSuffix(name, ".gemspec") || configured(name) ||
		strings.HasSuffix(name, ".mk") || strings.HasSuffix(name, ".csproj") || strings.HasSuffix(name, ".sh")
}

// configured reports whether a file is a program that configures a tool, such as
// eslint.config.js and vite.config.ts, which tools and editors run.
func configured(name string) bool {
	for _, end := range [...]string{".config.js", ".config.cjs", ".config.mjs", ".config.ts",
		".config.cts", ".config.mts"} {
		if strings.HasSuffix(name, end) && name != end {
			return true
		}
	}
	return false
}

// maxLevels limits the folders above a file that RepositoryOf looks at.
const maxLevels = 256

// RepositoryOf returns the folder on the way to a file that Git takes for a repository
// without a working tree, also if only this file makes it one, or "". Programs run what its
// hooks and its configuration name.
func RepositoryOf(root *os.Root, name string) string {
	parts := strings.Split(path.Clean(filepath.ToSlash(name)), "/")
	for i, next := range parts[:min(len(parts), maxLevels)] {
		dir := path.Join(".", path.Join(parts[:i]...))
		if _, err := root.Lstat(dir); err != nil {
			break // what is below it does not exist
		}
		next = strings.Map(Visible, next)
		if Repository(func(n string) bool {
			_, err := root.Lstat(path.Join(dir, n))
			return err == nil || strings.EqualFold(n, next)
		}) {
			return dir
		}
	}
	return ""
}

// repositoryParts are the names that make a folder a repository; see [Repository].
var repositoryParts = []string{"HEAD", "commondir", "objects", "refs"}

// RepositoryNames returns the names that make a folder a repository; see [Repository].
func RepositoryNames() []string { return repositoryParts }

// RepositoryParts returns the folders on the way to a file that the file may make a
// repository of Git, together with others.
func RepositoryParts(name string) []string {
	var out []string
	parts := strings.Split(path.Clean(filepath.ToSlash(name)), "/")
	for i, part := range parts[:min(len(parts), maxLevels)] {
		part = strings.Map(Visible, part)
		if slices.ContainsFunc(repositoryParts, func(n string) bool { return strings.EqualFold(n, part) }) {
			out = append(out, path.Join(".", path.Join(parts[:i]...)))
		}
	}
	return out
}

// Repository reports whether Git takes a folder for a repository, judging by the names
// that exist in it.
func Repository(exists func(name string) bool) bool {
	return exists("HEAD") && (exists("commondir") || exists("objects") && exists("refs"))
}
