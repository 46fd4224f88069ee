// One span of time for all drawings of a case: zoomed by dragging, buttons or keys.

function whole() {
  return [0, shown.length];
}

function setRange(from, to) {
  const least = Math.min(shown.length, Math.max(4, 2 * shown.step));
  const size = Math.min(shown.length, Math.max(least, to - from));
  const start = Math.max(0, Math.min(shown.length - size, from));
  state.range = [start, start + size];
  for (const draw of timed) draw();
  $("said").textContent = spanText();
}

function spanText() {
  const first = Math.floor(state.range[0]);
  const last = Math.min(shown.length, Math.ceil(state.range[1])) - 1;
  const [start, end] = [stampAt(first), stampAt(last)];
  return `Time points ${first} to ${last} of ${shown.length}${start && end ? ` (${start} to ${end})` : ""}`;
}

/** The time stamp of a time point; null where the series has none, or the page does not hold it. */
function stampAt(point) {
  if (!shown.times || point % shown.times.every) return null;
  return shown.times.texts[point / shown.times.every];
}

/** factor < 1 goes nearer; shift is in shares of what is seen. */
function zoom(factor, shift = 0) {
  const [from, to] = state.range;
  const middle = (from + to) / 2 + shift * (to - from);
  const half = ((to - from) * factor) / 2;
  setRange(middle - half, middle + half);
}

const KEYS = {
  "+": () => zoom(0.5),
  "=": () => zoom(0.5),
  "-": () => zoom(2),
  ArrowLeft: () => zoom(1, -0.25),
  ArrowRight: () => zoom(1, 0.25),
  0: () => setRange(...whole()),
  Escape: () => setRange(...whole()),
};

/** A place for drawings over time: drag or keys choose the span, moving the pointer reads values. */
function timeFrame(describe, draw) {
  const readout = el("span", { class: "readout", "aria-hidden": "true" });
  const span = el("span", { class: "span" });
  const button = (text, name, act) =>
    el("button", { type: "button", class: "quiet", "aria-label": name, title: name, click: act }, text);
  const tools = el(
    "div",
    { class: "tools" },
    span,
    readout,
    button("+", "Zoom in", () => zoom(0.5)),
    button("−", "Zoom out", () => zoom(2)),
    button("‹", "Earlier", () => zoom(1, -0.25)),
    button("›", "Later", () => zoom(1, 0.25)),
    button("Whole series", "Show the whole series", () => setRange(...whole())),
  );
  const drawings = el("div", { class: "drawings" });
  const selection = el("div", { class: "selection", hidden: true });
  const frame = el(
    "div",
    {
      class: "timeline",
      tabindex: "0",
      role: "group",
      "aria-label": `${describe}. Plus and minus zoom, the arrow keys move, 0 shows the whole series.`,
      keydown: (event) => {
        if (event.ctrlKey || event.altKey || event.metaKey || !KEYS[event.key]) return;
        event.preventDefault();
        KEYS[event.key]();
      },
      dblclick: () => setRange(...whole()),
    },
    drawings,
    selection,
  );
  drag(frame, selection, readout);
  const redraw = () => {
    span.textContent = spanText();
    fill(drawings, draw());
  };
  timed.push(redraw);
  redraw();
  return el("div", {}, tools, frame);
}

function drag(frame, selection, readout) {
  let start = null;
  const drawingAt = (event) => event.target.closest && event.target.closest("svg.drawing");
  const timeAt = (drawing, event) => {
    const place = drawing.getBoundingClientRect();
    const [left, right, width] = drawing.span;
    const x = ((event.clientX - place.left) / place.width) * width;
    const [from, to] = state.range;
    return Math.max(from, Math.min(to, from + ((x - left) / (right - left)) * (to - from)));
  };
  frame.addEventListener("pointerdown", (event) => {
    const drawing = drawingAt(event);
    if (!drawing || !drawing.span || event.button !== 0) return;
    start = { drawing, time: timeAt(drawing, event), x: event.clientX };
    frame.setPointerCapture(event.pointerId);
  });
  frame.addEventListener("pointermove", (event) => {
    if (start) {
      const edge = frame.getBoundingClientRect();
      selection.hidden = false;
      selection.style.left = `${Math.min(start.x, event.clientX) - edge.left}px`;
      selection.style.width = `${Math.abs(event.clientX - start.x)}px`;
      return;
    }
    const drawing = drawingAt(event);
    readout.textContent = drawing && drawing.read ? drawing.read(timeAt(drawing, event)) : "";
  });
  const stop = (event) => {
    if (!start) return;
    const { drawing, time, x } = start;
    start = null;
    selection.hidden = true;
    if (event.type !== "pointerup" || Math.abs(event.clientX - x) < 6) return;
    const other = timeAt(drawing, event);
    setRange(Math.min(time, other), Math.max(time, other));
  };
  frame.addEventListener("pointerup", stop);
  frame.addEventListener("pointercancel", stop);
  frame.addEventListener("pointerleave", () => (readout.textContent = ""));
}

/** The chosen channels of the case with a map below each. */
function timeline(section, kind) {
  const describe = `Case ${shown.number} over time with ${kind === "where" ? "the evidence for its class" : "what speaks for its class rather than the other"}`;
  return timeFrame(describe, () => {
    const map = shown[kind];
    const rows = shown.maps[kind];
    const limit = largest(rows) / shown.step;
    const channels = byEvidence(map).filter((channel) => state.channels.has(channel));
    return channels.map((channel, place) => {
      const width = widthOf(section);
      const title = `${page.channels[channel]} of case ${shown.number}, time points ${Math.floor(state.range[0])} to ${Math.ceil(state.range[1]) - 1}, with what each moment adds`;
      const drawing = seriesPanel({
        width,
        range: state.range,
        title,
        lines: [{ values: shown.rows[channel], step: shown.step, stretch: 1, name: "own" }],
        track: { values: rows[channel], step: shown.step, limit },
        segments: map.segments
          .filter((each) => each[1] === channel)
          .map(([, , first, last, share]) => [first, last, share]),
        axis: place === channels.length - 1,
      });
      drawing.span = [LEFT, width - RIGHT, width];
      drawing.read = (time) => {
        const bin = Math.min(Math.floor(time / shown.step), rows[channel].length - 1);
        const value = shown.step === 1 ? shown.rows[channel][bin] : null;
        const stamp = stampAt(bin);
        const at =
          shown.step === 1
            ? `Time point ${bin}${stamp ? ` (${stamp})` : ""}`
            : `Time points ${bin * shown.step} to ${Math.min((bin + 1) * shown.step, shown.length) - 1}`;
        const what = shown.step > 1 ? "" : value === null ? ", value missing" : `, value ${short(value)}`;
        return `${page.channels[channel]}. ${at}${what}, adds ${rows[channel][bin] > 0 ? "+" : ""}${short(rows[channel][bin])}`;
      };
      return [
        channelHead(channel, `adds ${signed(map.by_channel[channel])}, all channels ${signed(map.total)}`),
        drawing,
      ];
    });
  });
}

function channelHead(channel, text) {
  return el(
    "p",
    { class: "channel" },
    strong(page.channels[channel]),
    page.n_channels > 1 && el("span", { class: "faint" }, ` ${text}`),
  );
}
