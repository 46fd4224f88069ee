// Where: moments, channels and frequencies.

function drawWhere() {
  const map = shown.where;
  const body = bodyOf("where");
  const many = page.channels.length > 1;
  const parts = [
    say(inWords(map, `speaks for ${className(shown.target.class)}`)),
    el(
      "p",
      { class: "note" },
      `Found by ${map.method}: each value of the series is compared with the baseline (${map.baseline}). What the values add, ${fixed(map.total)} in all, takes the score from ${fixed(map.start)} there to ${fixed(map.stop)} here; ${percent(map.gap, 2)} is left unexplained.`,
    ),
    timeline("where", "where"),
    legend([
      ["for", `speaks for ${className(shown.target.class)}`],
      ["against", "speaks against it"],
      ["segment", "the spans that hold 80% of what speaks for it, with their share"],
      ...(shown.n_missing ? [["missing", "missing value; what it adds is that of the value filled in"]] : []),
    ]),
  ];
  if (shown.step > 1)
    parts.push(
      el(
        "p",
        { class: "note" },
        `The series is long: the drawings give the least and the greatest of every ${shown.step} time points, and the sum of what they add. All numbers in words and tables are exact.`,
      ),
    );
  if (shown.tokens.drawable) {
    parts.push(
      heading("The exact split over time"),
      say(
        `In this model evidence stays where it is found (locality ${fixed(shown.tokens.locality)}), so the score itself can be split over time without an approximation. The parts sum to the score within ${short(shown.tokens.additivity_error)}.`,
      ),
      tokenFrame(),
    );
  }
  parts.push(segmentTable(map));
  if (many) {
    const heat = timeFrame("Channels over time, coloured by evidence", () => [heatDrawing()]);
    parts.push(heading("By channel and time"), heat, channelTable(map, body));
  }
  if (map.by_frequency.length > 1) {
    parts.push(
      heading("By frequency"),
      say(
        "The same sum, split by how fast the series changes: from its level over slow waves to fast ones. 1 in 10 is a wave of ten time points.",
      ),
      fitting("case", () =>
        frequencyChart({
          width: widthOf("where"),
          frequencies: map.frequencies,
          values: map.by_frequency,
          title: `What each frequency adds to the score of ${className(shown.target.class)}`,
        }),
      ),
      numbers(
        "what frequencies add",
        [
          ["Cycles per time point", "n"],
          ["Adds", "n"],
        ],
        map.frequencies.map((frequency, place) => [fixed(frequency, 4), signed(map.by_frequency[place], 4)]),
      ),
    );
  }
  fill(body, parts);
}

function tokenFrame() {
  const [values] = unpack(shown.tokens.values);
  const limit = largest([values]) / shown.step;
  const top = byEvidence(shown.where)[0];
  return timeFrame("The score split over time", () => {
    const width = widthOf("where");
    const drawing = seriesPanel({
      width,
      range: state.range,
      title: `What each moment of case ${shown.number} adds to the score`,
      lines: [{ values: shown.rows[top], step: shown.step, stretch: 1, name: "own" }],
      track: { values, step: shown.step, limit },
    });
    drawing.span = [LEFT, width - RIGHT, width];
    return [channelHead(top, "with all channels’ evidence"), drawing];
  });
}

function heatDrawing() {
  const width = widthOf("where");
  const drawing = heatMap({
    width,
    range: state.range,
    rows: shown.maps.where,
    step: shown.step,
    names: page.channels,
    chosen: state.channels,
    title: `Evidence for ${className(shown.target.class)} by channel and time`,
  });
  drawing.span = [Math.min(120, width / 4), width - RIGHT, width];
  return drawing;
}

function channelTable(map) {
  const most = largest([map.by_channel]) || 1;
  const bar = (value) => {
    const size = (50 * Math.abs(value)) / most;
    return svg(
      "svg",
      { viewBox: "0 0 100 12", class: "bar", preserveAspectRatio: "none", "aria-hidden": "true" },
      box(49.7, 0, 0.6, 12, { class: "rail" }),
      box(value > 0 ? 50 : 50 - size, 1, size, 10, { class: value > 0 ? "for" : "against" }),
    );
  };
  const rows = byEvidence(map).map((channel) => [
    page.channels[channel],
    el("input", {
      type: "checkbox",
      checked: state.channels.has(channel),
      "aria-label": `Draw ${page.channels[channel]}`,
      change: (event) => {
        if (event.target.checked) state.channels.add(channel);
        else state.channels.delete(channel);
        for (const draw of timed) draw();
      },
    }),
    bar(map.by_channel[channel]),
    signed(map.by_channel[channel], 3),
  ]);
  if (page.n_channels > page.channels.length)
    rows.push([
      count(page.n_channels - page.channels.length, "other channel"),
      "",
      bar(map.others),
      signed(map.others, 3),
    ]);
  const made = table(
    "What each channel adds; tick those to draw",
    [["Channel"], ["Draw"], ["", "bars"], ["Adds", "n"]],
    rows,
    { class: "sheet" },
  );
  if (rows.length > 10) made.classList.add("tall");
  return made;
}
