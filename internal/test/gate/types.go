package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// targets are the systems that Chela is built for.
var targets = [...]string{
	"linux/amd64", "linux/arm64", "linux/arm", "linux/riscv64", "linux/386", "darwin/amd64",
	"darwin/arm64", "windows/amd64",
}

// source is a package as go list prints it.
type source struct {
	ImportPath string
	Name       string
	Dir        string
	GoFiles    []string
	Imports    []string
	ImportMap  map[string]string // from imports in the source to import paths
	ForTest    string
	Module     *struct {
		Main      bool
		GoVersion string
	}
}

// ours reports whether the package is of this module.
func (s *source) ours() bool { return s.Module != nil && s.Module.Main }

// checkTypes checks the module, with its tests, for all targets. Everything is read from
// source: it takes seconds for a target, while a build takes minutes, most of them for
// SQLite.
func checkTypes(ctx context.Context, w io.Writer) error {
	var errs []error
	for _, target := range targets {
		start := time.Now()
		packages, err := list(ctx, target)
		if err == nil {
			err = check(target, packages)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", target, err))
			fmt.Fprintf(w, "%s failed\n", target)
			continue
		}
		fmt.Fprintf(w, "%s ok\t%.1fs\t%d packages\n", target, time.Since(start).Seconds(), len(packages))
	}
	return errors.Join(errs...)
}

// list returns the packages of the module for a target, those of their tests, and all
// that they import, each after what it imports.
func list(ctx context.Context, target string) ([]*source, error) {
	goos, goarch, _ := strings.Cut(target, "/")
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-test",
		"-json=ImportPath,Name,Dir,GoFiles,Imports,ImportMap,ForTest,Module", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	var packages []*source
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		s := new(source)
		if err := d.Decode(s); err == io.EOF {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if s.Name != "main" || !strings.HasSuffix(s.ImportPath, ".test") { // else the generated main package of a test
			packages = append(packages, s)
		}
	}
}

// checked is a package whose types are known when done is closed.
type checked struct {
	done chan struct{}
	pkg  *types.Package
}

// check type-checks packages, of which each comes after what it imports. Functions of
// other modules are not looked into. The error has the findings in the module.
func check(target string, packages []*source) error {
	_, goarch, _ := strings.Cut(target, "/")
	fset := token.NewFileSet()
	all := map[string]*checked{}
	for _, s := range packages {
		all[s.ImportPath] = &checked{done: make(chan struct{})}
	}
	findings := make([][]error, len(packages))
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, s := range packages {
		places <- struct{}{} // whoever has one waits only for packages before its own
		wg.Go(func() {
			c := all[s.ImportPath]
			defer func() { close(c.done); <-places }()
			c.pkg, findings[i] = checkOne(fset, goarch, s, all)
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	var errs []error
	for _, f := range findings {
		for _, err := range f {
			if !seen[err.Error()] { // a file is part of a package and of its tests
				seen[err.Error()] = true
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// checkOne type-checks one package, and returns the findings if it is one of the module.
func checkOne(fset *token.FileSet, goarch string, s *source, all map[string]*checked) (*types.Package, []error) {
	if s.ImportPath == "unsafe" {
		return types.Unsafe, nil
	}
	var files []*ast.File
	var errs []error
	for _, name := range s.GoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(s.Dir, name)
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			errs = append(errs, err)
		}
		if f != nil {
			files = append(files, f)
		}
	}
	conf := types.Config{
		Importer: importer(func(path string) (*types.Package, error) {
			c := all[cmp.Or(s.ImportMap[path], path)]
			if c == nil {
				return nil, fmt.Errorf("go list did not name %s, which %s imports", path, s.ImportPath)
			}
			<-c.done
			return c.pkg, nil
		}),
		IgnoreFuncBodies: !s.ours(),
		FakeImportC:      true,
		Sizes:            types.SizesFor("gc", goarch),
		Error:            func(err error) { errs = append(errs, err) },
	}
	if s.Module != nil && s.Module.GoVersion != "" {
		conf.GoVersion = "go" + s.Module.GoVersion
	}
	path, _, _ := strings.Cut(s.ImportPath, " ") // "p [p.test]" is p with the files of its tests
	pkg, _ := conf.Check(path, fset, files, nil) // the errors are in errs
	if !s.ours() {
		errs = nil
	}
	return pkg, errs
}

// importer is a types.Importer.
type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }
