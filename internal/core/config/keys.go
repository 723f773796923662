package config

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/chela-ai/chela/wire"
)

// Keys returns the known keys, sorted by path.
func Keys() []Key {
	return slices.SortedFunc(slices.Values(table()), func(a, b Key) int { return strings.Compare(a.Path, b.Path) })
}

// table returns the known keys.
var table = sync.OnceValue(func() []Key {
	keys := slices.Clone(documented[:])
	for _, p := range preserved {
		for name := range strings.FieldsSeq(p.names) {
			keys = append(keys, Key{Path: p.above + name, Kind: Any, Guards: p.guards})
		}
	}
	for _, above := range [...]string{"agents.defaults.sandbox.docker.", "agents.list[].sandbox.docker."} {
		for _, k := range containers {
			k.Path = above + k.Path
			keys = append(keys, k)
		}
	}
	for _, above := range [...]string{"agents.defaults.subagents.", "agents.list[].subagents."} {
		for _, k := range subagents {
			k.Path = above + k.Path
			keys = append(keys, k)
		}
	}
	return keys
})

var (
	thinking       = []string{"off", "minimal", "low", "medium", "high", "xhigh", "adaptive", "max"}
	verbose        = []string{"off", "on", "full"}
	queueMode      = []string{"steer", "followup", "collect", "steer-backlog", "steer+backlog", "interrupt", "queue"}
	dropMode       = []string{"old", "new", "summarize"}
	usageMode      = []string{"off", "tokens", "full"}
	resetMode      = []string{"none", "daily", "idle"}
	dmScope        = []string{"main", "per-peer", "per-channel-peer", "per-account-channel-peer"}
	bindMode       = []string{"loopback", "lan", "tailnet", "auto", "custom"}
	authMode       = []string{"none", "token", "password", "trusted-proxy"}
	elevated       = []string{"off", "on", "ask", "full"}
	sandboxMode    = []string{"off", "non-main", "all"}
	sandboxScope   = []string{"session", "agent", "shared"}
	sandboxAccess  = []string{"none", "ro", "rw"}
	sandboxBackend = []string{"native", "docker", "podman", "ssh", "openshell"}
	search         = []string{"brave", "tavily", "searxng", "duckduckgo"}
	logLevel       = []string{"silent", "fatal", "error", "warn", "info", "debug", "trace"}
	security       = []string{"deny", "allowlist", "full", "off", "ask", "review", "sudo"}
	askMode        = []string{"off", "on-miss", "always", "true", "false"}
	execMode       = []string{"deny", "allowlist", "always", "ask", "auto", "full"}
	dialects       = []string{"anthropic-messages", "openai-completions", "openai-responses", "google-generative-ai", "ollama", "offline"}
)

// What unused security keys do not do; see [Key.Guards].
const (
	guardTools     = "keep any tool from being used"
	guardSandboxes = "put anything into a sandbox"
	guardSending   = "keep any message from being sent"
	guardSenders   = "keep anybody from writing to the assistant"
	guardClients   = "keep any client from connecting"
	guardNodes     = "keep any device or any of its commands out"
	guardSettings  = "protect anything"
)

// preserved is the keys of OpenClaw whose values are kept, but neither checked nor used.
var preserved = [...]struct {
	guards string // see [Key.Guards]
	above  string // path before each of the names
	names  string
}{
	{"", "", `
		acp approvals audio auth bindings[].acp bindings[].comment bindings[].session.groupScope broadcast browser canvas canvasHost channels.* channels.*.* channels.*.accounts
		channels.*.accounts.* channels.*.accounts.*.* cli commands cron diagnostics discovery env.shellEnv gateway.auth.allowTailscale
		gateway.controlUi.* gateway.reload.deferralTimeoutMs gateway.remote.* gateway.tls.caPath hooks logging.maxFiles mcp media memory
		messages.queue.debounceMsByChannel meta models.bedrockDiscovery models.pricing models.providers.*.auth
		models.providers.*.authHeader nodeHost plugins.* plugins.entries.*.* plugins.entries.*.config.*
		plugins.entries.*.config.webSearch.* routing secrets session.reset.* skills talk tools.exec.approvalRunningNoticeMs
		tools.exec.node tools.loopDetection.postCompactionGuard tools.web.* tools.web.fetch.* tools.web.search.* tts ui update web wizard
	`},
	{"", "agents.defaults.", `
		agentRuntime blockStreamingBreak blockStreamingChunk blockStreamingCoalesce blockStreamingDefault bootstrapPromptTruncationWarning
		cliBackends compaction contextInjection contextLimits contextPruning embeddedHarness embeddedPi envelopeElapsed envelopeTimestamp
		envelopeTimezone experimental fastModeDefault heartbeat humanDelay imageGenerationModel maxHistoryMessages mediaMaxMb mediaModels
		memorySearch musicGenerationModel pdfMaxBytesMb pdfMaxPages pdfModel reasoningDefault repoRoot skills skipOptionalBootstrapFiles
		startupContext systemPromptOverride timeFormat toolProgressDetail typingIntervalSeconds typingMode utilityModel
		videoGenerationModel
	`},
	{"", "agents.list[].", `
		agentDir compaction contextLimits contextTokens description fastModeDefault groupChat heartbeat humanDelay memorySearch models
		reasoningDefault runtime skills systemPromptOverride typingMode userTimezone
	`},
	{"", "gateway.", `
		allowRealIpFallback channelHealthCheckMinutes channelMaxRestartsPerHour channelStaleEventThresholdMinutes handshakeTimeoutMs http
		push tailscale webchat
	`},
	{"", "messages.", "ackReaction ackReactionScope groupChat messagePrefix removeAckAfterReply statusReactions suppressToolErrors tts"},
	{"", "agents.defaults.subagents.", "skillsSection"},
	{"", "agents.list[].subagents.", "skillsSection"},
	{"", "session.maintenance.", "highWaterBytes maxDiskBytes pruneAfter pruneDays resetArchiveRetention rotateBytes"},
	{"", "session.", `
		groupScope idleMinutes parentForkMaxTokens resetByChannel resetByType scope store
		typingIntervalSeconds typingMode writeLock
	`},
	{"", "tools.", "codeMode experimental links media swarm toolSearch"},
	{guardClients, "", "gateway.auth.rateLimit gateway.securityPathPrefixes"},
	{guardNodes, "", "gateway.nodes"},
	{guardSandboxes, "agents.defaults.sandbox.", "browser docker.dangerouslyAllowReservedContainerTargets openshell sessionToolsVisibility ssh"},
	{guardSandboxes, "agents.list[].sandbox.", "browser docker.dangerouslyAllowReservedContainerTargets openshell sessionToolsVisibility ssh"},
	{guardSenders, "", "accessGroups commands.allowFrom commands.ownerAllowFrom"},
	{guardSenders, "channels.*.", "dm dmPolicy groupAllowFrom groupPolicy groups guilds"},
	{guardSenders, "channels.*.accounts.*.", "allowFrom dm dmPolicy groupAllowFrom groupPolicy groups"},
	{guardSending, "", "session.sendPolicy tools.message"},
	{guardSettings, "", "security"},
}

