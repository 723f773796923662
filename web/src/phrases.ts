// What the gateway says in English, in the language of the page: reasons of questions, names
// and reasons of models. What is not in the list stays as it is.

import zh from "./phrases.json";
import { language } from "./text";

const forms = Object.entries(zh).map(([en, text]) => ({
  pattern: new RegExp(`^${en.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{\d\}/g, "(.+)")}$`, "s"), text,
}));

/**
 * inWords is a text of one or more clauses in the language of the page. What is not known,
 * such as a name with a semicolon, is left as it was written.
 */
export function inWords(text: string): string {
  if (language() !== "zh") return text;
  let out = "", known = false;
  text.split("; ").forEach((s, i) => {
    const own = clause(s);
    if (i > 0) out += known && own !== null ? "；" : "; ";
    out += own ?? s;
    known = own !== null;
  });
  return out;
}

function clause(s: string): string | null {
  for (const { pattern, text } of forms) {
    const found = pattern.exec(s);
    if (found) return text.replace(/\{(\d)\}/g, (_, n: string) => found[Number(n) + 1] ?? "");
  }
  return null;
}
