// The drawings, each a function of numbers. Blue speaks for a class and orange against it, everywhere.

const LEFT = 56;
const RIGHT = 12;

/** Where the value at a place lies in time; of thinned series two values share a step. */
function timeOf(place, step) {
  return step === 1 ? place + 0.5 : (Math.floor(place / 2) + (place % 2 ? 0.75 : 0.25)) * step;
}

/** The part of a line within a span of time, with a neighbour on each side; [time, value] pairs. */
function within(values, step, stretch, [from, to]) {
  const density = step === 1 ? 1 : 2 / step;
  const first = Math.max(0, Math.floor((from / stretch) * density) - 2);
  const last = Math.min(values.length, Math.ceil((to / stretch) * density) + 2);
  return values.slice(first, last).map((value, place) => [timeOf(first + place, step) * stretch, value]);
}

/** Evidence per time point in at most `most` bars over a span: [from, to, value], the largest of those merged. */
function bars(values, step, [from, to], most) {
  const first = Math.max(0, Math.floor(from / step));
  const last = Math.min(values.length, Math.ceil(to / step));
  const merged = Math.max(1, Math.ceil((last - first) / most));
  const result = [];
  for (let start = first; start < last; start += merged) {
    const stop = Math.min(start + merged, last);
    const part = values.slice(start, stop);
    const value = part.reduce((best, each) => (Math.abs(each) > Math.abs(best) ? each : best), 0);
    result.push([start * step, stop * step, value / step]);
  }
  return result;
}

/** The runs of missing values of an unthinned line. */
function gaps(values) {
  const result = [];
  values.forEach((value, place) => {
    if (value !== null) return;
    const last = result[result.length - 1];
    if (last && last[1] === place) last[1] = place + 1;
    else result.push([place, place + 1]);
  });
  return result;
}

function timeAxis(x, [from, to], y, width) {
  return ticks(from, to, width / 90).map((at) => [
    line(x(at), y, x(at), y + 4, "axis"),
    label(x(at), y + 15, String(Number(at.toPrecision(6))), { "text-anchor": "middle" }),
  ]);
}

/** The axis of the case that is shown: its time points, or its time stamps with the axis' name below. */
function caseAxis(x, [from, to], y, left, right) {
  if (!shown.times) return timeAxis(x, [from, to], y, right - left);
  const { name, every, texts } = shown.times;
  const room = 20 + 6.5 * Math.max(...texts.map((text) => text.length));
  const places = ticks(from / every, to / every, (right - left) / room).filter((at) => texts[at] !== undefined);
  const marks = places.map((at) => [x(at * every + 0.5), texts[at]]).filter(([place]) => place <= right);
  return [
    marks.map(([place, text]) => [
      line(place, y, place, y + 4, "axis"),
      label(Math.min(place, right + RIGHT - 3.2 * text.length), y + 15, text, { "text-anchor": "middle" }),
    ]),
    label((left + right) / 2, y + 30, name, { "text-anchor": "middle" }),
  ];
}

function axisHeight() {
  return shown.times ? 36 : 20;
}

/**
 * One channel over time: lines above, evidence below as bars, boxed segments behind.
 * lines: {values, step, stretch, name}; track: {values, step, limit}; segments: [first, last, share].
 */
function seriesPanel({ width, range, lines, track = null, segments = [], title, axis = true }) {
  const top = segments.length ? 16 : 6;
  const height = 92;
  const trackHeight = track ? 40 : 0;
  const bottom = top + height;
  const right = width - RIGHT;
  const x = scale(range[0], range[1], LEFT, right);
  const [low, high] = extent(lines.map((each) => each.values));
  const y = scale(low, high, bottom - 6, top + 6);
  const end = bottom + (track ? trackHeight + 8 : 0);
  const inside = svg("svg", {
    x: LEFT,
    y: 0,
    width: right - LEFT,
    height: end,
    viewBox: `${LEFT} 0 ${right - LEFT} ${end}`,
  });
  const marks = [];
  for (const [first, last, share] of segments) {
    const start = Math.max(x(first), LEFT);
    const stop = Math.min(x(last + 1), right);
    if (stop <= start) continue;
    inside.append(box(start, top, stop - start, height, { class: "segment" }));
    if (stop - start > 26)
      marks.push(label((start + stop) / 2, top - 4, percent(share), { "text-anchor": "middle", class: "mark" }));
  }
  for (const [first, last] of lines[0].step === 1 ? gaps(lines[0].values) : []) {
    inside.append(box(x(first), bottom - 5, x(last) - x(first), 5, { class: "missing" }));
  }
  for (const each of lines) {
    const points = within(each.values, each.step, each.stretch, range).map(([t, value]) => [
      x(t),
      value === null ? null : y(value),
    ]);
    inside.append(path(points, `series ${each.name}`));
  }
  const parts = [box(LEFT, top, right - LEFT, height, { class: "plot" }), inside, marks];
  for (const at of ticks(low, high, 3)) {
    parts.push(
      line(LEFT - 4, y(at), LEFT, y(at), "axis"),
      label(LEFT - 7, y(at) + 4, short(at), { "text-anchor": "end" }),
    );
  }
  if (track) {
    const middle = bottom + 8 + trackHeight / 2;
    const size = scale(0, track.limit || 1, 0, trackHeight / 2);
    for (const [first, last, value] of bars(track.values, track.step, range, (right - LEFT) / 2)) {
      if (value === 0) continue;
      const tall = Math.abs(size(value));
      inside.append(
        box(x(first), value > 0 ? middle - tall : middle, Math.max(x(last) - x(first) - 0.2, 0.6), tall, {
          class: value > 0 ? "for" : "against",
        }),
      );
    }
    parts.push(line(LEFT, middle, right, middle, "axis"));
    parts.push(label(LEFT - 7, middle - 8, "for", { "text-anchor": "end", class: "for-text" }));
    parts.push(label(LEFT - 7, middle + 16, "against", { "text-anchor": "end", class: "against-text" }));
  }
  if (axis) parts.push(caseAxis(x, range, end, LEFT, right), line(LEFT, end, right, end, "axis"));
  return canvas(width, end + (axis ? axisHeight() : 4), title, parts);
}

