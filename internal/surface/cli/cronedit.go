package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/wire"
)

// cronFlags are the flags of cron add and cron edit.
type cronFlags struct {
	set *pflag.FlagSet
}

// cronTexts are the flags with a text, by the field of a job that they set.
var cronTexts = []struct{ flag, field, usage string }{
	{"name", "name", "`NAME` of the job"},
	{"display-name", "displayName", "`NAME` for people, if it differs"},
	{"description", "description", "what the job is for: `TEXT`"},
	{"at", "at", "run once, at a `TIME` like 2026-03-01T09:00 or in a duration like 20m"},
	{"every", "every", "run in intervals of a `DURATION` like 1h"},
	{"cron", "cron", "run at the times of a cron `EXPRESSION` like \"0 9 * * MON-FRI\""},
	{"tz", "tz",
		"time `ZONE` of --cron, --at or an --every of whole days: Europe/Berlin (default: of the gateway; for --at UTC)"},
	{"stagger", "stagger", "spread the job over a `DURATION` after the times of --cron"},
	{"session", "sessionTarget", "where it runs: the `SESSION` main, isolated, current or session:NAME"},
	{"session-key", "sessionKey", "`KEY` of the session that it belongs to"},
	{"agent", "agentId", "`ID` of the agent"},
	{"model", "model", "`MODEL` of the run"},
	{"fallbacks", "fallbacks", "`MODELS` that are tried next, with commas"},
	{"thinking", "thinking", "thinking `LEVEL` of the run"},
	{"timeout-seconds", "timeoutSeconds", "stop the run after `N` seconds (default 600)"},
	{"tools", "toolsAllow", "only these `TOOLS`, with commas"},
	{"webhook", "webhook", "send the answer to a `URL`"},
	{"channel", "channel", "send the answer to a `CHANNEL`, or last"},
	{"to", "to", "send the answer to a `CHAT` of the channel"},
	{"thread-id", "threadId", "in the thread `ID` of the chat"},
	{"account", "accountId", "from the account `ID` of the channel"},
	{"wake", "wakeMode", "when an event is handled: `MODE` now or next-heartbeat"},
	{"watch-file", "watchFile", "run only if the file or folder `PATH` has changed"},
	{"watch-url", "watchUrl", "run only if the page at `URL` has changed"},
	{"watch-command", "watchCommand", "run only if the output of a `COMMAND` has changed"},
}

// cronSwitches are the flags without a value, with what they set.
var cronSwitches = []struct {
	flag, field, usage string
	value              any
}{
	{"exact", "exact", "do not spread jobs of the full hour", true},
	{"light-context", "lightContext", "run without the files of the workspace that describe you and the agent", true},
	{"announce", "deliver", "send the answer to the chat where the session was used last, or to --channel", true},
	{"deliver", "deliver", "the same as --announce", true},
	{"no-deliver", "deliver", "keep the answer in the history only", false},
	{"best-effort-deliver", "bestEffort", "an answer that cannot be sent is no failure", true},
	{"delete-after-run", "deleteAfterRun", "delete a job with --at when it has succeeded", true},
	{"keep-after-run", "deleteAfterRun", "keep a job with --at when it has run", false},
	{"no-failure-alert", "failureAlert", "tell nobody about failures", false},
}

// cronAlerts are the flags of the alert.
var cronAlerts = []struct{ flag, field, usage string }{
	{"failure-alert-after", "after", "tell about failures after `N` in a row (default 2)"},
	{"failure-alert-cooldown", "cooldown", "tell again after a `DURATION` (default 1h)"},
	{"failure-alert-mode", "mode", "tell by `MODE` announce or webhook"},
	{"failure-alert-channel", "channel", "tell on a `CHANNEL`"},
	{"failure-alert-to", "to", "tell in a `CHAT`, or at a URL"},
	{"failure-alert-account-id", "accountId", "tell from the account `ID`"},
}

// cronClears are the flags of cron edit that reset a field.
var cronClears = []struct{ flag, field string }{
	{"clear-agent", "agentId"}, {"clear-session-key", "sessionKey"}, {"clear-display-name", "displayName"},
	{"clear-description", "description"},
	{"clear-model", "model"}, {"clear-fallbacks", "fallbacks"}, {"clear-thinking", "thinking"},
	{"clear-timeout", "timeoutSeconds"}, {"clear-tools", "toolsAllow"},
	{"clear-channel", "channel"}, {"clear-to", "to"}, {"clear-thread-id", "threadId"},
	{"clear-account", "accountId"}, {"clear-tz", "tz"},
	{"clear-trigger", "trigger"}, {"clear-failure-alert", "failureAlert"},
}

