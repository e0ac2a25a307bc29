// Files created in the browser.

/** Offers `text` as a file. A link cannot request a content type, so the response is fetched first. */
export function download(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has started to read it by the next task.
  setTimeout(() => URL.revokeObjectURL(address), 0);
}

/** A part of a file name: letters, digits and dashes. */
export function fileWord(text) {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "app";
}