// containers is the settings of containers, below sandbox.docker.
var containers = [...]Key{
	{Path: "image", Kind: Text, Default: `"chela-sandbox:bookworm-slim"`, Doc: "image"},
	{Path: "containerPrefix", Kind: Text, Default: `"chela-sbx-"`, Doc: "beginning of the names of containers"},
	{Path: "workdir", Kind: Text, Default: `"/workspace"`, Doc: "folder in which commands start"},
	{Path: "readOnlyRoot", Kind: Bool, Default: "true", Doc: "the root folder cannot be changed"},
	{Path: "tmpfs", Kind: Texts, Default: `["/tmp","/var/tmp","/run"]`, Doc: "folders in memory, which can be changed"},
	{Path: "network", Kind: Text, Default: `"none"`, Doc: "network; host is refused"},
	{Path: "user", Kind: Text, Doc: "user and group; default: the owner of the workspace, or 1000:1000"},
	{Path: "capDrop", Kind: Texts, Default: `["ALL"]`, Doc: "capabilities that commands do not have"},
	{Path: "env", Kind: Object, Default: `{"LANG":"C.UTF-8"}`, Doc: "environment variables"},
	{Path: "env.*", Kind: Text, Doc: "an environment variable"},
	{Path: "setupCommand", Kind: Text, Doc: "command that runs once, when a container was created"},
	{Path: "pidsLimit", Kind: Int, Default: "256", Doc: "maximum number of processes"},
	{Path: "memory", Kind: Any, Default: `"1g"`, Doc: "maximum memory"},
	{Path: "memorySwap", Kind: Any, Default: `"2g"`, Doc: "maximum memory with swap"},
	{Path: "cpus", Kind: Number, Default: "1", Doc: "maximum number of processors, such as 0.5"},
	{Path: "gpus", Kind: Text, Doc: "graphics processors, such as all"},
	{Path: "ulimits", Kind: Object, Doc: "limits of processes, by name"},
	{Path: "ulimits.*", Kind: Any, Doc: "a number, or {soft, hard}"},
	{Path: "seccompProfile", Kind: Text, Doc: "file with a profile for system calls"},
	{Path: "apparmorProfile", Kind: Text, Doc: "name of an AppArmor profile"},
	{Path: "dns", Kind: Texts, Doc: "name servers"},
	{Path: "extraHosts", Kind: Texts, Doc: "names of hosts, NAME:ADDRESS"},
	{Path: "binds", Kind: Texts, Doc: "further folders, HOST:CONTAINER or HOST:CONTAINER:ro"},
	{Path: "dangerouslyAllowContainerNamespaceJoin", Kind: Bool, Default: "false", Doc: "allow network container:NAME"},
	{Path: "dangerouslyAllowExternalBindSources", Kind: Bool, Default: "false", Doc: "allow binds of folders outside the workspaces"},
}

// subagents is the settings of subagents, below subagents.
var subagents = [...]Key{
	{Path: "maxSpawnDepth", Kind: Int, Default: "1", Doc: "greatest depth of subagents of subagents, 1 to 5"},
	{Path: "maxChildrenPerAgent", Kind: Int, Default: "5", Doc: "running subagents of one session, 1 to 20"},
	{Path: "maxConcurrent", Kind: Int, Default: "8", Doc: "runs of subagents at once; only in agents.defaults"},
	{Path: "runTimeoutSeconds", Kind: Seconds, Default: "0", Doc: "time limit of a subagent; 0: unlimited"},
	{Path: "archiveAfterMinutes", Kind: Int, Default: "60", Doc: "time after which the session of a subagent that has ended is archived; 0: never"},
	{Path: "maxToolRounds", Kind: Int, Default: "0", Doc: "rounds of tool calls per run of a subagent; 0: as for other runs"},
	{Path: "announceTimeoutMs", Kind: Millis, Default: "120000", Doc: "time limit for an attempt to send the answer that reports a result, 1000 to 3600000"},
	{Path: "model", Kind: Any, Doc: "model of subagents: provider/model, or an object with primary; default: the agent's"},
	{Path: "thinking", Kind: Text, Values: thinking, Doc: "thinking level of subagents"},
	{Path: "allowAgents", Kind: Texts, Doc: "other agents whose subagents may be started; *: all"},
	{Path: "requireAgentId", Kind: Bool, Default: "false", Doc: "a subagent is started only with the name of its agent"},
}

