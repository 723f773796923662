//go:build conformance

package conformance

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/wire"
)

// ours are the methods that are missing in the published schema, with the
// reason why we have them.
var ours = map[string]string{
	"backup.create":        "a copy of the database while it is in use",
	"sessions.export":      "a conversation in OpenClaw's file format",
	"sessions.import":      "the counterpart of the export",
	"models.status":        "which models answer, and with which keys",
	"tools.explain":        "which rule decided about a tool",
	"hooks.install":        "OpenClaw's command line does it without the gateway",
	"sandbox.status":       "whether commands can be confined on this host",
	"sandbox.explain":      "whether a session is sandboxed, and what follows",
	"sandbox.test":         "what a confined command can do",
	"sandbox.recreate":     "OpenClaw's command line does it without the gateway",
	"tools.calls":          "the outcome of each tool call, and which rule decided",
	"sessions.unsubscribe": "OpenClaw has it too, but not in the schema",
	"plugins.add":          "plug-ins come from folders and archives; OpenClaw's from its catalog",
	"guests.list":          "people who ask to be admitted, OpenClaw's have other requests",
	"guests.approve":       "likewise",
	"guests.dismiss":       "likewise",
	"guests.remove":        "likewise",
	"budget.status":        "what model calls may cost, OpenClaw has no budgets",
	"budget.set":           "likewise",
	"usage.receipt":        "what a task has cost",
	"plugins.info":         "what a plug-in may do, for people",
	"plugins.remove":       "takes effect without a restart",
	"mcp.status":           "OpenClaw's command line reads its configuration",
	"mcp.probe":            "OpenClaw's command line connects by itself",
	"mcp.login.start":      "OpenClaw's command line logs in by itself",
	"mcp.login.finish":     "likewise",
	"mcp.logout":           "likewise",
	"cron.export":          "OpenClaw's command line reads its database",
	"cron.import":          "the counterpart of the export",
	"tasks.history":        "OpenClaw has it too, but not in the schema",
	"workspace.log":        "the history of the assistant's files",
	"workspace.diff":       "likewise",
	"workspace.restore":    "likewise",
	"undo.plan":            "OpenClaw has no undo",
	"undo.apply":           "likewise",
	"memory.why":           "where a line comes from",
	"memory.list":          "the notes, OpenClaw's command line reads the files",
	"memory.get":           "likewise",
	"memory.index":         "likewise",
	"memory.forget":        "OpenClaw cannot forget a topic",
	"skills.remove":        "OpenClaw's clients cannot remove a skill",
	"skills.workshop.read": "OpenClaw has it too, but not in the schema",

	"skills.proposals.describe": "the exact status and the history of proposals",
	"skills.proposals.rollback": "OpenClaw cannot take back a proposal",
	"themes.list":               "OpenClaw has it too, but not in the schema",
	"progressCard.refresh":      "OpenClaw has it too, but not in the schema",
	"browser.request":           "OpenClaw has it too, but not in the schema",
	"canvas.view":               "what the assistant shows, OpenClaw's pages are documents",
	"canvas.action":             "what the person did there",
	"canvas.report":             "what a screen could not draw",
}

// resultless are the methods for which the schema only defines parameters.
// Parts of their results that the schema does define are listed with the calls.
var resultless = []string{
	"agent", "agent.wait", "chat.abort", "chat.history", "chat.inject", "chat.metadata", "chat.send", "chat.startup",
	"cron.get", "cron.list", "cron.remove", "cron.run", "cron.runs", "cron.status", "cron.update",
	"config.apply", "config.get", "diagnostics.lanes", "config.patch", "config.set", "device.pair.approve",
	"device.pair.list", "device.pair.reject", "device.pair.remove",
	"device.pair.rename", "device.token.revoke", "doctor.memory.status", "exec.approval.get", "exec.approval.list",
	"exec.approval.request",
	"exec.approval.resolve", "exec.approval.waitDecision", "health", "hooks.status", "last-heartbeat", "memory.search",
	"models.authLogout", "models.authStatus", "node.describe", "node.list",
	"node.invoke", "node.invoke.progress", "node.invoke.result", "node.pair.approve", "node.pair.list", "node.pair.reject",
	"node.pair.remove", "node.rename",
	"openclaw.approval.list", "plugin.approval.list", "plugin.approval.resolve", "sessions.abort", "sessions.compact",
	"sessions.describe", "sessions.get", "sessions.list",
	"sessions.messages.subscribe", "sessions.messages.unsubscribe", "sessions.patch", "sessions.preview",
	"send", "poll", "message.action", "plugin.surface.refresh",
	"sessions.reset", "sessions.send", "sessions.steer", "set-heartbeats", "skills.install", "skills.library.list",
	"skills.status", "skills.update", "sessions.subscribe", "sessions.usage", "sessions.usage.logs",
	"sessions.usage.timeseries", "status",
	"system-event", "system-presence", "talk.mode", "tts.convert", "tts.disable", "tts.enable", "tts.personas",
	"tts.providers", "tts.setProvider", "tts.status",
	"voicewake.get", "voicewake.routing.get", "voicewake.set", "usage.cost", "usage.status", "users.list", "wake",
}

