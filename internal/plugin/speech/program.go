package speech

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/speech"
)

// Programs runs programs that speak. They run with the person's rights, like programs of
// hooks: the configuration names them.
type Programs struct {
	Broker  sandbox.Broker
	Environ []string // variables of this process
	Dir     string   // for the files of programs; it is made if necessary
}

// known is a program that speaks without configuration.
type known struct {
	id   string
	conf speech.Provider
}

// local returns those that are installed.
func (p Programs) local() (out []known) {
	for _, k := range [...]known{
		{"say", speech.Provider{Command: "say", Args: []string{"--file-format=WAVE", "--data-format=LEI16@22050", "-o", "{{OutputPath}}", "--", "{{Text}}"}, Output: "wav"}},
		{"espeak-ng", speech.Provider{Command: "espeak-ng", Args: []string{"-w", "{{OutputPath}}", "--", "{{Text}}"}, Output: "wav"}},
	} {
		if p.find(k.conf.Command) != "" {
			out = append(out, k)
		}
	}
	return out
}

func (p Programs) find(name string) string { return sandbox.Look(p.Environ)(name) }

// speak runs a program. The recording is the file that it leaves at {{OutputPath}}, or else
// what it prints.
func (p Programs) speak(ctx context.Context, c speech.Provider, r speech.Request) (speech.Audio, error) {
	format := cmp.Or(c.Output, c.Format, "mp3")
	var a speech.Audio
	err := p.in(func(dir string) error {
		base := filepath.Join(dir, "speech")
		path := base + speech.Extension(formats[format])
		fill := strings.NewReplacer("{{Text}}", r.Text, "{{OutputPath}}", path, "{{OutputDir}}", dir, "{{OutputBase}}", base)
		argv := []string{c.Command}
		for _, arg := range c.Args {
			argv = append(argv, fill.Replace(arg))
		}
		if len(c.Args) == 0 {
			argv = append(argv, r.Text)
		}
		printed, err := p.run(ctx, dir, argv, c.Env)
		if err != nil {
			return err
		}
		a.Data, err = recording(path)
		if errors.Is(err, os.ErrNotExist) && len(printed) > 0 {
			a.Data, err = printed, nil
		}
		return err
	})
	a.Type = typeOf(a.Data, formats[format])
	return a, err
}

// note returns a recording in the format of voice notes, if ffmpeg is there; else as it is.
func (p Programs) note(ctx context.Context, a speech.Audio) speech.Audio {
	ffmpeg := p.find("ffmpeg")
	if a.Type == "audio/ogg" || ffmpeg == "" {
		return a
	}
	out := a
	err := p.in(func(dir string) error {
		from, to := filepath.Join(dir, "in"+speech.Extension(a.Type)), filepath.Join(dir, "out.ogg")
		if err := os.WriteFile(from, a.Data, 0o600); err != nil {
			return err
		}
		_, err := p.run(ctx, dir, []string{ffmpeg, "-v", "error", "-nostdin", "-i", from, "-c:a", "libopus", "-b:a", "32k", "-f", "ogg", to}, nil)
		if err == nil {
			out.Data, err = recording(to)
		}
		return err
	})
	if err != nil {
		return a
	}
	out.Type = "audio/ogg"
	return out
}

// in calls f with a new folder, which is removed afterwards.
func (p Programs) in(f func(dir string) error) error {
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(p.Dir, "say-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return f(dir)
}

// run runs a program and returns what it printed.
func (p Programs) run(ctx context.Context, dir string, argv []string, env map[string]string) ([]byte, error) {
	name := argv[0]
	if !filepath.IsAbs(name) {
		if argv[0] = p.find(name); argv[0] == "" {
			return nil, fmt.Errorf("the program %s was not found", name)
		}
	}
	res, err := sandbox.Output(ctx, p.Broker, sandbox.Plan{Path: argv[0], Argv: argv, Dir: dir, Env: sandbox.Environment(p.Environ, env)}, speech.MaxAudio)
	switch exit := res.Exit; {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
	case exit.Signal != "":
		return nil, fmt.Errorf("%s was ended by %s", filepath.Base(name), exit.Signal)
	case exit.Code != 0:
		return nil, fmt.Errorf("%s: exit status %d: %s", filepath.Base(name), exit.Code, strings.TrimSpace(res.Stderr))
	}
	return []byte(res.Output), nil
}

// recording reads a file that a program left.
func recording(path string) ([]byte, error) {
	f, err := os.OpenInRoot(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("the program left no file"))
	}
	data, err := io.ReadAll(io.LimitReader(f, speech.MaxAudio+1))
	if err == nil && len(data) > speech.MaxAudio {
		err = errors.New("the recording is too large")
	}
	return data, err
}
