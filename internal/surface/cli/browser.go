package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// browserFlags are the flags that the commands of browser share.
type browserFlags struct {
	profile string
	tab     string
	timeout int
}

func (c *commands) browser() *cobra.Command {
	b := &browserFlags{}
	cmd := group("browser", "Use the browser that the assistant drives",
		c.browserStatus(b), c.browserStart(b), c.browserStop(b), c.browserTabs(b), c.browserProfiles(b), c.browserReset(b),
		c.browserOpen(b), c.browserNavigate(b), c.browserTab(b, "focus TAB", "Bring a tab to the front", "focus"),
		c.browserTab(b, "close [TAB]", "Close a tab", "close"),
		c.browserSnapshot(b), c.browserScreenshot(b), c.browserPDF(b), c.browserConsole(b),
		c.browserClick(b), c.browserClickCoords(b), c.browserType(b), c.browserPress(b),
		c.browserRef(b, "hover REF", "Move the mouse over an element", "hover"),
		c.browserRef(b, "scrollintoview REF", "Scroll an element into view", "scrollIntoView"),
		c.browserDrag(b), c.browserSelect(b), c.browserFill(b), c.browserWait(b), c.browserResize(b), c.browserEvaluate(b),
		c.browserDialog(b), c.browserUpload(b), c.browserDownload(b), c.browserAwaitDownload(b),
	)
	cmd.Long = "Use the browser that the assistant drives. Elements of a page have refs, which\n`chela browser snapshot` shows. The browser runs in the gateway."
	cmd.PersistentFlags().StringVar(&b.profile, "browser-profile", "", "use the profile `NAME`")
	return cmd
}

// onTab adds the flags of commands that use a tab.
func (b *browserFlags) onTab(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&b.tab, "target-id", "", "use the `TAB`, such as t1 (default: the last used)")
	cmd.Flags().IntVar(&b.timeout, "timeout-ms", 0, "wait at most `N` milliseconds (default 20000)")
	return cmd
}

// args are the arguments of an action.
type args map[string]any

// act returns the arguments of a kind of act.
func act(kind string, more args) args {
	a := args{"action": "act", "kind": kind}
	maps.Copy(a, more)
	return a
}

// browse carries out an action and prints its result with text, or as JSON. An action that
// needs a browser is refused if the browser would end with this process.
func (c *commands) browse(ctx context.Context, b *browserFlags, a args, text func(args)) error {
	if b.profile != "" {
		a["profile"] = b.profile
	}
	if b.tab != "" && a["targetId"] == nil {
		a["targetId"] = b.tab
	}
	if b.timeout > 0 {
		a["timeoutMs"] = b.timeout
	}
	for name, value := range a {
		if value == nil || value == "" || value == false || value == 0 {
			delete(a, name)
		}
	}
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return c.withLink(ctx, func(l *link) error {
		switch action := a["action"]; action {
		case "status", "profiles", "tabs", "stop", "resetprofile":
		default:
			if !l.attached() {
				return c.suggest(errors.New("no gateway is running, and a browser would end with this command"), "gateway run")
			}
		}
		return callOn(ctx, l, wire.MethodBrowserRequest, wire.BrowserRequest{Method: "POST", Path: "/tool", Body: body},
			func(r args) error {
				if r["blockedByDialog"] == true && !c.json {
					fmt.Fprintln(c.stdout,
						"a dialog of the page is open; answer it with: chela browser dialog --accept (or --dismiss)")
					return nil
				}
				return c.print(r, func() { text(r) })
			})
	})
}

// done prints a fixed text.
func (c *commands) done(text string) func(args) {
	return func(args) { fmt.Fprintln(c.stdout, text) }
}

// field returns a text of a result on one line.
func (a args) field(name string) string {
	switch v := a[name].(type) {
	case nil:
		return ""
	case string:
		return ansi.Line(v)
	default:
		return ansi.Line(fmt.Sprint(v))
	}
}

