package pathpolicy

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Mask stands for a value of a file that holds secrets, see [Secret].
const Mask = "***"

var (
	masked = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^[^#\n]*=[ \t]*["']?` + regexp.QuoteMeta(Mask) + `["']?[ \t\r]*$|^` +
			regexp.QuoteMeta(Mask) + `[ \t\r]*$`)
	})
	holder          = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\.env(rc|\.[\w-]+)?($|[^\w.])`) })
	maskedInCommand = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\w=["']?` + regexp.QuoteMeta(Mask))
	})
)

// CheckWritten returns an error if the text that is to be written to a file contains
// what stands for something that was hidden from its author, more often than the text
// that it replaces. It would destroy what was hidden.
func CheckWritten(name, before, after string) error {
	if holder := Secret(name) || strings.EqualFold(filepath.Ext(name), ".env"); holder &&
		count(masked(), after) > count(masked(), before) {
		return hidden(Mask, "values of "+Show(filepath.Base(name)))
	}
	if strings.Count(after, secret.Redacted) > strings.Count(before, secret.Redacted) {
		return hidden(secret.Redacted, "secrets")
	}
	return nil
}

// CheckCommand is CheckWritten for a command that changes something.
func CheckCommand(command string) error {
	command = strings.NewReplacer(".env.example", "", ".env.sample", "", ".env.template", "", ".env.dist", "",
		".env.md", "").Replace(command)
	switch {
	case strings.Contains(command, secret.Redacted):
		return hidden(secret.Redacted, "secrets")
	case holder().MatchString(command) && (masked().MatchString(command) || maskedInCommand().MatchString(command)):
		return hidden(Mask, "values of .env files")
	}
	return nil
}

func count(re *regexp.Regexp, text string) int { return len(re.FindAllStringIndex(text, -1)) }

func hidden(placeholder, what string) error {
	return chela.Errorf(chela.CodeInvalid, "nothing was written: %s stands for %s that you were not shown, and would replace them. Change only the parts that you see, with edit; if the person wants another value there, ask for it", placeholder, what)
}
