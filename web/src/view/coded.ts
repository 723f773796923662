import { html, type TemplateResult } from "lit";

/** coded returns a text of the page with what stands between backticks as code. */
export function coded(text: string): TemplateResult {
  return html`${text.split("`").map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}