func (c *commands) printBrowser(r args) {
	for _, row := range [...][2]string{{"profile", "profile"}, {"enabled", "enabled"}, {"running", "running"},
		{"headless", "headless"}, {"browser", "chosenBrowser"}, {"program", "detectedExecutablePath"},
		{"data", "userDataDir"}, {"tabs", "tabCount"}, {"problem", "detectError"}} {
		if v := r.field(row[1]); v != "" {
			c.printRow(row[0], v)
		}
	}
}

func (c *commands) browserStatus(b *browserFlags) *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "status", Short: "Show whether the browser runs", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.browse(cmd.Context(), b, args{"action": "status"}, c.printBrowser)
		}})
}

func (c *commands) browserStart(b *browserFlags) *cobra.Command {
	headless := false
	cmd := &cobra.Command{Use: "start", Short: "Start the browser", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.browse(cmd.Context(), b, args{"action": "start", "headless": headless}, c.printBrowser)
		}}
	cmd.Flags().BoolVar(&headless, "headless", false, "without a window")
	return c.withJSON(cmd)
}

func (c *commands) browserStop(b *browserFlags) *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "stop", Short: "Stop the browser", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.browse(cmd.Context(), b, args{"action": "stop"}, c.printBrowser)
		}})
}

func (c *commands) browserTabs(b *browserFlags) *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "tabs", Short: "List the open tabs", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.browse(cmd.Context(), b, args{"action": "tabs"}, func(r args) {
				list, _ := r["tabs"].([]any)
				if len(list) == 0 {
					fmt.Fprintln(c.stdout, "no tab is open")
					return
				}
				rows := [][]string{{"TAB", "LABEL", "TITLE", "URL"}}
				for _, v := range list {
					t := args(v.(map[string]any))
					rows = append(rows, []string{t.field("tabId"), t.field("label"), ansi.Truncate(t.field("title"), 50),
						t.field("url")})
				}
				c.printTable(rows)
			})
		}})
}

func (c *commands) browserProfiles(b *browserFlags) *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "profiles", Short: "List the profiles", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.browse(cmd.Context(), b, args{"action": "profiles"}, func(r args) {
				rows := [][]string{{"PROFILE", "RUNNING", "TABS", "PROBLEM"}}
				list, _ := r["profiles"].([]any)
				for _, v := range list {
					p := args(v.(map[string]any))
					rows = append(rows, []string{p.field("name"), p.field("running"), p.field("tabCount"), p.field("error")})
				}
				c.printTable(rows)
			})
		}})
}

func (c *commands) browserReset(b *browserFlags) *cobra.Command {
	return c.withYes(c.withJSON(&cobra.Command{Use: "reset-profile",
		Short: "Put the data of a profile aside: its logins, its history", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.confirm("stop the browser and put the data of the profile aside", "browser reset-profile --yes"); err !=
				nil {
				return err
			}
			return c.browse(cmd.Context(), b, args{"action": "resetprofile"}, func(r args) {
				if r["moved"] != true {
					fmt.Fprintln(c.stdout, "the profile has no data")
					return
				}
				fmt.Fprintln(c.stdout, "the data is in "+r.field("to")+" now")
			})
		}}))
}

func (c *commands) browserOpen(b *browserFlags) *cobra.Command {
	label := ""
	cmd := &cobra.Command{Use: "open URL", Short: "Open a page in a new tab", Args: exactly(1),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.browse(cmd.Context(), b, args{"action": "open", "url": a[0], "label": label}, c.printTab)
		}}
	cmd.Flags().StringVar(&label, "label", "", "call the tab `NAME`")
	return c.withJSON(cmd)
}

func (c *commands) printTab(r args) {
	fmt.Fprintf(c.stdout, "opened: %s\n", r.field("url"))
	if title := r.field("title"); title != "" {
		fmt.Fprintf(c.stdout, "title: %s\n", title)
	}
	fmt.Fprintf(c.stdout, "tab: %s\n", r.field("tabId"))
}

func (c *commands) browserNavigate(b *browserFlags) *cobra.Command {
	return c.withJSON(b.onTab(&cobra.Command{Use: "navigate URL", Short: "Open a page in a tab that is open",
		Args: exactly(1), RunE: func(cmd *cobra.Command, a []string) error {
			return c.browse(cmd.Context(), b, args{"action": "navigate", "url": a[0]}, c.printTab)
		}}))
}

