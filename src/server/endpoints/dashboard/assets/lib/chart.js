// A chart of days, drawn by uPlot (vendor/uplot.js, a plain script that defines `uPlot`). It is only visual: pages that
// show it also have a table of the same numbers.
import { html, useEffect, useRef } from "./html.js";
import { day } from "./format.js";

/** The theme's current colours: a canvas cannot read custom properties. */
function colours(near) {
  const probe = document.createElement("span");
  near.append(probe);
  const of = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const found = { accent: of("--accent"), soft: of("--accent-soft"), muted: of("--muted"), grid: of("--border") };
  probe.remove();
  return { ...found, font: "12px system-ui, sans-serif" };
}

/** The possible steps between two marks of an axis of counts. */
const STEPS = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

/** Bars, one per day: `days` are `YYYY-MM-DD`, `values` numbers or null, `format` writes a value, `isWhole`: they are counts. */
export function DayChart({ days, values, format, isWhole = false, height = 180, label }) {
  const box = useRef(null);
  const tip = useRef(null);
  useEffect(() => {
    let plot = null;
    const draw = () => {
      plot?.destroy();
      plot = new globalThis.uPlot(options({ box: box.current, height, dates: days, format, isWhole, tip: tip.current }), [days.map((_, at) => at), values], box.current);
    };
    draw();
    const resized = new ResizeObserver(([{ contentRect }]) => {
      if (Math.round(contentRect.width) !== plot.width) plot.setSize({ width: Math.round(contentRect.width), height });
    });
    resized.observe(box.current);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    addEventListener("themechange", draw);
    return () => {
      resized.disconnect();
      scheme.removeEventListener("change", draw);
      removeEventListener("themechange", draw);
      plot.destroy();
    };
  }, [days, values, format, isWhole, height]);
  return html`<div class="chart" role="img" aria-label=${label}>
    <div class="chart-box" ref=${box}></div><p class="chart-tip" ref=${tip} aria-hidden="true"></p>
  </div>`;
}

function options({ box, height, dates, format, isWhole, tip }) {
  const { accent, soft, muted, grid, font } = colours(box);
  const width = box.clientWidth;
  const axis = { stroke: muted, font, ticks: { show: false } };
  return {
    width,
    height,
    padding: [8, 22, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: { x: { time: false, range: [-0.6, dates.length - 0.4] }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.05 : 1] } },
    axes: [
      { ...axis, grid: { show: false }, size: 26, splits: (plot) => labelled(dates.length, plot.width), values: (_, splits) => splits.map((at) => (dates[at] ? day(dates[at], true) : "")) },
      { ...axis, grid: { stroke: grid, width: 1 }, ...(isWhole && { incrs: STEPS }), size: (_, texts) => 14 + 7 * Math.max(4, ...(texts ?? []).map((text) => text.length)), values: (_, splits) => splits.map((value) => format(value)) },
    ],
    series: [{}, { stroke: accent, fill: soft, width: 1, points: { show: false }, paths: globalThis.uPlot.paths.bars({ size: [0.7, 40], radius: 0.15 }) }],
    hooks: {
      setCursor: [({ cursor: { idx }, data }) => {
        const value = idx === null || idx === undefined ? undefined : data[1][idx];
        tip.textContent = value === undefined ? "" : `${day(dates[idx])}: ${value === null ? "unknown" : format(value)}`;
      }],
    },
  };
}

/** The days that get a label: as many as fit, always including the last. */
function labelled(length, width) {
  const step = Math.max(1, Math.ceil(length / Math.max(2, Math.floor(width / 72))));
  const found = [];
  for (let at = length - 1; at >= 0; at -= step) found.unshift(at);
  return found;
}
