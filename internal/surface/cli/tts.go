package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) tts() *cobra.Command {
	return group("tts", "Say answers and texts aloud", c.ttsStatus(),
		c.ttsSwitch("on", "Say all answers in chat apps aloud", wire.MethodTTSEnable),
		c.ttsSwitch("off", "Say no answers aloud", wire.MethodTTSDisable), c.ttsProvider(), c.ttsSay())
}

func (c *commands) ttsStatus() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "status", Short: "Show which voices there are, and when they are used",
		Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
			return query(cmd.Context(), c, wire.MethodTTSStatus, wire.None{}, func(s wire.TTSStatus) {
				rows := [][]string{{"PROVIDER", "USABLE", "USED"}}
				for _, p := range s.States {
					row := []string{ansi.Line(p.ID), "no key", ""}
					if p.Configured {
						row[1] = "yes"
					}
					if p.ID == s.Provider {
						row[2] = "first"
					}
					rows = append(rows, row)
				}
				c.printTable(rows)
				fmt.Fprintf(c.stdout, "answers in chat apps that are said aloud: %s (tts.auto is %s)\n", map[string]string{
					string(speech.Off): "none", string(speech.Always): "all", string(speech.Inbound): "those to voice notes",
					string(speech.Tagged): "those that the model marks",
				}[s.Auto], ansi.Line(s.Auto))
				if s.Provider == "" {
					fmt.Fprintln(c.stdout, "no voice is configured: chela models auth openai, or install espeak-ng")
				}
			})
		}})
}

func (c *commands) ttsSwitch(name, short, method string) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		var out wire.TTSEnabled
		if err := c.call(cmd.Context(), method, wire.None{}, &out); err != nil {
			return err
		}
		if out.Enabled {
			fmt.Fprintln(c.stdout, "answers in chat apps are also said aloud")
		} else {
			fmt.Fprintln(c.stdout, "answers are not said aloud")
		}
		return nil
	}}
}

// copyMade copies a file that the gateway made.
func copyMade(from, to string) error {
	data, err := os.ReadFile(from)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the file is %s on the machine of the gateway", from)
	}
	if err != nil {
		return err
	}
	return atomicfile.Write(to, data, 0o600)
}

func (c *commands) ttsProvider() *cobra.Command {
	return &cobra.Command{Use: "provider ID", Short: "Choose the provider that is asked first", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.call(cmd.Context(), wire.MethodTTSSetProvider, wire.TTSSetProvider{Provider: args[0]}, nil); err != nil {
				return err
			}
			fmt.Fprintf(c.stdout, "%s speaks\n", args[0])
			return nil
		}}
}

func (c *commands) ttsSay() *cobra.Command {
	var in wire.TTSConvert
	var output string
	cmd := &cobra.Command{
		Use: "say TEXT", Short: "Write a recording of a text to a file", Args: exactly(1),
		Example: "  chela tts say \"Good morning\" --output morning.mp3",
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" {
				return usage(errors.New("--output is missing: name a file"))
			}
			in.Text = args[0]
			if strings.HasSuffix(output, ".ogg") || strings.HasSuffix(output, ".opus") {
				in.Channel = "file" // as a voice note
			}
			var out wire.TTSConverted
			if err := c.call(cmd.Context(), wire.MethodTTSConvert, in, &out); err != nil {
				return err
			}
			if err := copyMade(out.Path, output); err != nil {
				return err
			}
			fmt.Fprintf(c.stdout, "%s (%s, %s)\n", output, out.Provider, out.Format)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&output, "output", "o", "", "write it to `FILE`; .ogg asks for a voice note")
	f.StringVar(&in.Provider, "provider", "", "ask only the provider `ID`")
	f.StringVar(&in.Voice, "voice", "", "speak with the voice `NAME`")
	return cmd
}