// browserTab returns a command about a tab.
func (c *commands) browserTab(b *browserFlags, use, short, action string) *cobra.Command {
	least := 1
	if strings.Contains(use, "[") {
		least = 0
	}
	return c.withJSON(&cobra.Command{Use: use, Short: short, Args: between(least, 1),
		RunE: func(cmd *cobra.Command, a []string) error {
			in := args{"action": action}
			if len(a) > 0 {
				in["targetId"] = a[0]
			}
			return c.browse(cmd.Context(), b, in, func(r args) { fmt.Fprintf(c.stdout, "%s: %s\n", action, r.field("tabId")) })
		}})
}

func (c *commands) browserSnapshot(b *browserFlags) *cobra.Command {
	var interactive, compact, efficient, urls bool
	var depth, limit, chars int
	var selector, frame, out, format, mode string
	cmd := &cobra.Command{Use: "snapshot", Short: "Show a page as text, with the refs of its elements", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if efficient {
				mode = "efficient"
			}
			a := args{
				"action":         "snapshot",
				"interactive":    interactive,
				"compact":        compact,
				"urls":           urls,
				"depth":          depth,
				"limit":          limit,
				"maxChars":       chars,
				"selector":       selector,
				"frame":          frame,
				"mode":           mode,
				"snapshotFormat": format,
			}
			var err error
			return errors.Join(c.browse(cmd.Context(), b, a, func(r args) {
				text, _ := r["snapshot"].(string)
				if out == "" {
					fmt.Fprintln(c.stdout, ansi.Clean(text))
					return
				}
				if err = atomicfile.Write(out, []byte(text+"\n"), 0o600); err == nil {
					fmt.Fprintln(c.stdout, out)
				}
			}), err)
		}}
	f := cmd.Flags()
	f.StringVar(&format, "format", "", "aria or ai; both give the same text")
	f.BoolVar(&interactive, "interactive", false, "only elements to use")
	f.BoolVar(&compact, "compact", false, "without elements that only give structure")
	f.BoolVar(&efficient, "efficient", false, "the same as --mode efficient")
	f.StringVar(&mode, "mode", "", "efficient: only elements to use, in compact form")
	f.BoolVar(&urls, "urls", false, "with the addresses of links")
	f.IntVar(&depth, "depth", 0, "down to depth `N`")
	f.IntVar(&limit, "limit", 0, "at most `N` lines")
	f.IntVar(&chars, "max-chars", 0, "at most `N` characters (default 20000)")
	f.StringVar(&selector, "selector", "", "only what the CSS `SELECTOR` matches")
	f.StringVar(&frame, "frame", "", "only the frame of the iframe `REF` or selector")
	f.StringVar(&out, "out", "", "write to the `FILE`")
	return c.withJSON(b.onTab(cmd))
}

// saveAs copies a file that an action made, if a place is given, and prints where it is.
func (c *commands) saveAs(to string, r args) error {
	from, _ := r["path"].(string)
	if to == "" {
		fmt.Fprintln(c.stdout, ansi.Line(from))
		return nil
	}
	if err := copyMade(from, to); err != nil {
		return err
	}
	fmt.Fprintln(c.stdout, to)
	return nil
}

// browseFile carries out an action that makes a file.
func (c *commands) browseFile(ctx context.Context, b *browserFlags, a args, to string) error {
	var err error
	return errors.Join(c.browse(ctx, b, a, func(r args) { err = c.saveAs(to, r) }), err)
}

func (c *commands) browserScreenshot(b *browserFlags) *cobra.Command {
	var full bool
	var ref, element, kind, out string
	cmd := &cobra.Command{Use: "screenshot [TAB]", Short: "Take a picture of a page and print where it is",
		Args: between(0, 1), RunE: func(cmd *cobra.Command, a []string) error {
			in := args{"action": "screenshot", "fullPage": full, "ref": ref, "element": element, "type": kind}
			if len(a) > 0 {
				in["targetId"] = a[0]
			}
			return c.browseFile(cmd.Context(), b, in, out)
		}}
	f := cmd.Flags()
	f.BoolVar(&full, "full-page", false, "of the whole page")
	f.StringVar(&ref, "ref", "", "of the element `REF`")
	f.StringVar(&element, "element", "", "of what the CSS `SELECTOR` matches")
	f.StringVar(&kind, "type", "", "png (default) or jpeg")
	f.StringVar(&out, "out", "", "write to the `FILE`; without it the picture is removed after some time")
	return c.withJSON(b.onTab(cmd))
}

