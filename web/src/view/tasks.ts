// What runs in the background.

import { html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { ago, span } from "../format";
import { markdown } from "../markdown";
import { State } from "../state";
import { t } from "../text";
import type { Task } from "../wire";
import { icons } from "./icon";
import { sessionName } from "./names";

export function tasksView(state: State): TemplateResult {
  const active = state.tasks.filter((x) => x.status === "running" || x.status === "queued");
  const ended = state.tasks.filter((x) => !active.includes(x));
  return html`<div class="page"><div class="column">
    <h1>${t.tasks}</h1>
    <p class="lead">${t.tasksText}</p>
    ${state.tasks.length === 0 ? html`<p class="empty">${t.noTasks}</p>` : nothing}
    ${active.length > 0 ? html`<h2>${t.active}</h2><ul class="cards">${repeat(active, (x) => x.taskId, (x) => card(state, x))}</ul>` : nothing}
    ${ended.length > 0 ? html`<h2>${t.finished}</h2><ul class="cards">${repeat(ended, (x) => x.taskId, (x) => card(state, x))}</ul>` : nothing}
  </div></div>`;
}

function card(state: State, x: Task): TemplateResult {
  const active = x.status === "running" || x.status === "queued";
  const blocked = x.deliveryStatus === "failed";
  const details = state.taskDetails.get(x.taskId);
  const may = state.gateway.may("operator.write");
  return html`<li class="card">
    <div class="card-head">
      <span class="badge ${x.status}">${t.taskState[x.status] ?? x.status}</span>
      <h3>${x.title}</h3>
      ${active && may ? html`<button @click=${() => { state.dialog = { title: t.cancelTaskTitle, text: x.title, confirm: t.cancelTask, danger: true, act: () => state.onTask("tasks.cancel", x.taskId) }; state.changed(); }}>${t.cancelTask}</button>` : nothing}
    </div>
    <p class="quiet">${t.taskKind[x.kind] ?? x.kind} · ${active ? span(Date.now() - (x.startedAt || x.createdAt)) : ago(x.endedAt || x.updatedAt)} ·
      <a href=${State.link({ view: "chat", key: x.sessionKey })}>${sessionName(state, x.sessionKey)}</a></p>
    ${x.error ? html`<p class="note error">${x.error}</p>` : nothing}
    ${blocked ? html`<p class="note error">${t.undelivered}</p>${may ? html`<div class="answers"><button @click=${() => void state.onTask("tasks.retry", x.taskId)}>${t.retry}</button><button @click=${() => void state.onTask("tasks.dismiss", x.taskId)}>${t.dismiss}</button></div>` : nothing}` : nothing}
    <details @toggle=${(e: Event) => { if ((e.target as HTMLDetailsElement).open) void state.readTask(x.taskId); }}>
      <summary>${t.details}${icons.chevron}</summary>
      ${details ? html`
        ${details.prompt ? html`<h4>${t.taskPrompt}</h4><pre tabindex="0">${details.prompt}</pre>` : nothing}
        ${details.result || details.terminalSummary ? html`<h4>${t.taskResult}</h4>${markdown(details.result || details.terminalSummary || "")}` : nothing}
        ${x.childSessionKey && x.hasTranscript ? html`<p><a href=${State.link({ view: "chat", key: x.childSessionKey })}>${t.openChat}</a></p>` : nothing}
        ${!details.prompt && !details.result && !details.terminalSummary && !x.hasTranscript ? html`<p class="quiet">${t.noOutput}</p>` : nothing}` : html`<p class="quiet">${t.loading}</p>`}
    </details>
  </li>`;
}
