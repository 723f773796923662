// The Markdown of a model, as elements. It may be hostile: HTML in it is shown as text, pictures
// become links, and what is left passes DOMPurify with a short list of elements.

import DOMPurify from "dompurify";
import { Marked, type Tokens } from "marked";
import { t } from "./text";

function escape(s: string): string {
  return s.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

const marked = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    html({ text, block }: Tokens.HTML | Tokens.Tag) {
      return block ? `<p>${escape(text)}</p>` : escape(text);
    },
    image({ href, text }: Tokens.Image) {
      return `<a href="${escape(href)}">${escape(text || t.picture)}</a>`;
    },
    checkbox({ checked }: Tokens.Checkbox) {
      return checked ? "☑ " : "☐ ";
    },
  },
});

const allowed = {
  ALLOWED_TAGS: ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre", "blockquote",
    "ul", "ol", "li", "a", "table", "thead", "tbody", "tr", "th", "td"],
  ALLOWED_ATTR: ["href", "title", "start", "align", "class"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
} as const;

const mayOpen = /^(https?:|mailto:)/i;

/** markdown returns the elements of a text. */
export function markdown(text: string): HTMLElement {
  const root = document.createElement("div");
  root.className = "md";
  root.append(DOMPurify.sanitize(marked.parse(text, { async: false }), { ...allowed, ALLOWED_TAGS: [...allowed.ALLOWED_TAGS], ALLOWED_ATTR: [...allowed.ALLOWED_ATTR] }));
  for (const a of root.querySelectorAll("a")) {
    if (!mayOpen.test(a.getAttribute("href") ?? "")) {
      a.replaceWith(...a.childNodes);
      continue;
    }
    a.target = "_blank";
    a.rel = "noopener noreferrer";
  }
  for (const e of root.querySelectorAll("[class]")) {
    if (e.tagName !== "CODE") e.removeAttribute("class");
  }
  for (const e of root.querySelectorAll<HTMLElement>("p,li,h1,h2,h3,h4,h5,h6,td,th")) e.dir = "auto";
  for (const table of root.querySelectorAll("table")) frame(table, "table");
  for (const pre of root.querySelectorAll("pre")) code(pre);
  return root;
}

// frame puts an element that may be wide into one that scrolls, also by keys.
function frame(e: HTMLElement, className: string): HTMLElement {
  const box = document.createElement("div");
  box.className = className;
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  e.replaceWith(box);
  box.append(e);
  return box;
}

function code(pre: HTMLElement): void {
  const language = /language-([\w+#.-]+)/.exec(pre.querySelector("code")?.className ?? "")?.[1] ?? "";
  const head = document.createElement("div");
  head.className = "code-head";
  const name = document.createElement("span");
  name.textContent = language;
  const copy = document.createElement("button");
  copy.type = "button";
  copy.className = "copy";
  copy.textContent = t.copy;
  copy.addEventListener("click", () => {
    void navigator.clipboard.writeText(pre.textContent ?? "").then(() => {
      copy.textContent = t.copied;
      setTimeout(() => (copy.textContent = t.copy), 1500);
    });
  });
  head.append(name);
  if (navigator.clipboard) head.append(copy); // browsers have it on HTTPS and on this machine only
  pre.tabIndex = 0;
  const box = document.createElement("div");
  box.className = "code";
  pre.replaceWith(box);
  box.append(head, pre);
}
