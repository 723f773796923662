// The message field. It keeps what is written for each conversation.

import { html, LitElement, nothing, type TemplateResult } from "lit";
import { size } from "../format";
import type { Attachment } from "../outbox";
import type { State } from "../state";
import { t } from "../text";
import { icons } from "./icon";
import { agentName, agentOf, modelName, modelTitle } from "./names";

const drafts = new Map<string, Attachment[]>(); // files that are not sent yet, by session

// saved returns the text that is not sent yet, which survives a reload of the tab.
function saved(key: string): string {
  try {
    return sessionStorage.getItem(`draft ${key}`) ?? "";
  } catch {
    return ""; // no storage
  }
}

function save(key: string, text: string): void {
  try {
    if (text) sessionStorage.setItem(`draft ${key}`, text);
    else sessionStorage.removeItem(`draft ${key}`);
  } catch {
    // it lasts as long as the field
  }
}

export class Composer extends LitElement {
  static override properties = { state: { attribute: false }, tick: { attribute: false } };

  declare state: State;
  declare tick: number;

  private key = "";
  private files: Attachment[] = [];
  private chosen = 0; // command in the list
  private over = false;

  override createRenderRoot(): HTMLElement {
    return this;
  }

  private get field(): HTMLTextAreaElement | null {
    return this.querySelector("textarea");
  }

  override updated(): void {
    const key = this.state.open?.key ?? "";
    if (key === this.key) return;
    this.keep();
    this.key = key;
    this.files = drafts.get(key) ?? [];
    if (this.field) {
      this.field.value = saved(key);
      this.grow();
      if (!touch()) this.field.focus({ preventScroll: true });
    }
    this.requestUpdate();
  }

  private keep(): void {
    if (this.key) drafts.set(this.key, this.files);
  }

  private grow(): void {
    const f = this.field;
    if (!f) return;
    f.style.height = "auto";
    f.style.height = `${Math.min(f.scrollHeight, 240)}px`;
  }

  override render(): TemplateResult {
    const { state } = this;
    const { open } = state;
    const online = state.gateway.link.state === "online";
    const s = state.session(open?.key ?? "");
    const busy = Boolean(open?.working || s?.hasActiveRun);
    const may = state.gateway.may("operator.write");
    const matches = this.suggested();
    return html`<form class="composer ${this.over ? "over" : ""}" @submit=${(e: Event) => { e.preventDefault(); this.send(); }}
        @dragover=${(e: DragEvent) => this.drag(e, true)} @dragleave=${(e: DragEvent) => this.drag(e, false)} @drop=${(e: DragEvent) => this.drop(e)}>
      ${matches.length > 0 ? html`<ul class="commands" id="commands" role="listbox" aria-label=${t.search}>${matches.map((c, i) => html`
        <li role="option" id="command-${i}" aria-selected=${i === this.chosen ? "true" : "false"} @mousedown=${(e: Event) => { e.preventDefault(); this.complete(c.name); }}>
          <b>/${c.name}</b> <span>${c.description ?? ""}</span></li>`)}</ul>` : nothing}
      ${this.files.length > 0 ? html`<ul class="files">${this.files.map((f, i) => html`<li>
        ${f.type === "image" ? html`<img alt="" src=${`data:${f.mimeType};base64,${f.content}`} />` : html`<span class="file">${f.fileName}</span>`}
        <button type="button" aria-label=${t.removeFile(f.fileName)} @click=${() => { this.files = this.files.toSpliced(i, 1); this.requestUpdate(); }}>${icons.close}</button></li>`)}</ul>` : nothing}
      <textarea id="message" rows="1" dir="auto" aria-label=${t.message} placeholder=${t.messageTo(agentName(agentOf(state, open?.key ?? "")))} ?disabled=${online && !may}
        role="combobox" aria-autocomplete="list" aria-expanded=${matches.length > 0 ? "true" : "false"} aria-controls="commands"
        aria-activedescendant=${matches.length > 0 ? `command-${this.chosen}` : nothing}
        @input=${() => { this.grow(); save(this.key, this.field?.value ?? ""); this.chosen = 0; this.requestUpdate(); }} @keydown=${(e: KeyboardEvent) => this.press(e)} @paste=${(e: ClipboardEvent) => this.paste(e)}></textarea>
      <div class="tools">
        <label class="button ghost" title=${t.attach}><input type="file" multiple aria-label=${t.attach} @change=${(e: Event) => this.pick(e)} />${icons.clip}</label>
        ${this.choices()}
        <span class="space"></span>
        ${busy ? html`<button type="button" class="round stop" aria-label=${t.stop} title=${t.stop} @click=${() => state.stop()}>${icons.stop}</button>` : nothing}
        <button type="submit" class="round send" aria-label=${t.send} title=${t.send} ?disabled=${this.empty() || (online && !may)}>${icons.up}</button>
      </div>
    </form>`;
  }

  private empty(): boolean {
    return !(this.field?.value ?? "").trim() && this.files.length === 0;
  }

