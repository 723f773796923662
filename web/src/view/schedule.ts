// The schedule: jobs, their last runs, and what can be done with them.

import { html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { ago, moment, span } from "../format";
import { State } from "../state";
import { t } from "../text";
import type { Job, JobRun } from "../wire";
import { coded } from "./coded";
import { icons } from "./icon";

export function scheduleView(state: State): TemplateResult {
  const may = state.gateway.may("operator.admin");
  return html`<div class="page"><div class="column">
    <h1>${t.schedule}</h1>
    <p class="lead">${coded(t.scheduleText)}</p>
    ${!may && state.gateway.link.state === "online" ? html`<p class="note">${coded(t.needsAdmin)}</p>` : nothing}
    ${state.jobs.length === 0 ? html`<p class="empty">${t.noJobs}</p>` : html`<ul class="cards">${repeat(state.jobs, (j) => j.id, (j) => card(state, j, may))}</ul>`}
  </div></div>`;
}

export function jobName(j: Job): string {
  return j.displayName || j.name || j.payload.message || j.payload.text || j.id;
}

function when(j: Job): string {
  const s = j.schedule;
  const text = s.kind === "at" && s.at ? t.atTime(moment(Date.parse(s.at))) : s.kind === "every" && s.everyMs ? t.every(span(s.everyMs)) : t.cronExpr(s.expr ?? "", s.tz ?? "");
  return j.trigger ? `${text}, ${t.conditional}` : text;
}

function card(state: State, j: Job, may: boolean): TemplateResult {
  const { state: s } = j;
  const runs = state.jobRuns.get(j.id);
  const text = j.payload.message || j.payload.text || "";
  const paused = s.autoDisabled ? t.pausedItself : t.paused;
  return html`<li class="card ${j.enabled ? "" : "off"}">
    <div class="card-head">
      <span class="badge ${s.runningAtMs ? "running" : j.enabled ? "queued" : "off"}">${s.runningAtMs ? t.runsNow : j.enabled ? (s.nextRunAtMs ? t.nextRun(ago(s.nextRunAtMs)) : t.never) : paused}</span>
      <h3>${jobName(j)}</h3>
    </div>
    <p class="quiet">${when(j)}${s.nextRunAtMs && j.enabled && j.schedule.kind !== "at" ? html` · <time datetime=${new Date(s.nextRunAtMs).toISOString()}>${moment(s.nextRunAtMs)}</time>` : nothing}
      · ${s.lastRunAtMs ? t.lastRun(ago(s.lastRunAtMs)) : t.never}${s.lastRunStatus ? html` (${statusName(s.lastRunStatus)})` : nothing}</p>
    ${text && text !== jobName(j) ? html`<p class="job-text">${text}</p>` : nothing}
    ${s.lastError ? html`<p class="note error">${s.lastError}</p>` : nothing}
    ${may ? html`<div class="answers">
      <button @click=${() => void state.runJob(j.id, t.runNowDone, t.notRun)}>${t.runNow}</button>
      <button @click=${() => void state.changeJob(j.id, { enabled: !j.enabled })}>${j.enabled ? t.pause : t.resume}</button>
      <button class="danger" @click=${() => { state.dialog = { title: t.removeJobTitle, text: t.removeJobText(jobName(j)), confirm: t.remove, danger: true, act: () => state.removeJob(j.id) }; state.changed(); }}>${t.remove}</button>
    </div>` : nothing}
    <details @toggle=${(e: Event) => { if ((e.target as HTMLDetailsElement).open) void state.readRuns(j.id); }}>
      <summary>${t.runs}${icons.chevron}</summary>
      ${runs ? (runs.length === 0 ? html`<p class="quiet">${t.noRuns}</p>` : html`<ul class="runs">${runs.map((r) => run(r))}</ul>`) : html`<p class="quiet">${t.loading}</p>`}
    </details>
  </li>`;
}

function statusName(s: string): string {
  return s === "ok" ? t.ok : s === "error" ? t.error : s === "skipped" ? t.skipped : s;
}

function run(r: JobRun): TemplateResult {
  return html`<li><span class="badge ${r.status ?? ""}">${statusName(r.status ?? "")}</span>
    <time>${moment(r.runAtMs || r.ts)}</time> <span class="quiet">${span(r.durationMs)}</span>
    ${r.error ? html`<p class="note error">${r.error}</p>` : r.summary ? html`<p>${r.summary}</p>` : nothing}
    ${r.sessionKey ? html`<a href=${State.link({ view: "chat", key: r.sessionKey })}>${t.openChat}</a>` : nothing}</li>`;
}
