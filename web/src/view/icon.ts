import { html, type TemplateResult } from "lit";

// The icons are drawn on a grid of 20, with a line of one and a half.
const icon = (body: TemplateResult): TemplateResult => body;

export const icons = {
  claw: icon(html`<svg class="claw" viewBox="0 0 64 64" aria-hidden="true"><path d="M12 47C4 29 14 8 40 5c9-1 16 3 18 11-13-4-25 3-29 17 8-9 19-11 28-6-1 18-12 32-28 32-9 0-14-4-17-12z"/></svg>`),
  plus: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="M10 4v12M4 10h12"/></svg>`),
  menu: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="M3 6h14M3 10h14M3 14h14"/></svg>`),
  close: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="m5 5 10 10M15 5 5 15"/></svg>`),
  dots: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="M4.5 10h.01M10 10h.01M15.5 10h.01" stroke-width="2.4"/></svg>`),
  search: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><circle cx="9" cy="9" r="5"/><path d="m13 13 4 4"/></svg>`),
  tasks: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="m3 6 1.5 1.5L7 5M10 6.5h7M3 13l1.5 1.5L7 12M10 13.5h7"/></svg>`),
  clock: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="7"/><path d="M10 6v4l2.7 2"/></svg>`),
  gear: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="M3 6h8M15 6h2M3 14h2M9 14h8"/><circle cx="13" cy="6" r="2"/><circle cx="7" cy="14" r="2"/></svg>`),
  hand: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="7"/><path d="M8 8c0-2.6 4-2.4 4 0 0 1.6-2 1.6-2 3.2M10 13.8h.01"/></svg>`),
  clip: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="m15.5 9.5-5.6 5.6a3.4 3.4 0 0 1-4.8-4.8l6-6a2.2 2.2 0 0 1 3.2 3.2l-6 6a1 1 0 0 1-1.6-1.6l5.3-5.3"/></svg>`),
  up: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="M10 16V4M5 9l5-5 5 5"/></svg>`),
  down: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="M10 4v12M5 11l5 5 5-5"/></svg>`),
  stop: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><rect x="6" y="6" width="8" height="8" rx="1.5" fill="currentColor"/></svg>`),
  chevron: icon(html`<svg class="icon chevron" viewBox="0 0 20 20" aria-hidden="true"><path d="m8 5 5 5-5 5"/></svg>`),
  check: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="m4 10.5 4 4 8-9"/></svg>`),
  cross: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="m6 6 8 8M14 6l-8 8"/></svg>`),
  out: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="M8 5H5v10h10v-3M11 4h5v5M16 4l-7 7"/></svg>`),
  screen: icon(html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><rect x="3" y="4" width="14" height="10" rx="1.5"/><path d="M7 17h6"/></svg>`),
  pin: icon(html`<svg class="icon small" viewBox="0 0 20 20" aria-hidden="true"><path d="M7 3h6l-1 6 2.5 3h-9L8 9 7 3zM10 12v5"/></svg>`),
};