func newCronFlags(f *pflag.FlagSet) *cronFlags {
	for _, t := range cronTexts {
		f.String(t.flag, "", t.usage)
	}
	f.String("message", "", "what the agent is to do: `TEXT`")
	f.String("system-event", "", "a reminder, or another event for the main session: `TEXT`")
	for _, s := range cronSwitches {
		f.Bool(s.flag, false, s.usage)
	}
	f.Bool("watch-once", false, "switch the job off after a change")
	for _, a := range cronAlerts {
		f.String(a.flag, "", a.usage)
	}
	f.Bool("failure-alert-include-skipped", false, "runs that were left out count as failures")
	f.SortFlags = false
	return &cronFlags{set: f}
}

// fields returns the fields of a job that the flags set.
func (f *cronFlags) fields() (map[string]any, error) {
	m := map[string]any{}
	put := func(flag, field string, v any) error {
		if _, ok := m[field]; ok {
			return usage(fmt.Errorf("--%s contradicts another flag", flag))
		}
		m[field] = v
		return nil
	}
	for _, t := range cronTexts {
		if f.set.Changed(t.flag) {
			text, err := f.set.GetString(t.flag)
			if err == nil {
				err = put(t.flag, t.field, text)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	for _, s := range cronSwitches {
		if on, _ := f.set.GetBool(s.flag); on {
			if have, ok := m[s.field]; ok && have == s.value {
				continue
			}
			if err := put(s.flag, s.field, s.value); err != nil {
				return nil, err
			}
		}
	}
	for _, k := range cronClears {
		if on, err := f.set.GetBool(k.flag); err == nil && on {
			if err := put(k.flag, k.field, nil); err != nil {
				return nil, err
			}
		}
	}
	if on, _ := f.set.GetBool("watch-once"); on {
		m["trigger"] = map[string]any{"once": true}
	}
	return m, f.alert(put)
}

// alert adds the alert.
func (f *cronFlags) alert(put func(flag, field string, v any) error) error {
	alert := map[string]any{}
	for _, a := range cronAlerts {
		if f.set.Changed(a.flag) {
			alert[a.field], _ = f.set.GetString(a.flag)
		}
	}
	if f.set.Changed("failure-alert-include-skipped") {
		alert["includeSkipped"], _ = f.set.GetBool("failure-alert-include-skipped")
	}
	if len(alert) == 0 {
		return nil
	}
	return put("failure-alert-after", "failureAlert", alert)
}

func (c *commands) cronAdd() *cobra.Command {
	var flags *cronFlags
	cmd := &cobra.Command{
		Use: "add [SCHEDULE|NAME] [TEXT]", Short: "Add a job",
		Long: "Add a job. A job with --system-event is a reminder: its text is put before the agent in the\n" +
			"main session. A job with --message is a task: the agent does it in a session of its own, and\n" +
			"its answer is sent to the chat that was used last, or where --channel and --to say.\n" +
			"TEXT is the message. SCHEDULE is like one of --at, --every or --cron, for example\n" +
			"\"every 1h\"; with one of these flags, the argument is the name.",
		Example: "  chela cron add --at 20m --system-event \"call Ann\"\n" +
			"  chela cron add --name report --cron \"0 9 * * MON-FRI\" --tz Europe/Berlin \\\n    --message report --channel telegram --to 12345\n" +
			"  chela cron add --every 15m --watch-url https://example.com/news --message summarise\n" +
			"  chela cron add 1h check",
		Args: between(0, 2),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		fields, err := flags.add(args)
		if err != nil {
			return err
		}
		return c.withLink(cmd.Context(), func(l *link) error {
			defer l.remindOfJobs(cmd.Context())
			if _, ok := fields["declarationKey"]; ok {
				return queryOn(cmd.Context(), l, wire.MethodCronAdd, fields, func(d wire.CronDeclared) {
					what := "unchanged"
					switch {
					case d.Created:
						what = "added"
					case d.Updated:
						what = "changed"
					}
					c.printAdded(what, d.Job)
				})
			}
			var added wire.CronAdded
			if err := l.Call(cmd.Context(), wire.MethodCronAdd, fields, &added); err != nil {
				return c.explainJob(err, fields)
			}
			return c.print(added, func() { c.printAdded("added", added.CronJob) })
		})
	}
	flags = newCronFlags(cmd.Flags())
	cmd.Flags().Bool("disabled", false, "add it switched off")
	cmd.Flags().String("declaration-key", "", "replace the job that was added with the same `KEY` before")
	return c.withJSON(cmd)
}

// explainJob adds an example to the error about a job that cannot be added: one with a
// schedule and a session of the kind that was given.
func (c *commands) explainJob(err error, fields map[string]any) error {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok || e.Code != wire.InvalidRequest || c.hintFor(err) != "" || strings.Contains(e.Message, "(chela ") {
		return err
	}
	schedule := `"every 1h"`
	switch {
	case fields["at"] != nil:
		schedule = "--at 20m"
	case fields["cron"] != nil:
		schedule = `--cron "0 9 * * MON-FRI"`
	case fields["every"] != nil:
		schedule = "--every 1h"
	}
	return c.suggest(err, "cron add "+schedule+` "check the mail"`)
}

// add returns the fields of a new job.
func (f *cronFlags) add(args []string) (map[string]any, error) {
	m, err := f.fields()
	if err != nil {
		return nil, err
	}
	scheduled := m["at"] != nil || m["every"] != nil || m["cron"] != nil
	message, _ := f.set.GetString("message")
	event, _ := f.set.GetString("system-event")
	if len(args) > 0 && !scheduled {
		m["schedule"], args = args[0], args[1:]
	} else if len(args) > 1 || len(args) == 1 && (message != "" || event != "") {
		if m["name"] != nil {
			return nil, usage(errors.New("the name is given twice"))
		}
		m["name"], args = args[0], args[1:]
	}
	if len(args) > 0 {
		if message != "" {
			return nil, usage(errors.New("the message is given twice"))
		}
		message = args[0]
	}
	target, _ := m["sessionTarget"].(string)
	switch {
	case message != "" && event != "":
		return nil, usage(errors.New("give either --message or --system-event"))
	case message == "" && event == "":
		return nil, usage(
			errors.New("what is to be done is missing: --message TEXT for the assistant, or --system-event TEXT for a reminder"))
	case message != "" && target == job.TargetMain:
		return nil, usage(
			errors.New("--message does not go with --session main: --system-event TEXT does, or --session isolated"))
	case event != "" && target != "" && target != job.TargetMain:
		return nil, usage(
			errors.New("--system-event goes with --session main only: for another session there is --message TEXT"))
	case message != "":
		m["payload"] = map[string]any{"kind": job.AgentTurn, "message": message}
	case event != "":
		m["payload"] = map[string]any{"kind": job.SystemEvent, "text": event}
	}
	if off, _ := f.set.GetBool("disabled"); off {
		m["enabled"] = false
	}
	if key, _ := f.set.GetString("declaration-key"); key != "" {
		m["declarationKey"] = key
	}
	return m, nil
}

func (c *commands) cronEdit() *cobra.Command {
	var flags *cronFlags
	cmd := &cobra.Command{
		Use: "edit JOB", Short: "Change a job",
		Long:    "Change a job. What is not given stays as it is; --clear-... resets a field.",
		Example: "  chela cron edit report --cron \"0 8 * * MON-FRI\" --clear-model",
		Args:    exactly(1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		patch, err := flags.edit()
		if err != nil {
			return err
		}
		if len(patch) == 0 {
			return usage(withHint(errors.New("nothing to change"), cmd.CommandPath()+" --help"))
		}
		return c.withJob(cmd.Context(), args[0], func(l *link, j wire.CronJob) error {
			var out wire.CronJob
			err := l.Call(cmd.Context(), wire.MethodCronUpdate,
				map[string]any{"id": j.ID, "patch": patch, "expectedConfigRevision": j.ConfigRevision}, &out)
			if err != nil {
				return err
			}
			return c.print(out, func() { c.printAdded("changed", out) })
		})
	}
	flags = newCronFlags(cmd.Flags())
	cmd.Flags().Bool("enable", false, "switch it on")
	cmd.Flags().Bool("disable", false, "switch it off")
	for _, k := range cronClears {
		cmd.Flags().Bool(k.flag, false, "reset "+k.field)
	}
	return c.withJSON(cmd)
}

// edit returns the changes of a job. A new text does not change what kind of job it is.
func (f *cronFlags) edit() (map[string]any, error) {
	m, err := f.fields()
	if err != nil {
		return nil, err
	}
	for flag, name := range map[string]string{"message": "message", "system-event": "text"} {
		if text, _ := f.set.GetString(flag); text != "" {
			m[name] = text
		}
	}
	on, _ := f.set.GetBool("enable")
	off, _ := f.set.GetBool("disable")
	if on && off {
		return nil, usage(errors.New("give either --enable or --disable"))
	}
	if on || off {
		m["enabled"] = on
	}
	return m, nil
}
