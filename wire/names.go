package wire

// Methods.
const (
	MethodConnect = "connect"
	MethodHealth  = "health"
	MethodStatus  = "status"

	MethodChatSend       = "chat.send"
	MethodChatHistory    = "chat.history"
	MethodChatAbort      = "chat.abort"
	MethodChatStartup    = "chat.startup"
	MethodChatMetadata   = "chat.metadata"
	MethodChatMessageGet = "chat.message.get"
	MethodChatInject     = "chat.inject"

	MethodAgent     = "agent"
	MethodAgentWait = "agent.wait"

	MethodSessionsList                = "sessions.list"
	MethodSessionsDescribe            = "sessions.describe"
	MethodSessionsGet                 = "sessions.get"
	MethodSessionsResolve             = "sessions.resolve"
	MethodSessionsCreate              = "sessions.create"
	MethodSessionsPatchMany           = "sessions.patchMany"
	MethodSessionsPatch               = "sessions.patch"
	MethodSessionsReset               = "sessions.reset"
	MethodSessionsDelete              = "sessions.delete"
	MethodSessionsPreview             = "sessions.preview"
	MethodSessionsSearch              = "sessions.search"
	MethodSessionsExport              = "sessions.export"
	MethodSessionsImport              = "sessions.import"
	MethodSessionsSend                = "sessions.send"
	MethodSessionsSteer               = "sessions.steer"
	MethodSessionsCompact             = "sessions.compact"
	MethodSessionsAbort               = "sessions.abort"
	MethodSessionsSubscribe           = "sessions.subscribe"
	MethodSessionsUnsubscribe         = "sessions.unsubscribe"
	MethodSessionsMessagesSubscribe   = "sessions.messages.subscribe"
	MethodSessionsMessagesUnsubscribe = "sessions.messages.unsubscribe"

	MethodBackupCreate   = "backup.create" // not in OpenClaw
	MethodSystemPresence = "system-presence"

	MethodApprovalList    = "exec.approval.list"
	MethodApprovalGet     = "exec.approval.get"
	MethodApprovalResolve = "exec.approval.resolve"
	MethodQuestionList    = "question.list"
)

// Events.
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
	EventSessionOperation  = "session.operation"
	EventSessionsChanged   = "sessions.changed"
	EventApprovalRequested = "exec.approval.requested"
	EventApprovalResolved  = "exec.approval.resolved"

	// The same approvals, for clients with CapPluginApprovals.
	EventPluginApprovalRequested = "plugin.approval.requested"
	EventPluginApprovalResolved  = "plugin.approval.resolved"
)
