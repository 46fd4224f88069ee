// What it looks like: the case over the training series behind a prototype.

function drawLikeness() {
  const body = bodyOf("likeness");
  const deciding = decidingOf(shown.target);
  if (!deciding.length) {
    fill(
      body,
      say(
        "This model decides without prototypes (it has a linear head), so there is nothing to compare the case with.",
      ),
    );
    return;
  }
  const compared = el("div", { class: "body" });
  const few = deciding.slice(0, 6);
  const prototypes = pick(
    "Prototype",
    "prototype",
    few.map(([place, likeness, share]) => [
      place,
      prototypeName(place),
      `likeness ${fixed(likeness)}, share ${percent(share)}`,
    ]),
    state.prototype,
    (place) => {
      state.prototype = place;
      state.neighbour = 0;
      compare(compared);
    },
  );
  fill(
    body,
    say(
      "A prototype is a typical point of its class that the model has learned. It is no series itself; what it stands for is shown by the real training series nearest to it.",
    ),
    prototypes,
    compared,
  );
  compare(compared);
}

/** Choices of which one holds, as radio buttons: [value, text, remark]. */
function pick(title, name, choices, chosen, act) {
  return el(
    "fieldset",
    { class: "pick" },
    el("legend", {}, title),
    choices.map(([value, text, remark]) =>
      el(
        "label",
        {},
        el("input", { type: "radio", name, value, checked: value === chosen, change: () => act(value) }),
        el("span", {}, text, remark && el("span", { class: "faint" }, ` ${remark}`)),
      ),
    ),
  );
}

function compare(place) {
  timed = timed.filter((draw) => !draw.likeness);
  const entry = page.gallery[state.prototype];
  const [, likeness] = shown.target.matches.find(([each]) => each === state.prototype);
  const near = [...entry.neighbours, ...(entry.wrong ? [entry.wrong] : [])].filter(([index]) => page.series[index]);
  const usual =
    entry.relative_gap === null
      ? ""
      : `, a distance of ${fixed(entry.gap, 3)} or ${fixed(entry.relative_gap, 1)} times what is usual between a series and its prototype`;
  const facts = [
    `Its likeness to this case is ${fixed(likeness)}, to its nearest training series ${fixed(entry.neighbours[0][2])}${usual}. `,
    entry.usage === null ? "" : `${percent(entry.usage)} of the training series of its class are nearest to it, `,
    entry.purity === null ? "" : `and ${percent(entry.purity)} of the ten series nearest to it are of its class. `,
    entry.wrong
      ? `The nearest series of another class is ${className(entry.wrong[1])} with ${fixed(entry.wrong[2])}.`
      : "",
  ];
  const choices = near.map(([index, code, similarity], order) => {
    const other = entry.wrong && order === near.length - 1 && index === entry.wrong[0];
    return [order, `${other ? "Nearest of another class: " : ""}${index} (${className(code)})`, fixed(similarity)];
  });
  const parts = [say(facts)];
  if (choices.length) {
    const before = timed.length;
    const frame = timeFrame(`Case ${shown.number} over a training series`, () => overlay(near[state.neighbour]));
    timed.slice(before).forEach((draw) => (draw.likeness = true));
    parts.push(
      pick("Training series, with its likeness to the prototype", "neighbour", choices, state.neighbour, (order) => {
        state.neighbour = order;
        for (const draw of timed) if (draw.likeness) draw();
      }),
      frame,
      legend([
        ["own", "this case"],
        ["other", "the training series"],
      ]),
      remarkOnAxes(near),
    );
  }
  parts.push(
    numbers(
      `training series around ${prototypeName(state.prototype)}`,
      [["Training series", "n"], ["Class"], ["Likeness", "n"]],
      [...entry.neighbours, ...(entry.wrong ? [entry.wrong] : [])].map(([index, code, similarity]) => [
        index,
        className(code),
        fixed(similarity, 3),
      ]),
    ),
  );
  fill(place, parts);
}

function overlay([index]) {
  const other = page.series[index];
  const rows = unpack(other.values);
  const stretch = page.lengths === "resample" ? shown.length / other.length : 1;
  const width = widthOf("likeness");
  const channels = byEvidence(shown.where).filter((channel) => state.channels.has(channel));
  return channels.map((channel, place) => {
    const drawing = seriesPanel({
      width,
      range: state.range,
      title: `${page.channels[channel]} of case ${shown.number} over training series ${index}`,
      lines: [
        { values: scaled(rows[channel], other, channel), step: other.step, stretch, name: "other" },
        { values: scaled(shown.rows[channel], shown.series, channel), step: shown.step, stretch: 1, name: "own" },
      ],
      axis: place === channels.length - 1,
    });
    drawing.span = [LEFT, width - RIGHT, width];
    return [channelHead(channel, ""), drawing];
  });
}

/** Values as the model compares them, where it scales each series by itself. */
function scaled(values, series, channel) {
  if (page.scaling !== "series") return values;
  const deviation = series.deviations[channel] || 1;
  return values.map((value) => (value === null ? null : (value - series.means[channel]) / deviation));
}

function remarkOnAxes(near) {
  const remarks = [];
  if (page.scaling === "series")
    remarks.push("Each series is drawn less its mean, in units of its own deviation, as the model compares them.");
  if (near.some(([index]) => page.series[index].length !== shown.length)) {
    remarks.push(
      page.lengths === "resample"
        ? "Series of another length are stretched to that of the case, as the model does."
        : "Series of another length begin together.",
    );
  }
  return remarks.length ? el("p", { class: "note" }, remarks.join(" ")) : null;
}