// documented is the other known keys. The values of idle ones are checked, too.
var documented = [...]Key{
	{Path: "$schema", Kind: Text, Doc: "schema for editors"},
	{Path: "compat", Kind: Text, Values: []string{"chela", "openclaw"}, Default: `"chela"`, Doc: "openclaw: OpenClaw's permissive defaults, which run every command without approval"},
	{Path: "env", Kind: Object, Doc: "environment variables for Chela"},
	{Path: "env.*", Kind: Any, Doc: "a variable; one in the environment of the process overrides it"},
	{Path: "env.vars", Kind: Object, Doc: "variables by name"},
	{Path: "env.vars.*", Kind: Text, Doc: "a variable; one in the environment of the process overrides it"},

	// agents
	{Path: "agents.defaults.workspace", Kind: Text, Env: "WORKSPACE_DIR", Default: `"workspace"`, Doc: "the agent's home directory, relative to the state directory"},
	{Path: "agents.defaults.model", Kind: Model, Doc: "default model, with fallbacks"},
	{Path: "agents.defaults.model.primary", Kind: Text, Doc: "provider/model"},
	{Path: "agents.defaults.model.fallbacks", Kind: Texts, Doc: "models to use when the primary one fails, in order"},
	{Path: "agents.defaults.modelPolicy.allow", Kind: Texts, Doc: "models that people may choose besides the default one: provider/model, an alias, or provider/*; none: all"},
	{Path: "agents.defaults.models", Kind: Object, Doc: "settings of models, by provider/model"},
	{Path: "agents.defaults.models.*", Kind: Any, Doc: "settings of a model: alias, a short name for /model; params, fields for its requests"},
	{Path: "agents.defaults.maxConcurrent", Kind: Int, Doc: "concurrent runs; default: four per core"},
	{Path: "agents.defaults.maxToolRounds", Kind: Int, Doc: "rounds of tool calls per run; default: unlimited"},
	{Path: "agents.defaults.maxToolCallsPerTurn", Kind: Int, Doc: "tool calls per run; default: unlimited"},
	{Path: "agents.defaults.maxRunLoopIterations", Kind: Int, Default: "24", Doc: "attempts of a run after recoverable errors"},
	{Path: "agents.defaults.timeoutSeconds", Kind: Seconds, Default: "172800", Doc: "time limit of a run; 0: unlimited"},
	{Path: "agents.defaults.thinkingDefault", Kind: Text, Values: thinking, Default: `"off"`, Doc: "thinking level of sessions without their own"},
	{Path: "agents.defaults.verboseDefault", Kind: Text, Values: verbose, Default: `"off"`, Doc: "tool notices in chats without their own setting"},
	{Path: "agents.defaults.imageModel", Kind: Model, Doc: "model for pictures when the session's model takes none, with fallbacks"},
	{Path: "agents.defaults.subagents", Kind: Object, Doc: "subagents"},
	{Path: "agents.defaults.imageMaxDimensionPx", Kind: Int, Default: "1200", Doc: "maximum length in pixels of the longer side of a picture sent to a model"},
	{Path: "agents.defaults.contextTokens", Kind: Int, Doc: "maximum context window to use; default: the model's"},
	{Path: "agents.defaults.bootstrapMaxChars", Kind: Int, Default: "20000", Doc: "maximum characters of a workspace file in the prompt"},
	{Path: "agents.defaults.bootstrapTotalMaxChars", Kind: Int, Default: "150000", Doc: "maximum characters of all workspace files in the prompt"},
	{Path: "agents.defaults.skipBootstrap", Kind: Bool, Default: "false", Doc: "do not create workspace files"},
	{Path: "agents.defaults.userTimezone", Kind: Text, Doc: "your time zone, for example Europe/Berlin; default: the host's"},
	{Path: "agents.defaults.budget", Kind: Object, Doc: "limits of a run"},
	{Path: "agents.defaults.budget.toolCalls", Kind: Int, Default: "500", Doc: "tool calls per run; negative: unlimited"},
	{Path: "agents.defaults.budget.failures", Kind: Int, Default: "20", Doc: "consecutive failed tool calls per run; negative: unlimited"},
	{Path: "agents.defaults.budget.identicalCalls", Kind: Int, Default: "100", Doc: "identical tool calls per run; negative: unlimited"},
	{Path: "agents.defaults.budget.minutes", Kind: Int, Default: "240", Doc: "working time of a run, without waiting for approvals; negative: unlimited"},
	{Path: "agents.defaults.budget.tokens", Kind: Int, Default: "20000000", Doc: "tokens per run; negative: unlimited"},
	{Path: "agents.defaults.budget.usd", Kind: Number, Doc: "US dollars per run; default: unlimited"},
	{Path: "agents.defaults.params", Kind: Any, Doc: "fields added to the requests to any model"},
	{Path: "agents.defaults.elevatedDefault", Kind: Text, Values: elevated, Default: `"off"`, Doc: "whether commands of sandboxed sessions run on the host, for those who may allow it: off, on, ask, full"},
	{Path: "agents.defaults.sandbox", Kind: Object, Doc: "where the tools of sessions work"},
	{Path: "agents.defaults.sandbox.mode", Kind: Text, Values: sandboxMode, Default: `"off"`, Doc: "sandboxed sessions: none (their commands are still confined while nobody approved them), all but the main ones, or all"},
	{Path: "agents.defaults.sandbox.scope", Kind: Text, Values: sandboxScope, Default: `"agent"`, Doc: "sessions that share a sandbox: none, those of an agent, or all"},
	{Path: "agents.defaults.sandbox.backend", Kind: Text, Values: sandboxBackend, Default: `"native"`, Doc: "native, docker or podman; default: docker if docker is set"},
	{Path: "agents.defaults.sandbox.workspaceAccess", Kind: Text, Values: sandboxAccess, Default: `"none"`, Doc: "what sandboxed tools may do with the workspace; none: they work in a private folder"},
	{Path: "agents.defaults.sandbox.workspaceRoot", Kind: Text, Doc: "folder of the private folders; default: sandboxes in the state directory"},
	{Path: "agents.defaults.sandbox.docker", Kind: Object, Doc: "settings of containers: image, network, user, memory, cpus, pidsLimit, binds, env, setupCommand, …"},
	{Path: "agents.defaults.sandbox.prune", Kind: Object, Doc: "when unused containers are removed"},
	{Path: "agents.defaults.sandbox.prune.idleHours", Kind: Number, Default: "24", Doc: "hours without a command; 0: never"},
	{Path: "agents.defaults.sandbox.prune.maxAgeDays", Kind: Number, Default: "7", Doc: "days since a container was created; 0: never"},
	{Path: "agents.list[].subagents", Kind: Object, Doc: "as in agents.defaults.subagents, for this agent"},
	{Path: "agents.list[].sandbox", Kind: Object, Doc: "as in agents.defaults.sandbox, for this agent"},
	{Path: "agents.list[].sandbox.mode", Kind: Text, Values: sandboxMode, Doc: "off, non-main or all"},
	{Path: "agents.list[].sandbox.scope", Kind: Text, Values: sandboxScope, Doc: "session, agent or shared"},
	{Path: "agents.list[].sandbox.backend", Kind: Text, Values: sandboxBackend, Doc: "native, docker or podman"},
	{Path: "agents.list[].sandbox.workspaceAccess", Kind: Text, Values: sandboxAccess, Doc: "none, ro or rw"},
	{Path: "agents.list[].sandbox.workspaceRoot", Kind: Text, Doc: "folder of the private folders"},
	{Path: "agents.list[].sandbox.docker", Kind: Object, Doc: "settings of containers; added to those of agents.defaults"},
	{Path: "agents.list[].sandbox.prune", Kind: Object, Doc: "when unused containers are removed"},
	{Path: "agents.list[].sandbox.prune.*", Kind: Number, Doc: "as in agents.defaults.sandbox.prune"},
	{Path: "agents.list", Kind: List, Doc: "agents, as an array"},
	{Path: "agents.list[].id", Kind: Text, Doc: "the agent's id, which is part of session keys"},
	{Path: "agents.list[].agentId", Kind: Text, Doc: "the same as id (older name)"},
	{Path: "agents.list[].default", Kind: Bool, Default: "false", Doc: "use this agent for messages without a binding"},
	{Path: "agents.list[].name", Kind: Text, Doc: "display name"},
	{Path: "agents.list[].workspace", Kind: Text, Doc: "home directory; default: workspace-<id>"},
	{Path: "agents.list[].model", Kind: Model, Doc: "model, with fallbacks; default: that of agents.defaults"},
	{Path: "agents.list[].model.primary", Kind: Text, Doc: "provider/model"},
	{Path: "agents.list[].model.fallbacks", Kind: Texts, Doc: "models to use when the primary one fails, in order"},
	{Path: "agents.list[].thinkingDefault", Kind: Text, Values: thinking, Doc: "thinking level"},
	{Path: "agents.list[].verboseDefault", Kind: Text, Values: verbose, Doc: "tool notices"},
	{Path: "agents.list[].identity.name", Kind: Text, Doc: "display name; overrides name and IDENTITY.md"},
	{Path: "agents.list[].identity.emoji", Kind: Text, Doc: "emoji"},
	{Path: "agents.list[].identity.theme", Kind: Text, Idle: true, Doc: "theme"},
	{Path: "agents.list[].identity.avatar", Kind: Text, Idle: true, Doc: "avatar"},
	{Path: "agents.list[].params", Kind: Any, Doc: "fields added to the agent's requests"},
	{Path: "agents.list[].tools", Kind: Any, Doc: "tools: profile, allow, alsoAllow, deny, byProvider, toolsBySender, exec, fs"},
	{Path: "agents.list[].tools.fs.workspaceOnly", Kind: Bool, Doc: "limit file tools, image and message to the workspace; default: that of tools.fs"},
	{Path: "agents.list[].tools.fs.maxReadBytes", Kind: Bytes, Idle: true, Doc: "maximum bytes that are read from a file at once"},
	{Path: "agents.list[].tools.*", Kind: Any, Doc: "as in tools"},
	{Path: "agents.entries", Kind: Object, Doc: "agents by id, with the keys of agents.list"},

	{Path: "bindings", Kind: List, Doc: "which agent answers which messages of channels"},
	{Path: "bindings[].agentId", Kind: Text, Doc: "the agent"},
	{Path: "bindings[].type", Kind: Text, Values: []string{"route", "acp"}, Default: `"route"`, Doc: "bindings of another type than route have no effect"},
	{Path: "bindings[].match", Kind: Object, Doc: "what a message must have: all fields that are set"},
	{Path: "bindings[].match.channel", Kind: Text, Doc: "name of the channel"},
	{Path: "bindings[].match.accountId", Kind: Any, Doc: "account of the channel; *: any; default: its default account"},
	{Path: "bindings[].match.peer", Kind: Object, Doc: "the conversation"},
	{Path: "bindings[].match.peer.kind", Kind: Text, Values: []string{"direct", "group", "channel", "dm"}, Doc: "direct, group or channel"},
	{Path: "bindings[].match.peer.id", Kind: Any, Doc: "id of the person, group, room or thread; *: every conversation of the kind"},
	{Path: "bindings[].match.guildId", Kind: Any, Doc: "the server that contains the conversation"},
	{Path: "bindings[].match.teamId", Kind: Any, Doc: "the workspace that contains the conversation"},
	{Path: "bindings[].match.roles", Kind: Texts, Doc: "roles of the sender, one of which is enough"},
	{Path: "bindings[].session", Kind: Object, Doc: "sessions of these messages"},
	{Path: "bindings[].session.dmScope", Kind: Text, Values: dmScope, Doc: "as session.dmScope; default: that one"},

	// session and messages
	{Path: "session.dmScope", Kind: Text, Values: dmScope, Default: `"main"`, Doc: "which direct messages share a session: all, those of a person, of a person on a channel, or of a person on an account"},
	{Path: "session.mainKey", Kind: Text, Default: `"main"`, Idle: true, Doc: "name of the main session"},
	{Path: "session.reset", Kind: Object, Doc: "when a session is reset automatically"},
	{Path: "session.reset.mode", Kind: Text, Values: resetMode, Default: `"none"`, Doc: "none, daily or idle"},
	{Path: "session.reset.atHour", Kind: Int, Default: "4", Doc: "hour of the daily reset"},
	{Path: "session.reset.idleMinutes", Kind: Int, Doc: "minutes without a message until an idle session is reset"},
	{Path: "session.resetTriggers", Kind: Texts, Default: `["/new","/reset"]`, Idle: true, Doc: "messages that reset the session"},
	{Path: "session.agentToAgent", Kind: Object, Doc: "exchanges between sessions (sessions_send)"},
	{Path: "session.agentToAgent.maxPingPongTurns", Kind: Int, Default: "5", Doc: "turns in which two sessions answer each other after the reply, 0 to 5"},
	{Path: "session.maintenance", Kind: Object, Doc: "old sessions"},
	{Path: "session.maintenance.mode", Kind: Text, Values: []string{"warn", "enforce"}, Default: `"warn"`, Doc: "whether old sessions are deleted (enforce), or their number is only logged"},
	{Path: "session.maintenance.maxEntries", Kind: Int, Default: "500", Doc: "sessions of an agent, 1 to 100000"},
	{Path: "session.threadBindings", Kind: Object, Doc: "chats whose messages go to a subagent (/focus)"},
	{Path: "session.threadBindings.enabled", Kind: Bool, Default: "true", Doc: "whether a chat may be focused on a subagent"},
	{Path: "session.threadBindings.idleHours", Kind: Number, Default: "24", Doc: "hours without a message until the focus ends; 0: none"},
	{Path: "session.threadBindings.maxAgeHours", Kind: Number, Default: "0", Doc: "hours until the focus ends; 0: none"},
	{Path: "session.identityLinks", Kind: Object, Doc: "a person's addresses on several channels, by name"},
	{Path: "session.identityLinks.*", Kind: Texts, Doc: "addresses of a person: telegram:1, discord:2"},
	{Path: "messages.queue", Kind: Object, Doc: "how messages to a busy session are queued"},
	{Path: "messages.queue.mode", Kind: Text, Values: queueMode, Default: `"collect"`, Doc: "steer, followup, collect, steer-backlog or interrupt"},
	{Path: "messages.queue.debounceMs", Kind: Millis, Default: "1000", Doc: "time without a message before a follow-up starts"},
	{Path: "messages.queue.cap", Kind: Int, Default: "20", Doc: "maximum number of queued messages per session"},
	{Path: "messages.queue.drop", Kind: Text, Values: dropMode, Default: `"summarize"`, Doc: "what to drop when the queue is full"},
	{Path: "messages.queue.byChannel", Kind: Object, Idle: true, Doc: "queue mode by channel"},
	{Path: "messages.queue.byChannel.*", Kind: Text, Values: queueMode, Idle: true, Doc: "queue mode of a channel"},
	{Path: "messages.responseUsage", Kind: Text, Values: usageMode, Default: `"off"`, Doc: "usage line below replies"},
	{Path: "messages.responsePrefix", Kind: Text, Idle: true, Doc: "prefix of each reply; auto: [the agent's name]"},
	{Path: "messages.inbound", Kind: Object, Idle: true, Doc: "joining of a sender's consecutive messages"},
	{Path: "messages.inbound.debounceMs", Kind: Millis, Idle: true, Doc: "time without a message before the joined messages are processed"},
	{Path: "messages.inbound.byChannel", Kind: Object, Idle: true, Doc: "debounceMs by channel"},
	{Path: "messages.inbound.byChannel.*", Kind: Millis, Idle: true, Doc: "debounceMs of a channel"},

	// models
	{Path: "models.mode", Kind: Text, Values: []string{"merge", "replace"}, Default: `"merge"`, Doc: "replace: use only the providers configured here"},
	{Path: "models.providers", Kind: Object, Doc: "model providers, by id"},
	{Path: "models.providers.*.baseUrl", Kind: Text, Doc: "base URL of the service"},
	{Path: "models.providers.*.apiKey", Kind: Secret, Doc: "API key: the key itself, ${NAME}, env:NAME or file:path"},
	{Path: "models.providers.*.api", Kind: Text, Values: dialects, Doc: "API protocol of the service"},
	{Path: "models.providers.*.headers", Kind: Object, Doc: "additional HTTP headers"},
	{Path: "models.providers.*.headers.*", Kind: Secret, Doc: "an HTTP header"},
	{Path: "models.providers.*.timeoutSeconds", Kind: Seconds, Doc: "time without data after which a request fails"},
	{Path: "models.providers.*.maxTokens", Kind: Int, Doc: "maximum tokens of an answer, for models without their own"},
	{Path: "models.providers.*.params", Kind: Any, Doc: "fields added to requests to the service"},
	{Path: "models.providers.*.compat", Kind: Any, Doc: "deviations of the service from its API protocol"},
	{Path: "models.providers.*.models", Kind: List, Doc: "models of the service: id, name, contextWindow, contextTokens, maxTokens, reasoning, input, cost, compat"},
	{Path: "models.providers.*.request", Kind: Object, Doc: "transport of requests"},
	{Path: "models.providers.*.request.allowPrivateNetwork", Kind: Bool, Default: "false", Doc: "allow connections to all ports of the service's host, not only the one of its URL"},

	// tools
	{Path: "tools.profile", Kind: Text, Values: []string{"minimal", "coding", "messaging", "full"}, Default: `"full"`, Doc: "base set of tools"},
	{Path: "tools.allow", Kind: Texts, Doc: "allowed tools: names, group:fs, patterns such as web_*; default: all"},
	{Path: "tools.alsoAllow", Kind: Texts, Doc: "tools allowed in addition to the profile"},
	{Path: "tools.deny", Kind: Texts, Doc: "denied tools; overrides allow"},
	{Path: "tools.byProvider", Kind: Any, Doc: "profile, allow, alsoAllow and deny by provider, or provider/model"},
	{Path: "tools.toolsBySender", Kind: Any, Doc: "allow and deny by sender: id:7, channel:telegram:7, username:ada, *"},
	{Path: "commands.config", Kind: Bool, Default: "false", Doc: "let the owner show and change the configuration with /config in a chat"},
	{Path: "tools.sessions_spawn", Kind: Object, Doc: "starting subagents"},
	{Path: "tools.sessions_spawn.attachments", Kind: Object, Doc: "files that a subagent is given"},
	{Path: "tools.sessions_spawn.attachments.enabled", Kind: Bool, Default: "false", Doc: "whether the model may attach files"},
	{Path: "tools.sessions_spawn.attachments.maxTotalBytes", Kind: Int, Default: "5242880", Doc: "bytes of all files of a subagent"},
	{Path: "tools.sessions_spawn.attachments.maxFiles", Kind: Int, Default: "50", Doc: "files of a subagent"},
	{Path: "tools.sessions_spawn.attachments.maxFileBytes", Kind: Int, Default: "1048576", Doc: "bytes of a file"},
	{Path: "tools.sessions_spawn.attachments.retainOnSessionKeep", Kind: Bool, Default: "false", Doc: "the files stay after the session of the subagent was archived, unless it is deleted"},
	{Path: "tools.sessions", Kind: Object, Doc: "tools about other sessions"},
	{Path: "tools.updatePlan", Kind: Bool, Default: "true", Doc: "offer the tool `plan`"},
	{Path: "tools.sessions.visibility", Kind: Text, Values: []string{"self", "tree", "agent", "all"}, Default: `"tree"`, Doc: "sessions that these tools see: none but their own, those started from it, those of the agent, or all"},
	{Path: "tools.agentToAgent", Kind: Object, Doc: "sessions of other agents, with visibility all"},
	{Path: "tools.agentToAgent.enabled", Kind: Bool, Default: "false", Doc: "agents may see sessions of each other, and send messages to them"},
	{Path: "tools.agentToAgent.allow", Kind: Texts, Doc: "the agents that may, and whose sessions may be seen; default: all"},
	{Path: "tools.exec", Kind: Object, Doc: "running commands"},
	{Path: "tools.exec.host", Kind: Text, Default: `"auto"`, Doc: "where commands run: auto, sandbox, or gateway; commands are refused if it is not available"},
	{Path: "tools.exec.sandbox", Kind: Bool, Default: "false", Doc: "same as host sandbox"},
	{Path: "tools.exec.mode", Kind: Text, Values: execMode, Default: `"ask"`, Doc: "which commands may run, and which need approval"},
	{Path: "tools.exec.security", Kind: Text, Values: security, Doc: "which commands may run: none, those of the allowlist, all"},
	{Path: "tools.exec.ask", Kind: Text, Values: askMode, Doc: "when a command needs approval"},
	{Path: "tools.exec.timeoutSec", Kind: Seconds, Doc: "other name of timeoutSeconds, which takes precedence"},
	{Path: "tools.exec.timeoutSeconds", Kind: Seconds, Default: "1800", Doc: "maximum time limit of a command, and its limit in the background"},
	{Path: "tools.exec.backgroundMs", Kind: Millis, Default: "10000", Doc: "time after which a command continues in the background"},
	{Path: "tools.exec.cleanupMs", Kind: Millis, Default: "1800000", Doc: "how long the output of an ended command is retained"},
	{Path: "tools.exec.maxOutputChars", Kind: Int, Default: "10000", Doc: "maximum characters of a command's output that the model gets"},
	{Path: "tools.exec.pathPrepend", Kind: Texts, Doc: "directories added before PATH"},
	{Path: "tools.exec.safeBins", Kind: Texts, Default: `["cut","uniq","head","tail","tr","wc"]`, Doc: "filters that are allowed while they read only their input"},
	{Path: "tools.exec.dangerousPatterns", Kind: Texts, Doc: "regular expressions of commands that are always refused"},
	{Path: "tools.exec.env", Kind: Object, Idle: true, Doc: "environment variables of commands"},
	{Path: "tools.exec.env.*", Kind: Text, Idle: true, Doc: "an environment variable"},
	{Path: "tools.exec.applyPatch", Kind: Object, Doc: "the tool apply_patch"},
	{Path: "tools.exec.applyPatch.enabled", Kind: Bool, Default: "true", Doc: "offer the tool `apply_patch`"},
	{Path: "tools.exec.applyPatch.allowModels", Kind: Texts, Doc: "offer it to these models only: ids, or `provider/model`"},
	{Path: "tools.exec.applyPatch.workspaceOnly", Kind: Bool, Default: "true", Doc: "limit it to the workspace; false: changes of files outside need approval"},
	{Path: "tools.exec.notifyOnExit", Kind: Bool, Default: "true", Doc: "notify the session when a background command ends"},
	{Path: "tools.exec.notifyOnExitEmptySuccess", Kind: Bool, Default: "false", Doc: "also notify it of a command that succeeded without output"},
	{Path: "tools.exec.strictInlineEval", Kind: Bool, Default: "false", Doc: "require approval for every command with inline code, such as python3 -c"},
	{Path: "tools.exec.safeBinTrustedDirs", Kind: Texts, Doc: "directories with filters and wrappers besides /bin and /usr/bin"},
	{Path: "tools.exec.safeBinProfiles", Kind: Object, Doc: "allowed arguments of additional filters"},
	{Path: "tools.exec.safeBinProfiles.*", Kind: Object, Doc: "a filter"},
	{Path: "tools.exec.safeBinProfiles.*.minPositional", Kind: Int, Default: "0", Doc: "minimum number of positional arguments"},
	{Path: "tools.exec.safeBinProfiles.*.maxPositional", Kind: Int, Default: "0", Doc: "maximum number of positional arguments"},
	{Path: "tools.exec.safeBinProfiles.*.allowedValueFlags", Kind: Texts, Doc: "allowed flags with a value"},
	{Path: "tools.exec.safeBinProfiles.*.allowedBooleanFlags", Kind: Texts, Doc: "allowed flags without a value"},
	{Path: "tools.exec.safeBinProfiles.*.deniedFlags", Kind: Texts, Doc: "denied flags"},
	{Path: "tools.elevated", Kind: Object, Doc: "who may have commands of a sandboxed session run on the host"},
	{Path: "tools.elevated.enabled", Kind: Bool, Default: "true", Doc: "false: nobody"},
	{Path: "tools.elevated.allowFrom", Kind: Object, Doc: "people by channel"},
	{Path: "tools.elevated.allowFrom.*", Kind: Any, Doc: "ids of people on the channel; *: everybody"},
	{Path: "tools.sandbox", Kind: Object, Doc: "tools of sandboxed sessions"},
	{Path: "tools.subagents.tools", Kind: Any, Doc: "allow and deny for subagents; allow only narrows"},
	{Path: "tools.sandbox.tools", Kind: Any, Doc: "allow, alsoAllow and deny for sandboxed sessions"},
	{Path: "tools.loopDetection", Kind: Object, Doc: "detection of repeated tool calls"},
	{Path: "tools.loopDetection.enabled", Kind: Bool, Default: "true", Doc: "detect loops"},
	{Path: "tools.loopDetection.historySize", Kind: Int, Default: "30", Doc: "number of recent calls that are compared"},
	{Path: "tools.loopDetection.warningThreshold", Kind: Int, Default: "10", Doc: "repetitions after which the model is warned"},
	{Path: "tools.loopDetection.criticalThreshold", Kind: Int, Default: "20", Doc: "repetitions after which a call is refused"},
	{Path: "tools.loopDetection.globalCircuitBreakerThreshold", Kind: Int, Default: "30", Doc: "repetitions after which the run ends"},
	{Path: "tools.loopDetection.detectors", Kind: Object, Doc: "detected patterns"},
	{Path: "tools.loopDetection.detectors.*", Kind: Bool, Default: "true", Doc: "detect this pattern"},
	{Path: "tools.web", Kind: Object, Doc: "web tools"},
	{Path: "tools.web.fetch", Kind: Object, Doc: "fetching of pages"},
	{Path: "tools.web.fetch.enabled", Kind: Bool, Default: "true", Doc: "offer web_fetch"},
	{Path: "tools.web.fetch.maxChars", Kind: Int, Default: "20000", Doc: "maximum characters of a page that the model gets at once"},
	{Path: "tools.web.fetch.maxCharsCap", Kind: Int, Default: "20000", Doc: "maximum characters that a call may request"},
	{Path: "tools.web.fetch.maxResponseBytes", Kind: Bytes, Default: "750000", Doc: "maximum bytes of a response, 32000 to 10000000"},
	{Path: "tools.web.fetch.timeoutSeconds", Kind: Seconds, Default: "30", Doc: "time limit of a call"},
	{Path: "tools.web.fetch.cacheTtlMinutes", Kind: Number, Default: "15", Doc: "how long a page is cached; 0: not cached"},
	{Path: "tools.web.fetch.maxRedirects", Kind: Int, Default: "3", Doc: "maximum number of redirects"},
	{Path: "tools.web.fetch.readability", Kind: Bool, Default: "true", Doc: "extract the main part of a page"},
	{Path: "tools.web.fetch.userAgent", Kind: Text, Doc: "User-Agent header of web_fetch"},
	{Path: "tools.web.fetch.headers", Kind: Object, Doc: "additional HTTP headers"},
	{Path: "tools.web.fetch.headers.*", Kind: Secret, Doc: "an HTTP header"},
	{Path: "tools.web.fetch.useTrustedEnvProxy", Kind: Bool, Default: "false", Doc: "let the proxy of the environment resolve names that cannot be resolved here"},
	{Path: "tools.web.fetch.ssrfPolicy", Kind: Object, Doc: "addresses that may be reached besides the public internet"},
	{Path: "tools.web.fetch.ssrfPolicy.dangerouslyAllowPrivateNetwork", Kind: Bool, Default: "false", Doc: "this machine and private networks"},
	{Path: "tools.web.fetch.ssrfPolicy.allowedHostnames", Kind: Texts, Doc: "host names (with any address) and networks"},
	{Path: "tools.web.fetch.ssrfPolicy.allowRfc2544BenchmarkRange", Kind: Bool, Default: "false", Doc: "198.18.0.0/15, which some proxies use"},
	{Path: "tools.web.fetch.ssrfPolicy.allowIpv6UniqueLocalRange", Kind: Bool, Default: "false", Doc: "fc00::/7"},
	{Path: "tools.web.search", Kind: Object, Doc: "web search"},
	{Path: "tools.web.search.enabled", Kind: Bool, Default: "true", Doc: "offer web_search"},
	{Path: "tools.web.search.provider", Kind: Text, Values: search, Doc: "search service; default: the first that is configured"},
	{Path: "tools.web.search.apiKey", Kind: Secret, Doc: "API key of the service; Brave's when no service is set"},
	{Path: "tools.web.search.maxResults", Kind: Int, Default: "5", Doc: "default number of results"},
	{Path: "tools.web.search.timeoutSeconds", Kind: Seconds, Default: "30", Doc: "time limit of a call"},
	{Path: "tools.web.search.cacheTtlMinutes", Kind: Number, Default: "15", Doc: "how long results are cached; 0: not cached"},
	{Path: "plugins", Kind: Object, Doc: "configuration of plug-ins"},
	{Path: "plugins.entries.*.config.webSearch.apiKey", Kind: Secret, Doc: "API key of a search service"},
	{Path: "plugins.entries.*.config.webSearch.baseUrl", Kind: Text, Doc: "base URL of a search service"},
	{Path: "tools.fs", Kind: Object, Doc: "file tools"},
	{Path: "tools.message.crossContext.allowWithinProvider", Kind: Bool, Default: "true", Doc: "let the tool message write from a chat to other chats on the same channel"},
	{Path: "tools.message.crossContext.allowAcrossProviders", Kind: Bool, Default: "false", Doc: "also to chats on other channels"},
	{Path: "tools.fs.workspaceOnly", Kind: Bool, Default: "true", Doc: "limit file tools, image and message to the workspace; false: they may read other files, and need approval to change them or to read private ones"},
	{Path: "tools.fs.maxReadBytes", Kind: Bytes, Idle: true, Doc: "maximum bytes that are read from a file at once"},

	// gateway
	{Path: "gateway.port", Kind: Int, Env: "GATEWAY_PORT", Default: strconv.Itoa(wire.DefaultPort), Doc: "port of the gateway"},
	{Path: "gateway.bind", Kind: Text, Values: bindMode, Default: `"loopback"`, Doc: "addresses that the gateway listens on"},
	{Path: "gateway.customBindHost", Kind: Text, Doc: "address for bind custom"},
	{Path: "gateway.mode", Kind: Text, Values: []string{"local", "remote"}, Default: `"local"`, Doc: "remote: use the gateway at gateway.remote"},
	{Path: "gateway.auth", Kind: Object, Doc: "authentication of clients"},
	{Path: "gateway.auth.mode", Kind: Text, Values: authMode, Default: `"token"`, Doc: "none, token, password or trusted-proxy"},
	{Path: "gateway.auth.token", Kind: Secret, Env: "GATEWAY_TOKEN", Doc: "token of clients; generated at the first start"},
	{Path: "gateway.auth.password", Kind: Secret, Env: "GATEWAY_PASSWORD", Doc: "password of clients"},
	{Path: "gateway.auth.trustedProxy", Kind: Object, Doc: "authentication by a proxy"},
	{Path: "gateway.auth.trustedProxy.userHeader", Kind: Text, Doc: "header with the user's name"},
	{Path: "gateway.auth.trustedProxy.requiredHeaders", Kind: Texts, Doc: "required headers"},
	{Path: "gateway.auth.trustedProxy.allowUsers", Kind: Texts, Doc: "allowed users; default: all"},
	{Path: "gateway.auth.trustedProxy.allowLoopback", Kind: Bool, Default: "false", Doc: "accept a proxy on this machine"},
	{Path: "gateway.reload", Kind: Object, Doc: "how edits of this file are applied"},
	{Path: "gateway.reload.mode", Kind: Text, Values: []string{"off", "hot", "restart", "hybrid"}, Default: `"hybrid"`, Doc: "how an edit is applied: off, after a restart by hand; hot, at once where possible; restart, by a restart; hybrid, at once where possible, else by a restart"},
	{Path: "gateway.reload.debounceMs", Kind: Millis, Default: "300", Doc: "time without changes before an edit is read"},
	{Path: "gateway.tls", Kind: Object, Doc: "TLS of the gateway's port"},
	{Path: "gateway.tls.enabled", Kind: Bool, Default: "false", Doc: "use TLS"},
	{Path: "gateway.tls.certPath", Kind: Text, Doc: "certificate file"},
	{Path: "gateway.tls.keyPath", Kind: Text, Doc: "key file"},
	{Path: "gateway.tls.autoGenerate", Kind: Bool, Default: "false", Doc: "generate a self-signed certificate when there is none"},
	{Path: "gateway.controlUi", Kind: Object, Doc: "the web interface"},
	{Path: "gateway.controlUi.enabled", Kind: Bool, Default: "true", Doc: "serve the web interface"},
	{Path: "gateway.controlUi.basePath", Kind: Text, Doc: "URL path of the web interface"},
	{Path: "gateway.controlUi.allowedOrigins", Kind: Texts, Doc: "additional origins that may connect"},
	{Path: "gateway.controlUi.root", Kind: Text, Doc: "directory of its files"},
	{Path: "gateway.remote", Kind: Object, Idle: true, Doc: "the gateway to use in mode remote"},
	{Path: "gateway.remote.url", Kind: Text, Idle: true, Doc: "URL: ws://host:port"},
	{Path: "gateway.remote.token", Kind: Secret, Idle: true, Doc: "token"},
	{Path: "gateway.remote.password", Kind: Secret, Idle: true, Doc: "password"},
	{Path: "gateway.trustedProxies", Kind: Texts, Doc: "proxies whose forwarded client addresses are trusted"},
	{Path: "gateway.tools", Kind: Object, Doc: "tools that may be called without a model (POST /tools/invoke, tools.invoke)"},
	{Path: "gateway.tools.deny", Kind: Texts, Doc: "additional denied tools"},
	{Path: "gateway.tools.allow", Kind: Texts, Doc: "tools of the built-in deny list that the owner may call"},

	// logging and channels
	{Path: "logging.level", Kind: Text, Env: "LOG_LEVEL", Values: logLevel, Default: `"info"`, Doc: "level of the log file"},
	{Path: "logging.file", Kind: Text, Idle: true, Doc: "the log file; default: below the state directory"},
	{Path: "logging.maxFileBytes", Kind: Bytes, Default: "8388608", Doc: "size at which the log file is rotated"},
	{Path: "logging.consoleLevel", Kind: Text, Values: logLevel, Default: `"info"`, Doc: "level of the terminal's log"},
	{Path: "logging.consoleStyle", Kind: Text, Values: []string{"pretty", "compact", "json"}, Default: `"pretty"`, Doc: "format of the terminal's log"},
	{Path: "logging.redactSensitive", Kind: Text, Values: []string{"off", "tools"}, Default: `"tools"`, Doc: "redact text in the log that looks like a secret"},
	{Path: "logging.redactPatterns", Kind: Texts, Doc: "additional regular expressions of secrets"},
	{Path: "channels", Kind: Any, Idle: true, Doc: "chat channels, by name"},
	{Path: "channels.*.defaultAccount", Kind: Text, Doc: "account for bindings that name none; default: default, else the first one"},
}