func (c *commands) browserPDF(b *browserFlags) *cobra.Command {
	out := ""
	cmd := &cobra.Command{Use: "pdf", Short: "Save a page as a PDF and print where it is", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.browseFile(cmd.Context(), b, args{"action": "pdf"}, out)
		}}
	cmd.Flags().StringVar(&out, "out", "", "write to the `FILE`; without it the PDF is removed after some time")
	return c.withJSON(b.onTab(cmd))
}

func (c *commands) browserConsole(b *browserFlags) *cobra.Command {
	level, clean := "", false
	cmd := &cobra.Command{Use: "console", Short: "Show the messages of the console of a page", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.browse(cmd.Context(), b, args{"action": "console", "level": level, "clear": clean}, func(r args) {
				list, _ := r["messages"].([]any)
				for _, v := range list {
					m := args(v.(map[string]any))
					fmt.Fprintf(c.stdout, "[%s] %s\n", m.field("type"), m.field("text"))
				}
			})
		}}
	cmd.Flags().StringVar(&level, "level", "", "only messages of the `LEVEL` (error, warning, info) and above")
	cmd.Flags().BoolVar(&clean, "clear", false, "forget the messages afterwards")
	return c.withJSON(b.onTab(cmd))
}

func (c *commands) browserClick(b *browserFlags) *cobra.Command {
	var double bool
	var button string
	var mods []string
	cmd := &cobra.Command{Use: "click REF", Short: "Click an element", Args: exactly(1),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.browse(cmd.Context(), b, act("click", args{"ref": a[0], "doubleClick": double, "button": button,
				"modifiers": list(mods)}), c.done("clicked "+a[0]))
		}}
	f := cmd.Flags()
	f.BoolVar(&double, "double", false, "twice")
	f.StringVar(&button, "button", "", "left (default), right or middle")
	f.StringSliceVar(&mods, "modifiers", nil, "with the keys `LIST`: Control,Shift,Alt,Meta")
	return c.withJSON(b.onTab(cmd))
}

// list returns nil for an empty list, so that it is left out.
func list(s []string) any {
	if len(s) == 0 {
		return nil
	}
	return s
}

func (c *commands) browserClickCoords(b *browserFlags) *cobra.Command {
	var double bool
	var button string
	var delay int
	cmd := &cobra.Command{Use: "click-coords X Y", Short: "Click at a place of the window", Args: exactly(2),
		RunE: func(cmd *cobra.Command, a []string) error {
			x, errX := strconv.ParseFloat(a[0], 64)
			y, errY := strconv.ParseFloat(a[1], 64)
			if errX != nil || errY != nil {
				return usage(errors.New("want numbers for X and Y"))
			}
			in := act("clickCoords", args{"doubleClick": double, "button": button, "delayMs": delay})
			in["x"], in["y"] = x, y
			return c.browse(cmd.Context(), b, in, c.done("clicked"))
		}}
	f := cmd.Flags()
	f.BoolVar(&double, "double", false, "twice")
	f.StringVar(&button, "button", "", "left (default), right or middle")
	f.IntVar(&delay, "delay-ms", 0, "hold the button for `N` milliseconds")
	return c.withJSON(b.onTab(cmd))
}

func (c *commands) browserType(b *browserFlags) *cobra.Command {
	var submit, slowly bool
	cmd := &cobra.Command{Use: "type REF TEXT", Short: "Type into an element, in place of what is in it", Args: exactly(2),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.browse(cmd.Context(), b, act("type", args{"ref": a[0], "text": a[1], "submit": submit, "slowly": slowly}),
				c.done("typed into "+a[0]))
		}}
	cmd.Flags().BoolVar(&submit, "submit", false, "press Enter afterwards")
	cmd.Flags().BoolVar(&slowly, "slowly", false, "key by key")
	return c.withJSON(b.onTab(cmd))
}

