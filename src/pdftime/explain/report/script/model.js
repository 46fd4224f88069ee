// The model as a whole: prototypes, calibration, data and settings, limits.

function drawPrototypes() {
  const body = bodyOf("prototypes");
  const deciding = page.gallery.map((entry, place) => [entry, place]).filter(([entry]) => entry.decides);
  if (!deciding.length) {
    fill(body, say("This model has a linear head and no prototypes."));
    return;
  }
  const own = deciding.filter(([entry]) => !entry.dead && entry.duplicate_of === null);
  const left = deciding.length - own.length;
  const agreement = page.overview.agreement;
  const last = Math.max(...page.levels.map((level) => level.level));
  const parts = [
    say(
      `${count(own.length, "prototype")} decide${own.length === 1 ? "s" : ""} between ${count(page.classes.length, "class", "classes")}. Each is drawn by the training series nearest to it; open one to see its five nearest. Purity is the share of its own class among the ten training series nearest to it.${page.n_channels > 1 ? ` The drawings show ${page.channels[page.leading]}, the channel with the most evidence.` : ""}`,
      left > 0 &&
        ` ${count(left, "more is", "more are")} left out, because no training series is nearest to ${left === 1 ? "it" : "them"} or because ${left === 1 ? "it repeats" : "they repeat"} another.`,
    ),
    agreement !== null &&
      say(
        strong(percent(agreement, 1)),
        " of the predictions stay the same when every prototype is replaced by its nearest training series: so far do these series stand for the prototypes.",
      ),
    page.overview.warnings.length > 0 && warningList(page.overview.warnings),
  ];
  const cards = (entries) =>
    el(
      "div",
      { class: "gallery" },
      entries.map(([entry, place]) => card(entry, place)),
    );
  if (page.classes.length > FEW_CLASSES) parts.push(cards(own));
  else {
    page.classes.forEach((name, code) => {
      const entries = own.filter(([entry]) => entry.class === code);
      if (entries.length) parts.push(heading(name), cards(entries));
    });
  }
  parts.push(
    heading("How alike the prototypes are"),
    table(
      "Mean likeness of prototypes",
      [["Level"], ["Within a class", "n"], ["Between classes", "n"], ["In use per class", "n"]],
      page.levels.map((level) => [
        `${memberName(level.member, "Level")} ${level.level + 1}${level.level === last ? " (decides)" : ""}`,
        fixed(level.within),
        fixed(level.between),
        level.effective === null
          ? "–"
          : fixed(level.effective.reduce((sum, each) => sum + each, 0) / level.effective.length, 1),
      ]),
    ),
    el(
      "p",
      { class: "note" },
      "Classes are told apart well where prototypes of different classes are little alike. Prototypes of one class that are nearly the same say nothing new.",
    ),
  );
  if (page.cosines) {
    const per = page.cosines.length / page.classes.length;
    parts.push(
      fitting("model", () =>
        cosineMatrix({
          width: Math.min(widthOf("prototypes"), 640),
          cosines: page.cosines,
          groups: page.classes.map((name) => [name, per]),
          title: "Likeness of every two prototypes that decide, class beside class",
        }),
      ),
      legend([
        ["for", "alike (cosine 1)"],
        ["against", "opposite (cosine −1)"],
      ]),
      numbers(
        "likeness of every two prototypes",
        [["Prototype"], ...page.cosines.map((_, place) => [String(place + 1), "n"])],
        page.cosines.map((row, place) => [
          `${place + 1}: ${className(Math.floor(place / per))} ${(place % per) + 1}`,
          ...row.map((value) => fixed(value)),
        ]),
      ),
    );
  }
  if (page.evolution.length) parts.push(heading("How the prototypes moved"), ...page.evolution.map(movement));
  fill(body, parts);
}

/** How far the prototypes of one level moved from one time that they were kept to the next. */
function movement({ member, level, epochs, moved }) {
  const whose = `${memberName(member, "Level")} ${level + 1}`;
  const title = `${whose}: mean distance (1 − cosine) to where they were before, by pass over the training cases`;
  return el(
    "figure",
    {},
    el("figcaption", {}, title),
    fitting("model", () => movementChart({ width: Math.min(widthOf("prototypes"), 640), epochs, moved, title })),
    numbers(
      `how far the prototypes of ${whose.toLowerCase()} moved`,
      [
        ["Pass", "n"],
        ["Moved", "n"],
      ],
      moved.map((value, place) => [epochs[place + 1], measured(value)]),
    ),
  );
}

