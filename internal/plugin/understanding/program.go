package understanding

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/sandbox"
)

const maxOutput = 1 << 20 // bytes that a program prints

// Programs runs programs that read attachments.
type Programs struct{ sandbox.Programs }

// Reader returns a reader that runs a program. name is its absolute path, or a name
// that is looked up in PATH. These parts of the arguments are replaced:
// {{AttachmentPath}} (also {{MediaPath}}) by the file, {{OutputDir}} by a folder and
// {{OutputBase}} by a name in it without an ending, {{Prompt}}, {{Language}} and
// {{MaxChars}}. The text is what the program prints, or else the text file that it left
// in the folder.
func (p Programs) Reader(name string, args []string) media.Reader {
	return media.ReaderFunc(func(ctx context.Context, in media.Input) (media.Reading, error) {
		text, err := p.run(ctx, name, args, in)
		return media.Reading{Text: text}, err
	})
}

func (p Programs) run(ctx context.Context, name string, args []string, in media.Input) (text string, err error) {
	err = p.In(func(dir string) error {
		file, out := filepath.Join(dir, "attachment"+extension(in.Type)), filepath.Join(dir, "out")
		if err := errors.Join(os.WriteFile(file, in.Data, 0o600), os.Mkdir(out, 0o700)); err != nil {
			return err
		}
		limit := ""
		if in.MaxChars > 0 {
			limit = strconv.Itoa(in.MaxChars)
		}
		fill := strings.NewReplacer(
			"{{AttachmentPath}}", file, "{{MediaPath}}", file, "{{OutputDir}}", out, "{{OutputBase}}",
			filepath.Join(out, "text"),
			"{{Prompt}}", in.Prompt, "{{Language}}", in.Language, "{{MaxChars}}", limit, "{{Transcript}}", "",
		)
		var filled []string
		for _, a := range args {
			filled = append(filled, fill.Replace(a))
		}
		printed, err := p.Run(ctx, dir, name, filled, nil, maxOutput)
		if text = strings.TrimSpace(string(printed)); err != nil || text != "" {
			return err
		}
		text, err = left(out)
		return err
	})
	return text, err
}

// left returns the text file in a folder, or "".
func left(dir string) (string, error) {
	list, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(list) == 0 {
		return "", err
	}
	info, err := os.Lstat(list[0])
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxOutput {
		return "", errors.Join(err, errors.New("the program left no text"))
	}
	b, err := os.ReadFile(list[0])
	return string(b), err
}

// Local returns the known programs of this machine that transcribe recordings.
func (p Programs) Local(getenv func(string) string) (out []Way) {
	add := func(name string, args ...string) {
		if program := p.Find(name); program != "" {
			out = append(out, Way{Name: name, Reader: p.Reader(program, args)})
		}
	}
	if model := getenv("WHISPER_CPP_MODEL"); model != "" {
		add("whisper-cli", "-m", model, "-otxt", "-of", "{{OutputBase}}", "-np", "-nt", "{{AttachmentPath}}")
	}
	if dir := getenv("SHERPA_ONNX_MODEL_DIR"); dir != "" {
		at := func(flag, name string) string { return "--" + flag + "=" + filepath.Join(dir, name) }
		add("sherpa-onnx-offline", at("tokens", "tokens.txt"), at("encoder", "encoder.onnx"), at("decoder", "decoder.onnx"),
			at("joiner", "joiner.onnx"), "{{AttachmentPath}}")
	}
	add("whisper", "--model", "turbo", "--output_format", "txt", "--output_dir", "{{OutputDir}}", "--verbose",
		"False", "{{AttachmentPath}}")
	return out
}
