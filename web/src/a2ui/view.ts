// Components as HTML. Every text is a text: nothing of a message becomes code.

import { html, nothing, svg, type TemplateResult } from "lit";
import { live } from "lit/directives/live.js";
import { ref } from "lit/directives/ref.js";
import { repeat } from "lit/directives/repeat.js";
import { absolute, isObject, read, written, type Component, type Json, type Props, type Surface } from "./data";
import { icon } from "./icons";
import { number, resolve, show, truth, type Scope } from "./value";

export interface Action {
  name: string;
  surfaceId: string;
  sourceComponentId: string;
  timestamp: string;
  context: Props;
}

/** Screen is what the components need of the page. */
export interface Screen {
  changed(): void;
  act: ((a: Action) => void) | undefined; // undefined: it only shows
  open(url: string): void;
  report(problem: string): void;
}

const deepest = 60; // components in components
const most = 3000; // components of a drawing
const mostItems = 500; // of a list

const justify: Record<string, string> = { center: "j-center", end: "j-end", spaceAround: "j-around", spaceBetween: "j-between", spaceEvenly: "j-evenly", stretch: "j-stretch" };
const align: Record<string, string> = { start: "a-start", center: "a-center", end: "a-end", stretch: "a-stretch" };

function literal(v: Json | undefined): string {
  return typeof v === "string" ? v : "";
}

/** View draws a surface. */
export class View {
  private drawn = 0;
  private readonly screen: Screen;

  constructor(screen: Screen) {
    this.screen = screen;
  }

  surface(s: Surface): TemplateResult | typeof nothing {
    if (!s.root) return nothing;
    this.drawn = 0;
    const color = (e: Element | undefined): void => {
      if (e instanceof HTMLElement) e.style.setProperty("--accent", s.color || "");
    };
    return html`<section class="surface" data-surface=${s.id} ${ref(color)}>${this.part(s.root, { surface: s, base: "", index: 0 }, 0)}</section>`;
  }

  private part(id: string, scope: Scope, depth: number): TemplateResult | typeof nothing {
    const c = scope.surface.components.get(id);
    if (!c || !id) return nothing; // it may still come
    if (depth > deepest || ++this.drawn > most) {
      this.screen.report(`${scope.surface.id}: too many components, or a component that contains itself: ${id}`);
      return html`<p class="problem">…</p>`;
    }
    let inner: TemplateResult | typeof nothing;
    try {
      inner = this.component(c, scope, depth);
    } catch (err) {
      const why = err instanceof Error ? err.message : String(err);
      this.screen.report(`${scope.surface.id}: ${id} (${c.type}): ${why}`);
      inner = html`<p class="problem">${c.type}: ${why}</p>`;
    }
    const weight = (e: Element | undefined): void => {
      if (e instanceof HTMLElement) e.style.flexGrow = c.weight === undefined ? "" : String(c.weight);
    };
    return html`<div class="part ${c.type} ${c.weight === undefined ? "" : "weighted"}" data-id=${id} ${ref(weight)}>${inner}</div>`;
  }

  private children(v: Json | undefined, scope: Scope, depth: number): TemplateResult | typeof nothing {
    const list = isObject(v) && Array.isArray(v.explicitList) ? v.explicitList : v;
    if (Array.isArray(list)) return html`${repeat(list, (id) => id, (id) => this.part(literal(id), scope, depth + 1))}`;
    if (!isObject(list)) return nothing;
    const template = isObject(list.template) ? list.template : list;
    const id = literal(template.componentId);
    const path = absolute(literal(template.path) || literal(template.dataBinding), scope.base);
    const items = read(scope.surface.data, path);
    const keys = Array.isArray(items) ? items.map((_, i) => String(i)) : isObject(items) ? Object.keys(items) : [];
    return html`${repeat(keys.slice(0, mostItems), (k) => k, (k, index) => this.part(id, { surface: scope.surface, base: `${path}/${k.replaceAll("~", "~0").replaceAll("/", "~1")}`, index }, depth + 1))}`;
  }

  // value returns what an input shows: what the person entered, or the value.
  private value(c: Component, v: Json | undefined, scope: Scope): Json | undefined {
    if (isObject(v) && typeof v.path === "string") return resolve(v, scope);
    return scope.surface.entered.get(`${c.id} ${scope.base}`) ?? resolve(v, scope);
  }

  // enter records what the person entered.
  private enter(c: Component, v: Json | undefined, scope: Scope, value: Json): void {
    const { surface } = scope;
    if (isObject(v) && typeof v.path === "string") surface.data = written(surface.data, absolute(v.path, scope.base), value);
    else surface.entered.set(`${c.id} ${scope.base}`, value);
    this.screen.changed();
  }

