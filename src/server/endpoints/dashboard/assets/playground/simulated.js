// The banner where an answer would be simulated, and nowhere else.
import { html } from "../lib/html.js";

export function Simulated({ when }) {
  if (!when) return null;
  return html`<aside class="sandbox" aria-label="Sandbox"><strong>Sandbox.</strong> Answers here are simulated; no real model is asked.</aside>`;
}
