// The messages of the open conversation.

import { html, nothing, type TemplateResult } from "lit";
import type { DirectiveResult } from "lit/directive.js";
import { guard } from "lit/directives/guard.js";
import { repeat } from "lit/directives/repeat.js";
import type { Conversation, ToolState } from "../conversation";
import { moment, size } from "../format";
import { markdown } from "../markdown";
import type { Outgoing } from "../outbox";
import type { State } from "../state";
import { preferences } from "../preferences";
import { t } from "../text";
import { parts, textOf, type Content, type Message, type Plan } from "../wire";
import { approvalCard } from "./approval";
import { icons } from "./icon";
import { agentName, agentOf } from "./names";
import { toolCall, type Progress } from "./tool";

/** Turn is a message of a person, or what the assistant did until the next one. */
interface Turn {
  id: string;
  role: "user" | "assistant" | "system";
  messages: Message[];
}

export function transcript(state: State, c: Conversation): TemplateResult {
  const outgoing = state.outbox.of(c.key);
  const mine = new Set(outgoing.map((o) => o.id));
  const pending = c.pending.filter((p) => !mine.has(p.runId));
  const questions = state.approvals.filter((a) => (a.request.askedSessionKey || a.request.sessionKey) === c.key);
  const all = turns(c.messages);
  const empty = c.loaded && all.length === 0 && outgoing.length === 0 && pending.length === 0 && c.live.size === 0;
  return html`<div class="transcript" id="transcript" tabindex="-1">
    <div class="column" role="log" aria-live="off" aria-busy=${c.working ? "true" : "false"}>
      ${c.more ? html`<button class="plain older" @click=${() => void state.run(() => c.older())}>${t.older}</button>` : nothing}
      ${!c.loaded && !c.error ? html`<p class="quiet center">${state.gateway.link.state === "online" ? t.loading : ""}</p>` : nothing}
      ${c.error ? html`<p class="note error">${c.error}</p>` : nothing}
      ${empty ? greeting(state, c.key) : nothing}
      ${repeat(all, (turn) => turn.id, (turn) => turnView(state, c, turn))}
      ${c.plan && c.plan.steps.length > 0 ? planView(c.plan) : nothing}
      ${liveView(state, c, all.at(-1))}
      ${c.notes.map((n) => html`<p class="note error" role="alert"><b>${t.failed}.</b> ${n.text}</p>`)}
      ${pending.map((p) => html`<div class="turn user"><div class="bubble waiting" dir="auto">${textOf(parts(p.message))}</div><p class="meta">${t.queued} · <button class="plain" @click=${() => state.withdraw(p.runId)}>${t.discard}</button></p></div>`)}
      ${repeat(outgoing, (o) => o.id, (o) => outgoingView(state, c, o))}
      ${questions.map((a) => approvalCard(state, a, c.key))}
      <div class="end"></div>
    </div>
  </div>`;
}

function greeting(state: State, key: string): TemplateResult {
  const agent = agentOf(state, key);
  return html`<section class="greeting">
    ${icons.claw}
    <h2>${t.hello}</h2>
    <p>${t.helloText}</p>
    ${state.agents.length > 1 && key.includes(":chat-") ? html`<p><label>${t.agent}
      <select @change=${(e: Event) => state.newChat((e.target as HTMLSelectElement).value)}>
        ${state.agents.map((a) => html`<option value=${a.id} ?selected=${a.id === agent?.id}>${agentName(a)}</option>`)}
      </select></label></p>` : nothing}
    <ul>${t.starters.map((s) => html`<li><button class="starter" @click=${() => state.send(s, [])}>${s}</button></li>`)}</ul>
  </section>`;
}

// turns groups messages. Results of tools belong to their calls.
function turns(messages: Message[]): Turn[] {
  const out: Turn[] = [];
  for (const m of messages) {
    if (m.role === "toolResult") continue;
    const id = m.__openclaw?.id ?? `${m.timestamp}`;
    const role = m.role === "user" || m.role === "assistant" ? m.role : "system";
    const last = out.at(-1);
    if (role === "system" && textOf(parts(m)) === "stopped" && last?.messages.at(-1)?.openclawAbort) continue; // the answer says it
    if (role === "assistant" && last?.role === "assistant" && m.__openclaw?.kind !== "command") last.messages.push(m);
    else out.push({ id, role, messages: [m] });
  }
  return out;
}

function turnView(state: State, c: Conversation, turn: Turn): TemplateResult {
  const [first] = turn.messages;
  if (!first) return html``;
  if (turn.role === "user") {
    return html`<article class="turn user" aria-label=${t.you} data-messages=${named(turn)}>
      ${bubble(parts(first))}
      <p class="meta"><time datetime=${new Date(first.timestamp).toISOString()}>${moment(first.timestamp)}</time></p>
    </article>`;
  }
  if (turn.role === "system") return notice(turn, parts(first));
  const progress: Progress = questionWaits(state, c.key) ? "waiting" : c.working || state.session(c.key)?.hasActiveRun ? "running" : "over";
  const aborted = turn.messages.some((m) => m.openclawAbort?.aborted);
  return html`<article class="turn assistant" aria-label=${agentName(agentOf(state, c.key))} data-messages=${named(turn)}>
    ${turn.messages.map((m) => assistantParts(c, parts(m), progress))}
    ${aborted ? html`<p class="note">${t.stopped}</p>` : nothing}
  </article>`;
}

