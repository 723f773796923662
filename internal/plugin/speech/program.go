package speech

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/kit/folder"
)

// Programs runs programs that speak.
type Programs struct{ sandbox.Programs }

// known is a program that speaks without configuration.
type known struct {
	id   string
	conf speech.Provider
}

// local returns those that are installed.
func (p Programs) local() (out []known) {
	for _, k := range [...]known{
		{"say", speech.Provider{Command: "say", Args: []string{"--file-format=WAVE", "--data-format=LEI16@22050", "-o",
			"{{OutputPath}}", "--", "{{Text}}"}, Output: "wav"}},
		{"espeak-ng", speech.Provider{Command: "espeak-ng", Args: []string{"-w", "{{OutputPath}}", "--", "{{Text}}"},
			Output: "wav"}},
	} {
		if p.Find(k.conf.Command) != "" {
			out = append(out, k)
		}
	}
	return out
}

// speak runs a program. The recording is the file that it leaves at {{OutputPath}}, or else
// what it prints.
func (p Programs) speak(ctx context.Context, c speech.Provider, r speech.Request) (speech.Audio, error) {
	format := cmp.Or(c.Output, c.Format, "mp3")
	var a speech.Audio
	err := p.In(func(dir string) error {
		base := filepath.Join(dir, "speech")
		path := base + speech.Extension(formats[format])
		fill := strings.NewReplacer("{{Text}}", r.Text, "{{OutputPath}}", path, "{{OutputDir}}", dir, "{{OutputBase}}", base,
			"{{Voice}}", cmp.Or(r.Voice, c.VoiceOf()))
		args := []string{r.Text}
		if len(c.Args) > 0 {
			args = nil
		}
		for _, arg := range c.Args {
			args = append(args, fill.Replace(arg))
		}
		printed, err := p.Run(ctx, dir, c.Command, args, c.Env, speech.MaxAudio)
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
	ffmpeg := p.Find("ffmpeg")
	if a.Type == "audio/ogg" || ffmpeg == "" {
		return a
	}
	out := a
	err := p.In(func(dir string) error {
		from, to := filepath.Join(dir, "in"+speech.Extension(a.Type)), filepath.Join(dir, "out.ogg")
		if err := os.WriteFile(from, a.Data, 0o600); err != nil {
			return err
		}
		_, err := p.Run(ctx, dir, ffmpeg, []string{"-v", "error", "-nostdin", "-i", from, "-c:a", "libopus", "-b:a", "32k",
			"-f", "ogg", to}, nil, speech.MaxAudio)
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

// recording reads a file that a program left.
func recording(path string) ([]byte, error) {
	data, err := folder.ReadLeft(path, speech.MaxAudio+1)
	if err == nil && len(data) > speech.MaxAudio {
		err = errors.New("the recording is too large")
	}
	return data, err
}
