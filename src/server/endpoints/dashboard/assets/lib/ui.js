// The small components that all pages use. Their styles are in parts.css, by the class names used here.
import { html, useEffect, useId, useRef, useState } from "./html.js";
import { Or, Said } from "./copy.js";
import { ago, date, dateTime } from "./format.js";

export { Code, Command, CopyButton, Or, Said } from "./copy.js";
export { Dialog, rescueFocus } from "./dialog.js";

/**
 * `kind`: primary, secondary (the default), danger, quiet. `href` makes it a link. While `busy` it keeps the focus and
 * does nothing. `buttonRef` is the element's ref; further properties go to the element.
 */
export function Button({ kind = "secondary", busy = false, small = false, type = "button", href, onClick, buttonRef, class: more = "", children, ...rest }) {
  const classes = `button ${kind} ${small ? "small" : ""} ${more}`;
  if (href) return html`<a class=${classes} href=${href} ref=${buttonRef} ...${rest}>${children}</a>`;
  const click = (event) => {
    if (busy) event.preventDefault();
    else onClick?.(event);
  };
  return html`<button class=${classes} type=${type} onClick=${click} ref=${buttonRef} aria-disabled=${busy ? "true" : undefined} ...${rest}>
    ${busy && html`<span class="wheel" aria-hidden="true"></span>`}${children}
  </button>`;
}

/**
 * A labelled input. `onInput` gets the text. `lines` makes it that many lines high; `prefix` and `suffix` are units
 * beside it. Further properties go to the input.
 */
export function Field({ label, value, onInput, hint, error, optional = false, prefix, suffix, lines, type = "text", inputRef, ...rest }) {
  const id = useId();
  const ref = useFocusOnError(error, inputRef);
  const shared = {
    id,
    ref,
    value,
    "aria-invalid": error ? "true" : undefined,
    "aria-describedby": described(id, hint, error),
    onInput: (event) => onInput?.(event.currentTarget.value),
    ...rest,
  };
  const input = lines ? html`<textarea rows=${lines} ...${shared}></textarea>` : html`<input type=${type} ...${shared} />`;
  return html`<div class="field">
    <label for=${id}>${label}${optional && html` <span class="muted">(optional)</span>`}</label>
    ${prefix || suffix
      ? html`<div class="affixed">${prefix && html`<span aria-hidden="true">${prefix}</span>`}${input}${suffix && html`<span aria-hidden="true">${suffix}</span>`}</div>`
      : input}
    <${Notes} id=${id} hint=${hint} error=${error} />
  </div>`;
}

