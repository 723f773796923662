// Values of components: given, bound to data, or computed by the functions of the catalog.

import { absolute, isObject, read, type Json, type Props, type Surface } from "./data";

/** Scope is where a component is drawn. */
export interface Scope {
  surface: Surface;
  base: string; // path of the item of a list
  index: number;
}

const deep = 12; // calls within calls

/** resolve returns a value; undefined: there is none. */
export function resolve(v: Json | undefined, scope: Scope, depth = 0): Json | undefined {
  if (!isObject(v) || depth > deep) return isObject(v) ? undefined : v;
  if (typeof v.call === "string") return call(v.call, isObject(v.args) ? v.args : {}, scope, depth + 1);
  const literal = v.literalString ?? v.literalNumber ?? v.literalBoolean ?? v.literalArray ?? v.literal;
  if (typeof v.path === "string") return read(scope.surface.data, absolute(v.path, scope.base)) ?? literal;
  return literal !== undefined ? literal : v;
}

export function show(v: Json | undefined): string {
  if (v === undefined || v === null) return "";
  return typeof v === "object" ? JSON.stringify(v) : String(v);
}

export function number(v: Json | undefined): number {
  return typeof v === "number" ? v : typeof v === "string" && v.trim() !== "" ? Number(v) : NaN;
}

/** truth returns a condition. */
export function truth(v: Json | undefined): boolean {
  return v === "false" ? false : Boolean(v);
}

const longest = 500; // characters that a regular expression is used on

function call(name: string, args: Props, scope: Scope, depth: number): Json | undefined {
  const arg = (key: string): Json | undefined => resolve(args[key], scope, depth);
  const list = (key: string): boolean[] => (Array.isArray(args[key]) ? args[key].map((v) => truth(resolve(v, scope, depth))) : []);
  const within = (n: number): boolean => {
    const [min, max] = [number(arg("min")), number(arg("max"))];
    return !Number.isNaN(n) && !(n < min) && !(n > max);
  };
  switch (name) {
    case "required": {
      const v = arg("value");
      return !(v === undefined || v === null || v === "" || (Array.isArray(v) && v.length === 0));
    }
    case "regex": {
      const [value, pattern] = [show(arg("value")), show(arg("pattern"))];
      if (value.length > longest || pattern.length > longest || /[+*}]\)*[+*{]/.test(pattern)) return false; // it could take for ever
      try {
        return new RegExp(pattern, "u").test(value);
      } catch {
        return false;
      }
    }
    case "length":
      return within([...show(arg("value"))].length);
    case "numeric":
      return within(number(arg("value")));
    case "email":
      return /^[^\s@]{1,64}@[^\s@.]+(\.[^\s@.]+)+$/.test(show(arg("value")).slice(0, 300));
    case "and":
      return list("values").every(Boolean);
    case "or":
      return list("values").some(Boolean);
    case "not":
      return !truth(arg("value"));
    case "formatString":
      return format(show(args.value === undefined ? "" : isObject(args.value) ? arg("value") : args.value), scope, depth);
    case "formatNumber":
    case "formatCurrency": {
      const n = number(arg("value"));
      if (Number.isNaN(n)) return show(arg("value"));
      const decimals = number(arg("decimals"));
      const digits = Number.isInteger(decimals) && decimals >= 0 && decimals <= 20 ? { minimumFractionDigits: decimals, maximumFractionDigits: decimals } : {};
      const grouping = arg("grouping");
      const currency = name === "formatCurrency" ? { style: "currency" as const, currency: show(arg("currency")) || "USD" } : {};
      try {
        return new Intl.NumberFormat(undefined, { ...digits, ...currency, useGrouping: grouping === undefined || truth(grouping) }).format(n);
      } catch {
        return show(n);
      }
    }
    case "formatDate":
      return date(arg("value"), show(arg("format")));
    case "pluralize": {
      const n = number(arg("value") ?? arg("count"));
      const form = Number.isNaN(n) ? "other" : new Intl.PluralRules(undefined).select(n);
      return show(arg(form) ?? arg("other"));
    }
    case "@index":
      return scope.index + (number(arg("offset")) || 0);
    case "now":
      return new Date().toISOString();
  }
  throw new Error(`unknown function ${name}`);
}

