// Surfaces as the messages of A2UI describe them, of versions 0.8, 0.9 and 1.0.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Props = { [key: string]: Json };

export interface Component {
  id: string;
  type: string;
  props: Props;
  weight: number | undefined;
}

export interface Surface {
  id: string;
  older: boolean; // version 0.8
  root: string; // "": it has not begun
  color: string; // primary color, such as #00aaff; "": the default
  components: Map<string, Component>;
  data: Json;
  entered: Map<string, Json>; // what the person entered where no data is bound
}

export function isObject(v: Json | undefined): v is Props {
  return typeof v === "object" && v !== null && !Array.isArray(v);
}

function text(v: Json | undefined): string {
  return typeof v === "string" ? v : "";
}

/** segments returns the parts of a JSON pointer. */
function segments(path: string): string[] {
  return path.split("/").filter((s) => s !== "").map((s) => s.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** absolute returns a path from the root of the data. */
export function absolute(path: string, base: string): string {
  if (path.startsWith("/")) return path;
  if (path === "" || path === ".") return base;
  return `${base}/${path}`;
}

export function read(data: Json, path: string): Json | undefined {
  let at: Json | undefined = data;
  for (const s of segments(path)) {
    if (Array.isArray(at)) at = at[Number(s)];
    else if (isObject(at)) at = Object.hasOwn(at, s) ? at[s] : undefined;
    else return undefined;
  }
  return at;
}

const maxIndex = 10_000; // of a list

/** written returns data with another value at a path; undefined removes it. */
export function written(data: Json, path: string, value: Json | undefined): Json {
  const put = (at: Json | undefined, rest: string[]): Json | undefined => {
    const [first, ...more] = rest;
    if (first === undefined) return value;
    if (Array.isArray(at) || (at === undefined && /^\d+$/.test(first))) {
      const i = Number(first);
      const list = Array.isArray(at) ? [...at] : [];
      if (!Number.isInteger(i) || i < 0 || i > maxIndex) return list;
      while (list.length < i) list.push(null);
      const next = put(list[i], more);
      if (next === undefined) list.splice(i, 1);
      else list[i] = next;
      return list;
    }
    const out: Props = isObject(at) ? { ...at } : {};
    const next = put(Object.hasOwn(out, first) ? out[first] : undefined, more);
    if (next === undefined) delete out[first];
    else Object.defineProperty(out, first, { value: next, enumerable: true, writable: true, configurable: true });
    return out;
  };
  return put(data, segments(path)) ?? {};
}

/** contents returns the data of version 0.8, a list of keys with values. */
function contents(list: Json | undefined): Json {
  let out: Json = {};
  for (const c of Array.isArray(list) ? list : []) {
    if (!isObject(c) || typeof c.key !== "string") continue;
    let value: Json = c.valueString ?? c.valueNumber ?? c.valueBoolean ?? null;
    if (c.valueMap !== undefined) value = contents(c.valueMap);
    else if (typeof value === "string" && /^\s*[[{]/.test(value)) {
      try {
        value = JSON.parse(value) as Json;
      } catch {
        // a text
      }
    }
    out = written(out, c.key, value);
  }
  return out;
}

export class Surfaces {
  readonly all = new Map<string, Surface>();

  private surface(id: string, older: boolean): Surface {
    let s = this.all.get(id);
    if (!s) {
      s = { id, older, root: "", color: "", components: new Map(), data: {}, entered: new Map() };
      this.all.set(id, s);
    }
    return s;
  }

  private add(s: Surface, list: Json | undefined): void {
    for (const c of Array.isArray(list) ? list : []) {
      if (!isObject(c) || typeof c.id !== "string") continue;
      const weight = typeof c.weight === "number" ? c.weight : undefined;
      if (typeof c.component === "string") {
        s.components.set(c.id, { id: c.id, type: c.component, props: c, weight });
      } else if (isObject(c.component)) {
        const [type, props] = Object.entries(c.component)[0] ?? [];
        if (type && isObject(props)) s.components.set(c.id, { id: c.id, type, props, weight });
      }
    }
  }

  /** apply carries out a message. It throws if it is none that a screen can carry out. */
  apply(message: Json): void {
    if (!isObject(message)) throw new Error("a message is an object");
    const entry = Object.entries(message).find(([name]) => name !== "version");
    const [op, body] = entry ?? [];
    if (!op || !isObject(body)) throw new Error("a message has one part that is an object");
    const id = text(body.surfaceId);
    if (!id) throw new Error(`${op}: surfaceId is missing`);
    const color = (style: Json | undefined): string => (isObject(style) && /^#[0-9a-f]{6}$/i.test(text(style.primaryColor)) ? text(style.primaryColor) : "");
    switch (op) {
      case "surfaceUpdate":
        this.add(this.surface(id, true), body.components);
        return;
      case "beginRendering": {
        const s = this.surface(id, true);
        s.root = text(body.root);
        s.color = color(body.styles);
        return;
      }
      case "dataModelUpdate": {
        const s = this.surface(id, true);
        s.data = written(s.data, text(body.path), contents(body.contents));
        return;
      }
      case "createSurface": {
        const s = this.surface(id, false);
        s.root = "root";
        s.color = color(body.theme);
        this.add(s, body.components);
        if (isObject(body.dataModel)) s.data = body.dataModel;
        return;
      }
      case "updateComponents":
        this.add(this.surface(id, false), body.components);
        return;
      case "updateDataModel": {
        const s = this.surface(id, false);
        s.data = written(s.data, text(body.path), body.value ?? undefined);
        return;
      }
      case "deleteSurface":
        this.all.delete(id);
        return;
    }
    throw new Error(`unknown message ${op}`);
  }
}