// irregular are the definitions whose names do not follow from their methods.
var irregular = map[string]string{
	"openclaw.chat params": "SystemAgentChatParams",
	"openclaw.chat result": "SystemAgentChatResult",

	"agent.identity.get params": "AgentIdentityParams",
	"agent.identity.get result": "AgentIdentityResult",
	"config.schema result":      "ConfigSchemaResponse",
	"exec.approvals.get result": "ExecApprovalsSnapshot",

	"device.scopes.requestUpgrade params": "ScopeUpgradeRequest",
	"device.scopes.requestUpgrade result": "ScopeUpgradeRegistration",
	"device.scopes.waitUpgrade params":    "ScopeUpgradeWait",
	"device.scopes.waitUpgrade result":    "ScopeUpgradeResult",

	"exec.approvals.set result": "ExecApprovalsSnapshot",
	"sessions.steer params":     "SessionsSendParams",
	"chat.startup params":       "ChatHistoryParams",

	"skills.proposals.inspect params":    "SkillsProposalInspectParams",
	"skills.proposals.inspect result":    "SkillsProposalInspectResult",
	"skills.proposals.create params":     "SkillsProposalCreateParams",
	"skills.proposals.create result":     "SkillsProposalInspectResult",
	"skills.proposals.update params":     "SkillsProposalUpdateParams",
	"skills.proposals.update result":     "SkillsProposalInspectResult",
	"skills.proposals.revise params":     "SkillsProposalReviseParams",
	"skills.proposals.revise result":     "SkillsProposalInspectResult",
	"skills.proposals.apply params":      "SkillsProposalDecisionParams",
	"skills.proposals.apply result":      "SkillsProposalApplyResult",
	"skills.proposals.reject params":     "SkillsProposalDecisionParams",
	"skills.proposals.reject result":     "SkillsProposalRecordResult",
	"skills.proposals.quarantine params": "SkillsProposalActionParams",
	"skills.proposals.quarantine result": "SkillsProposalRecordResult",

	"tasks.retry params":   "TasksRecoveryParams",
	"tasks.retry result":   "TasksRecoveryResult",
	"tasks.dismiss params": "TasksRecoveryParams",
	"tasks.dismiss result": "TasksRecoveryResult",
}

// definition returns the name of the definition of a method's parameters or
// result.
func (s *schema) definition(method, of string) string {
	if d, ok := irregular[method+" "+of]; ok {
		return d
	}
	return s.named(method, strings.ToUpper(of[:1])+of[1:])
}

// call is a method with its parameters.
type call struct {
	method string
	params any
	parts  []part // parts of the result
}

// by returns the connection that a method is called on: a device requests more
// scopes for itself.
func (g *golden) by(method string) *line {
	switch {
	case strings.HasPrefix(method, "device.scopes."):
		return g.device
	case forNodes(method):
		return g.links[1]
	}
	return g.line
}

// forNodes reports whether only nodes call a method.
func forNodes(method string) bool {
	return method == wire.MethodNodeInvokeResult || method == wire.MethodNodeInvokeProgress ||
		method == wire.MethodNodeEvent
}

// snap answers the next call of the first node with a picture.
func (g *golden) snap() {
	l := g.links[0]
	var q wire.NodeInvokeRequest
	if json.Unmarshal(l.Event(wire.EventNodeInvokeRequest, 0).Payload, &q) == nil {
		l.send(wire.MethodNodeInvokeResult,
			map[string]any{"id": q.ID, "nodeId": q.Node, "ok": true, "payloadJSON": `{"format":"png","base64":"iVBORw0KGgo="}`})
	}
}

