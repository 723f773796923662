package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) talking() *cobra.Command {
	return group("talk", "Choose how apps talk with you", c.talkStatus(), c.talkSay(), c.wakeWords())
}

// talkState is what `chela talk status` shows.
type talkState struct {
	Talk  wire.Talk `json:"talk"`
	Words []string  `json:"wakeWords"`
}

func (c *commands) talkStatus() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "status", Short: "Show how apps speak and listen", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withLink(cmd.Context(), func(l *link) error {
				var conf wire.TalkConfig
				var words wire.WakeWords
				if err := l.Call(cmd.Context(), wire.MethodTalkConfig, wire.None{}, &conf); err != nil {
					return err
				}
				if err := l.Call(cmd.Context(), wire.MethodWakeGet, wire.None{}, &words); err != nil {
					return err
				}
				s := talkState{conf.Config.Talk, words.Triggers}
				return c.print(s, func() { c.printTalk(s) })
			})
		}})
}

func (c *commands) printTalk(s talkState) {
	t := s.Talk
	if t.Resolved == nil {
		fmt.Fprintln(c.stdout, "voice: none is configured (chela tts status); apps say the answers themselves")
	} else {
		fmt.Fprintf(c.stdout, "voice: %s", ansi.Line(t.Resolved.Provider))
		if v := t.Resolved.Config.Voice; v != "" {
			fmt.Fprintf(c.stdout, ", %s", ansi.Line(v))
		}
		fmt.Fprintln(c.stdout)
	}
	if t.Locale != "" {
		fmt.Fprintf(c.stdout, "language: %s\n", ansi.Line(t.Locale))
	}
	if t.Interrupt != nil {
		fmt.Fprintf(c.stdout, "stops speaking when you speak: %v\n", map[bool]string{true: "yes", false: "no"}[*t.Interrupt])
	}
	if t.Silence > 0 {
		fmt.Fprintf(c.stdout, "sends what you said after a silence of %d ms\n", t.Silence)
	}
	fmt.Fprintf(c.stdout, "wake words: %s\n", ansi.Line(strings.Join(s.Words, ", ")))
}

func (c *commands) talkSay() *cobra.Command {
	var in wire.TalkSpeak
	var output string
	var speed float64
	cmd := &cobra.Command{
		Use: "say TEXT", Short: "Write to a file how apps would say a text", Args: exactly(1),
		Example: "  chela talk say \"Good morning\" --output morning.mp3",
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" {
				return usage(errors.New("--output is missing: name a file"))
			}
			in.Text = args[0]
			if cmd.Flags().Changed("speed") {
				in.Speed = &speed
			}
			var out wire.TalkAudio
			if err := c.call(cmd.Context(), wire.MethodTalkSpeak, in, &out); err != nil {
				return err
			}
			if err := atomicfile.Write(output, out.Audio, 0o600); err != nil {
				return err
			}
			fmt.Fprintf(c.stdout, "%s (%s, %s)\n", output, out.Provider, out.Format)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&output, "output", "o", "", "write it to `FILE`")
	f.StringVar(&in.Voice, "voice", "", "speak with the voice `NAME`, which may be one of voiceAliases")
	f.StringVar(&in.Format, "format", "", "mp3, opus or wav, if the provider can")
	f.Float64Var(&speed, "speed", 1, "speak with the speed `N`, 0.5 to 2")
	return cmd
}

func (c *commands) wakeWords() *cobra.Command {
	reset := false
	cmd := &cobra.Command{
		Use: "wake-words [WORD]...", Short: "Show or replace the words that wake apps", Args: between(0, 100),
		Example: "  chela talk wake-words\n  chela talk wake-words jarvis \"hey chela\"\n  chela talk wake-words --reset",
		RunE: func(cmd *cobra.Command, args []string) error {
			if reset && len(args) > 0 {
				return usage(errors.New("--reset takes no words"))
			}
			method, params := wire.MethodWakeGet, any(wire.None{})
			if reset || len(args) > 0 {
				method, params = wire.MethodWakeSet, wire.WakeWords{Triggers: slices.Concat([]string{}, args)}
			}
			var out wire.WakeWords
			if err := c.call(cmd.Context(), method, params, &out); err != nil {
				return err
			}
			fmt.Fprintln(c.stdout, ansi.Line(strings.Join(out.Triggers, ", ")))
			return nil
		},
	}
	cmd.Flags().BoolVar(&reset, "reset", false, "use the words that there are at first")
	return cmd
}
