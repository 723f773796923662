// The page: the sidebar, what is open, and the dialogs above them.

import { html, LitElement, nothing, type TemplateResult } from "lit";
import { State } from "../state";
import { t } from "../text";
import { questionsView, visible } from "./approval";
import { coded } from "./coded";
import "./composer";
import { icons } from "./icon";
import { canvasView } from "./canvas";
import { agentName, agentOf, sessionName } from "./names";
import { scheduleView } from "./schedule";
import { settingsView } from "./settings";
import { sidebar } from "./sidebar";
import { banner, gate } from "./signin";
import { tasksView } from "./tasks";
import { transcript } from "./transcript";

const near = 80; // pixels from the end within which the page follows it

export class Page extends LitElement {
  private readonly state: State;
  private tick = 0;
  private follow = true;
  private shownKey = "";
  private goal = ""; // the message that is to be shown, until it is
  private menu = false;

  constructor(state: State) {
    super();
    this.state = state;
  }

  override createRenderRoot(): HTMLElement {
    return this;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.state.onChange = () => this.requestUpdate();
    document.addEventListener("keydown", (e) => this.press(e));
    document.addEventListener("click", (e) => {
      if (this.menu && !(e.target as Element).closest(".menu")) {
        this.menu = false;
        this.requestUpdate();
      }
    });
    addEventListener("resize", () => this.toEnd());
  }