// decision returns parameters about the proposal that is made for a method.
func (g *golden) decision(name string, params map[string]any) map[string]any {
	params["proposalId"], params["expectedRevisionHash"] = g.proposed[name].Record.ID, g.proposed[name].Hash
	return params
}

// surface is a surface of A2UI with one button.
const surface = `{"version":"1.0","createSurface":{"surfaceId":"main","components":[{"id":"root","component":"Button","child":"label","action":{"event":{"name":"go"}}},{"id":"label","component":"Text","text":"Go"}]}}`

// calls returns all methods, in the order in which they are called.
func (g *golden) calls() []call {
	row := []part{{"session", "SessionRow"}, {"sessions[]", "SessionRow"}, {"sessionInfo", "SessionRow"}}
	type m = map[string]any
	return []call{
		{"health", m{}, nil},
		{"status", m{}, nil},
		{"system-presence", m{}, []part{{"[]", "PresenceEntry"}}},
		{"system-event", m{"text": "the door opened"}, nil},
		{"wake", m{"mode": "now", "text": "echo the door closed", "sessionKey": aside}, nil},
		{"last-heartbeat", m{}, nil},
		{"set-heartbeats", m{"enabled": true}, nil},
		{"diagnostics.lanes", m{}, nil},
		{"update.status", m{}, nil},
		{"sessions.observer.visibility", m{"visible": false}, nil},
		{"talk.catalog", m{}, nil},
		{"talk.config", m{"includeSecrets": true}, nil},
		{"talk.mode", m{"enabled": true, "phase": "listening"}, nil},
		{"talk.speak", m{"text": "good morning", "voiceId": "v", "speed": 1.2, "stability": 0.5, "language": "de"}, nil},
		{"voicewake.get", m{}, nil},
		{"voicewake.set", m{"triggers": []string{"jarvis"}}, nil},
		{"voicewake.routing.get", m{}, nil},
		{"tts.status", m{}, nil},
		{"tts.providers", m{}, nil},
		{"tts.personas", m{}, nil},
		{"tts.convert", m{"text": "good morning", "channel": "telegram"}, nil},
		{"tts.speak", m{"text": "good morning"}, nil},
		{"browser.request", m{"method": "GET", "path": "/"}, nil},
		{"themes.list", m{}, nil},
		{"users.list", m{}, nil},
		{"openclaw.chat", m{"sessionId": "one", "welcomeVariant": "new-agent"}, nil},
		{"wizard.start", m{"flow": "channels", "channel": "telegram"}, nil},
		{"environments.list", m{}, nil},
		{"system.info", m{}, nil},
		{"logs.tail", m{"limit": 20}, nil},
		{"channels.status", m{"probe": false}, nil},
		{"config.get", m{}, nil},
		{"config.schema", m{}, nil},
		{"config.schema.lookup", m{"path": "gateway"}, nil},
		{"config.patch", m{"raw": "{}", "baseHash": g.config.Hash}, nil},
		{"config.set", m{"raw": g.config.Raw, "baseHash": g.config.Hash}, nil},
		{"config.apply", m{"raw": g.config.Raw, "baseHash": g.config.Hash, "note": "as before"}, nil},
		{"tts.enable", m{}, nil},
		{"tts.disable", m{}, nil},
		{"tts.setProvider", m{"provider": "whisperer"}, nil},
		{"agents.create", m{"name": "Guest", "emoji": "🦐"}, nil},
		{"agents.update", m{"agentId": "guest", "name": "Guest Two"}, nil},
		{"agents.delete", m{"agentId": "guest"}, nil},
		{"agents.list", m{}, nil},
		{"agent.identity.get", m{}, nil},
		{"agents.files.list", m{"agentId": "main"}, nil},
		{"agents.files.set", m{"agentId": "main", "name": "USER.md", "content": "Likes tea.\n"}, nil},
		{"agents.files.get", m{"agentId": "main", "name": "USER.md"}, nil},
		{"agents.workspace.list", m{"agentId": "main"}, nil},
		{"agents.workspace.get", m{"agentId": "main", "path": "notes.txt"}, nil},
		{"models.list", m{}, nil},
		{"models.authStatus", m{}, nil},
		{"models.status", m{}, nil},
		{"models.probe", m{"provider": "mock"}, nil},
		{"models.authLogout", m{"provider": "groq"}, nil},
		{"commands.list", m{}, nil},
		{"tools.catalog", m{}, nil},
		{"tools.explain", m{"sessionKey": talked}, nil},
		{"workspace.log", m{"limit": 5}, nil},
		{"workspace.diff", m{"path": "tide.txt"}, nil},
		{"workspace.restore", m{"change": g.change, "before": true}, nil},
		{"undo.plan", m{"turns": 1}, nil},
		{"undo.apply", m{"hash": g.undo}, nil},
		{"memory.why", m{"path": "USER.md"}, nil},
		{"doctor.memory.status", m{"probe": true}, nil},
		{"memory.search", m{"query": "tea", "maxResults": 3, "minScore": 0.1}, nil},
		{"memory.list", m{}, nil},
		{"memory.get", m{"path": "MEMORY.md"}, nil},
		{"memory.index", m{}, nil},
		{"memory.forget", m{"topic": "dentist"}, nil},
		{"skills.library.list", m{"scope": "all"}, nil},
		{"skills.search", m{"query": "tea", "limit": 20}, nil},
		{"skills.detail", m{"slug": "tea"}, nil},
		{"skills.install", m{"agentId": "main", "source": "clawhub", "slug": "tea", "version": "1.0", "timeoutMs": 60_000},
			nil},
		{"skills.status", m{"agentId": "main"}, nil},
		{"skills.update", m{"agentId": "main", "source": "clawhub", "all": true}, nil},
		{"skills.update", m{"skillKey": "tea", "enabled": false, "env": m{"TEA_SORT": "green"}}, nil},
		{"skills.remove", m{"agentId": "main", "name": "tea"}, nil},
		{"skills.proposals.list", m{}, nil},
		{"skills.proposals.describe", m{}, nil},
		{"skills.proposals.inspect", m{"agentId": "main", "proposalId": g.proposed["update"].Record.ID}, nil},
		{"skills.proposals.create", m{"agentId": "main", "name": "coffee", "description": "Make coffee.",
			"content": "Grind beans.", "evidence": "asked twice"}, nil},
		{"skills.proposals.update", m{"skillName": "update", "content": "Boil fresh water.",
			"supportFiles": []m{{"path": "more.md", "content": "Assam\n"}}}, nil},
		{"skills.proposals.revise", g.decision("revise", m{"content": "Boil fresh water.", "supportFiles": []m{}}), nil},
		{"skills.proposals.apply", g.decision("apply", m{"correlationId": "x"}), nil},
		{"skills.proposals.reject", g.decision("reject", m{"reason": "too hot"}), nil},
		{"skills.proposals.quarantine", g.decision("quarantine", m{}), nil},
		{"skills.proposals.rollback", m{"proposalId": g.proposed["rollback"].Record.ID}, nil},
		{"skills.proposals.list", m{"agentId": "main"}, nil},
		{"skills.workshop.read", m{"agentId": "main", "name": "update"}, nil},
		{"hooks.status", m{}, nil},
		{"hooks.install", m{"path": filepath.Join(g.Work, "greeter")}, nil},
		{"plugins.list", m{}, nil},
		{"plugins.add", m{"path": filepath.Join(g.Work, "weather")}, nil},
		{"plugins.info", m{"pluginId": "weather"}, nil},
		{"plugins.inspect", m{"pluginId": "weather"}, nil},
		{"plugins.setEnabled", m{"pluginId": "weather", "enabled": true}, nil},
		{"plugins.list", m{}, nil},
		{"plugins.refresh", m{}, nil},
		{"mcp.status", m{}, nil},
		{"mcp.probe", m{"name": "weather"}, nil},
		{"mcp.login.finish", m{"name": "vault", "answer": g.agreed}, nil},
		{"mcp.logout", m{"name": "vault"}, nil},
		{"mcp.login.start", m{"name": "vault", "redirectUrl": "http://127.0.0.1:1/callback"}, nil},
		{"plugins.remove", m{"pluginId": "weather"}, nil},
		{"sandbox.status", m{}, nil},
		{"sandbox.explain", m{"sessionKey": talked}, nil},
		{"sandbox.test", m{}, nil},
		{"sandbox.recreate", m{"all": true}, nil},
		{"tools.effective", m{"sessionKey": talked}, nil},
		{"tools.invoke", m{"name": "session_status", "sessionKey": talked, "args": m{}, "idempotencyKey": "one"}, nil},
		{"tools.invoke", m{"name": "exec", "args": m{"command": "id"}, "confirm": true}, nil},
		{"tools.invoke", m{"name": "canvas", "sessionKey": aside, "args": m{"action": "a2ui_push", "jsonl": surface}}, nil},
		{"canvas.view", m{"sessionKey": aside}, nil},
		{"canvas.action", m{"sessionKey": aside, "surfaceId": "main", "sourceComponentId": "root", "name": "go",
			"idempotencyKey": "canvas"}, nil},
		{"canvas.report", m{"sessionKey": aside, "message": "it is too large"}, nil},
		{"plugin.surface.refresh", m{"surface": "canvas"}, nil},
		{"tools.calls", m{"limit": 5}, nil},
		{"usage.cost", m{}, nil},
		{"usage.status", m{}, nil},
		{"budget.status", m{}, nil},
		{"budget.set", m{"usd": 5}, nil},
		{"sessions.usage", m{}, nil},
		{"sessions.usage.timeseries", m{"key": talked}, nil},
		{"sessions.usage.logs", m{"key": talked, "limit": 1000}, nil},

		{"chat.history", m{"sessionKey": talked, "limit": 50}, row},
		{"chat.startup", m{"sessionKey": talked}, row},
		{"chat.metadata", m{"sessionKey": talked}, []part{{"models[]", "ModelChoice"}, {"commands[]", "CommandEntry"}}},
		{"chat.message.get", m{"sessionKey": talked, "messageId": g.message}, nil},
		{"chat.inject", m{"sessionKey": talked, "message": "noted", "label": "Note"}, nil},
		{"chat.send", m{"sessionKey": talked, "message": "echo sent", "idempotencyKey": "sent"}, nil},
		{"agent.wait", m{"runId": "sent", "timeoutMs": 20_000}, nil},
		{"usage.receipt", m{"runId": "sent"}, nil},
		{"agent", m{"message": "echo hi", "idempotencyKey": "agent", "sessionKey": talked}, nil},
		{"chat.abort", m{"sessionKey": talked}, nil},

		{"tasks.list", m{"sessionKey": talked, "status": []string{"completed", "failed"}}, nil},
		{"tasks.get", m{"taskId": "agent"}, nil},
		{"tasks.history", m{"taskId": "agent"}, nil},
		{"tasks.cancel", m{"taskId": "agent"}, nil},
		{"tasks.retry", m{"taskIds": []string{"agent"}}, nil},
		{"tasks.dismiss", m{"taskIds": []string{"agent"}}, nil},

		{"cron.status", m{}, nil},
		{"cron.add", m{"name": "tea", "declarationKey": "app:tea", "schedule": m{"kind": "cron", "expr": "0 9 * * MON",
			"tz": "Europe/Berlin", "staggerMs": 0}, "sessionTarget": "isolated", "wakeMode": "now", "enabled": false,
			"payload": m{"kind": "agentTurn", "message": "echo tea"}, "delivery": m{"mode": "none"},
			"failureAlert": m{"after": 3}}, nil},
		{"cron.add", m{"name": "call Ann", "schedule": m{"kind": "at", "at": "2999-01-01T09:00:00Z"}, "sessionTarget": "main",
			"wakeMode": "next-heartbeat", "payload": m{"kind": "systemEvent", "text": "echo call Ann"}}, nil},
		{"cron.import",
			m{"file": m{"version": 1,
				"jobs": []m{{"id": "imported", "name": "n", "enabled": true, "schedule": m{"kind": "every", "everyMs": 86_400_000},
					"sessionTarget": "isolated", "wakeMode": "now", "payload": m{"kind": "agentTurn", "message": "echo hi"},
					"delivery": m{"mode": "none"}}}}}, nil},
		{"cron.list", m{"includeDisabled": true, "limit": 10, "sortBy": "name", "sortDir": "asc"}, nil},
		{"cron.list", m{"compact": true}, nil},
		{"cron.get", m{"id": "imported"}, []part{{"", "CronJob"}}},
		{"cron.update", m{"jobId": "imported", "patch": m{"description": "for the test", "payload": m{"kind": "agentTurn",
			"thinking": nil}}}, []part{{"", "CronJob"}}},
		{"cron.run", m{"id": "imported", "mode": "force"}, nil},
		{"cron.runs", m{"scope": "all", "limit": 10, "status": "all"}, []part{{"entries[]", "CronRunLogEntry"}}},
		{"cron.scratch.set", m{"id": "imported", "content": "one", "expectedRevision": 0}, nil},
		{"cron.scratch.get", m{"jobId": "imported"}, nil},
		{"cron.export", m{}, nil},
		{"cron.remove", m{"id": "imported"}, nil},

		{"progressCard.put", m{"sessionKey": talked, "plan": []m{{"step": "boil water", "status": "in_progress"},
			{"step": "pour it", "status": "pending"}}}, nil},
		{"progressCard.get", m{"sessionKey": talked}, nil},
		{"progressCard.refresh", m{"sessionKey": talked, "idempotencyKey": "refresh"}, nil},

		{"sessions.subscribe", m{}, nil},
		{"sessions.list", m{"includeDerivedTitles": true, "includeLastMessage": true}, row},
		{"sessions.describe", m{"key": talked}, row},
		{"sessions.get", m{"key": talked, "limit": 20}, nil},
		{"sessions.files.list", m{"sessionKey": talked}, nil},
		{"sessions.files.get", m{"sessionKey": talked, "path": "notes.txt"}, nil},
		{"sessions.files.set", m{"sessionKey": talked, "path": "notes.txt", "content": "tea\n",
			"expectedHash": fmt.Sprintf("%x", sha256.Sum256([]byte(notes)))}, nil},
		{"sessions.resolve", m{"key": "main"}, nil},
		{"sessions.preview", m{"keys": []string{talked, aside}}, nil},
		{"sessions.search", m{"query": "echo", "limit": 5}, nil},
		{"sessions.create", m{"key": "agent:main:made", "label": "Made"}, nil},
		{"sessions.patch", m{"key": "agent:main:made", "label": "Made anew"}, nil},
		{"sessions.send", m{"key": "agent:main:made", "message": "echo sent", "idempotencyKey": "sent2"}, nil},
		{"sessions.abort", m{"key": "agent:main:made"}, nil},
		{"sessions.steer", m{"key": "agent:main:made", "message": "echo steered", "idempotencyKey": "steered"}, nil},
		{"sessions.patchMany", m{"targets": []m{{"key": "agent:main:made"}}, "patch": m{"archived": true}}, nil},
		{"sessions.compact", m{"key": talked}, nil},
		{"sessions.compact", m{"key": talked, "maxLines": 4}, nil},
		{"sessions.messages.subscribe", m{"key": talked, "includeApprovals": true},
			[]part{{"approvalReplay", "SessionApprovalReplay"}}},
		{"sessions.messages.unsubscribe", m{"key": talked}, nil},
		{"sessions.export", m{"key": talked}, nil},
		{"sessions.import",
			m{"key": "agent:main:imported",
				"jsonl": `{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05Z","cwd":"/"}` + "\n"}, nil},
		{"sessions.reset", m{"key": "agent:main:made"}, nil},
		{"sessions.delete", m{"key": "agent:main:made"}, nil},
		{"sessions.unsubscribe", m{}, nil},

		{"question.list", m{}, nil},
		{"exec.approvals.get", m{}, nil},
		{"exec.approvals.set", m{"file": m{"version": 1, "agents": m{"main": m{"allowlist": []m{{"pattern": "make"}}}}}},
			nil},
		{"exec.approval.list", m{}, nil},
		{"exec.approval.get", m{"id": g.approval}, nil},
		{"approval.get", m{"id": g.approval}, nil},
		{"exec.approval.resolve", m{"id": g.approval, "decision": "deny"}, nil},
		{"plugin.approval.resolve", m{"id": g.second, "decision": "deny"}, nil},
		{"approval.resolve", m{"id": g.approval, "kind": "exec", "decision": "deny"}, nil},
		{"approval.history", m{"limit": 5}, nil},
		{"plugin.approval.list", m{}, nil},
		{"openclaw.approval.list", m{}, nil},
		{"exec.approval.waitDecision", m{"id": g.approval}, nil},
		{"exec.approval.request", m{"command": "make tea", "timeoutMs": 50}, nil},

		{"send", m{"to": "7", "message": "hello", "idempotencyKey": "send"}, nil},
		{"poll", m{"to": "7", "question": "Tea?", "options": []string{"yes", "no"}, "idempotencyKey": "poll"}, nil},
		{"message.action", m{"channel": "telegram", "action": "react", "params": m{"to": "7", "target": "7",
			"messageId": "101", "emoji": "👍"}, "idempotencyKey": "react"}, nil},
		{"guests.list", m{}, nil},
		{"guests.approve", m{"channel": "telegram", "requestId": "none"}, nil},
		{"guests.dismiss", m{"channel": "telegram", "requestId": "none"}, nil},
		{"guests.remove", m{"channel": "telegram", "senderId": "none"}, nil},
		{"device.pair.list", m{}, []part{{"pending[]", "DevicePairRequestedEvent"}}},
		{"device.pair.approve", m{"requestId": g.pending[0].ID}, nil},
		{"device.pair.reject", m{"requestId": g.pending[1].ID}, nil},
		{"device.pair.rename", m{"deviceId": g.paired, "label": "Tablet"}, nil},
		{"device.pair.setupCode", m{"bootstrapProfile": "limited", "publicUrl": "wss://home.example"}, nil},
		{"device.pair.setupStatus", m{"setupId": "none"}, nil},
		{"device.token.rotate", m{"deviceId": g.paired, "role": wire.RoleOperator}, nil},
		{"device.token.revoke", m{"deviceId": g.paired, "role": wire.RoleOperator}, nil},
		{"device.pair.remove", m{"deviceId": g.pending[0].Device}, nil},
		{"device.scopes.waitUpgrade", m{"requestId": g.widened}, nil},
		{"device.scopes.requestUpgrade", m{"scopes": []string{wire.ScopeRead, wire.ScopeAdmin}}, nil},

		{"node.list", m{}, nil},
		{"node.describe", m{"nodeId": g.nodes[0].NodeClient.ID}, nil},
		{"node.rename", m{"nodeId": g.nodes[0].NodeClient.ID, "displayName": "Kitchen"}, nil},
		{"node.pair.list", m{}, nil},
		{"node.pair.approve", m{"requestId": g.nodes[0].ID}, nil},
		{"node.invoke", m{"nodeId": g.nodes[0].NodeClient.ID, "command": "camera.snap", "params": m{"facing": "back"},
			"timeoutMs": 20_000, "idempotencyKey": "snap"}, nil},
		{"node.invoke.result", m{"id": "none", "nodeId": g.nodes[1].NodeClient.ID, "ok": true, "payloadJSON": "{}"}, nil},
		{"node.invoke.progress", m{"invokeId": "none", "nodeId": g.nodes[1].NodeClient.ID, "seq": 1, "chunk": "x"}, nil},
		{"node.event", m{"event": "notifications.changed", "payloadJSON": "{}"}, nil},
		{"node.pair.reject", m{"requestId": g.nodes[1].ID}, nil},
		{"node.pair.remove", m{"nodeId": g.nodes[0].NodeClient.ID}, nil},

		{"backup.create", m{"path": g.State + "/copy.db"}, nil},
	}
}

