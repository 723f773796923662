package config

import (
	"slices"
	"strconv"

	"github.com/chela-ai/chela/wire"
)

// Keys returns what is known of every key, in the order of the paths.
func Keys() []Key {
	keys := slices.Clone(table[:])
	slices.SortStableFunc(keys, func(a, b Key) int {
		switch {
		case a.Path < b.Path:
			return -1
		case a.Path > b.Path:
			return 1
		}
		return 0
	})
	return keys
}

var (
	thinking  = []string{"off", "minimal", "low", "medium", "high", "xhigh", "adaptive", "max"}
	verbose   = []string{"off", "on", "full"}
	queueMode = []string{"steer", "followup", "collect", "steer-backlog", "steer+backlog", "interrupt", "queue"}
	dropMode  = []string{"old", "new", "summarize"}
	usageMode = []string{"off", "tokens", "full"}
	resetMode = []string{"none", "daily", "idle"}
	dmScope   = []string{"main", "per-peer", "per-channel-peer", "per-account-channel-peer"}
	bindMode  = []string{"loopback", "lan", "tailnet", "auto", "custom"}
	authMode  = []string{"none", "token", "password", "trusted-proxy"}
	search    = []string{"brave", "tavily", "searxng", "duckduckgo"}
	logLevel  = []string{"silent", "fatal", "error", "warn", "info", "debug", "trace"}
	execHost  = []string{"auto", "sandbox", "gateway", "node"}
	security  = []string{"deny", "allowlist", "full", "off", "ask", "review", "sudo"}
	askMode   = []string{"off", "on-miss", "always", "true", "false"}
	execMode  = []string{"deny", "allowlist", "always", "ask", "auto", "full"}
	dialects  = []string{"anthropic-messages", "openai-completions", "openai-responses", "google-generative-ai", "ollama", "offline"}
)

// What keys that guard something do; see [Key.Guards].
const (
	guardTools      = "keep any tool from being used"
	guardSandboxes  = "put anything into a sandbox"
	guardCommands   = "keep any command from running"
	guardFiles      = "keep any file from being written"
	guardAgents     = "keep sessions apart"
	guardSending    = "keep any message from being sent"
	guardSenders    = "keep anybody from writing to the assistant"
	guardClients    = "keep any client from connecting"
	guardEncryption = "encrypt anything"
	guardNodes      = "keep any device or any of its commands out"
	guardSettings   = "protect anything"
)

