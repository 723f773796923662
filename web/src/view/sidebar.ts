// The list of conversations, and the way to the other pages.

import { html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { ago } from "../format";
import { State } from "../state";
import { t } from "../text";
import type { SearchHit, Session } from "../wire";
import { icons } from "./icon";
import { rowName } from "./names";

export function sidebar(state: State): TemplateResult {
  return html`<nav class="sidebar ${state.drawer ? "open" : ""}" id="sidebar" aria-label=${t.chats}>
    <div class="brand">${icons.claw}<span>Chela</span>
      <button class="ghost only-phone" aria-label=${t.close} @click=${() => { state.drawer = false; state.changed(); }}>${icons.close}</button>
    </div>
    <button class="new" @click=${() => state.newChat()}>${icons.plus}<span>${t.newChat}</span></button>
    <label class="search">${icons.search}<input type="search" placeholder=${t.search} aria-label=${t.searchChats} .value=${state.query} @input=${(e: Event) => state.search((e.target as HTMLInputElement).value)} /></label>
    <div class="list" tabindex="-1">${state.found ? results(state, state.found) : groups(state)}</div>
    <ul class="pages">
      ${state.approvals.length > 0 ? page(state, "questions", t.questions, icons.hand, state.approvals.length, true) : nothing}
      ${page(state, "tasks", t.tasks, icons.tasks, state.tasks.filter((x) => x.status === "running" || x.status === "queued").length)}
      ${page(state, "schedule", t.schedule, icons.clock, 0)}
      ${page(state, "settings", t.settings, icons.gear, 0)}
    </ul>
  </nav>`;
}

function page(state: State, view: "tasks" | "schedule" | "settings" | "questions", name: string, icon: TemplateResult, n: number, hot = false): TemplateResult {
  return html`<li><a href=${State.link({ view })} aria-current=${state.place.view === view ? "page" : nothing}>${icon}<span>${name}</span>${n > 0 ? html`<span class="count ${hot ? "hot" : ""}">${n}</span>` : nothing}</a></li>`;
}

function groups(state: State): TemplateResult {
  const open = state.open?.key;
  const rows = [...state.sessions].sort((a, b) => b.updatedAt - a.updatedAt);
  if (state.place.view === "chat" && open && !state.session(open) && open.includes(":chat-")) {
    rows.unshift({ key: open, agentId: "", sessionId: "", isMain: false, isBackground: false, updatedAt: Date.now(), archived: false, pinned: false, unread: false, hasActiveRun: false });
  }
  const midnight = new Date().setHours(0, 0, 0, 0);
  const day = 86_400_000;
  const parts: [string, Session[]][] = [
    [t.pinned, rows.filter((s) => s.pinned)],
    [t.today, rows.filter((s) => !s.pinned && s.updatedAt >= midnight)],
    [t.yesterday, rows.filter((s) => !s.pinned && s.updatedAt < midnight && s.updatedAt >= midnight - day)],
    [t.week, rows.filter((s) => !s.pinned && s.updatedAt < midnight - day && s.updatedAt >= midnight - 6 * day)],
    [t.earlier, rows.filter((s) => !s.pinned && s.updatedAt < midnight - 6 * day)],
  ];
  return html`
    ${parts.filter(([, list]) => list.length > 0).map(([name, list]) => group(state, name, list))}
    ${state.archived ? html`${state.archived.length > 0 ? group(state, t.archived, state.archived) : html`<p class="quiet">${t.noArchived}</p>`}` : nothing}
    ${state.loaded ? html`<button class="plain" @click=${() => void archive(state)}>${state.archived ? t.hideArchived : t.showArchived}</button>` : nothing}`;
}

async function archive(state: State): Promise<void> {
  if (state.archived) {
    state.archived = undefined;
    state.changed();
  } else await state.run(() => state.readArchived());
}

function group(state: State, name: string, list: Session[]): TemplateResult {
  return html`<h2>${name}</h2><ul>${repeat(list, (s) => s.key, (s) => row(state, s))}</ul>`;
}

function row(state: State, s: Session, hit?: SearchHit): TemplateResult {
  const current = state.place.view === "chat" && state.open?.key === s.key;
  const asks = s.waiting || state.approvals.some((a) => (a.request.askedSessionKey || a.request.sessionKey) === s.key);
  const mark = asks ? "asks" : s.hasActiveRun ? "runs" : s.unread && !current ? "unread" : "";
  const say = { asks: t.waiting, runs: t.running, unread: t.unread, "": "" }[mark];
  return html`<li><a class="row" href=${State.link({ view: "chat", key: s.key, ...(hit ? { message: hit.messageId } : {}) })} aria-current=${current ? "page" : nothing}>
    <span class="row-name">${s.pinned ? icons.pin : nothing}${rowName(s)}</span>
    ${mark ? html`<span class="dot ${mark}" title=${say}><span class="hidden">${say}</span></span>` : s.sessionId ? html`<time>${ago(s.updatedAt)}</time>` : nothing}
    <span class="row-text">${hit?.snippet ?? s.lastMessagePreview ?? ""}</span>
  </a></li>`;
}

function results(state: State, found: NonNullable<State["found"]>): TemplateResult {
  const named = found.sessions.filter((s) => state.foundKeys.has(s.key));
  const hits = found.hits.flatMap((h) => {
    const s = found.sessions.find((x) => x.key === h.sessionKey);
    return s ? [{ s, h }] : [];
  });
  if (named.length === 0 && hits.length === 0) return html`<p class="quiet">${t.noMatches}</p>`;
  return html`
    ${named.length > 0 ? group(state, t.chats, named) : nothing}
    ${hits.length > 0 ? html`<h2>${t.inMessages}</h2><ul>${hits.map(({ s, h }) => row(state, s, h))}</ul>` : nothing}`;
}
