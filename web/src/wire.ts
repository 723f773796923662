// The frames and values of the gateway protocol that the page uses (package wire of the
// gateway has all of them, with their documentation).

export interface Fault {
  code: string;
  message: string;
  details?: Record<string, unknown>;
}

export interface Frame {
  type: "req" | "res" | "event";
  id?: string;
  ok?: boolean;
  payload?: unknown;
  error?: Fault;
  event?: string;
  seq?: number;
}

export interface Hello {
  server: { version: string; connId: string; bootId: string };
  features: { methods: string[] };
  snapshot: { sessionDefaults: { defaultAgentId: string; mainSessionKey: string } };
  auth: { role: string; scopes: string[]; deviceToken?: string };
  policy: { tickIntervalMs: number; attachments?: { maxBytes: number; maxImageBytes: number } };
}

export interface Level {
  id: string;
  label: string;
}

export interface Session {
  key: string;
  agentId: string;
  sessionId: string;
  label?: string;
  displayName?: string;
  derivedTitle?: string;
  lastMessagePreview?: string;
  channel?: string;
  isMain: boolean;
  isBackground: boolean;
  updatedAt: number;
  archived: boolean;
  pinned: boolean;
  unread: boolean;
  modelProvider?: string;
  model?: string;
  modelOverrideSource?: string;
  contextTokens?: number;
  totalTokens?: number;
  thinkingLevels?: Level[];
  thinkingDefault?: string;
  thinkingLevel?: string;
  hasActiveRun: boolean;
  activeRunIds?: string[];
  waiting?: boolean;
  queuedMessages?: number;
}

export interface Content {
  type: string;
  text?: string;
  thinking?: string;
  id?: string;
  name?: string;
  arguments?: unknown;
  title?: string;
  mimeType?: string;
  data?: string;
  bytes?: number;
}

export interface Message {
  role: string;
  content: Content[] | string;
  timestamp: number;
  idempotencyKey?: string;
  model?: string;
  provider?: string;
  stopReason?: string;
  toolCallId?: string;
  toolName?: string;
  isError?: boolean;
  details?: unknown;
  openclawAbort?: { aborted: boolean };
  __openclaw?: { id?: string; seq?: number; runId?: string; kind?: string; truncated?: boolean };
}

export interface PendingInput {
  id: string;
  runId: string;
  message: Message;
}

export interface PlanStep {
  id: string;
  step: string;
  status: "pending" | "in_progress" | "completed" | "failed" | "cancelled";
}

export interface Plan {
  title: string;
  steps: PlanStep[];
}

export interface History {
  sessionKey: string;
  sessionId?: string;
  messages: Message[];
  activity?: { messageId: string; items: { title: string; toolCallId: string }[] }[];
  pendingInputs: { items: PendingInput[]; total: number };
  inputReceipts?: { runId: string; state?: string }[];
  hasMore: boolean;
  nextOffset?: number;
  sessionInfo?: Session;
  inFlightRun?: { runId: string; text: string; startedAt: number };
  plan?: Plan;
}

export interface AgentEvent {
  runId: string;
  sessionKey: string;
  stream: string;
  data: Record<string, unknown>;
  ts: number;
}

export interface ChatEvent {
  runId: string;
  sessionKey: string;
  state: "delta" | "final" | "aborted" | "error";
  message?: Message;
  stopReason?: string;
  errorMessage?: string;
}

export interface ToolOutput {
  content?: Content[];
  details?: unknown;
}

export interface Approval {
  id: string;
  request: {
    command: string;
    reason?: string;
    tool?: string;
    agentId?: string;
    sessionKey?: string;
    askedSessionKey?: string;
    once?: boolean;
  };
  createdAtMs: number;
  expiresAtMs: number;
}

export type Decision = "allow-once" | "allow-session" | "allow-always" | "deny";

export interface Model {
  id: string;
  name: string;
  provider: string;
  tags?: string[];
  available: boolean;
  unavailableReason?: string;
  thinkingLevels?: Level[];
}

export interface Agent {
  id: string;
  name?: string;
  identity?: { name?: string; emoji?: string };
  workspace?: string;
  model: { primary?: string };
  thinkingLevels?: Level[];
  thinkingDefault?: string;
}

export interface Task {
  taskId: string;
  kind: string;
  status: string;
  title: string;
  sessionKey: string;
  childSessionKey?: string;
  hasTranscript: boolean;
  createdAt: number;
  updatedAt: number;
  startedAt?: number;
  endedAt?: number;
  terminalSummary?: string;
  error?: string;
  deliveryStatus: string;
  result?: string;
  prompt?: string;
}

export interface Job {
  id: string;
  name: string;
  displayName?: string;
  description?: string;
  enabled: boolean;
  agentId?: string;
  schedule: { kind: string; at?: string; everyMs?: number; expr?: string; tz?: string };
  trigger?: unknown;
  payload: { kind: string; text?: string; message?: string };
  delivery?: { mode: string; channel?: string; to?: string };
  state: {
    nextRunAtMs?: number;
    runningAtMs?: number;
    lastRunAtMs?: number;
    lastRunStatus?: string;
    lastError?: string;
    autoDisabled?: { reason: string };
  };
}

export interface JobRun {
  ts: number;
  status?: string;
  error?: string;
  summary?: string;
  durationMs: number;
  runAtMs?: number;
  sessionKey?: string;
}

export interface SearchHit {
  sessionKey: string;
  messageId: string;
  timestamp: number;
  snippet: string;
}

export interface Command {
  name: string;
  textAliases?: string[];
  description?: string;
}

/** parts returns the content of a message, which may be a plain text. */
export function parts(m: Message): Content[] {
  return typeof m.content === "string" ? [{ type: "text", text: m.content }] : m.content;
}

/** textOf returns the text parts of a message. */
export function textOf(content: Content[] | undefined): string {
  return (content ?? [])
    .filter((c) => c.type === "text")
    .map((c) => c.text ?? "")
    .join("");
}

/** CanvasView is what the canvas of a session shows. */
export interface CanvasView {
  sessionKey: string;
  kind: "" | "page" | "a2ui";
  page?: string;
  version: number;
  url?: string;
}