// notice is a text or a picture for the person.
function notice(turn: Turn, content: Content[]): TemplateResult {
  const text = textOf(content);
  return html`<div class="turn system" data-messages=${named(turn)}>${text ? rendered(text) : nothing}${content.filter((p) => p.type === "image").map((p) => html`<p>${picture(p)}</p>`)}</div>`;
}

// named returns the ids of the messages of a turn.
function named(turn: Turn): string {
  return turn.messages.map((m) => m.__openclaw?.id ?? "").join(" ");
}

function questionWaits(state: State, key: string): boolean {
  return state.approvals.some((a) => a.request.sessionKey === key);
}

function assistantParts(c: Conversation, content: Content[], progress: Progress): TemplateResult[] {
  const out: TemplateResult[] = [];
  for (const part of content) {
    if (part.type === "thinking" && part.thinking) out.push(thinking(part.thinking, false));
    else if (part.type === "text" && part.text?.trim()) out.push(html`${rendered(part.text)}`);
    else if (part.type === "image") out.push(picture(part));
    else if (part.type === "toolCall" && part.id) {
      const tool = c.tools.get(part.id);
      if (tool) out.push(toolCall(titled(c, tool), progress));
    }
  }
  return out;
}

function titled(c: Conversation, tool: ToolState): ToolState {
  const title = tool.title ?? c.titles.get(tool.callId);
  return title ? { ...tool, title } : tool;
}

function thinking(text: string, live: boolean): TemplateResult {
  return html`<details class="thinking"><summary>${live ? html`<span class="pulse">${t.thinking}</span>` : t.thought}${icons.chevron}</summary><div class="thinking-body">${text}</div></details>`;
}

function bubble(content: Content[]): TemplateResult {
  const text = textOf(content);
  const other = content.filter((p) => p.type !== "text");
  return html`${other.length > 0 ? html`<div class="attached">${other.map((p) => picture(p))}</div>` : nothing}
    ${text ? html`<div class="bubble" dir="auto">${text}</div>` : nothing}`;
}

function picture(p: Content): TemplateResult {
  if (p.type === "image" && p.data) return html`<img alt=${t.picture} src=${`data:${p.mimeType ?? "image/png"};base64,${p.data}`} />`;
  return html`<span class="file">${t.attachment(p.mimeType ?? p.type, size(p.bytes ?? 0))}</span>`;
}

function liveView(state: State, c: Conversation, last: Turn | undefined): TemplateResult | typeof nothing {
  const runs = [...c.live.values()];
  if (runs.length === 0) {
    const s = state.session(c.key);
    return s?.hasActiveRun ? working(t.working) : nothing;
  }
  return html`${runs.map((l) => html`<article class="turn assistant live" aria-label=${agentName(agentOf(state, c.key))}>
    ${l.thinking ? thinking(l.thinking, true) : nothing}
    ${l.text ? html`${rendered(l.text)}` : nothing}
    ${l.tools.map((id) => c.tools.get(id)).map((tool) => (tool ? toolCall(tool, l.suspended ? "waiting" : "running") : nothing))}
    ${l.suspended ? html`<p class="quiet">${t.suspended}</p>` : l.text ? nothing : working(doing(c, last))}
  </article>`)}`;
}

// doing says what is going on, for those who cannot see the dots.
function doing(c: Conversation, last: Turn | undefined): string {
  const running = [...c.tools.values()].find((tool) => tool.state === "running");
  return running ? running.name : last?.role === "user" ? t.thinking : t.working;
}

function working(text: string): TemplateResult {
  return html`<p class="working" role="status"><span class="dots" aria-hidden="true"><i></i><i></i><i></i></span><span>${text}</span></p>`;
}

function outgoingView(state: State, c: Conversation, o: Outgoing): TemplateResult {
  return html`<article class="turn user" aria-label=${t.you}>
    ${o.attachments.length > 0 ? html`<div class="attached">${o.attachments.map((a) =>
      a.type === "image" ? html`<img alt=${a.fileName} src=${`data:${a.mimeType};base64,${a.content}`} />` : html`<span class="file">${a.fileName}</span>`)}</div>` : nothing}
    ${o.text ? html`<div class="bubble waiting" dir="auto">${o.text}</div>` : nothing}
    ${o.state === "failed"
      ? html`<p class="meta error" role="alert">${t.notSent}${o.error ? `: ${o.error}` : ""} · <button class="plain" @click=${() => state.outbox.again(o)}>${t.again}</button> · <button class="plain" @click=${() => state.outbox.drop(o.id)}>${t.discard}</button></p>`
      : html`<p class="meta">${o.state === "sending" ? t.sending : c.working ? html`${t.queued} · <button class="plain" @click=${() => state.withdraw(o.id)}>${t.discard}</button>` : ""}</p>`}
  </article>`;
}

function planView(plan: Plan): TemplateResult {
  const done = plan.steps.filter((s) => s.status === "completed").length;
  return html`<details class="plan" ?open=${done < plan.steps.length}>
    <summary>${t.plan}: ${done}/${plan.steps.length}${icons.chevron}</summary>
    <ol>${plan.steps.map((s) => html`<li class=${s.status}>${s.step}</li>`)}</ol>
  </details>`;
}

// rendered returns the elements of a Markdown text, made anew only if it has changed.
function rendered(text: string): DirectiveResult {
  return guard([text, preferences.language], () => markdown(text));
}