function card(entry, place) {
  const [index, , similarity] = entry.neighbours[0];
  const series = page.series[index];
  const channel = page.leading;
  const thumb = series
    ? thumbnail(
        unpack(series.values)[channel],
        series.step,
        series.length,
        `Training series ${index}, nearest to ${prototypeName(place)}`,
      )
    : null;
  const inside = el("div", { class: "inside" });
  return el(
    "details",
    {
      class: "card",
      toggle: (event) => {
        if (event.target.open && !inside.childNodes.length) inside.append(...cardDetail(entry, place));
      },
    },
    el(
      "summary",
      {},
      el(
        "strong",
        {},
        page.classes.length > FEW_CLASSES ? prototypeName(place) : `Prototype ${entry.number + 1}`,
        page.classes.length <= FEW_CLASSES && page.members.length > 1 && `, ${page.members[entry.member]}`,
      ),
      thumb,
      el("span", { class: "faint" }, `series ${index}, likeness ${fixed(similarity)}`),
      entry.usage !== null && el("span", { class: "faint" }, `nearest to ${percent(entry.usage)} of its class`),
      entry.purity !== null && el("span", { class: "faint" }, `purity ${percent(entry.purity)}`),
    ),
    inside,
  );
}

function cardDetail(entry, place) {
  const near = entry.neighbours.filter(([index]) => page.series[index]).map(([index]) => page.series[index]);
  const length = Math.max(...near.map((series) => series.length));
  const lines = near.map((series, order) => ({
    values: scaled(unpack(series.values)[page.leading], series, page.leading),
    step: series.step,
    stretch: page.lengths === "resample" ? length / series.length : 1,
    name: order ? "other thin" : "own",
  }));
  lines.reverse(); // the nearest is drawn last, over the others
  const title = `The training series nearest to ${prototypeName(place)}`;
  const facts = [
    ["Training series of its class nearest to it, of the prototypes of the class", percent(entry.usage)],
    ["… of the prototypes of all classes", percent(entry.coverage)],
    ["Of the ten training series nearest to it, those of its class", percent(entry.purity)],
    ["Distance to the nearest training series (1 − cosine)", fixed(entry.gap, 3)],
    ["… in units of the usual distance in its class", fixed(entry.relative_gap, 2)],
  ];
  return [
    el("p", { class: "channel" }, strong(page.channels[page.leading])),
    fitting("model", () => seriesPanel({ width: widthOf("prototypes") - 34, range: [0, length], lines, title })),
    legend([
      ["own", "the nearest training series"],
      ["other", "the next nearest"],
    ]),
    table("In numbers", [["Measure"], ["Value", "n"]], facts),
    table(
      "Training series around it",
      [["Training series"], ["Class"], ["Likeness", "n"]],
      [...entry.neighbours, ...(entry.wrong ? [entry.wrong] : [])].map(([index, code, similarity]) => [
        index,
        className(code),
        fixed(similarity, 3),
      ]),
    ),
  ];
}

function drawCalibration() {
  const view = page.overview;
  const body = bodyOf("calibration");
  if (!view.counts) {
    fill(body, say("Whether the probabilities can be believed is measured on labelled cases, and none were given."));
    return;
  }
  const total = view.counts.reduce((sum, n) => sum + n, 0);
  // without labels, what was measured are training cases, and those shown are others
  const places = new Map(page.labelled ? page.cases.map((each, place) => [each.number, place]) : []);
  const parts = [
    say(
      `Measured on ${view.data}. `,
      strong(percent(view.accuracy, 1)),
      ` of ${count(total, "prediction")} are right. When the model says 0.8, it should be right in 80% of such cases; on average the two differ by `,
      strong(fixed(view.error, 3)),
      ".",
    ),
    el(
      "div",
      { class: "pair" },
      el(
        "figure",
        {},
        el(
          "figcaption",
          {},
          strong("How sure, and how often right"),
          el("br"),
          "On the dashed line probabilities keep their promise; below it the model is too sure. The columns count cases.",
        ),
        fitting("model", () =>
          reliabilityChart({
            width: Math.min(halfOf("calibration"), 360),
            edges: view.edges,
            counts: view.counts,
            confidence: view.confidence,
            right: view.shares_right,
            title: "Share of right predictions against the probability of the predicted class",
          }),
        ),
        numbers(
          "how sure, and how often right",
          [["Probability"], ["Cases", "n"], ["Mean probability", "n"], ["Share right", "n"]],
          view.counts.map((n, bin) => [
            `${fixed(view.edges[bin], 2)} to ${fixed(view.edges[bin + 1], 2)}`,
            n,
            fixed(view.confidence[bin], 3),
            fixed(view.shares_right[bin], 3),
          ]),
        ),
      ),
      el("div", { class: "stack" }, confusionTable(view), mistakeTable(view, places)),
    ),
  ];
  fill(body, parts);
}