func (c *commands) browserPress(b *browserFlags) *cobra.Command {
	return c.withJSON(b.onTab(&cobra.Command{Use: "press KEY", Short: "Press a key, such as Enter or Control+A",
		Args: exactly(1), RunE: func(cmd *cobra.Command, a []string) error {
			return c.browse(cmd.Context(), b, act("press", args{"key": a[0]}), c.done("pressed "+a[0]))
		}}))
}

// browserRef returns a command about an element.
func (c *commands) browserRef(b *browserFlags, use, short, kind string) *cobra.Command {
	return c.withJSON(b.onTab(&cobra.Command{Use: use, Short: short, Args: exactly(1),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.browse(cmd.Context(), b, act(kind, args{"ref": a[0]}), c.done("done"))
		}}))
}

func (c *commands) browserDrag(b *browserFlags) *cobra.Command {
	return c.withJSON(b.onTab(&cobra.Command{Use: "drag FROM TO", Short: "Drag an element to another one",
		Args: exactly(2), RunE: func(cmd *cobra.Command, a []string) error {
			return c.browse(cmd.Context(), b, act("drag", args{"startRef": a[0], "endRef": a[1]}),
				c.done("dragged "+a[0]+" to "+a[1]))
		}}))
}

func (c *commands) browserSelect(b *browserFlags) *cobra.Command {
	return c.withJSON(b.onTab(&cobra.Command{Use: "select REF VALUE [VALUE]...", Short: "Select options of a list",
		Args: between(2, 100), RunE: func(cmd *cobra.Command, a []string) error {
			return c.browse(cmd.Context(), b, act("select", args{"ref": a[0], "values": a[1:]}), c.done("selected"))
		}}))
}

func (c *commands) browserFill(b *browserFlags) *cobra.Command {
	var fields, file string
	cmd := &cobra.Command{Use: "fill", Short: "Fill several fields", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			raw := []byte(fields)
			if file != "" {
				var err error
				if raw, err = c.readFile(file, 1<<20); err != nil {
					return err
				}
			}
			var list []any
			if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
				return usage(errors.New(`give --fields '[{"ref":"e1","value":"…"}]' or --fields-file`))
			}
			return c.browse(cmd.Context(), b, act("fill", args{"fields": list}), c.done("filled"))
		}}
	cmd.Flags().StringVar(&fields, "fields", "", "the fields as `JSON`: [{\"ref\":\"e1\",\"value\":\"…\"}]")
	cmd.Flags().StringVar(&file, "fields-file", "", "read the fields from the `FILE`; -: from standard input")
	return c.withJSON(b.onTab(cmd))
}

func (c *commands) browserWait(b *browserFlags) *cobra.Command {
	var text, gone, load, fn, url string
	var ms int
	cmd := &cobra.Command{Use: "wait [SELECTOR]", Short: "Wait for something to happen on a page", Args: between(0, 1),
		RunE: func(cmd *cobra.Command, a []string) error {
			in := act("wait", args{"text": text, "textGone": gone, "loadState": load, "fn": fn, "url": url, "timeMs": ms})
			if len(a) > 0 {
				in["selector"] = a[0]
			}
			return c.browse(cmd.Context(), b, in, c.done("it has happened"))
		}}
	f := cmd.Flags()
	f.StringVar(&text, "text", "", "until the page contains the `TEXT`")
	f.StringVar(&gone, "text-gone", "", "until the page does not contain the `TEXT`")
	f.StringVar(&load, "load", "", "until the page reached the `STATE`: load, domcontentloaded, networkidle")
	f.StringVar(&url, "url", "", "until the address is the `URL`, in which * stands for any text")
	f.StringVar(&fn, "fn", "", "until the function `JS` returns true")
	f.IntVar(&ms, "time", 0, "`N` milliseconds")
	return c.withJSON(b.onTab(cmd))
}

