// An error message with what to do next, and how long until a retry is possible.
import { html, useEffect, useState } from "../lib/html.js";
import { Banner, Said } from "../lib/ui.js";
import { shown, span } from "./text.js";

/** A fault of `request.js`. The countdown is not announced: an announcement every second would not help. */
export function Fault({ fault }) {
  if (!fault) return null;
  return html`<${Banner} tone="error" title=${`${fault.title}.`}>
    <bdi><${Said} text=${shown(fault.message, 1000)} /></bdi> ${fault.hint} <${Countdown} until=${fault.retryAt} />
    ${fault.requestId && html` <span class="request-id">Request <code>${shown(fault.requestId, 128)}</code></span>`}
  </${Banner}>`;
}

function Countdown({ until }) {
  const [now, setNow] = useState(Date.now());
  const isOver = until === undefined || now >= until;
  useEffect(() => {
    setNow(Date.now());
    if (until === undefined) return undefined;
    const timer = setInterval(() => {
      setNow(Date.now());
      if (Date.now() >= until) clearInterval(timer);
    }, 1000);
    return () => clearInterval(timer);
  }, [until]);
  if (until === undefined) return null;
  if (isOver) return html`<strong>It can be tried again now.</strong>`;
  return html`<span role="timer" aria-live="off">Free again in <strong>${left(until - now)}</strong>.</span>`;
}

function left(ms) {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 3600) return seconds < 60 ? `${seconds} s` : span(seconds * 1000);
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} m`;
}