  // failed returns why an input is not valid; "": it is.
  private failed(c: Component, scope: Scope): string {
    for (const check of Array.isArray(c.props.checks) ? c.props.checks : []) {
      if (isObject(check) && !truth(resolve("condition" in check ? check.condition : check, scope))) return literal(check.message) || "not valid";
    }
    return "";
  }

  private field(c: Component, scope: Scope, input: TemplateResult): TemplateResult {
    const problem = this.failed(c, scope);
    return html`<label class="field"><span>${show(resolve(c.props.label, scope))}</span>${input}${problem ? html`<small class="invalid">${problem}</small>` : nothing}</label>`;
  }

  private component(c: Component, scope: Scope, depth: number): TemplateResult | typeof nothing {
    const p = c.props;
    const text = (v: Json | undefined): string => show(resolve(v, scope));
    switch (c.type) {
      case "Text":
        return words(text(p.text), literal(p.variant) || literal(p.usageHint));
      case "Image": {
        const url = address(text(p.url));
        const alt = text(p.description) || text(p.altText);
        return url ? html`<img class="${literal(p.variant) || literal(p.usageHint)} fit-${literal(p.fit)}" src=${url} alt=${alt} />` : this.elsewhere(text(p.url), alt);
      }
      case "Icon": {
        if (isObject(p.name) && p.name.svgPath !== undefined) return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">${svg`<path d=${text(p.name.svgPath)} />`}</svg>`;
        const name = text(p.name);
        return html`<span class="icon" role="img" aria-label=${name}>${icon(name)}</span>`;
      }
      case "Video": {
        const url = address(text(p.url));
        return url ? html`<video controls src=${url}></video>` : this.elsewhere(text(p.url), "");
      }
      case "AudioPlayer": {
        const url = address(text(p.url));
        return html`${text(p.description) ? html`<small>${text(p.description)}</small>` : nothing}${url ? html`<audio controls src=${url}></audio>` : this.elsewhere(text(p.url), "")}`;
      }
      case "Row":
      case "Column":
        return html`<div class="${c.type === "Row" ? "row" : "column"} ${justify[literal(p.justify) || literal(p.distribution)] ?? ""} ${align[literal(p.align) || literal(p.alignment)] ?? ""}">${this.children(p.children, scope, depth)}</div>`;
      case "List":
        return html`<div class="${p.direction === "horizontal" ? "row scroll" : "column"} ${align[literal(p.align) || literal(p.alignment)] ?? ""}">${this.children(p.children, scope, depth)}</div>`;
      case "Card":
        return html`<div class="card">${p.children !== undefined ? this.children(p.children, scope, depth) : this.part(literal(p.child), scope, depth + 1)}</div>`;
      case "Divider":
        return html`<hr class=${literal(p.axis)} />`;
      case "ProgressBar": {
        const [value, max] = [number(resolve(p.value, scope)), number(resolve(p.max, scope))];
        return html`${text(p.label) ? html`<small>${text(p.label)}</small>` : nothing}<progress .value=${Number.isNaN(value) ? 0 : value} max=${Number.isNaN(max) ? 1 : max}></progress>`;
      }
      case "Tabs":
        return this.tabs(c, scope, depth);
      case "Modal":
        return this.modal(c, scope, depth);
      case "Button":
        return this.button(c, scope, depth);
      default:
        return this.input(c, scope);
    }
  }

  // elsewhere stands for a file of another server.
  private elsewhere(url: string, what: string): TemplateResult | typeof nothing {
    if (url === "") return nothing;
    this.screen.report(`not loaded, because it is not a file in canvas/: ${url.slice(0, 200)}`);
    return html`<p class="elsewhere">${what || url}</p>`;
  }

  private tabs(c: Component, scope: Scope, depth: number): TemplateResult {
    const tabs = (Array.isArray(c.props.tabs) ? c.props.tabs : Array.isArray(c.props.tabItems) ? c.props.tabItems : []).filter(isObject);
    const at = Math.min(number(this.value(c, undefined, scope)) || 0, Math.max(tabs.length - 1, 0));
    return html`<div class="tablist" role="tablist">${tabs.map((tab, i) => html`<button role="tab" aria-selected=${i === at ? "true" : "false"} @click=${() => this.enter(c, undefined, scope, i)}>${show(resolve(tab.title, scope))}</button>`)}</div>
      <div role="tabpanel">${this.part(literal(tabs[at]?.child), scope, depth + 1)}</div>`;
  }

