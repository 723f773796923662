package wire

// The methods.
const (
	MethodConnect = "connect"
	MethodHealth  = "health"
	MethodStatus  = "status"

	MethodChatSend    = "chat.send"
	MethodChatHistory = "chat.history"
	MethodChatAbort   = "chat.abort"

	MethodAgent     = "agent"
	MethodAgentWait = "agent.wait"

	MethodSessionsList                = "sessions.list"
	MethodSessionsDescribe            = "sessions.describe"
	MethodSessionsResolve             = "sessions.resolve"
	MethodSessionsCreate              = "sessions.create"
	MethodSessionsPatch               = "sessions.patch"
	MethodSessionsReset               = "sessions.reset"
	MethodSessionsDelete              = "sessions.delete"
	MethodSessionsPreview             = "sessions.preview"
	MethodSessionsExport              = "sessions.export"
	MethodSessionsSend                = "sessions.send"
	MethodSessionsAbort               = "sessions.abort"
	MethodSessionsSubscribe           = "sessions.subscribe"
	MethodSessionsUnsubscribe         = "sessions.unsubscribe"
	MethodSessionsMessagesSubscribe   = "sessions.messages.subscribe"
	MethodSessionsMessagesUnsubscribe = "sessions.messages.unsubscribe"

	MethodAgentsList     = "agents.list"
	MethodAgentIdentity  = "agent.identity.get"
	MethodModelsList     = "models.list"
	MethodCommandsList   = "commands.list"
	MethodToolsCatalog   = "tools.catalog"
	MethodUsageCost      = "usage.cost"
	MethodSystemEvent    = "system-event"
	MethodBackupCreate   = "backup.create" // our own
	MethodSystemPresence = "system-presence"

	MethodApprovalList    = "exec.approval.list"
	MethodApprovalGet     = "exec.approval.get"
	MethodApprovalResolve = "exec.approval.resolve"
)

// The events.
const (
	EventChallenge         = "connect.challenge"
	EventTick              = "tick"
	EventShutdown          = "shutdown"
	EventPresence          = "presence"
	EventHealth            = "health"
	EventChat              = "chat"
	EventAgent             = "agent"
	EventSessionMessage    = "session.message"
	EventSessionTool       = "session.tool"
	EventSessionsChanged   = "sessions.changed"
	EventApprovalRequested = "exec.approval.requested"
	EventApprovalResolved  = "exec.approval.resolved"
)