func (c *commands) browserResize(b *browserFlags) *cobra.Command {
	return c.withJSON(b.onTab(&cobra.Command{Use: "resize WIDTH HEIGHT", Short: "Change the size of a page",
		Args: exactly(2), RunE: func(cmd *cobra.Command, a []string) error {
			w, errW := strconv.Atoi(a[0])
			h, errH := strconv.Atoi(a[1])
			if errW != nil || errH != nil {
				return usage(errors.New("WIDTH and HEIGHT must be whole numbers"))
			}
			return c.browse(cmd.Context(), b, act("resize", args{"width": w, "height": h}), c.done("resized"))
		}}))
}

func (c *commands) browserEvaluate(b *browserFlags) *cobra.Command {
	var fn, ref string
	cmd := &cobra.Command{Use: "evaluate", Short: "Run a function in a page and print its result as JSON",
		Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
			return c.browse(cmd.Context(), b, act("evaluate", args{"fn": fn, "ref": ref}),
				func(r args) { _ = c.printJSON(r["result"]) })
		}}
	cmd.Flags().StringVar(&fn, "fn", "", "the function, such as `'() => document.title'`")
	cmd.Flags().StringVar(&ref, "ref", "", "with the element `REF` as its argument")
	return c.withJSON(b.onTab(cmd))
}

func (c *commands) browserDialog(b *browserFlags) *cobra.Command {
	var accept, dismiss bool
	var prompt string
	cmd := &cobra.Command{Use: "dialog", Short: "Answer a dialog of a page", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if accept == dismiss {
				return usage(errors.New("give --accept or --dismiss"))
			}
			answer := new(bool) // false is an answer, too
			*answer = accept
			return c.browse(cmd.Context(), b, args{"action": "dialog", "accept": answer, "promptText": prompt},
				c.done("answered"))
		}}
	cmd.Flags().BoolVar(&accept, "accept", false, "accept it")
	cmd.Flags().BoolVar(&dismiss, "dismiss", false, "dismiss it")
	cmd.Flags().StringVar(&prompt, "prompt", "", "answer with the `TEXT`")
	return c.withJSON(b.onTab(cmd))
}

func (c *commands) browserUpload(b *browserFlags) *cobra.Command {
	var ref, input, element string
	cmd := &cobra.Command{
		Use: "upload FILE [FILE]...", Short: "Give files to a page",
		Long: "Give files to a page. The files must be those that the default agent may read: in its\nworkspace, or elsewhere if the configuration allows that.",
		Args: between(1, 100), RunE: func(cmd *cobra.Command, a []string) error {
			away, err := c.isAway()
			if err != nil {
				return err
			}
			var paths []string
			for _, p := range a {
				if _, err := os.Stat(p); err == nil && !away { // else it is in the workspace
					if abs, err := filepath.Abs(p); err == nil {
						p = abs
					}
				}
				paths = append(paths, p)
			}
			return c.browse(cmd.Context(), b, args{
				"action":   "upload",
				"paths":    paths,
				"ref":      ref,
				"inputRef": input,
				"element":  element,
			}, c.done("uploaded"))
		},
	}
	f := cmd.Flags()
	f.StringVar(&ref, "ref", "", "click the element `REF`, which asks for a file")
	f.StringVar(&input, "input-ref", "", "use the file input `REF`")
	f.StringVar(&element, "element", "", "use the file input that the CSS `SELECTOR` matches")
	return c.withJSON(b.onTab(cmd))
}

func (c *commands) browserDownload(b *browserFlags) *cobra.Command {
	return c.withJSON(b.onTab(&cobra.Command{Use: "download REF [FILE]",
		Short: "Save what a click on an element downloads, and print where it is", Args: between(1, 2),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.browseFile(cmd.Context(), b, args{"action": "download", "ref": a[0]}, second(a))
		}}))
}

func (c *commands) browserAwaitDownload(b *browserFlags) *cobra.Command {
	return c.withJSON(b.onTab(&cobra.Command{Use: "waitfordownload [FILE]",
		Short: "Save the next download, and print where it is", Args: between(0, 1),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.browseFile(cmd.Context(), b, args{"action": "waitfordownload"}, second(append([]string{""}, a...)))
		}}))
}

// second returns the second argument; "": there is none.
func second(a []string) string {
	if len(a) < 2 {
		return ""
	}
	return a[1]
}
