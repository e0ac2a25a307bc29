// Files made in the browser.

/** Offers `text` as a file. The session's cookie cannot ask for a type by a link, so the answer is fetched first. */
export function download(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has begun to read it by the next task.
  setTimeout(() => URL.revokeObjectURL(address), 0);
}

/** A part of a file's name: letters, digits and dashes. */
export function fileWord(text) {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "app";
}