  private modal(c: Component, scope: Scope, depth: number): TemplateResult {
    const open = this.value(c, undefined, scope) === true;
    const opener = literal(c.props.trigger) || literal(c.props.entryPointChild);
    const show = (on: boolean) => () => this.enter(c, undefined, scope, on);
    return html`<div class="opener" @click=${show(true)}>${this.part(opener, scope, depth + 1)}</div>
      ${open ? html`<div class="shade" @click=${show(false)}></div><div class="modal" role="dialog" aria-modal="true"><button class="close" aria-label="Close" @click=${show(false)}>✕</button>${this.part(literal(c.props.content) || literal(c.props.contentChild), scope, depth + 1)}</div>` : nothing}`;
  }

  private button(c: Component, scope: Scope, depth: number): TemplateResult {
    const { action } = c.props;
    const kind = c.props.primary === true ? "primary" : literal(c.props.variant);
    const event = isObject(action) ? (isObject(action.event) ? action.event : action) : undefined;
    const fn = isObject(action) && isObject(action.functionCall) ? action.functionCall : undefined;
    const sends = Boolean(event?.name);
    const invalid = this.failed(c, scope);
    const press = (e: Event): void => {
      if (!e.isTrusted) return; // no script presses it
      if (fn) this.run(fn, scope);
      else if (sends && event) this.screen.act?.({ name: literal(event.name), surfaceId: scope.surface.id, sourceComponentId: c.id, timestamp: new Date().toISOString(), context: context(event.context, scope) });
    };
    const off = Boolean(invalid) || (sends && !this.screen.act);
    const label = c.props.child !== undefined ? this.part(literal(c.props.child), scope, depth + 1) : html`${show(resolve(c.props.label, scope))}`;
    return html`<button class="push ${kind}" ?disabled=${off} title=${off ? invalid || "Open this conversation on the gateway's web page to use it." : ""} @click=${press}>${label}</button>`;
  }

  // run carries out a function of a button.
  private run(fn: Props, scope: Scope): void {
    if (fn.call === "openUrl") this.screen.open(show(resolve(isObject(fn.args) ? fn.args.url : undefined, scope)));
    else resolve(fn, scope);
    this.screen.changed();
  }

  private input(c: Component, scope: Scope): TemplateResult | typeof nothing {
    const p = c.props;
    const of = (e: Event): HTMLInputElement => e.target as HTMLInputElement;
    switch (c.type) {
      case "TextField": {
        const v = p.value ?? p.text;
        const kind = literal(p.variant) || literal(p.textFieldType) || literal(p.type);
        const at = show(this.value(c, v, scope));
        const enter = (e: Event): void => this.enter(c, v, scope, kind === "number" && of(e).value !== "" ? Number(of(e).value) : of(e).value);
        if (kind === "longText") return this.field(c, scope, html`<textarea rows="4" .value=${live(at)} @input=${enter}></textarea>`);
        const type = { number: "number", obscured: "password", date: "date" }[kind] ?? "text";
        return this.field(c, scope, html`<input type=${type} .value=${live(at)} placeholder=${show(resolve(p.placeholder, scope))} autocomplete="off" @input=${enter} />`);
      }
      case "CheckBox": {
        const on = truth(this.value(c, p.value, scope));
        const problem = this.failed(c, scope);
        return html`<label class="check"><input type="checkbox" .checked=${live(on)} @change=${(e: Event) => this.enter(c, p.value, scope, of(e).checked)} /><span>${show(resolve(p.label, scope))}</span></label>${problem ? html`<small class="invalid">${problem}</small>` : nothing}`;
      }
      case "Slider": {
        const at = number(this.value(c, p.value, scope));
        const bound = (v: Json | undefined, other: number): number => (Number.isNaN(number(resolve(v, scope))) ? other : number(resolve(v, scope)));
        const [min, max] = [bound(p.min ?? p.minValue, 0), bound(p.max ?? p.maxValue, 100)];
        const step = typeof p.steps === "number" && p.steps > 0 ? String((max - min) / p.steps) : "any";
        return this.field(c, scope, html`<input type="range" min=${min} max=${max} step=${step} .value=${live(String(Number.isNaN(at) ? min : at))} @input=${(e: Event) => this.enter(c, p.value, scope, Number(of(e).value))} /><output>${Number.isNaN(at) ? min : Math.round(at * 100) / 100}</output>`);
      }
      case "DateTimeInput": {
        const [day, time] = [p.enableDate === true, p.enableTime === true];
        const type = day && time ? "datetime-local" : time ? "time" : "date";
        const length = { date: 10, time: 5, "datetime-local": 16 }[type];
        const given = show(this.value(c, p.value, scope));
        const at = type === "time" && given.includes("T") ? given.slice(11, 16) : given.slice(0, length);
        return this.field(c, scope, html`<input type=${type} .value=${live(at)} @change=${(e: Event) => this.enter(c, p.value, scope, of(e).value)} />`);
      }
      case "ChoicePicker":
      case "MultipleChoice":
        return this.choice(c, scope);
    }
    throw new Error("unknown component");
  }

