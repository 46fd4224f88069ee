// The drawing kit: elements, numbers as text, packed numbers, scales, axes and tables. Text is only ever set as text.

const SVG = "http://www.w3.org/2000/svg";
const MISSING = -32768;

/** An HTML element; attributes that are functions are listeners, children that are no nodes become text. */
function el(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
function svg(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}

/** The element with these children and no others. */
function fill(element, ...children) {
  element.replaceChildren();
  return furnish(element, {}, children);
}

function furnish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

// Numbers as text. A true minus sign, so that numbers align and wrap well.

function minus(text) {
  return text.replace("-", "\u2212");
}

function fixed(value, digits = 2) {
  if (value === null) return "–";
  const text = value.toFixed(digits);
  return minus(Number(text) === 0 ? text.replace("-", "") : text);
}

function signed(value, digits = 2) {
  const text = fixed(value, digits);
  return value > 0 && Number(value.toFixed(digits)) !== 0 ? `+${text}` : text;
}

function percent(value, digits = 0) {
  return value === null ? "–" : `${fixed(100 * value, digits)}%`;
}

/** Three digits, whatever the size. */
function short(value) {
  if (value === null) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return minus(value.toExponential(1));
  return minus(String(Number(value.toPrecision(3))));
}

/** Three decimals, or a power of ten where they would all be 0. */
function measured(value) {
  return value !== null && value !== 0 && Math.abs(value) < 5e-4 ? minus(value.toExponential(0)) : fixed(value, 3);
}

function count(n, one, many) {
  return `${n} ${n === 1 ? one : many || one + "s"}`;
}

// Packed numbers

/** Rows of numbers; null where one is missing. */
function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const n = bytes.length / 2 / packed.rows;
  return Array.from({ length: packed.rows }, (_, row) =>
    Array.from({ length: n }, (_, column) => {
      const step = view.getInt16(2 * (row * n + column), true);
      return step === MISSING ? null : packed.middle + step * packed.scale;
    }),
  );
}

// Scales and axes

function scale(low, high, from, to) {
  const factor = (to - from) / (high - low || 1);
  return (value) => from + (value - low) * factor;
}

/** Round numbers from low to high, about n of them. */
function ticks(low, high, n) {
  const rough = (high - low) / Math.max(n, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((each) => each >= rough * 0.999);
  const result = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) {
    result.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  }
  return result;
}

function extent(rows) {
  let low = Infinity;
  let high = -Infinity;
  for (const row of rows) {
    for (const value of row) {
      if (value === null) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low > high ? [0, 1] : low === high ? [low - 1, high + 1] : [low, high];
}

/** The largest size of any number in rows. */
function largest(rows) {
  let most = 0;
  for (const row of rows) for (const value of row) most = Math.max(most, Math.abs(value));
  return most;
}

function label(x, y, text, attributes = {}) {
  return svg("text", { x: x.toFixed(1), y: y.toFixed(1), ...attributes }, text);
}

function line(x1, y1, x2, y2, name) {
  return svg("line", { x1: x1.toFixed(1), y1: y1.toFixed(1), x2: x2.toFixed(1), y2: y2.toFixed(1), class: name });
}

function box(x, y, width, height, attributes) {
  const size = {
    x: x.toFixed(2),
    y: y.toFixed(2),
    width: Math.max(width, 0).toFixed(2),
    height: Math.max(height, 0).toFixed(2),
  };
  return svg("rect", { ...size, ...attributes });
}

/** A path through points [x, y]; a null y breaks it, and a point alone is drawn as a dot. */
function path(points, name) {
  let text = "";
  let pen = false;
  points.forEach(([x, y], place) => {
    if (y === null) {
      pen = false;
      return;
    }
    const next = points[place + 1];
    const alone = !pen && (!next || next[1] === null);
    text += `${pen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}${alone ? "h.01" : ""}`;
    pen = true;
  });
  return svg("path", { d: text, class: name });
}

/** A drawing of this size in drawing units; it shrinks with its place. */
function canvas(width, height, title, ...children) {
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title, class: "drawing" },
    ...children,
  );
}

// Tables

/** A table; a column is [heading, kind], kind "n" for numbers. Cells may be nodes. */
function table(caption, columns, rows, attributes = {}) {
  const head = el(
    "tr",
    {},
    columns.map(([text, kind]) => el("th", { scope: "col", class: kind || "t" }, text)),
  );
  const body = rows.map((row) =>
    el(
      "tr",
      {},
      row.map((cell, place) =>
        el(place ? "td" : "th", { class: columns[place][1] || "t", scope: place ? null : "row" }, cell),
      ),
    ),
  );
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", attributes, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, body)),
  );
}

/** A table behind a drawing, for those who read rather than look. */
function numbers(caption, columns, rows) {
  return el("details", { class: "numbers" }, el("summary", {}, `Numbers: ${caption}`), table(caption, columns, rows));
}