/** A labelled choice; `options` are `{value, label}`, `onChange` gets the value. */
export function Select({ label, value, onChange, options, hint, error, inputRef, ...rest }) {
  const id = useId();
  const ref = useFocusOnError(error, inputRef);
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <select id=${id} ref=${ref} value=${value} aria-invalid=${error ? "true" : undefined} aria-describedby=${described(id, hint, error)}
      onChange=${(event) => onChange?.(event.currentTarget.value)} ...${rest}>
      ${options.map((option) => html`<option key=${option.value} value=${option.value} selected=${option.value === value}>${option.label}</option>`)}
    </select>
    <${Notes} id=${id} hint=${hint} error=${error} />
  </div>`;
}

/** The ref of an input, which gets the focus when it has an error. */
function useFocusOnError(error, given) {
  const own = useRef(null);
  const ref = given ?? own;
  useEffect(() => {
    if (error) ref.current?.focus();
  }, [error]);
  return ref;
}

function described(id, hint, error) {
  return [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ") || undefined;
}

function Notes({ id, hint, error }) {
  return html`${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
    ${error && html`<p class="problem" id=${`${id}-error`}><${Said} text=${error} /></p>`}`;
}

/** A tick box with its label beside it; `onChange` gets a boolean. */
export function Check({ label, checked, onChange, ...rest }) {
  return html`<label class="check"><input type="checkbox" checked=${checked} onChange=${(event) => onChange(event.currentTarget.checked)} ...${rest} /> <span>${label}</span></label>`;
}

/** `tone`: info, warn, error (announced at once), good. */
export function Banner({ tone = "info", title, children, action }) {
  return html`<div class=${`banner ${tone}`} role=${tone === "error" ? "alert" : undefined}>
    <div>${title && html`<strong>${title}</strong>`} ${children}</div>
    ${action && html`<div class="banner-action">${action}</div>`}
  </div>`;
}

/** An `ApiError`, with its request's id and a retry button. */
export function Problem({ error, retry }) {
  if (!error) return null;
  const action = retry && html`<${Button} small onClick=${retry}>Try again</${Button}>`;
  return html`<${Banner} tone="error" action=${action}>
    <${Said} text=${error.message} />${error.requestId && html` <span class="request-id">Request <code>${error.requestId}</code></span>`}
  </${Banner}>`;
}

/** An empty state: one sentence, one button (`action`), and the `command` that does the same. */
export function Empty({ title, children, action, command }) {
  return html`<div class="empty">
    ${title && html`<p class="empty-title">${title}</p>`}
    ${children && html`<p>${children}</p>`}
    ${action}
    ${command && html`<${Or} command=${command} />`}
  </div>`;
}

/** The status line of a run, a polite live region. A page has at most one, and keeps it in place. */
export function Status({ children }) {
  return html`<p class="status" role="status">${children}</p>`;
}

/** `label` is shown beside it. */
export function Spinner({ label = "Loading…" }) {
  return html`<p class="loading"><span class="wheel" aria-hidden="true"></span> ${label}</p>`;
}

/** An instant: relative, or `absolute` as a date, or `exact` with its time, which is shown on hover otherwise. */
export function Time({ at, absolute = false, exact = false }) {
  if (!at) return html`<span class="muted">never</span>`;
  return html`<time datetime=${at} title=${dateTime(at)}>${exact ? dateTime(at) : absolute ? date(at) : ago(at)}</time>`;
}

/**
 * `columns` are `{key, label, render?, number?, main?}`: `main` heads its row. Where there is no room for its columns,
 * each row becomes a card, hence the explicit roles: browsers drop those of a table that is not displayed as one.
 */
export function Table({ caption, columns, rows, rowKey = (row) => row.id, foot }) {
  const cell = (column, row) => {
    const shared = { class: column.number ? "number" : column.class, "data-label": column.label };
    const content = column.render ? column.render(row) : row[column.key];
    return column.main
      ? html`<th scope="row" role="rowheader" key=${column.key} ...${shared}>${content}</th>`
      : html`<td role="cell" key=${column.key} ...${shared}>${content}</td>`;
  };
  const row = (record, key) => html`<tr role="row" key=${key}>${columns.map((column) => cell(column, record))}</tr>`;
  return html`<div class=${`table ${columns.length > 6 ? "many" : ""}`}><table role="table">
    <caption class="unseen">${caption}</caption>
    <thead role="rowgroup"><tr role="row">
      ${columns.map((column) => html`<th scope="col" role="columnheader" key=${column.key} class=${column.number ? "number" : ""}>${column.hideLabel ? html`<span class="unseen">${column.label}</span>` : column.label}</th>`)}
    </tr></thead>
    <tbody role="rowgroup">${rows.map((record) => row(record, rowKey(record)))}</tbody>
    ${foot && html`<tfoot role="rowgroup">${row(foot, "foot")}</tfoot>`}
  </table></div>`;
}

/** The parts of a page that have addresses of their own: `tabs` are `{href, label}`. */
export function Tabs({ label, tabs, current }) {
  return html`<div class="tabs" role="navigation" aria-label=${label}><ul>${tabs.map((tab) => html`<li key=${tab.href}>
    <a href=${tab.href} aria-current=${tab.href === current ? "page" : undefined}>${tab.label}</a>
  </li>`)}</ul></div>`;
}

/** The head of a page: its only `h1`, its actions, and the window's title. */
export function PageHead({ title, lead, back, children }) {
  useEffect(() => {
    document.title = `${title} · mk`;
  }, [title]);
  return html`<div class="page-head">
    <div>
      ${back && html`<p class="back"><a href=${back.href}><span aria-hidden="true">←</span> ${back.label}</a></p>`}
      <h1 tabindex="-1">${title}</h1>
      ${lead && html`<p class="lead">${lead}</p>`}
    </div>
    ${children && html`<div class="page-actions">${children}</div>`}
  </div>`;
}

let showNotice = () => {};

/** Shows a short confirmation; announced politely, gone after a while. */
export function notify(text) {
  showNotice(text);
}

/** Where `notify` shows its messages; once, in the shell. */
export function Notices() {
  const [notice, setNotice] = useState({ text: "", at: 0 });
  useEffect(() => {
    showNotice = (text) => setNotice({ text, at: Date.now() });
  }, []);
  useEffect(() => {
    if (!notice.text) return undefined;
    const timer = setTimeout(() => setNotice({ text: "", at: 0 }), 6000);
    return () => clearTimeout(timer);
  }, [notice]);
  return html`<div class="notices" aria-live="polite">${notice.text && html`<p class="notice" key=${notice.at}>${notice.text}</p>`}</div>`;
}
