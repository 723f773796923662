package standard_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
)

// environ returns what the tools of a plain build may use: commands and the web.
func environ(t *testing.T, r *standard.Registry) standard.ToolEnv {
	t.Helper()
	broker, err := r.NewBroker(standard.SandboxEnv{}, conf{}.Section)
	if err != nil {
		t.Fatal(err)
	}
	return standard.ToolEnv{
		Web:      standard.WebEnv{Log: slog.New(slog.DiscardHandler), Getenv: func(string) string { return "" }},
		Commands: exec.Options{Broker: broker, Interactive: true, Commands: exec.NewCommands(exec.CommandOptions{})},
	}
}

// all returns the tools of a plain build without configuration. Most of them are off.
func all(t *testing.T) tool.Set {
	t.Helper()
	r := standard.New()
	env := environ(t, r)
	env.Sessions.Publish = func(chela.Event) {}
	return made(t, r, env)
}

// made returns the tools of a build without configuration.
func made(t *testing.T, r *standard.Registry, env standard.ToolEnv) tool.Set {
	t.Helper()
	tools, err := r.NewTools(env, conf{}.Section)
	if err != nil {
		t.Fatal(err)
	}
	own, err := r.NewFileTools(env, pathpolicy.Rule{}, conf{}.Section)
	if err != nil {
		t.Fatal(err)
	}
	return tool.NewSet(append(tools, own...)...)
}

// The lists of tools that stand without configuration. They come from the specs, also from those of
// tools that are off.
func TestLists(t *testing.T) {
	catalog := policy.NewCatalog(all(t))
	pipeline := func(profile string, c policy.Conversation) policy.Pipeline {
		return catalog.Pipeline(policy.Config{Rules: policy.Rules{Profile: profile}}, policy.Config{}, "", c)
	}
	boxed, leaf := pipeline("", policy.Conversation{Sandboxed: true}), pipeline("", policy.Conversation{Depth: 1})
	for _, tt := range []struct {
		name string
		got  []string
		want string
	}{
		{"denied to calls from outside", catalog.Direct(nil, nil, false).Deny,
			"exec process spawn fs_write fs_delete fs_move apply_patch terminal portal sessions_spawn sessions_send " +
				"conversations_list conversations_send conversations_turn cron gateway plugins nodes computer mobile_ui"},
		{"denied in a sandbox", boxed[0].Deny, "browser canvas nodes computer mobile_ui cron gateway message tts"},
		{"allowed in a sandbox", boxed[0].Allow,
			"read write edit apply_patch ls find grep exec process image sessions_list sessions_history " +
				"sessions_search sessions_send sessions_spawn sessions_yield subagents session_status plan"},
		{"denied to a child", leaf[0].Deny, "gateway agents_list cron message sessions_send sessions_delete skills tts"},
		{"denied to a child that may have none", leaf[1].Deny,
			"sessions_list sessions_history sessions_search sessions_spawn"},
		{"the profile coding", pipeline("coding", policy.Conversation{})[0].Allow,
			"read write edit apply_patch ls find grep exec process code_execution terminal " +
				"web_search web_fetch x_search sessions_list sessions_history sessions_send sessions_spawn sessions_search sessions_yield subagents session_status memory_search memory_get " +
				"agents_list get_goal create_goal update_goal plan ask_user skill_workshop skills cron image image_generate music_generate video_generate bundle-mcp"},
		{"the profile minimal", pipeline("minimal", policy.Conversation{})[0].Allow, "session_status"},
		{"the profile messaging", pipeline("messaging", policy.Conversation{})[0].Allow,
			"message sessions_list sessions_history sessions_send sessions_spawn subagents session_status bundle-mcp"},
		{"other groups", catalog.Expand([]string{"group:ui", "group:automation", "group:media"}),
			"browser canvas screen dashboard show_widget portal cron gateway heartbeat_respond " +
				"image image_generate tts music_generate video_generate"},
		{"tools of ours except files and commands", catalog.Expand([]string{"group:openclaw"}),
			"web_search web_fetch x_search memory_search memory_get sessions_list sessions_history sessions_send " +
				"sessions_spawn sessions_search sessions_yield subagents session_status browser screen dashboard show_widget portal cron gateway heartbeat_respond message nodes computer mobile_ui " +
				"agents_list get_goal create_goal update_goal plan ask_user skill_workshop skills image image_generate tts music_generate video_generate"},
		{"tools that only read", catalog.Expand([]string{tool.Reading}),
			"read ls find grep exec web_fetch web_search image session_status memory_search memory_get"},
		{"tools that change files", catalog.Writers(), "write edit apply_patch"},
		{"other names",
			catalog.Expand(strings.Fields("bash shell automations view_image list_dir update_plan progress_card")),
			"exec exec cron image ls plan plan"},
	} {
		want := slices.Sorted(strings.FieldsSeq(tt.want))
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(tt.got))); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}