/** format fills in the expressions of a text, such as ${/user/name}. */
function format(text: string, scope: Scope, depth: number): string {
  let out = "";
  for (let i = 0; i < text.length; ) {
    if (text.startsWith("\\${", i)) {
      out += "${";
      i += 3;
      continue;
    }
    if (!text.startsWith("${", i)) {
      out += text[i++];
      continue;
    }
    const p = { text, at: i + 2 };
    out += show(resolve(expression(p, 0), scope, depth));
    const end = text.indexOf("}", p.at);
    if (end < 0) return out;
    i = end + 1;
  }
  return out;
}

// expression parses a path, a call with named arguments, or a literal.
function expression(p: { text: string; at: number }, depth: number): Json {
  const skip = (): void => {
    while (/\s/.test(p.text[p.at] ?? "")) p.at++;
  };
  skip();
  if (depth > deep) throw new Error("the expression is too deep");
  const quote = p.text[p.at];
  if (quote === "'" || quote === '"') {
    let value = "";
    for (p.at++; p.at < p.text.length && p.text[p.at] !== quote; p.at++) {
      if (p.text[p.at] === "\\") p.at++;
      value += p.text[p.at] ?? "";
    }
    p.at++;
    return value;
  }
  if (p.text.startsWith("${", p.at)) {
    p.at += 2;
    const inner = expression(p, depth + 1);
    skip();
    if (p.text[p.at] === "}") p.at++;
    return inner;
  }
  const word = /^[^\s(){},:'"]+/.exec(p.text.slice(p.at))?.[0] ?? "";
  p.at += word.length;
  if (p.text[p.at] === "(") {
    const args: Props = {};
    p.at++;
    for (;;) {
      skip();
      if (p.at >= p.text.length || p.text[p.at] === ")") break;
      const name = /^[\w@]+/.exec(p.text.slice(p.at))?.[0];
      if (!name) throw new Error("arguments of functions have names");
      p.at += name.length;
      skip();
      if (p.text[p.at] !== ":") throw new Error("arguments of functions have names");
      p.at++;
      args[name] = expression(p, depth + 1);
      skip();
      if (p.text[p.at] === ",") p.at++;
    }
    p.at++;
    return { call: word, args };
  }
  if (word === "true" || word === "false") return word === "true";
  if (/^-?\d+(\.\d+)?$/.test(word)) return depth === 0 ? { path: word } : Number(word);
  return { path: word };
}

const monthsAndDays: Record<string, Intl.DateTimeFormatOptions> = {
  MMMM: { month: "long" }, MMM: { month: "short" }, EEEE: { weekday: "long" }, EEE: { weekday: "short" }, EE: { weekday: "short" }, E: { weekday: "short" },
};

function date(v: Json | undefined, pattern: string): string {
  const d = new Date(typeof v === "number" ? v : show(v));
  if (Number.isNaN(d.getTime())) return show(v);
  const two = (n: number): string => String(n).padStart(2, "0");
  return pattern.replace(/'([^']*)'|yyyy|yy|MMMM|MMM|MM|M|dd|d|EEEE|EEE|EE|E|HH|H|hh|h|mm|m|ss|s|a/g, (token, quoted: string | undefined) => {
    if (quoted !== undefined) return quoted;
    if (monthsAndDays[token]) return new Intl.DateTimeFormat(undefined, monthsAndDays[token]).format(d);
    const twelve = d.getHours() % 12 || 12;
    switch (token) {
      case "yyyy": return String(d.getFullYear());
      case "yy": return two(d.getFullYear() % 100);
      case "MM": return two(d.getMonth() + 1);
      case "M": return String(d.getMonth() + 1);
      case "dd": return two(d.getDate());
      case "d": return String(d.getDate());
      case "HH": return two(d.getHours());
      case "H": return String(d.getHours());
      case "hh": return two(twelve);
      case "h": return String(twelve);
      case "mm": return two(d.getMinutes());
      case "m": return String(d.getMinutes());
      case "ss": return two(d.getSeconds());
      case "s": return String(d.getSeconds());
    }
    return d.getHours() < 12 ? "AM" : "PM";
  });
}