// table is the known keys. A row without a Doc is a key of OpenClaw whose value
// is kept and not looked at; an idle one is checked, too.
var table = [...]Key{
	{Path: "$schema", Kind: Text, Doc: "schema for editors"},
	{Path: "compat", Kind: Text, Values: []string{"chela", "openclaw"}, Default: `"chela"`, Doc: "openclaw: its permissive default, every command runs without a question"},
	{Path: "env", Kind: Object, Doc: "environment variables for Chela"},
	{Path: "env.*", Kind: Any, Doc: "a variable; the environment of the process goes first"},
	{Path: "env.vars", Kind: Object, Doc: "variables by name"},
	{Path: "env.vars.*", Kind: Text, Doc: "a variable; the environment of the process goes first"},
	{Path: "env.shellEnv", Kind: Any},

	// agents
	{Path: "agents.defaults.workspace", Kind: Text, Env: "WORKSPACE_DIR", Default: `"workspace"`, Doc: "the agent's home folder, below the state directory unless absolute"},
	{Path: "agents.defaults.model", Kind: Model, Doc: "model that answers, with fallbacks"},
	{Path: "agents.defaults.model.primary", Kind: Text, Doc: "provider/model"},
	{Path: "agents.defaults.model.fallbacks", Kind: Texts, Doc: "models that answer when the primary one does not, in order"},
	{Path: "agents.defaults.modelPolicy.allow", Kind: Texts, Doc: "models that people may choose beside the default one: provider/model, an alias, or provider/*; none: all"},
	{Path: "agents.defaults.models", Kind: Object, Doc: "settings of models, by provider/model"},
	{Path: "agents.defaults.models.*", Kind: Any, Doc: "settings of a model: alias, a short name for /model; params, fields for its requests"},
	{Path: "agents.defaults.maxConcurrent", Kind: Int, Doc: "runs at once; default: four a core"},
	{Path: "agents.defaults.maxToolRounds", Kind: Int, Doc: "rounds of tool calls in a run; default: no bound"},
	{Path: "agents.defaults.maxToolCallsPerTurn", Kind: Int, Doc: "single tool calls in a run; default: no bound"},
	{Path: "agents.defaults.maxRunLoopIterations", Kind: Int, Default: "24", Doc: "attempts of a run that fails in a way that can be mended"},
	{Path: "agents.defaults.timeoutSeconds", Kind: Seconds, Default: "172800", Doc: "longest run; 0: no bound"},
	{Path: "agents.defaults.thinkingDefault", Kind: Text, Values: thinking, Default: `"off"`, Doc: "thinking level of sessions that set none"},
	{Path: "agents.defaults.verboseDefault", Kind: Text, Values: verbose, Default: `"off"`, Doc: "tool notices in chats that set none"},
	{Path: "agents.defaults.imageModel", Kind: Model, Doc: "model that looks at pictures for one that does not see, with fallbacks"},
	{Path: "agents.defaults.imageMaxDimensionPx", Kind: Int, Default: "1200", Doc: "pixels of the longer side of a picture, as it is sent to a model"},
	{Path: "agents.defaults.contextTokens", Kind: Int, Doc: "context window to use at most; default: the model's"},
	{Path: "agents.defaults.bootstrapMaxChars", Kind: Int, Default: "20000", Doc: "characters of one workspace file in the prompt"},
	{Path: "agents.defaults.bootstrapTotalMaxChars", Kind: Int, Default: "150000", Doc: "characters of all workspace files in the prompt"},
	{Path: "agents.defaults.skipBootstrap", Kind: Bool, Default: "false", Doc: "do not create workspace files"},
	{Path: "agents.defaults.userTimezone", Kind: Text, Doc: "the person's time zone, for example Europe/Berlin; default: the host's"},
	{Path: "agents.defaults.budget", Kind: Object, Doc: "what one run may spend"},
	{Path: "agents.defaults.budget.toolCalls", Kind: Int, Default: "500", Doc: "tool calls of a run; negative: no bound"},
	{Path: "agents.defaults.budget.failures", Kind: Int, Default: "20", Doc: "tool calls of a run that fail, one after the other; negative: no bound"},
	{Path: "agents.defaults.budget.identicalCalls", Kind: Int, Default: "100", Doc: "calls of one tool with the same arguments in a run; negative: no bound"},
	{Path: "agents.defaults.budget.minutes", Kind: Int, Default: "240", Doc: "time that a run works, without what it waits for a person; negative: no bound"},
	{Path: "agents.defaults.budget.tokens", Kind: Int, Default: "20000000", Doc: "tokens of a run; negative: no bound"},
	{Path: "agents.defaults.budget.usd", Kind: Number, Doc: "US dollars of a run; default: no bound"},
	{Path: "agents.defaults.params", Kind: Any, Doc: "fields for the request to any model"},
	{Path: "agents.list", Kind: List, Doc: "agents, as an array"},
	{Path: "agents.list[].id", Kind: Text, Doc: "what the agent is called in keys of sessions"},
	{Path: "agents.list[].agentId", Kind: Text, Doc: "the same (older spelling)"},
	{Path: "agents.list[].default", Kind: Bool, Idle: true, Doc: "whether messages go to it that no binding sends elsewhere"},
	{Path: "agents.list[].name", Kind: Text, Doc: "its name for people"},
	{Path: "agents.list[].workspace", Kind: Text, Doc: "its home folder; default: workspace-<id>"},
	{Path: "agents.list[].model", Kind: Model, Doc: "its model, with fallbacks; default: that of agents.defaults"},
	{Path: "agents.list[].model.primary", Kind: Text, Doc: "provider/model"},
	{Path: "agents.list[].model.fallbacks", Kind: Texts, Doc: "models that answer when the primary one does not, in order"},
	{Path: "agents.list[].thinkingDefault", Kind: Text, Values: thinking, Doc: "its thinking level"},
	{Path: "agents.list[].verboseDefault", Kind: Text, Values: verbose, Doc: "its tool notices"},
	{Path: "agents.list[].identity.name", Kind: Text, Doc: "its name for people; goes before name, and before IDENTITY.md"},
	{Path: "agents.list[].identity.emoji", Kind: Text, Doc: "its sign"},
	{Path: "agents.list[].identity.theme", Kind: Text, Idle: true, Doc: "its manner"},
	{Path: "agents.list[].identity.avatar", Kind: Text, Idle: true, Doc: "its picture"},
	{Path: "agents.list[].params", Kind: Any, Doc: "fields for its requests"},
	{Path: "agents.list[].tools", Kind: Any, Doc: "its tools: profile, allow, alsoAllow, deny, byProvider, toolsBySender, exec, fs"},
	{Path: "agents.list[].tools.fs.workspaceOnly", Kind: Bool, Doc: "whether its file tools, image and message stay inside its workspace; default: what tools.fs says"},
	{Path: "agents.list[].tools.fs.maxReadBytes", Kind: Bytes, Idle: true, Doc: "longest piece of a file that is read at once"},
	{Path: "agents.list[].tools.*", Kind: Any, Doc: "as in tools"},
	{Path: "agents.list[].agentDir", Kind: Any}, {Path: "agents.list[].contextTokens", Kind: Any},
	{Path: "agents.list[].contextLimits", Kind: Any}, {Path: "agents.list[].compaction", Kind: Any},
	{Path: "agents.list[].description", Kind: Any}, {Path: "agents.list[].fastModeDefault", Kind: Any},
	{Path: "agents.list[].groupChat", Kind: Any}, {Path: "agents.list[].heartbeat", Kind: Any},
	{Path: "agents.list[].humanDelay", Kind: Any},
	{Path: "agents.list[].memorySearch", Kind: Any}, {Path: "agents.list[].models", Kind: Any},
	{Path: "agents.list[].reasoningDefault", Kind: Any}, {Path: "agents.list[].runtime", Kind: Any},
	{Path: "agents.list[].sandbox", Kind: Any, Guards: guardSandboxes}, {Path: "agents.list[].skills", Kind: Any},
	{Path: "agents.list[].subagents", Kind: Any}, {Path: "agents.list[].systemPromptOverride", Kind: Any},
	{Path: "agents.list[].typingMode", Kind: Any}, {Path: "agents.list[].userTimezone", Kind: Any},
	{Path: "agents.entries", Kind: Object, Doc: "agents, by name, with the keys of agents.list"},

	// session and messages
	{Path: "session.dmScope", Kind: Text, Values: dmScope, Default: `"main"`, Idle: true, Guards: guardAgents, Doc: "which direct messages share a session"},
	{Path: "session.mainKey", Kind: Text, Default: `"main"`, Idle: true, Doc: "name of the main session"},
	{Path: "session.reset", Kind: Object, Doc: "when a session starts anew by itself"},
	{Path: "session.reset.mode", Kind: Text, Values: resetMode, Default: `"none"`, Doc: "none, daily or idle"},
	{Path: "session.reset.atHour", Kind: Int, Default: "4", Doc: "hour of the daily reset"},
	{Path: "session.reset.idleMinutes", Kind: Int, Doc: "silence after which an idle session starts anew"},
	{Path: "session.resetTriggers", Kind: Texts, Default: `["/new","/reset"]`, Idle: true, Doc: "messages that start a session anew"},
	{Path: "session.identityLinks", Kind: Object, Idle: true, Doc: "one person's addresses on several channels, by name"},
	{Path: "session.identityLinks.*", Kind: Texts, Idle: true, Doc: "addresses of a person: telegram:1, discord:2"},
	{Path: "messages.queue", Kind: Object, Doc: "what a message does to a busy session"},
	{Path: "messages.queue.mode", Kind: Text, Values: queueMode, Default: `"collect"`, Doc: "steer, followup, collect, steer-backlog or interrupt"},
	{Path: "messages.queue.debounceMs", Kind: Millis, Default: "1000", Doc: "silence before a follow-up starts"},
	{Path: "messages.queue.cap", Kind: Int, Default: "20", Doc: "messages that may wait in a session"},
	{Path: "messages.queue.drop", Kind: Text, Values: dropMode, Default: `"summarize"`, Doc: "what happens beyond the cap"},
	{Path: "messages.queue.byChannel", Kind: Object, Idle: true, Doc: "mode by channel"},
	{Path: "messages.queue.byChannel.*", Kind: Text, Values: queueMode, Idle: true, Doc: "mode of a channel"},
	{Path: "messages.responseUsage", Kind: Text, Values: usageMode, Default: `"off"`, Doc: "usage line below replies"},
	{Path: "messages.responsePrefix", Kind: Text, Idle: true, Doc: "text before each reply; auto: [the agent's name]"},
	{Path: "messages.inbound", Kind: Object, Idle: true, Doc: "how quick messages of one sender are joined"},
	{Path: "messages.inbound.debounceMs", Kind: Millis, Idle: true, Doc: "silence that ends a message"},
	{Path: "messages.inbound.byChannel", Kind: Object, Idle: true, Doc: "debounceMs by channel"},
	{Path: "messages.inbound.byChannel.*", Kind: Millis, Idle: true, Doc: "debounceMs of a channel"},

	// models
	{Path: "models.mode", Kind: Text, Values: []string{"merge", "replace"}, Default: `"merge"`, Doc: "replace: only the providers given here"},
	{Path: "models.providers", Kind: Object, Doc: "model services, by name"},
	{Path: "models.providers.*.baseUrl", Kind: Text, Doc: "address of the service"},
	{Path: "models.providers.*.apiKey", Kind: Secret, Doc: "key of the service: itself, ${NAME}, env:NAME or file:path"},
	{Path: "models.providers.*.api", Kind: Text, Values: dialects, Doc: "protocol that the service speaks"},
	{Path: "models.providers.*.headers", Kind: Object, Doc: "further HTTP headers"},
	{Path: "models.providers.*.headers.*", Kind: Secret, Doc: "an HTTP header"},
	{Path: "models.providers.*.timeoutSeconds", Kind: Seconds, Doc: "silence after which a call is given up"},
	{Path: "models.providers.*.maxTokens", Kind: Int, Doc: "longest answer of models that say nothing else"},
	{Path: "models.providers.*.params", Kind: Any, Doc: "fields for requests to the service"},
	{Path: "models.providers.*.compat", Kind: Any, Doc: "what the service does in its own way"},
	{Path: "models.providers.*.models", Kind: List, Doc: "models of the service: id, name, contextWindow, contextTokens, maxTokens, reasoning, input, cost, compat"},
	{Path: "models.providers.*.auth", Kind: Any},
	{Path: "models.providers.*.authHeader", Kind: Any},
	{Path: "models.providers.*.request", Kind: Object, Doc: "how requests are sent"},
	{Path: "models.providers.*.request.allowPrivateNetwork", Kind: Bool, Default: "false", Doc: "all ports of the service's host may be reached, not only that of its address"},

	// tools
	{Path: "tools.profile", Kind: Text, Values: []string{"minimal", "coding", "messaging", "full"}, Default: `"full"`, Doc: "set of tools to begin with"},
	{Path: "tools.allow", Kind: Texts, Doc: "tools that may be used: names, group:fs, patterns such as web_*; default: all"},
	{Path: "tools.alsoAllow", Kind: Texts, Doc: "tools beyond the profile"},
	{Path: "tools.deny", Kind: Texts, Doc: "tools that may not be used; goes before allow"},
	{Path: "commands.config", Kind: Bool, Default: "false", Doc: "the owner shows and changes the configuration with /config in a conversation"},
	{Path: "commands.allowFrom", Kind: Any, Guards: guardSenders}, {Path: "commands.ownerAllowFrom", Kind: Any, Guards: guardSenders},
	{Path: "tools.exec", Kind: Object, Doc: "running commands"},
	{Path: "tools.exec.host", Kind: Text, Values: execHost, Default: `"auto"`, Idle: true, Guards: guardSandboxes, Doc: "where commands run"},
	{Path: "tools.exec.mode", Kind: Text, Values: execMode, Default: `"ask"`, Doc: "what may run and what asks first"},
	{Path: "tools.exec.security", Kind: Text, Values: security, Doc: "which commands may run: none, those of the allowlist, all"},
	{Path: "tools.exec.ask", Kind: Text, Values: askMode, Doc: "when a person is asked first"},
	{Path: "tools.exec.timeoutSec", Kind: Seconds, Idle: true, Doc: "longest command (other spelling)"},
	{Path: "tools.exec.timeoutSeconds", Kind: Seconds, Default: "1800", Doc: "longest time that a command may ask for, and has in the background"},
	{Path: "tools.exec.backgroundMs", Kind: Millis, Default: "10000", Doc: "time after which a command goes on in the background"},
	{Path: "tools.exec.cleanupMs", Kind: Millis, Default: "1800000", Doc: "how long an ended command is kept"},
	{Path: "tools.exec.maxOutputChars", Kind: Int, Default: "10000", Doc: "characters of a command's output that the model is given"},
	{Path: "tools.exec.pathPrepend", Kind: Texts, Doc: "folders before PATH"},
	{Path: "tools.exec.safeBins", Kind: Texts, Default: `["cut","uniq","head","tail","tr","wc"]`, Doc: "filters that are on the allowlist while they read nothing but their input"},
	{Path: "tools.exec.dangerousPatterns", Kind: Texts, Doc: "commands that are always refused, as patterns"},
	{Path: "tools.exec.env", Kind: Object, Idle: true, Doc: "variables for commands"},
	{Path: "tools.exec.env.*", Kind: Text, Idle: true, Doc: "a variable for commands"},
	{Path: "tools.exec.node", Kind: Any},
	{Path: "tools.exec.applyPatch", Kind: Object, Doc: "the tool apply_patch"},
	{Path: "tools.exec.applyPatch.enabled", Kind: Bool, Default: "true", Doc: "offer the tool `apply_patch`"},
	{Path: "tools.exec.applyPatch.allowModels", Kind: Texts, Doc: "only to these models: ids, or `provider/model`"},
	{Path: "tools.exec.applyPatch.workspaceOnly", Kind: Bool, Default: "true", Doc: "it stays inside the workspace; false: it asks before it changes files outside"},
	{Path: "tools.exec.notifyOnExit", Kind: Bool, Default: "true", Doc: "tell the session when a background command ends"},
	{Path: "tools.exec.notifyOnExitEmptySuccess", Kind: Bool, Default: "false", Doc: "also of one that succeeded without output"},
	{Path: "tools.exec.strictInlineEval", Kind: Bool, Default: "false", Doc: "ask each time about code that is written in a command, as in python3 -c"},
	{Path: "tools.exec.safeBinTrustedDirs", Kind: Texts, Doc: "folders with filters and wrappers, beside /bin and /usr/bin"},
	{Path: "tools.exec.safeBinProfiles", Kind: Object, Doc: "which arguments filters of your own may have"},
	{Path: "tools.exec.safeBinProfiles.*", Kind: Object, Doc: "a filter"},
	{Path: "tools.exec.safeBinProfiles.*.minPositional", Kind: Int, Default: "0", Doc: "fewest arguments that are no flags"},
	{Path: "tools.exec.safeBinProfiles.*.maxPositional", Kind: Int, Default: "0", Doc: "most arguments that are no flags"},
	{Path: "tools.exec.safeBinProfiles.*.allowedValueFlags", Kind: Texts, Doc: "flags with a value"},
	{Path: "tools.exec.safeBinProfiles.*.allowedBooleanFlags", Kind: Texts, Doc: "flags without one"},
	{Path: "tools.exec.safeBinProfiles.*.deniedFlags", Kind: Texts, Doc: "flags that are refused"},
	{Path: "tools.exec.approvalRunningNoticeMs", Kind: Any},
	{Path: "tools.loopDetection", Kind: Object, Doc: "stopping a model that goes in circles"},
	{Path: "tools.loopDetection.enabled", Kind: Bool, Default: "true", Doc: "watch for loops"},
	{Path: "tools.loopDetection.historySize", Kind: Int, Default: "30", Doc: "calls that are looked back at"},
	{Path: "tools.loopDetection.warningThreshold", Kind: Int, Default: "10", Doc: "repetitions until the model is warned"},
	{Path: "tools.loopDetection.criticalThreshold", Kind: Int, Default: "20", Doc: "repetitions until a call is refused"},
	{Path: "tools.loopDetection.globalCircuitBreakerThreshold", Kind: Int, Default: "30", Doc: "repetitions until the run ends"},
	{Path: "tools.loopDetection.detectors", Kind: Object, Doc: "which patterns are watched"},
	{Path: "tools.loopDetection.detectors.*", Kind: Bool, Default: "true", Doc: "watch this pattern"},
	{Path: "tools.loopDetection.postCompactionGuard", Kind: Any},
	{Path: "tools.web", Kind: Object, Doc: "the web"},
	{Path: "tools.web.fetch", Kind: Object, Doc: "fetching pages"},
	{Path: "tools.web.fetch.enabled", Kind: Bool, Default: "true", Doc: "offer web_fetch"},
	{Path: "tools.web.fetch.maxChars", Kind: Int, Default: "20000", Doc: "characters of a page that the model is given at once"},
	{Path: "tools.web.fetch.maxCharsCap", Kind: Int, Default: "20000", Doc: "characters that a call may ask for"},
	{Path: "tools.web.fetch.maxResponseBytes", Kind: Bytes, Default: "750000", Doc: "bytes of an answer that are read, 32000 to 10000000"},
	{Path: "tools.web.fetch.timeoutSeconds", Kind: Seconds, Default: "30", Doc: "longest time of a call"},
	{Path: "tools.web.fetch.cacheTtlMinutes", Kind: Number, Default: "15", Doc: "how long a page is kept; 0: not at all"},
	{Path: "tools.web.fetch.maxRedirects", Kind: Int, Default: "3", Doc: "redirects that are followed"},
	{Path: "tools.web.fetch.readability", Kind: Bool, Default: "true", Doc: "take the main part of a page only"},
	{Path: "tools.web.fetch.userAgent", Kind: Text, Doc: "how web_fetch introduces itself"},
	{Path: "tools.web.fetch.headers", Kind: Object, Doc: "further HTTP headers"},
	{Path: "tools.web.fetch.headers.*", Kind: Secret, Doc: "an HTTP header"},
	{Path: "tools.web.fetch.useTrustedEnvProxy", Kind: Bool, Default: "false", Doc: "leave names that cannot be looked up here to the proxy of the environment"},
	{Path: "tools.web.fetch.ssrfPolicy", Kind: Object, Doc: "what may be reached beside the public internet"},
	{Path: "tools.web.fetch.ssrfPolicy.dangerouslyAllowPrivateNetwork", Kind: Bool, Default: "false", Doc: "this machine and private networks"},
	{Path: "tools.web.fetch.ssrfPolicy.allowedHostnames", Kind: Texts, Doc: "hosts, wherever they lead, and networks"},
	{Path: "tools.web.fetch.ssrfPolicy.allowRfc2544BenchmarkRange", Kind: Bool, Default: "false", Doc: "198.18.0.0/15, which some proxies use for names"},
	{Path: "tools.web.fetch.ssrfPolicy.allowIpv6UniqueLocalRange", Kind: Bool, Default: "false", Doc: "fc00::/7"},
	{Path: "tools.web.search", Kind: Object, Doc: "searching the web"},
	{Path: "tools.web.search.enabled", Kind: Bool, Default: "true", Doc: "offer web_search"},
	{Path: "tools.web.search.provider", Kind: Text, Values: search, Doc: "the service; default: the first that has what it needs"},
	{Path: "tools.web.search.apiKey", Kind: Secret, Doc: "key of the service; also of Brave when none is named"},
	{Path: "tools.web.search.maxResults", Kind: Int, Default: "5", Doc: "results of a call that names no number"},
	{Path: "tools.web.search.timeoutSeconds", Kind: Seconds, Default: "30", Doc: "longest time of a call"},
	{Path: "tools.web.search.cacheTtlMinutes", Kind: Number, Default: "15", Doc: "how long results are kept; 0: not at all"},
	{Path: "plugins", Kind: Object, Doc: "what parts of their own need"},
	{Path: "plugins.entries.*.config.webSearch.apiKey", Kind: Secret, Doc: "key of a search service"},
	{Path: "plugins.entries.*.config.webSearch.baseUrl", Kind: Text, Doc: "address of a search service"},
	{Path: "tools.fs", Kind: Object, Doc: "reading and writing files"},
	{Path: "tools.message.crossContext.allowWithinProvider", Kind: Bool, Default: "true", Doc: "from a chat on a channel the tool message may write to others on it"},
	{Path: "tools.message.crossContext.allowAcrossProviders", Kind: Bool, Default: "false", Doc: "and to chats elsewhere"},
	{Path: "tools.fs.workspaceOnly", Kind: Bool, Default: "true", Doc: "file tools, image and message stay inside the workspace; false: they read files outside, and ask before they change them or read private ones"},
	{Path: "tools.fs.maxReadBytes", Kind: Bytes, Idle: true, Doc: "longest piece of a file that is read at once"},

	// gateway
	{Path: "gateway.port", Kind: Int, Env: "GATEWAY_PORT", Default: strconv.Itoa(wire.DefaultPort), Doc: "port of the gateway"},
	{Path: "gateway.bind", Kind: Text, Values: bindMode, Default: `"loopback"`, Doc: "addresses the gateway listens on"},
	{Path: "gateway.customBindHost", Kind: Text, Doc: "address for bind custom"},
	{Path: "gateway.mode", Kind: Text, Values: []string{"local", "remote"}, Default: `"local"`, Doc: "remote: use the gateway at gateway.remote"},
	{Path: "gateway.auth", Kind: Object, Doc: "how clients prove themselves"},
	{Path: "gateway.auth.mode", Kind: Text, Values: authMode, Default: `"token"`, Doc: "none, token, password or trusted-proxy"},
	{Path: "gateway.auth.token", Kind: Secret, Env: "GATEWAY_TOKEN", Doc: "token of clients; made at first start"},
	{Path: "gateway.auth.password", Kind: Secret, Env: "GATEWAY_PASSWORD", Doc: "password of clients"},
	{Path: "gateway.auth.allowTailscale", Kind: Any},
	{Path: "gateway.auth.trustedProxy", Kind: Object, Doc: "how a proxy names its user"},
	{Path: "gateway.auth.trustedProxy.userHeader", Kind: Text, Doc: "header with the user's name"},
	{Path: "gateway.auth.trustedProxy.requiredHeaders", Kind: Texts, Doc: "headers that must be there"},
	{Path: "gateway.auth.trustedProxy.allowUsers", Kind: Texts, Doc: "users that may come in; default: all"},
	{Path: "gateway.auth.trustedProxy.allowLoopback", Kind: Bool, Default: "false", Doc: "whether the proxy may be on this machine"},
	{Path: "gateway.auth.rateLimit", Kind: Any, Guards: guardClients},
	{Path: "gateway.reload", Kind: Object, Doc: "how edits of this file take effect"},
	{Path: "gateway.reload.mode", Kind: Text, Values: []string{"off", "hot", "restart", "hybrid"}, Default: `"hybrid"`, Doc: "what becomes of an edit: off, nothing; hot, it is in force at once where that is possible; restart, the gateway starts anew; hybrid, it does where it must"},
	{Path: "gateway.reload.debounceMs", Kind: Millis, Default: "300", Doc: "silence after an edit, before it is read"},
	{Path: "gateway.reload.deferralTimeoutMs", Kind: Any},
	{Path: "gateway.tls", Kind: Object, Doc: "encryption of the gateway's port"},
	{Path: "gateway.tls.enabled", Kind: Bool, Default: "false", Doc: "use TLS"},
	{Path: "gateway.tls.certPath", Kind: Text, Doc: "certificate file"},
	{Path: "gateway.tls.keyPath", Kind: Text, Doc: "key file"},
	{Path: "gateway.tls.autoGenerate", Kind: Bool, Default: "false", Doc: "make a certificate that is signed by itself when there is none"},
	{Path: "gateway.tls.caPath", Kind: Any},
	{Path: "gateway.controlUi", Kind: Object, Doc: "the web page of the gateway"},
	{Path: "gateway.controlUi.enabled", Kind: Bool, Default: "true", Doc: "serve it"},
	{Path: "gateway.controlUi.basePath", Kind: Text, Doc: "path it is served under"},
	{Path: "gateway.controlUi.allowedOrigins", Kind: Texts, Doc: "further origins that may connect"},
	{Path: "gateway.controlUi.root", Kind: Text, Doc: "directory of its files"},
	{Path: "gateway.controlUi.*", Kind: Any},
	{Path: "gateway.remote", Kind: Object, Idle: true, Doc: "the gateway to use in mode remote"},
	{Path: "gateway.remote.url", Kind: Text, Idle: true, Doc: "its address: ws://host:port"},
	{Path: "gateway.remote.token", Kind: Secret, Idle: true, Doc: "its token"},
	{Path: "gateway.remote.password", Kind: Secret, Idle: true, Doc: "its password"},
	{Path: "gateway.remote.*", Kind: Any},
	{Path: "gateway.trustedProxies", Kind: Texts, Doc: "proxies whose forwarded addresses are believed"},
	{Path: "gateway.tools", Kind: Object, Doc: "tools that may be called without a model: POST /tools/invoke, tools.invoke"},
	{Path: "gateway.tools.deny", Kind: Texts, Doc: "further tools that may not"},
	{Path: "gateway.tools.allow", Kind: Texts, Doc: "tools of the built-in list that the owner may"},
	{Path: "gateway.nodes", Kind: Any, Guards: guardNodes}, {Path: "gateway.tailscale", Kind: Any}, {Path: "gateway.http", Kind: Any},
	{Path: "gateway.push", Kind: Any}, {Path: "gateway.handshakeTimeoutMs", Kind: Any},
	{Path: "gateway.channelHealthCheckMinutes", Kind: Any}, {Path: "gateway.channelStaleEventThresholdMinutes", Kind: Any},
	{Path: "gateway.channelMaxRestartsPerHour", Kind: Any}, {Path: "gateway.allowRealIpFallback", Kind: Any},
	{Path: "gateway.webchat", Kind: Any}, {Path: "gateway.securityPathPrefixes", Kind: Any, Guards: guardClients},

	// logging and channels
	{Path: "logging.level", Kind: Text, Env: "LOG_LEVEL", Values: logLevel, Default: `"info"`, Doc: "what is written to the log file"},
	{Path: "logging.file", Kind: Text, Idle: true, Doc: "the log file; default: below the state directory"},
	{Path: "logging.maxFileBytes", Kind: Bytes, Default: "8388608", Doc: "size at which the log file is rotated"},
	{Path: "logging.consoleLevel", Kind: Text, Values: logLevel, Default: `"info"`, Doc: "what is written to the terminal"},
	{Path: "logging.consoleStyle", Kind: Text, Values: []string{"pretty", "compact", "json"}, Default: `"pretty"`, Doc: "form of the terminal's log"},
	{Path: "logging.redactSensitive", Kind: Text, Values: []string{"off", "tools"}, Default: `"tools"`, Doc: "hide what looks like a secret in the log"},
	{Path: "logging.redactPatterns", Kind: Texts, Doc: "further patterns of secrets, as regular expressions"},
	{Path: "channels", Kind: Any, Idle: true, Doc: "chat apps, each with its own options"},
	{Path: "channels.*", Kind: Any}, {Path: "channels.*.*", Kind: Any},
	{Path: "channels.*.dmPolicy", Kind: Any, Guards: guardSenders}, {Path: "channels.*.dm", Kind: Any, Guards: guardSenders},
	{Path: "channels.*.groupPolicy", Kind: Any, Guards: guardSenders}, {Path: "channels.*.groupAllowFrom", Kind: Any, Guards: guardSenders},
	{Path: "channels.*.groups", Kind: Any, Guards: guardSenders}, {Path: "channels.*.guilds", Kind: Any, Guards: guardSenders},
	{Path: "channels.*.accounts", Kind: Any}, {Path: "channels.*.accounts.*", Kind: Any}, {Path: "channels.*.accounts.*.*", Kind: Any},
	{Path: "channels.*.accounts.*.dmPolicy", Kind: Any, Guards: guardSenders}, {Path: "channels.*.accounts.*.dm", Kind: Any, Guards: guardSenders},
	{Path: "channels.*.accounts.*.groupPolicy", Kind: Any, Guards: guardSenders}, {Path: "channels.*.accounts.*.groups", Kind: Any, Guards: guardSenders},
	{Path: "channels.*.accounts.*.allowFrom", Kind: Any, Guards: guardSenders}, {Path: "channels.*.accounts.*.groupAllowFrom", Kind: Any, Guards: guardSenders},

	// OpenClaw's further keys below the ones above
	{Path: "agents.defaults.blockStreamingBreak", Kind: Any}, {Path: "agents.defaults.blockStreamingChunk", Kind: Any},
	{Path: "agents.defaults.blockStreamingCoalesce", Kind: Any}, {Path: "agents.defaults.blockStreamingDefault", Kind: Any},
	{Path: "agents.defaults.bootstrapPromptTruncationWarning", Kind: Any}, {Path: "agents.defaults.cliBackends", Kind: Any},
	{Path: "agents.defaults.compaction", Kind: Any}, {Path: "agents.defaults.contextInjection", Kind: Any},
	{Path: "agents.defaults.contextLimits", Kind: Any}, {Path: "agents.defaults.contextPruning", Kind: Any},
	{Path: "agents.defaults.elevatedDefault", Kind: Any, Guards: guardCommands}, {Path: "agents.defaults.embeddedPi", Kind: Any},
	{Path: "agents.defaults.embeddedHarness", Kind: Any}, {Path: "agents.defaults.agentRuntime", Kind: Any},
	{Path: "agents.defaults.envelopeElapsed", Kind: Any}, {Path: "agents.defaults.envelopeTimestamp", Kind: Any},
	{Path: "agents.defaults.envelopeTimezone", Kind: Any}, {Path: "agents.defaults.experimental", Kind: Any},
	{Path: "agents.defaults.fastModeDefault", Kind: Any}, {Path: "agents.defaults.heartbeat", Kind: Any},
	{Path: "agents.defaults.humanDelay", Kind: Any}, {Path: "agents.defaults.imageGenerationModel", Kind: Any},
	{Path: "agents.defaults.maxHistoryMessages", Kind: Any}, {Path: "agents.defaults.mediaMaxMb", Kind: Any},
	{Path: "agents.defaults.mediaModels", Kind: Any}, {Path: "agents.defaults.memorySearch", Kind: Any},
	{Path: "agents.defaults.musicGenerationModel", Kind: Any},
	{Path: "agents.defaults.pdfModel", Kind: Any}, {Path: "agents.defaults.pdfMaxBytesMb", Kind: Any},
	{Path: "agents.defaults.pdfMaxPages", Kind: Any}, {Path: "agents.defaults.reasoningDefault", Kind: Any},
	{Path: "agents.defaults.repoRoot", Kind: Any}, {Path: "agents.defaults.sandbox", Kind: Any, Guards: guardSandboxes},
	{Path: "agents.defaults.skills", Kind: Any}, {Path: "agents.defaults.skipOptionalBootstrapFiles", Kind: Any},
	{Path: "agents.defaults.startupContext", Kind: Any}, {Path: "agents.defaults.subagents", Kind: Any},
	{Path: "agents.defaults.systemPromptOverride", Kind: Any}, {Path: "agents.defaults.timeFormat", Kind: Any},
	{Path: "agents.defaults.toolProgressDetail", Kind: Any}, {Path: "agents.defaults.typingIntervalSeconds", Kind: Any},
	{Path: "agents.defaults.typingMode", Kind: Any}, {Path: "agents.defaults.utilityModel", Kind: Any},
	{Path: "agents.defaults.videoGenerationModel", Kind: Any},
	{Path: "session.agentToAgent", Kind: Any}, {Path: "session.groupScope", Kind: Any}, {Path: "session.idleMinutes", Kind: Any},
	{Path: "session.maintenance", Kind: Any}, {Path: "session.parentForkMaxTokens", Kind: Any},
	{Path: "session.reset.*", Kind: Any}, {Path: "session.resetByType", Kind: Any}, {Path: "session.resetByChannel", Kind: Any},
	{Path: "session.scope", Kind: Any}, {Path: "session.sendPolicy", Kind: Any, Guards: guardSending}, {Path: "session.store", Kind: Any},
	{Path: "session.threadBindings", Kind: Any}, {Path: "session.typingIntervalSeconds", Kind: Any},
	{Path: "session.typingMode", Kind: Any}, {Path: "session.writeLock", Kind: Any},
	{Path: "messages.ackReaction", Kind: Any}, {Path: "messages.ackReactionScope", Kind: Any}, {Path: "messages.groupChat", Kind: Any},
	{Path: "messages.messagePrefix", Kind: Any}, {Path: "messages.queue.debounceMsByChannel", Kind: Any},
	{Path: "messages.removeAckAfterReply", Kind: Any}, {Path: "messages.statusReactions", Kind: Any},
	{Path: "messages.suppressToolErrors", Kind: Any}, {Path: "messages.tts", Kind: Any},
	{Path: "models.bedrockDiscovery", Kind: Any}, {Path: "models.pricing", Kind: Any},
	{Path: "tools.agentToAgent", Kind: Any, Guards: guardAgents}, {Path: "tools.byProvider", Kind: Any, Doc: "profile, allow, alsoAllow and deny by provider, or provider/model"}, {Path: "tools.codeMode", Kind: Any},
	{Path: "tools.elevated", Kind: Any, Guards: guardCommands}, {Path: "tools.experimental", Kind: Any}, {Path: "tools.links", Kind: Any},
	{Path: "tools.media", Kind: Any}, {Path: "tools.message", Kind: Any, Guards: guardSending}, {Path: "tools.sandbox", Kind: Any, Guards: guardSandboxes},
	{Path: "tools.sessions", Kind: Any, Guards: guardAgents}, {Path: "tools.sessions_spawn", Kind: Any}, {Path: "tools.subagents", Kind: Any, Guards: guardTools},
	{Path: "tools.swarm", Kind: Any}, {Path: "tools.toolSearch", Kind: Any}, {Path: "tools.toolsBySender", Kind: Any, Doc: "allow and deny by sender: id:7, channel:telegram:7, username:ada, *"},
	{Path: "tools.updatePlan", Kind: Any},
	{Path: "tools.web.*", Kind: Any}, {Path: "tools.web.fetch.*", Kind: Any}, {Path: "tools.web.search.*", Kind: Any},
	{Path: "plugins.*", Kind: Any}, {Path: "plugins.entries.*.*", Kind: Any}, {Path: "plugins.entries.*.config.*", Kind: Any},
	{Path: "plugins.entries.*.config.webSearch.*", Kind: Any},
	{Path: "logging.maxFiles", Kind: Any},

	// and the roots
	{Path: "accessGroups", Kind: Any, Guards: guardSenders}, {Path: "acp", Kind: Any}, {Path: "approvals", Kind: Any}, {Path: "audio", Kind: Any},
	{Path: "auth", Kind: Any}, {Path: "bindings", Kind: Any}, {Path: "broadcast", Kind: Any}, {Path: "browser", Kind: Any},
	{Path: "canvas", Kind: Any}, {Path: "canvasHost", Kind: Any}, {Path: "cli", Kind: Any}, {Path: "commands", Kind: Any},
	{Path: "cron", Kind: Any}, {Path: "diagnostics", Kind: Any}, {Path: "discovery", Kind: Any}, {Path: "hooks", Kind: Any},
	{Path: "mcp", Kind: Any}, {Path: "media", Kind: Any}, {Path: "memory", Kind: Any}, {Path: "meta", Kind: Any},
	{Path: "nodeHost", Kind: Any}, {Path: "routing", Kind: Any}, {Path: "secrets", Kind: Any},
	{Path: "security", Kind: Any, Guards: guardSettings}, {Path: "skills", Kind: Any}, {Path: "talk", Kind: Any}, {Path: "tts", Kind: Any},
	{Path: "ui", Kind: Any}, {Path: "update", Kind: Any}, {Path: "web", Kind: Any}, {Path: "wizard", Kind: Any},
}
