// Keeps the page where it is while it shows something that cannot be shown again.

let held = null;

/** Whether the page must not be left. */
export function isHeld() {
  return held !== null;
}

/**
 * Until the returned function is called, neither the back button nor a link leads away, and the browser asks before it
 * leaves or reloads the page. `onBlocked` is called at each attempt.
 */
export function hold(onBlocked) {
  const mine = { address: location.href, onBlocked };
  held = mine;
  addEventListener("beforeunload", askFirst);
  return () => {
    if (held === mine) release();
  };
}

/** Ends the guard, whichever component started it: what was shown has been stored. */
export function release() {
  held = null;
  removeEventListener("beforeunload", askFirst);
}

function askFirst(event) {
  event.preventDefault();
  // Browsers before version 119 only react to this.
  event.returnValue = true;
}

/** For the router, when the address has changed: true if it had to be changed back. */
export function blockNavigation() {
  if (held === null || location.href === held.address) return held !== null;
  history.pushState(null, "", held.address);
  held.onBlocked?.();
  return true;
}
