// What stands between the page and the gateway, and what helps.

import { html, nothing, type TemplateResult } from "lit";
import type { Link } from "../gateway";
import type { State } from "../state";
import { t } from "../text";
import { icons } from "./icon";

/** gate is shown instead of the page when a person has to do something. */
export function gate(state: State, link: Link): TemplateResult | undefined {
  switch (link.state) {
    case "signin":
      return frame(t.signIn, html`
        ${link.problem ? html`<p class="note error" role="alert">${t.problems[link.problem]}</p>` : nothing}
        <p>${t.signInText}</p>
        ${command("chela dashboard")}
        <form @submit=${(e: SubmitEvent) => submit(state, e)}>
          <p><label for="secret">${link.mode === "password" ? t.orPassword : t.orToken}</label></p>
          <div class="line"><input id="secret" name="secret" type="password" autocomplete="current-password" required aria-describedby="where" />
          <button class="primary">${t.signIn}</button></div>
          ${link.mode === "token" ? html`<p class="quiet" id="where">${t.tokenWhere}</p>` : html`<p id="where"></p>`}
        </form>`);
    case "pairing":
      return frame(t.pairing, html`
        <p>${t.pairingText}</p>
        ${command(`chela devices approve ${link.requestId}`)}
        <p class="working" role="status"><span class="dots" aria-hidden="true"><i></i><i></i><i></i></span><span>${t.pairingWaits}</span></p>
        ${link.approved?.length ? html`<button @click=${() => void state.lessScopes(link.approved ?? [])}>${t.pairingLess}</button>` : nothing}`);
    case "stopped":
      return frame(t.stoppedTitle, html`<p class="note error" role="alert">${link.text}</p><button class="primary" @click=${() => location.reload()}>${t.reload}</button>`);
    case "waiting":
      if (state.wasOnline) return undefined; // a line above the page says it
      return frame(problem(link.reason), html`
        ${link.text ? html`<p>${link.text}</p>` : nothing}
        ${help(link.reason)}
        <p class="quiet">${seconds(link.retryAt)}</p>
        <button class="primary" @click=${() => state.gateway.retry()}>${t.tryNow}</button>`);
    case "connecting":
      return state.wasOnline ? undefined : html`<main class="gate wait"><p class="working" role="status">${icons.claw}<span class="hidden">${t.connecting}</span></p></main>`;
    default:
      return undefined;
  }
}

/** banner is a line above the page while the connection is lost. */
export function banner(state: State): TemplateResult | typeof nothing {
  const { link } = state.gateway;
  if (link.state === "connecting") return html`<div class="banner" role="status">${t.reconnecting}</div>`;
  if (link.state !== "waiting") return nothing;
  return html`<div class="banner" role="status"><span>${problem(link.reason)} ${link.reason === "gone" ? html`${t.goneText} <code>chela gateway run</code>.` : nothing}</span>
    <span class="quiet">${seconds(link.retryAt)}</span><button @click=${() => state.gateway.retry()}>${t.tryNow}</button></div>`;
}

function problem(reason: "restart" | "gone" | "locked" | "refused"): string {
  return { restart: t.restarting, gone: t.gone, locked: t.locked, refused: t.refused }[reason];
}

function help(reason: "restart" | "gone" | "locked" | "refused"): TemplateResult | typeof nothing {
  if (reason === "gone") return html`<p>${t.goneText}</p>${command("chela gateway run")}`;
  if (reason === "locked") return html`<p>${t.lockedText}</p>${command("chela chat")}`;
  return nothing;
}

function seconds(at: number): string {
  return t.nextTry(Math.max(0, Math.ceil((at - Date.now()) / 1000)));
}

function frame(title: string, body: TemplateResult): TemplateResult {
  return html`<main class="gate"><div class="gate-card">${icons.claw}<h1>${title}</h1>${body}</div></main>`;
}

function command(text: string): TemplateResult {
  return html`<pre class="command" tabindex="0">${text}</pre>`;
}

function submit(state: State, e: SubmitEvent): void {
  e.preventDefault();
  const field = (e.target as HTMLFormElement).elements.namedItem("secret") as HTMLInputElement;
  const secret = field.value.trim();
  field.value = "";
  if (secret) state.gateway.signIn(secret);
}
