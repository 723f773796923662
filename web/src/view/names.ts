// How sessions, models and agents are called.

import { inWords } from "../phrases";
import type { State } from "../state";
import { t } from "../text";
import type { Agent, Model, Session } from "../wire";

export function sessionName(state: State, key: string): string {
  const s = state.session(key);
  const name = s?.label || s?.displayName || (s?.isMain && state.agents.length <= 1 ? t.main : s?.derivedTitle);
  if (name) return name;
  if (key === state.mainKey) return t.main;
  return s ? key : t.untitled;
}

/** rowName is the name in the list, where the main conversation is told from the others. */
export function rowName(s: Session): string {
  return s.label || s.displayName || (s.isMain ? t.main : s.derivedTitle) || (s.key.includes(":chat-") ? t.untitled : s.key);
}

export function agentName(a: Agent | undefined): string {
  return a?.identity?.name || a?.name || a?.id || "Chela";
}

export function agentOf(state: State, key: string): Agent | undefined {
  const id = /^agent:([^:]+):/.exec(key)?.[1] ?? state.defaultAgent;
  return state.agents.find((a) => a.id === id);
}

export function modelTitle(m: Model): string {
  return inWords(m.name || m.id);
}

export function modelName(state: State, id: string): string {
  const m = state.models.find((m) => `${m.provider}/${m.id}` === id);
  return (m?.name && modelTitle(m)) || id.replace(/^[^/]+\//, "") || t.notSet;
}