  private choice(c: Component, scope: Scope): TemplateResult {
    const p = c.props;
    const v = p.value ?? p.selections;
    const given = this.value(c, v, scope);
    const chosen = (Array.isArray(given) ? given : given === undefined || given === null || given === "" ? [] : [given]).map(show);
    const one = c.type === "ChoicePicker" ? p.variant !== "multipleSelection" : p.maxAllowedSelections === 1;
    const most = typeof p.maxAllowedSelections === "number" && p.maxAllowedSelections > 0 ? p.maxAllowedSelections : Infinity;
    const options = (Array.isArray(p.options) ? p.options : []).filter(isObject);
    const toggle = (value: string, on: boolean): void => {
      const rest = chosen.filter((x) => x !== value);
      if (one) this.enter(c, v, scope, on ? [value] : []);
      else if (!on) this.enter(c, v, scope, rest);
      else if (rest.length < most) this.enter(c, v, scope, [...rest, value]);
      else this.screen.changed();
    };
    const problem = this.failed(c, scope);
    return html`<fieldset class="choice ${p.displayStyle === "chips" || p.variant === "chips" ? "chips" : ""}"><legend>${show(resolve(p.label ?? p.description, scope))}</legend>
      ${options.map((o) => {
        const value = show(o.value);
        return html`<label class="check"><input type=${one ? "radio" : "checkbox"} name="${scope.surface.id} ${c.id} ${scope.base}" .checked=${live(chosen.includes(value))} @change=${(e: Event) => toggle(value, of(e))} /><span>${show(resolve(o.label, scope))}</span></label>`;
      })}${problem ? html`<small class="invalid">${problem}</small>` : nothing}</fieldset>`;
    function of(e: Event): boolean {
      return (e.target as HTMLInputElement).checked;
    }
  }
}

// context returns the values that an action sends.
function context(v: Json | undefined, scope: Scope): Props {
  const pairs: [string, Json | undefined][] = Array.isArray(v) ? v.filter(isObject).map((i) => [literal(i.key), i.value]) : isObject(v) ? Object.entries(v) : [];
  const out: Props = {};
  for (const [key, value] of pairs) {
    if (key && key !== "__proto__") out[key] = resolve(value, scope) ?? null;
  }
  return out;
}

// address returns an address that may be loaded: a file in the folder of the pages, or data;
// "": it may not. Nothing is loaded from other servers, which could learn from it.
function address(url: string): string {
  if (/^data:(image|audio|video)\//i.test(url)) return url;
  const file = url.replace(/^\/?(__openclaw__\/)?canvas\//, "");
  if (/^([a-z][a-z0-9+.-]*:|\/)/i.test(file) || file === "") return "";
  return new URL(`../canvas/${file}`, location.href).href;
}

// words returns a text with simple Markdown: headings, lists, bold, italic and code.
function words(text: string, kind: string): TemplateResult {
  const lines = text.split("\n");
  const blocks: TemplateResult[] = [];
  let items: string[] = [];
  const flush = (): void => {
    if (items.length > 0) blocks.push(html`<ul>${items.map((i) => html`<li>${inline(i)}</li>`)}</ul>`);
    items = [];
  };
  for (const line of lines) {
    const item = /^\s*[-*] (.*)$/.exec(line);
    if (item) {
      items.push(item[1] ?? "");
      continue;
    }
    flush();
    if (line.trim() === "" && lines.length > 1) continue;
    const head = /^(#{1,5}) (.*)$/.exec(line);
    blocks.push(heading(head ? `h${head[1]?.length ?? 1}` : kind, inline(head ? (head[2] ?? "") : line)));
  }
  flush();
  return html`${blocks}`;
}

function heading(kind: string, inner: TemplateResult): TemplateResult {
  switch (kind) {
    case "h1": return html`<h1>${inner}</h1>`;
    case "h2": return html`<h2>${inner}</h2>`;
    case "h3": return html`<h3>${inner}</h3>`;
    case "h4": return html`<h4>${inner}</h4>`;
    case "h5": return html`<h5>${inner}</h5>`;
    case "caption": return html`<small>${inner}</small>`;
  }
  return html`<p>${inner}</p>`;
}

function inline(text: string): TemplateResult {
  const out: (TemplateResult | string)[] = [];
  let at = 0;
  for (const m of text.matchAll(/\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|`([^`\n]+)`/g)) {
    out.push(text.slice(at, m.index));
    out.push(m[1] ? html`<b>${m[1]}</b>` : m[2] ? html`<i>${m[2]}</i>` : html`<code>${m[3]}</code>`);
    at = m.index + m[0].length;
  }
  out.push(text.slice(at));
  return html`${out}`;
}