/** Channels by time, coloured by evidence. */
function heatMap({ width, range, rows, step, names, chosen, title }) {
  const tall = Math.max(7, Math.min(18, 360 / rows.length));
  const left = Math.min(120, width / 4);
  const right = width - RIGHT;
  const x = scale(range[0], range[1], left, right);
  const every = Math.ceil(9 / tall);
  const cells = rows.map((row) => bars(row, step, range, Math.min(240, (right - left) / 3)));
  const limit = largest(cells.map((row) => row.map((cell) => cell[2]))) || 1;
  const top = 4;
  const end = top + rows.length * tall;
  const parts = [box(left, top, right - left, end - top, { class: "plot" })];
  const inside = svg("svg", {
    x: left,
    y: 0,
    width: right - left,
    height: end,
    viewBox: `${left} 0 ${right - left} ${end}`,
  });
  cells.forEach((row, place) => {
    const y = top + place * tall;
    for (const [first, last, value] of row) {
      const weight = Math.abs(value) / limit;
      if (weight < 0.02) continue;
      const look = { class: value > 0 ? "for" : "against", "fill-opacity": weight.toFixed(2) };
      inside.append(box(x(first), y, x(last) - x(first) + 0.3, tall - (tall > 9 ? 1 : 0), look));
    }
    if (place % every === 0) {
      const most = Math.floor((left - 8) / 6);
      const text = names[place].length > most ? `${names[place].slice(0, most - 1)}…` : names[place];
      const look = { "text-anchor": "end", class: chosen.has(place) ? "chosen" : null };
      parts.push(label(left - 6, y + tall / 2 + 3.5, text, look));
    }
  });
  parts.push(inside, caseAxis(x, range, end, left, right));
  return canvas(width, end + axisHeight(), title, parts);
}

/** Evidence by frequency, from slow to fast. */
function frequencyChart({ width, frequencies, values, title }) {
  const height = 90;
  const top = 8;
  const right = width - RIGHT;
  const last = frequencies[frequencies.length - 1] || 0.5;
  const each = (right - LEFT) / Math.max(frequencies.length, 1);
  const limit = largest([values]) || 1;
  const middle = top + height / 2;
  const parts = [line(LEFT, middle, right, middle, "axis")];
  values.forEach((value, place) => {
    const tall = (Math.abs(value) / limit) * (height / 2);
    parts.push(
      box(LEFT + place * each, value > 0 ? middle - tall : middle, Math.max(each - 0.5, 0.6), tall, {
        class: value > 0 ? "for" : "against",
      }),
    );
  });
  parts.push(label(LEFT - 7, middle - 14, "for", { "text-anchor": "end", class: "for-text" }));
  parts.push(label(LEFT - 7, middle + 22, "against", { "text-anchor": "end", class: "against-text" }));
  const x = scale(0, last, LEFT + each / 2, right - each / 2);
  for (const at of ticks(0, last, width / 110)) {
    const text = at === 0 ? "level" : `1 in ${short(1 / at)}`;
    parts.push(line(x(at), top + height, x(at), top + height + 4, "axis"));
    parts.push(
      label(x(at), top + height + 16, text, {
        "text-anchor": at === 0 ? "start" : at > last * 0.94 ? "end" : "middle",
      }),
    );
  }
  return canvas(width, top + height + 22, title, parts);
}