  // choices are the model and the thinking level of this conversation.
  private choices(): TemplateResult | typeof nothing {
    const { state } = this;
    const key = state.open?.key ?? "";
    const s = state.session(key);
    if (!s || state.models.length === 0) return nothing;
    const current = s.modelProvider && s.model ? `${s.modelProvider}/${s.model}` : "";
    const chosen = s.modelOverrideSource ? current : "";
    const fallback = agentOf(state, key)?.model.primary ?? "";
    const levels = s.thinkingLevels ?? [];
    const may = state.gateway.may("operator.admin");
    return html`
      <select class="choice" aria-label=${t.model} title=${t.model} ?disabled=${!state.gateway.may("operator.write")} @change=${(e: Event) => void state.patch(key, { model: (e.target as HTMLSelectElement).value || null })}>
        <option value="" .selected=${!chosen}>${chosen ? t.defaultModel : t.byDefault(modelName(state, current || fallback))}</option>
        ${state.models.filter((m) => m.available || `${m.provider}/${m.id}` === chosen).map((m) => {
          const id = `${m.provider}/${m.id}`;
          return html`<option value=${id} .selected=${id === chosen}>${modelTitle(m)}</option>`;
        })}
      </select>
      ${levels.length > 1 ? html`<select class="choice" aria-label=${t.thinkingLevel} title=${t.thinkingLevel} ?disabled=${!may} @change=${(e: Event) => void state.patch(key, { thinkingLevel: (e.target as HTMLSelectElement).value || null })}>
        <option value="" .selected=${!s.thinkingLevel}>${t.thinkingLevel}: ${t.byDefault(s.thinkingDefault ?? "")}</option>
        ${levels.map((l) => html`<option value=${l.id} .selected=${l.id === s.thinkingLevel}>${t.thinkingLevel}: ${l.label}</option>`)}
      </select>` : nothing}`;
  }

  // matches are the commands that what is written may become.
  private suggested(): State["commands"] {
    const m = /^\/([\w-]*)$/.exec(this.field?.value ?? "");
    if (!m) return [];
    const found = this.state.commands.filter((c) => c.name.startsWith(m[1] ?? ""));
    return found.length === 1 && found[0]?.name === m[1] ? [] : found.slice(0, 8);
  }

  private complete(name: string): void {
    if (this.field) {
      this.field.value = `/${name} `;
      this.field.focus();
    }
    this.requestUpdate();
  }

  private press(e: KeyboardEvent): void {
    if (e.isComposing) return; // Enter chooses a Chinese word
    const matches = this.suggested();
    const pick = matches[this.chosen];
    if (pick && (e.key === "ArrowDown" || e.key === "ArrowUp")) {
      e.preventDefault();
      this.chosen = (this.chosen + (e.key === "ArrowDown" ? 1 : matches.length - 1)) % matches.length;
      this.requestUpdate();
    } else if (pick && (e.key === "Tab" || (e.key === "Enter" && !e.shiftKey))) {
      e.preventDefault();
      this.complete(pick.name);
    } else if (e.key === "Escape" && pick) {
      e.stopPropagation();
      this.field!.value += " ";
      this.requestUpdate();
    } else if (e.key === "Enter" && !e.shiftKey && (!touch() || e.ctrlKey || e.metaKey)) {
      e.preventDefault();
      this.send();
    }
  }

  private send(): void {
    if (this.empty() || (this.state.gateway.link.state === "online" && !this.state.gateway.may("operator.write"))) return;
    const text = (this.field?.value ?? "").trim();
    const { files } = this;
    this.files = [];
    if (this.field) this.field.value = "";
    drafts.delete(this.key);
    save(this.key, "");
    this.grow();
    this.state.send(text, files);
    this.dispatchEvent(new CustomEvent("sent", { bubbles: true }));
    this.requestUpdate();
  }

  private drag(e: DragEvent, over: boolean): void {
    if (!e.dataTransfer?.types.includes("Files")) return;
    e.preventDefault();
    if (this.over !== over) {
      this.over = over;
      this.requestUpdate();
    }
  }

  private drop(e: DragEvent): void {
    this.drag(e, false);
    void this.take(e.dataTransfer?.files);
  }

  private paste(e: ClipboardEvent): void {
    if (!e.clipboardData?.files.length) return;
    e.preventDefault();
    void this.take(e.clipboardData.files);
  }

  private pick(e: Event): void {
    const input = e.target as HTMLInputElement;
    void this.take(input.files).then(() => (input.value = ""));
  }

  private async take(list: FileList | null | undefined): Promise<void> {
    const { link } = this.state.gateway;
    const limits = link.state === "online" ? link.hello.policy.attachments : undefined;
    for (const file of list ?? []) {
      const image = file.type.startsWith("image/");
      const limit = (image ? limits?.maxImageBytes : limits?.maxBytes) ?? 5_000_000;
      let blob: Blob = file;
      if (image && file.size > limit) blob = await smaller(file);
      if (blob.size > limit) {
        this.state.say(t.tooLarge(file.name, size(limit)));
        continue;
      }
      this.files = [...this.files, {
        type: image ? "image" : file.type.startsWith("audio/") ? "audio" : "file",
        mimeType: blob.type || "application/octet-stream",
        fileName: file.name,
        content: await base64(blob),
      }];
    }
    this.requestUpdate();
    this.field?.focus();
  }
}

customElements.define("chela-composer", Composer);

// touch reports whether the page is used by touch: Enter then begins a line, and a keyboard on
// the screen does not open by itself.
function touch(): boolean {
  return matchMedia("(pointer: coarse)").matches;
}

async function base64(blob: Blob): Promise<string> {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}

// smaller returns a picture with at most 2048 pixels on a side; if it cannot be read, as it is.
async function smaller(file: File): Promise<Blob> {
  try {
    const bitmap = await createImageBitmap(file);
    const scale = Math.min(1, 2048 / Math.max(bitmap.width, bitmap.height));
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(bitmap.width * scale);
    canvas.height = Math.round(bitmap.height * scale);
    canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob((b) => resolve(b ?? file), "image/jpeg", 0.85));
  } catch {
    return file;
  }
}
