// A question of the assistant: what it wants to do, why it asks, and the answers.

import { html, nothing, type TemplateResult } from "lit";
import { ago } from "../format";
import { inWords } from "../phrases";
import { State } from "../state";
import { t } from "../text";
import type { Approval, Decision } from "../wire";
import { coded } from "./coded";
import { icons } from "./icon";
import { sessionName } from "./names";

export function approvalCard(state: State, a: Approval, here: string): TemplateResult {
  const r = a.request;
  const key = r.askedSessionKey || r.sessionKey || "";
  const busy = state.deciding.has(a.id) || state.gateway.link.state !== "online";
  const decide = (d: Decision) => void state.decide(a.id, d, t.alreadyAnswered);
  const ask = (d: Decision, title: string, text: string, confirm: string) => () => {
    state.dialog = { title, text: coded(text), plan: r.command.trim(), confirm, act: () => decide(d) };
    state.changed();
  };
  return html`<section class="question" aria-label=${t.question(r.tool || t.aTool)}>
    <header>${icons.hand}<h3>${t.question(r.tool || t.aTool)}</h3></header>
    ${key && key !== here ? html`<p class="quiet"><a href=${State.link({ view: "chat", key })}>${t.inChat(sessionName(state, key))}</a></p>` : nothing}
    ${r.reason ? html`<h4>${t.whatFor}</h4><p>${inWords(r.reason)}</p>` : nothing}
    <h4>${t.whatItDoes}</h4>
    <pre tabindex="0">${visible(r.command.trim())}</pre>
    ${state.gateway.may("operator.approvals")
      ? html`<div class="answers">
          <button class="primary" ?disabled=${busy} @click=${() => decide("allow-once")}>${t.allowOnce}</button>
          ${r.once ? nothing : html`
            <button ?disabled=${busy} @click=${ask("allow-session", t.sessionTitle, t.sessionText, t.allowSession)}>${t.allowSession}</button>
            <button ?disabled=${busy} @click=${ask("allow-always", t.alwaysTitle, t.alwaysText, t.allowAlways)}>${t.allowAlways}</button>`}
          <button class="danger" ?disabled=${busy} @click=${() => decide("deny")}>${t.deny}</button>
        </div>`
      : html`<p class="note">${coded(t.noQuestionScope)}</p>`}
    <p class="quiet">${t.expiresIn(ago(a.expiresAtMs))}</p>
  </section>`;
}

// visible shows characters that could make a command look like another one: controls, and
// those that change the direction of writing or have no width.
export function visible(s: string): string {
  return s.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

export function questionsView(state: State): TemplateResult {
  return html`<div class="page"><div class="column">
    <h1>${t.questions}</h1>
    ${state.approvals.length === 0 ? html`<p class="quiet">${t.noTasks}</p>` : state.approvals.map((a) => approvalCard(state, a, ""))}
  </div></div>`;
}