/** The probability while the series loses (or regains) its parts, by the map and at random. */
function curveChart({ width, curve, xTitle, title }) {
  const height = 168;
  const top = 8;
  const left = 34;
  const x = scale(0, 1, left, width - RIGHT);
  const y = scale(0, 1, top + height, top);
  const along = (values) => values.map((value, place) => [x(curve.shares[place]), y(value)]);
  const band = [...along(curve.chance_high), ...along(curve.chance_low).reverse()].map((point) =>
    point.map((each) => each.toFixed(1)).join(" "),
  );
  const parts = [];
  for (const at of [0, 0.5, 1]) {
    parts.push(line(left, y(at), width - RIGHT, y(at), "grid"));
    parts.push(label(left - 6, y(at) + 4, String(at), { "text-anchor": "end" }));
  }
  for (const at of [0, 0.25, 0.5, 0.75, 1]) {
    parts.push(label(x(at), top + height + 16, percent(at), { "text-anchor": at === 1 ? "end" : "middle" }));
  }
  parts.push(svg("polygon", { points: band.join(","), class: "band" }));
  parts.push(path(along(curve.chance_mean), "series chance"), path(along(curve.by_map), "series lead"));
  parts.push(label((left + width - RIGHT) / 2, top + height + 32, xTitle, { "text-anchor": "middle" }));
  return canvas(width, top + height + 38, title, parts);
}

/** How often the model is right against how sure it is. */
function reliabilityChart({ width, edges, counts, confidence, right, title }) {
  const side = width - 40 - RIGHT;
  const left = 40;
  const top = 8;
  const strip = 44;
  const x = scale(0, 1, left, left + side);
  const y = scale(0, 1, top + side, top);
  const most = Math.max(...counts, 1);
  const foot = top + side + 10 + strip;
  const parts = [box(left, top, side, side, { class: "plot" }), line(x(0), y(0), x(1), y(1), "guide")];
  counts.forEach((n, bin) => {
    if (!n) return;
    const at = x(confidence[bin]);
    parts.push(line(at, y(confidence[bin]), at, y(right[bin]), "miss"));
    parts.push(
      svg("circle", {
        cx: at.toFixed(1),
        cy: y(right[bin]).toFixed(1),
        r: (3 + 5 * Math.sqrt(n / most)).toFixed(1),
        class: "point",
      }),
    );
    const tall = Math.max((n / most) * strip, 1);
    parts.push(box(x(edges[bin]) + 1, foot - tall, x(edges[bin + 1]) - x(edges[bin]) - 2, tall, { class: "count" }));
  });
  for (const at of [0, 0.25, 0.5, 0.75, 1]) {
    parts.push(label(left - 6, y(at) + 4, String(at), { "text-anchor": "end" }));
    parts.push(label(x(at), foot + 15, String(at), { "text-anchor": "middle" }));
  }
  parts.push(line(left, foot, left + side, foot, "axis"));
  parts.push(label(left + side / 2, foot + 31, "probability of the predicted class", { "text-anchor": "middle" }));
  const turn = `rotate(-90 11 ${(top + side / 2).toFixed(1)})`;
  parts.push(label(11, top + side / 2, "share that is right", { "text-anchor": "middle", transform: turn }));
  return canvas(width, foot + 38, title, parts);
}

/** How far something moved at each time. */
function movementChart({ width, epochs, moved, title }) {
  const top = 8;
  const height = 110;
  const high = largest([moved]) || 1;
  const x = scale(epochs[0], epochs[epochs.length - 1], LEFT, width - RIGHT);
  const y = scale(0, high, top + height, top);
  const parts = ticks(0, high, 3).map((at) => [
    line(LEFT, y(at), width - RIGHT, y(at), "grid"),
    label(LEFT - 6, y(at) + 4, short(at), { "text-anchor": "end" }),
  ]);
  const points = moved.map((value, place) => [x(epochs[place + 1]), y(value)]);
  parts.push(path(points, "series lead"), timeAxis(x, [epochs[0], epochs[epochs.length - 1]], top + height, width));
  return canvas(width, top + height + 20, title, parts);
}

/** Cosines between prototypes, class beside class. */
function cosineMatrix({ width, cosines, groups, title }) {
  const left = Math.min(110, width / 4);
  const each = Math.min((width - left - RIGHT) / cosines.length, 26);
  const size = each * cosines.length;
  const parts = [];
  cosines.forEach((row, i) => {
    row.forEach((value, j) => {
      const look = { class: value >= 0 ? "for" : "against", "fill-opacity": Math.min(Math.abs(value), 1).toFixed(2) };
      parts.push(box(left + j * each, i * each, each - 0.5, each - 0.5, look));
    });
  });
  let start = 0;
  for (const [name, n] of groups) {
    const most = Math.floor((left - 8) / 6);
    const text = name.length > most ? `${name.slice(0, most - 1)}…` : name;
    if (n * each >= 11) parts.push(label(left - 6, (start + n / 2) * each + 4, text, { "text-anchor": "end" }));
    start += n;
    parts.push(
      line(left, start * each, left + size, start * each, "divide"),
      line(left + start * each, 0, left + start * each, size, "divide"),
    );
  }
  return canvas(width, size + 2, title, parts);
}

/** A series without axes. */
function thumbnail(values, step, length, title) {
  const width = 200;
  const height = 56;
  const x = scale(0, length, 2, width - 2);
  const [low, high] = extent([values]);
  const y = scale(low, high, height - 4, 4);
  const points = values.map((value, place) => [x(timeOf(place, step)), value === null ? null : y(value)]);
  return canvas(width, height, title, path(points, "series other"));
}
