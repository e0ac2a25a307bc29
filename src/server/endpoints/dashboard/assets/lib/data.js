// Reading from the API inside components.
import { useCallback, useEffect, useRef, useState } from "./html.js";
import { api, withQuery } from "./api.js";
import { utcDay } from "./format.js";

/** `{data, error, loading, reload}` of one address; a null path reads nothing. Old data stays until the new arrives. */
export function useGet(path) {
  const [state, setState] = useState({ path: null, data: null, error: null, loading: true });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (path === null) return undefined;
    const stop = new AbortController();
    setState((old) => ({ ...old, loading: true }));
    api.get(path, { signal: stop.signal }).then(
      (data) => setState({ path, data, error: null, loading: false }),
      (error) => {
        // Data of another address must not be shown next to this one's error.
        if (error.name !== "AbortError") setState((old) => ({ path, data: old.path === path ? old.data : null, error, loading: false }));
      },
    );
    return () => stop.abort();
  }, [path, round]);
  const reload = useCallback(() => setRound((number) => number + 1), []);
  return { ...state, reload };
}

/** The number of calls without a known price in this month, by the id of their app; of all apps, or of one. */
export function useUnpriced(app) {
  const to = utcDay();
  const { data } = useGet(withQuery("v1/usage", { from: `${to.slice(0, 8)}01`, to, by: "app", app }));
  return new Map((data?.data ?? []).map((row) => [row.app_id, row.unpriced_attempts]));
}

/** A paged list: `{rows, error, loading, hasMore, more, reload}`. */
export function usePages(path, filters, limit = 50) {
  const [state, setState] = useState({ rows: null, cursor: null, error: null, loading: true });
  const [round, setRound] = useState(0);
  const running = useRef(null);
  // After a change, as many rows are read again as there were.
  const wanted = useRef(limit);
  const first = withQuery(path, filters);

  const read = useCallback((address, earlier) => {
    running.current?.abort();
    const stop = new AbortController();
    running.current = stop;
    setState((old) => ({ ...old, loading: true, error: null }));
    api.get(address, { signal: stop.signal }).then(
      (page) => setState({ rows: [...earlier, ...page.data], cursor: page.next_cursor, error: null, loading: false }),
      (error) => {
        if (error.name !== "AbortError") setState((old) => ({ ...old, error, loading: false }));
      },
    );
  }, []);

  useEffect(() => {
    read(withQuery(path, { ...filters, limit: wanted.current }), []);
    return () => running.current?.abort();
  }, [first, round]);

  useEffect(() => {
    wanted.current = Math.min(200, Math.max(limit, state.rows?.length ?? 0));
  }, [state.rows]);

  const more = () => read(withQuery(path, { ...filters, limit, cursor: state.cursor }), state.rows ?? []);
  const reload = useCallback(() => setRound((number) => number + 1), []);
  return { ...state, hasMore: state.cursor !== null, more, reload };
}

/** All records of a list, for choices where one page is not enough. Stops at 1,000. */
export function useAll(path) {
  const [state, setState] = useState({ rows: null, error: null });
  useEffect(() => {
    const stop = new AbortController();
    const read = async () => {
      const rows = [];
      let cursor = null;
      do {
        const page = await api.get(withQuery(path, { limit: 200, cursor }), { signal: stop.signal });
        rows.push(...page.data);
        cursor = page.next_cursor;
      } while (cursor !== null && rows.length < 1000);
      setState({ rows, error: null });
    };
    read().catch((error) => {
      if (error.name !== "AbortError") setState({ rows: null, error });
    });
    return () => stop.abort();
  }, [path]);
  return state;
}

/** `[run, {busy, error, clear}]` for an action: one at a time, its error kept until the next attempt or `clear`. */
export function useAction(act) {
  const [state, setState] = useState({ busy: false, error: null });
  const isBusy = useRef(false);
  const isHere = useRef(true);
  useEffect(() => () => { isHere.current = false; }, []);
  const settle = (next) => {
    isBusy.current = false;
    if (isHere.current) setState(next);
  };
  const run = async (...given) => {
    if (isBusy.current) return;
    isBusy.current = true;
    setState({ busy: true, error: null });
    try {
      await act(...given);
      settle({ busy: false, error: null });
    } catch (error) {
      settle({ busy: false, error });
    }
  };
  const clear = () => isBusy.current || setState((old) => (old.error ? { busy: false, error: null } : old));
  return [run, { ...state, clear }];
}

/** What an error says about a field (`limits.per_day`, `models[0]`), to show next to it. */
export function complaint(error, ...fields) {
  const param = error?.param;
  if (!param) return undefined;
  const isAbout = (field) => param === field || param.startsWith(`${field}.`) || param.startsWith(`${field}[`);
  return fields.some(isAbout) ? error.message : undefined;
}
