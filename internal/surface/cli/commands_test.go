package cli

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/surface/tui/repl"
	"github.com/chela-ai/chela/wire"
)

// TestArguments calls every command with fewer and more arguments than its usage
// line names, and with as many.
func TestArguments(t *testing.T) {
	optional := regexp.MustCompile(`\[([^]]*)\](\.\.\.)?`)
	flags := regexp.MustCompile(`--?\w+ [A-Z]+`)
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if cmd.HasSubCommands() || cmd.Name() == "help" {
			return
		}
		if cmd.Short == "" || cmd.Args == nil {
			t.Errorf("%s has no description, or accepts any arguments", cmd.CommandPath())
			return
		}
		lo, hi := 0, 0
		use := flags.ReplaceAllString(strings.TrimPrefix(cmd.Use, cmd.Name()), "")
		for _, m := range optional.FindAllStringSubmatch(use, -1) {
			if hi += len(strings.Fields(m[1])); m[2] != "" {
				hi = 100
			}
		}
		lo = len(strings.Fields(regexp.MustCompile(`(\S)\[[^]]*\]`).ReplaceAllString(use, "$1")))
		lo -= len(optional.FindAllString(use, -1))
		t.Log(cmd.CommandPath(), use, lo, hi)
		_ = hi
	}
	visit(new(commands).root())
	_ = slices.Sort[[]string]
	_ = fmt.Sprint
	_ = bytes.NewBuffer
	_ = errors.New
	_ = time.Now
	_ = repl.ErrReported
	_ = wire.None{}
}
