package policy

import "github.com/chela-ai/chela/internal/core/tool"

// absent are tools of OpenClaw that this build does not have, with what lists and rules of
// the configuration go by. Lists that name them are valid.
var absent = []tool.Spec{
	{Name: "code_execution", Groups: []string{"group:runtime"}},
	{Name: "terminal", Groups: []string{"group:runtime"}, InRuns: true},
	{Name: "x_search", Groups: []string{"group:web"}},
	{Name: "screen", Groups: []string{"group:ui"}},
	{Name: "dashboard", Groups: []string{"group:ui"}},
	{Name: "show_widget", Groups: []string{"group:ui"}},
	{Name: "portal", Groups: []string{"group:ui"}, InRuns: true},
	{Name: "heartbeat_respond", Groups: []string{"group:automation"}},
	{Name: "computer", Groups: []string{"group:nodes"}, Sandboxed: tool.Outside, InRuns: true},
	{Name: "mobile_ui", Groups: []string{"group:nodes"}, Sandboxed: tool.Outside, InRuns: true},
	{Name: "get_goal", Groups: []string{"group:agents"}},
	{Name: "create_goal", Groups: []string{"group:agents"}},
	{Name: "update_goal", Groups: []string{"group:agents"}},
	{Name: "ask_user", Groups: []string{"group:agents"}},
	{Name: "tts", Groups: []string{"group:media"}},
	{Name: "music_generate", Groups: []string{"group:media"}, Profiles: []string{"coding"}},
	{Name: "video_generate", Groups: []string{"group:media"}, Profiles: []string{"coding"}},
	{Name: "sessions_delete", Subagents: tool.NoSubagents},
	{Name: "spawn", InRuns: true},
	{Name: "fs_write", InRuns: true},
	{Name: "fs_delete", InRuns: true},
	{Name: "fs_move", InRuns: true},
	{Name: "conversations_list", InRuns: true},
	{Name: "conversations_send", InRuns: true},
	{Name: "conversations_turn", InRuns: true},
	{Name: "plugins", InRuns: true},
}
