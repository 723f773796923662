// The settings that matter every day.

import { html, nothing, type TemplateResult } from "lit";
import { inWords } from "../phrases";
import { preferences, prefer, type Theme } from "../preferences";
import type { State } from "../state";
import { t, type Language } from "../text";
import { coded } from "./coded";
import { agentName, modelTitle } from "./names";

const thinkingLevels = ["off", "minimal", "low", "medium", "high"];

export function settingsView(state: State): TemplateResult {
  const { link } = state.gateway;
  const may = state.gateway.may("operator.admin");
  return html`<div class="page"><div class="column settings">
    <h1>${t.settings}</h1>
    <section>
      <h2>${t.appearance}</h2>
      <div class="setting"><span id="theme">${t.theme}</span>
        <div class="segments" role="radiogroup" aria-labelledby="theme">${(["system", "light", "dark"] as Theme[]).map((v) => html`<label><input type="radio" name="theme" .checked=${preferences.theme === v} @change=${() => { prefer({ theme: v }); state.changed(); }} /><span>${t.themes[v]}</span></label>`)}</div>
      </div>
      <div class="setting"><span id="language">${t.language}</span>
        <div class="segments" role="radiogroup" aria-labelledby="language">${([["en", "English"], ["zh", "中文"]] as [Language, string][]).map(([v, name]) => html`<label><input type="radio" name="language" .checked=${preferences.language === v} @change=${() => { prefer({ language: v }); state.changed(); }} /><span lang=${v}>${name}</span></label>`)}</div>
      </div>
    </section>
    <section>
      <h2>${t.assistant}</h2>
      <p class="quiet">${t.assistantText}</p>
      ${state.settings ? assistant(state, state.settings, may) : html`<p class="quiet">${link.state === "online" ? t.loading : t.notOnline}</p>`}
    </section>
    <section>
      <h2>${t.agents}</h2>
      <p class="quiet">${coded(t.agentsText)}</p>
      <ul class="agents">${state.agents.map((a) => html`<li><span aria-hidden="true">${a.identity?.emoji ?? "·"}</span><b>${agentName(a)}</b><span class="quiet">${a.model.primary ?? ""}</span><button @click=${() => state.newChat(a.id)}>${t.newChat}</button></li>`)}</ul>
    </section>
    <section>
      <h2>${t.connection}</h2>
      <dl>
        <dt>${t.gatewayVersion}</dt><dd>${link.state === "online" ? `chela ${link.hello.server.version}` : t.notOnline}</dd>
        <dt>${t.address}</dt><dd>${location.origin}</dd>
        <dt>${t.thisBrowser}</dt><dd>${state.device ? html`<code>${state.device.id.slice(0, 12)}</code><br /><span class="quiet">${state.device.key instanceof Uint8Array ? t.keyPlain : t.keyProtected}</span>` : nothing}</dd>
        <dt>${t.rights}</dt><dd>${link.state === "online" ? (may ? t.rightsFull : t.rightsLimited) : ""}</dd>
      </dl>
      <button class="danger" @click=${() => { state.dialog = { title: t.signOutTitle, text: coded(t.signOutText), confirm: t.signOut, danger: true, act: () => state.signOut() }; state.changed(); }}>${t.signOut}</button>
    </section>
    <section>
      <h2>${t.more}</h2>
      <p class="quiet">${coded(t.moreText)}</p>
    </section>
  </div></div>`;
}

function assistant(state: State, now: NonNullable<State["settings"]>, may: boolean): TemplateResult {
  const known = state.models.some((m) => `${m.provider}/${m.id}` === now.model);
  return html`
    ${may ? nothing : html`<p class="note">${coded(t.needsAdmin)}</p>`}
    <div class="setting"><label for="model">${t.model}</label>
      <select id="model" ?disabled=${!may} @change=${(e: Event) => void state.configure({ model: (e.target as HTMLSelectElement).value }, t.saved, t.savedRestart)}>
        ${known ? nothing : html`<option value=${now.model} selected>${now.model || t.notSet}</option>`}
        ${state.models.map((m) => {
          const id = `${m.provider}/${m.id}`;
          return html`<option value=${id} .selected=${id === now.model} ?disabled=${!m.available}>${modelTitle(m)} (${m.available ? m.provider : t.modelUnavailable})</option>`;
        })}
      </select></div>
    ${now.because ? html`<p class="quiet">${t.chosenBecause(inWords(now.because))}</p>` : nothing}
    <div class="setting"><label for="thinking">${t.thinkingDefault}</label>
      <select id="thinking" ?disabled=${!may} @change=${(e: Event) => void state.configure({ thinkingDefault: (e.target as HTMLSelectElement).value || null }, t.saved, t.savedRestart)}>
        <option value="" .selected=${!now.thinking}>${t.notSet}</option>
        ${[...new Set([...thinkingLevels, ...(now.thinking ? [now.thinking] : [])])].map((l) => html`<option value=${l} .selected=${l === now.thinking}>${l}</option>`)}
      </select></div>`;
}
