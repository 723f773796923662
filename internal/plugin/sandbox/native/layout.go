//go:build linux

package native

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
)

// toolchains are the folders below home that hold programs and what they
// download. What a program writes there goes to a layer.
var toolchains = []string{
	"go", "sdk", ".cargo", ".rustup", ".nvm", ".npm", ".pyenv", ".rbenv", ".rvm", ".gem", ".bundle", ".sdkman", ".asdf",
	".volta", ".fnm", ".bun", ".deno",
	".yarn", ".pnpm-store", ".m2", ".gradle", ".ivy2", ".sbt", ".opam", ".ghcup", ".cabal", ".stack", ".hex", ".mix",
	".composer", ".nuget", ".dotnet", ".pub-cache", ".local/bin",
	".cache/go-build", ".cache/golangci-lint", ".cache/pip", ".cache/uv", ".cache/pypoetry", ".cache/pre-commit",
	".cache/node", ".cache/yarn", ".cache/pnpm", ".cache/deno",
	".cache/typescript", ".cache/ms-playwright", ".cache/puppeteer", ".cache/Cypress", ".cache/bazel", ".cache/ccache",
	".cache/sccache", ".cache/zig",
	".local/lib", ".local/pipx", ".local/share/pnpm", ".local/share/uv", ".local/share/mise", ".local/share/fnm",
	".local/share/virtualenvs", ".linuxbrew",
}

// caches are those of them that a cage has even if home does not: without them a
// build would begin anew with each command.
var caches = []string{"go", ".npm", ".cargo", ".m2", ".gradle", ".cache/go-build", ".cache/golangci-lint",
	".cache/pip", ".cache/uv"}

// toolchainSecrets are hidden in the toolchains.
var toolchainSecrets = []string{
	".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".m2/settings-security.xml",
	".gradle/gradle.properties", ".gem/credentials", ".composer/auth.json",
	".nuget/NuGet/NuGet.Config", ".local/share/uv/credentials",
}

// secretDepth is how many folders below a toolchain its private files are looked for.
const secretDepth = 2

// maxSecretFolders limits the entries of a folder in which private files are looked for
// further down: one with more is a cache of packages.
const maxSecretFolders = 64

// list is a list of mounts.
type list []mount

func (l *list) add(m ...mount) { *l = append(*l, m...) }

// only adds, in place of each folder that is never shown although one with it
// is, what is there instead. The workspace in it is added later.
func (l *list) only(home, workspace string, never []string, instead mount) {
	for _, dir := range never {
		if pathpolicy.Inside(workspace, dir) && (l.holds(dir) || inToolchain(home, dir)) {
			instead.To = dir
			l.add(instead)
		}
	}
}

// rights adds what the rights of a program name.
func (l *list) rights(r sandbox.Rights, found *privateFiles) {
	if r.Workspace != "" {
		l.add(mount{Kind: bind, From: r.Workspace, To: r.Workspace, Write: r.Write})
	}
	l.add(found.coversOf(r)...)
	for _, p := range r.Read { // above what hides it, if a person allowed it
		if p == r.Workspace {
			continue // its private files are not hidden
		}
		l.add(mount{Kind: bind, From: p, To: p})
	}
	for _, p := range r.Change {
		l.add(mount{Kind: bind, From: p, To: p, Write: true})
	}
	if r.Own != "" {
		l.add(mount{Kind: bind, From: r.Own, To: r.Own, Write: true})
	}
}

// program adds a folder of programs that a person installed outside of the
// usual places, with the folders beside it.
func (l *list) program(home, dir string, found *privateFiles) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || !filepath.IsAbs(dir) || real != filepath.Clean(dir) || l.holds(real) || inToolchain(home, real) {
		return
	}
	if parent := filepath.Dir(real); filepath.Base(real) == "bin" && parent != home && parent != "/" &&
		!found.private(parent) {
		real = parent
	}
	if !found.private(real) && real != home {
		l.add(mount{Kind: bind, From: real, To: real})
	}
}

// holds reports whether a path is in the cage.
func (l *list) holds(path string) bool {
	return slices.ContainsFunc(*l, func(m mount) bool {
		return m.Kind == bind && pathpolicy.Inside(path, m.To)
	})
}

// inToolchain reports whether a path is in a toolchain below home.
func inToolchain(home, path string) bool {
	return slices.ContainsFunc(toolchains,
		func(name string) bool { return pathpolicy.Inside(path, filepath.Join(home, name)) })
}

// searchPath returns the folders of PATH in an environment.
func searchPath(env []string) []string {
	for _, v := range env {
		if list, ok := strings.CutPrefix(v, "PATH="); ok {
			return filepath.SplitList(list)
		}
	}
	return nil
}

// withVars returns an environment with variables set.
func withVars(env, vars []string) []string {
	kept := slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(vars, func(w string) bool { return strings.HasPrefix(w, name+"=") })
	})
	return append(kept, vars...)
}