  private press(e: KeyboardEvent): void {
    if (e.key === "Escape") {
      if (this.menu || this.state.drawer) {
        this.menu = this.state.drawer = false;
        this.requestUpdate();
        if (this.querySelector(".menu")) (this.querySelector(".menu > button") as HTMLElement | null)?.focus();
      }
    }
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
      e.preventDefault();
      this.state.drawer = true;
      this.requestUpdate();
      void this.updateComplete.then(() => (this.querySelector(".search input") as HTMLElement | null)?.focus());
    }
  }

  override render(): TemplateResult {
    const { state } = this;
    const waiting = state.approvals.length;
    document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${state.place.view === "chat" ? sessionName(state, state.place.key) : t[state.place.view]} · Chela`;
    const closed = gate(state, state.gateway.link);
    if (closed) return html`${closed}${this.dialogView()}`;
    this.tick++;
    return html`
      <a class="skip" href="#message" @click=${(e: Event) => { e.preventDefault(); this.querySelector<HTMLElement>("#message")?.focus(); }}>${t.skip}</a>
      <div class="app">
        ${sidebar(state)}
        <div class="shade ${state.drawer ? "open" : ""}" @click=${() => { state.drawer = false; state.changed(); }}></div>
        <main class="main">
          ${banner(state)}
          ${this.header()}
          ${this.body()}
        </main>
        ${state.place.view === "chat" ? canvasView(state) : nothing}
      </div>
      <div class="hidden" aria-live="polite">${state.place.view === "chat" ? state.spoken : ""}</div>
      <div class="toast" role="status" aria-live="polite">${state.toast ? html`<p>${state.toast}</p>` : nothing}</div>
      ${this.dialogView()}`;
  }

  private header(): TemplateResult {
    const { state } = this;
    const chat = state.place.view === "chat" ? state.place.key : "";
    return html`<header class="top">
      <button class="ghost only-phone" aria-label=${t.menu} aria-expanded=${state.drawer ? "true" : "false"} aria-controls="sidebar" @click=${() => { state.drawer = true; state.changed(); }}>${icons.menu}${state.approvals.length > 0 && !chat ? html`<span class="dot asks"></span>` : nothing}</button>
      ${chat ? html`<h1>${sessionName(state, chat)}${state.agents.length > 1 ? html`<span class="quiet"> · ${agentName(agentOf(state, chat))}</span>` : nothing}</h1>` : html`<span class="space"></span>`}
      ${chat && state.canvas.view && !state.canvas.shown ? html`<button class="ghost" aria-label=${t.canvas} title=${t.canvas} @click=${() => state.canvas.show()}>${icons.screen}</button>` : nothing}
      ${chat && state.session(chat) ? this.actions(chat) : nothing}
    </header>`;
  }

  private actions(key: string): TemplateResult {
    const { state } = this;
    const s = state.session(key);
    if (!s) return html``;
    const may = state.gateway.may("operator.write");
    const admin = state.gateway.may("operator.admin");
    const act = (work: () => void) => () => {
      this.menu = false;
      work();
      this.requestUpdate();
    };
    const name = sessionName(state, key);
    return html`<div class="menu">
      <button class="ghost" aria-label=${t.chatActions} title=${t.chatActions} aria-haspopup="true" aria-expanded=${this.menu ? "true" : "false"} @click=${() => { this.menu = !this.menu; this.requestUpdate(); }}>${icons.dots}</button>
      ${this.menu ? html`<ul>
        ${may ? html`
          <li><button @click=${act(() => (state.dialog = { title: t.renameTitle, field: s.label ?? name, confirm: t.save, act: (label) => state.patch(key, { label: label.trim() || null }) }))}>${t.rename}</button></li>
          <li><button @click=${act(() => void state.patch(key, { pinned: !s.pinned }))}>${s.pinned ? t.unpin : t.pin}</button></li>
          ${s.isMain ? nothing : html`<li><button @click=${act(() => void state.patch(key, { archived: !s.archived }))}>${s.archived ? t.unarchive : t.archive}</button></li>`}` : nothing}
        ${admin ? html`<li><button @click=${act(() => (state.dialog = { title: t.resetTitle, text: coded(t.resetText), confirm: t.reset, act: () => state.resetSession(key) }))}>${t.reset}</button></li>` : nothing}
        ${admin && !s.isMain ? html`<li><button class="danger" @click=${act(() => (state.dialog = { title: t.removeTitle, text: t.removeText(name), confirm: t.remove, danger: true, act: () => state.removeSession(key) }))}>${t.remove}</button></li>` : nothing}
      </ul>` : nothing}
    </div>`;
  }

  private body(): TemplateResult {
    const { state } = this;
    switch (state.place.view) {
      case "tasks":
        return tasksView(state);
      case "schedule":
        return scheduleView(state);
      case "settings":
        return settingsView(state);
      case "questions":
        return questionsView(state);
      case "chat": {
        const c = state.open;
        if (!c) return html``;
        const other = state.approvals.filter((a) => (a.request.askedSessionKey || a.request.sessionKey) !== c.key).length;
        return html`
          ${other > 0 ? html`<a class="banner ask" href=${State.link({ view: "questions" })}>${icons.hand}<span>${t.elsewhere(other)}</span><b>${t.show}</b></a>` : nothing}
          <div class="scroller" @scroll=${() => this.scrolled()}>${transcript(state, c)}</div>
          <div class="dock">
            ${this.follow ? nothing : html`<button class="round latest" aria-label=${t.latest} title=${t.latest} @click=${() => { this.follow = true; this.toEnd(true); this.requestUpdate(); }}>${icons.down}</button>`}
            <chela-composer .state=${state} .tick=${this.tick} @sent=${() => { this.follow = true; }}></chela-composer>
          </div>`;
      }
    }
  }

  private get scroller(): HTMLElement | null {
    return this.querySelector(".scroller");
  }

  private scrolled(): void {
    const s = this.scroller;
    if (!s) return;
    const follow = s.scrollHeight - s.scrollTop - s.clientHeight < near;
    if (follow !== this.follow) {
      this.follow = follow;
      this.requestUpdate();
    }
  }

  private toEnd(smooth = false): void {
    const s = this.scroller;
    if (s && this.follow) s.scrollTo({ top: s.scrollHeight, behavior: smooth && !matchMedia("(prefers-reduced-motion: reduce)").matches ? "smooth" : "instant" });
  }

  // toMessage shows the message that the address names, once it has been read.
  private toMessage(): void {
    const { place } = this.state;
    const goal = place.view === "chat" ? (place.message ?? "") : "";
    if (goal === this.goal) return;
    if (!goal) {
      this.goal = "";
      return;
    }
    const at = this.querySelector(`[data-messages~="${CSS.escape(goal)}"]`);
    if (!at) return;
    this.goal = goal;
    this.follow = false;
    at.scrollIntoView({ block: "start" });
    at.classList.add("found");
    at.addEventListener("animationend", () => at.classList.remove("found"), { once: true });
  }

  override updated(): void {
    const key = this.state.place.view === "chat" ? this.state.place.key : this.state.place.view;
    if (key !== this.shownKey) {
      this.shownKey = key;
      this.follow = true;
    }
    this.toMessage();
    this.toEnd();
    const dialog = this.querySelector("dialog");
    if (dialog && !dialog.open) {
      dialog.showModal();
      dialog.querySelector("input")?.select();
    }
  }

  private dialogView(): TemplateResult | typeof nothing {
    const { state } = this;
    const d = state.dialog;
    if (!d) return nothing;
    const done = () => {
      state.dialog = undefined;
      state.changed();
    };
    const submit = (e: Event) => {
      e.preventDefault();
      const field = this.querySelector<HTMLInputElement>("dialog input");
      done();
      void d.act(field?.value ?? "");
    };
    return html`<dialog aria-labelledby="dialog-title" @cancel=${(e: Event) => { e.preventDefault(); done(); }}>
      <form @submit=${submit}>
        <h2 id="dialog-title">${d.title}</h2>
        ${d.text ? html`<p class="dialog-text">${d.text}</p>` : nothing}
        ${d.plan ? html`<pre class="command" tabindex="0">${visible(d.plan)}</pre>` : nothing}
        ${d.field !== undefined ? html`<label>${t.name}<input .value=${d.field} maxlength="100" /></label>` : nothing}
        <div class="answers"><button type="button" @click=${done}>${t.cancel}</button><button class=${d.danger ? "danger solid" : "primary"}>${d.confirm}</button></div>
      </form>
    </dialog>`;
  }
}