// events are the definitions of event payloads.
func events() map[string][]part {
	row := []part{{"session", "SessionRow"}}
	return map[string][]part{
		wire.EventChallenge:         nil,
		wire.EventTick:              {{"", "TickEvent"}},
		wire.EventShutdown:          {{"", "ShutdownEvent"}},
		wire.EventChat:              {{"", "ChatEvent"}},
		wire.EventAgent:             {{"", "AgentEvent"}},
		wire.EventSessionMessage:    row,
		wire.EventSessionTool:       {{"", "AgentEvent"}},
		wire.EventSessionsChanged:   row,
		wire.EventPresence:          {{"presence[]", "PresenceEntry"}},
		wire.EventHealth:            nil,
		wire.EventSessionOperation:  {{"", "SessionOperationEvent"}},
		wire.EventApprovalRequested: nil,
		wire.EventApprovalResolved:  nil,

		wire.EventPluginApprovalRequested: nil,
		wire.EventPluginApprovalResolved:  nil,
		wire.EventNodePairRequested:       nil,
		wire.EventNodePairResolved:        nil,
		wire.EventModelsSnapshot:          {{"catalog.models[]", "ModelChoice"}},
		wire.EventConfigChanged:           nil,
		wire.EventCanvas:                  nil,
		wire.EventTalkMode:                nil,
		wire.EventWakeChanged:             nil,
		wire.EventTask:                    {{"task", "TaskSummary"}},
		wire.EventCron:                    {{"job", "CronJob"}},
		wire.EventHeartbeat:               nil,
		wire.EventProgressChanged:         {{"", "ProgressCardChangedEvent"}},
		wire.EventPairRequested:           {{"", "DevicePairRequestedEvent"}},
		wire.EventPairResolved:            {{"", "DevicePairResolvedEvent"}},
	}
}
