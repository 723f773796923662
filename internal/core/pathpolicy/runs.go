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
// folder that they are in, or works there.
var runs = map[string]bool{
	".vscode": true, ".idea": true, ".mcp.json": true, ".claude": true, ".cursor": true, ".devcontainer": true, ".devcontainer.json": true,
	".husky": true, ".githooks": true, ".envrc": true,
}

// runsAtTop are those that do so at the top of a repository.
var runsAtTop = []string{".gitmodules", ".github/workflows", ".gitlab-ci.yml", ".pre-commit-config.yaml"}

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

// Script reports whether a file with that name is a script of a project: what a person runs
// later with the program that reads it, such as make or npm.
func Script(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "makefile", "gnumakefile", "justfile", ".justfile", "rakefile", "gemfile", "gulpfile.js", "gruntfile.js", "package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs",
		"pyproject.toml", "setup.py", "setup.cfg", "conftest.py", "noxfile.py", "tox.ini", "tasks.py", "build.rs", "build.gradle", "build.gradle.kts", "settings.gradle", "gradlew", "pom.xml", "mvnw",
		"build.sbt", "mix.exs", "cmakelists.txt", "meson.build", "configure", "taskfile.yml", "taskfile.yaml", "dockerfile", "compose.yml", "compose.yaml", "docker-compose.yml", "docker-compose.yaml",
		"vagrantfile", "jenkinsfile", "procfile", "flake.nix", "shell.nix", "default.nix", "magefile.go", "artisan", "composer.json", "deno.json", "build.zig", ".tool-versions", "mise.toml", ".mise.toml":
		return true
	}
	return strings.HasSuffix(name, ".mk") || strings.HasSuffix(name, ".csproj") || strings.HasSuffix(name, ".sh")
}

// maxLevels limits the folders above a file that RepositoryOf looks at.
const maxLevels = 256

// RepositoryOf returns the folder in a path that Git takes for a repository without a
// working tree, or "". Programs run what its hooks and its configuration name.
func RepositoryOf(root *os.Root, name string) string {
	parts := strings.Split(path.Clean(filepath.ToSlash(name)), "/")
	for i := 1; i < min(len(parts), maxLevels); i++ {
		dir := strings.Join(parts[:i], "/")
		if _, err := root.Lstat(dir); err != nil {
			break // what is below it does not exist
		}
		if Repository(func(n string) bool {
			_, err := root.Lstat(path.Join(dir, n))
			return err == nil
		}) {
			return dir
		}
	}
	return ""
}

// Repository reports whether Git takes a folder for a repository, judging by the names
// that exist in it.
func Repository(exists func(name string) bool) bool {
	return exists("HEAD") && (exists("commondir") || exists("objects") && exists("refs"))
}