function confusionTable(view) {
  if (!view.confusion) return null;
  if (page.classes.length <= 12) {
    const most = Math.max(...view.confusion.flat(), 1);
    const made = table(
      "True class (row) by predicted class (column)",
      [[""], ...page.classes.map((name) => [name, "n"])],
      view.confusion.map((row, code) => [className(code), ...row.map((n) => (n ? n : "·"))]),
      { class: "confusion" },
    );
    made.querySelectorAll("tbody tr").forEach((row, i) =>
      row.querySelectorAll("td").forEach((cell, j) => {
        const n = view.confusion[i][j];
        if (n) cell.classList.add(i === j ? "hit" : "slip", `weight-${Math.ceil((4 * n) / most)}`);
      }),
    );
    return made;
  }
  const wrong = [];
  view.confusion.forEach((row, i) =>
    row.forEach((n, j) => i !== j && n && wrong.push([className(i), className(j), n])),
  );
  wrong.sort((a, b) => b[2] - a[2]);
  return table(
    `The most frequent confusions of ${page.classes.length} classes`,
    [["True"], ["Predicted"], ["Cases", "n"]],
    wrong.slice(0, 12),
  );
}

function mistakeTable(view, places) {
  if (!view.mistakes.length) return say("No prediction was wrong.");
  const rows = view.mistakes.slice(0, 12).map(([index, truth, code, confidence]) => [
    places.has(index)
      ? el(
          "a",
          {
            href: `#case-${index}`,
            click: (event) => {
              event.preventDefault();
              choose(places.get(index));
              $("verdict").scrollIntoView();
              $("verdict").focus();
            },
          },
          index,
        )
      : index,
    truth,
    className(code),
    fixed(confidence, 3),
  ]);
  return table(
    "Wrong predictions, the most confident first",
    [[page.labelled ? "Case" : "Training case"], ["Label"], ["Predicted"], ["Probability", "n"]],
    rows,
  );
}

function drawData() {
  const how = page.chosen ? "chosen by hand" : "spread evenly over the data";
  const parts = [
    say(
      page.n_cases > page.cases.length
        ? `Of ${count(page.n_cases, "case")}, ${page.cases.length} are shown, ${how}.`
        : "All cases are shown.",
    ),
    el(
      "dl",
      { class: "facts" },
      page.facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
    ),
  ];
  if (page.n_channels > page.channels.length) {
    parts.push(
      el(
        "p",
        { class: "note" },
        `Of ${page.n_channels} channels the ${page.channels.length} with the most evidence in the cases shown are drawn; what the others add is given as one sum.`,
      ),
    );
  }
  const thinned = page.cases.filter((each) => each.step > 1).length;
  if (thinned)
    parts.push(
      el(
        "p",
        { class: "note" },
        `To keep this file small, ${count(thinned, "long series is", "long series are")} drawn thinned; the numbers are exact.`,
      ),
    );
  parts.push(
    el(
      "details",
      { class: "numbers" },
      el("summary", {}, "Settings of the model"),
      table(
        "Settings; those changed from the default are marked",
        [["Setting"], ["Value"], [""]],
        page.settings.map(([name, value, changed]) => [name, value, changed ? "changed" : ""]),
      ),
    ),
  );
  fill(bodyOf("data"), parts);
}

const LIMITS = [
  [
    "What is true in the world.",
    "It shows what this model’s decision rests on. A model may be right for a reason that has nothing to do with the matter, and the page would show that reason just as calmly.",
  ],
  [
    "What would happen if you changed the series.",
    "Evidence is what the model saw, not a cause. Checks that take parts away make series that the model has never seen.",
  ],
  [
    "The one true map.",
    "Maps compare the series with a baseline. Another baseline asks another question and gives another map.",
  ],
  [
    "What a prototype looks like.",
    "It is a point in the model’s inner space, and no series. The training series nearest to it stand for it only as well as the distance and the agreement above say.",
  ],
  [
    "That all is well because all lights are on.",
    "A passed check has failed to find a fault. It does not prove that there is none.",
  ],
  [
    "How sure the model is about something new.",
    "Probabilities hold for cases like those on which they were calibrated. For a series of another kind they may be far off, and high.",
  ],
  [
    "How the model does on cases that are not shown.",
    "A few cases are examples. For how good it is, use many labelled cases that it was not trained on.",
  ],
];

function drawLimits() {
  fill(
    bodyOf("limits"),
    el(
      "dl",
      { class: "limits" },
      LIMITS.map(([title, text]) => [el("dt", {}, title), el("dd", {}, text)]),
    ),
  );
}
