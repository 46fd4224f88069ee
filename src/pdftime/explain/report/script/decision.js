// What was predicted, and why this class and not the other.

function drawVerdict() {
  const each = shown;
  const failed = each.checks.filter((check) => !check.passed).length;
  const truth =
    each.label === null
      ? el("span", { class: "truth" }, "no label is known")
      : el(
          "span",
          { class: each.right ? "truth right" : "truth wrong" },
          each.right ? `✓ right, the label is ${each.label}` : `✕ wrong, the label is ${each.label}`,
        );
  const order = page.classes.map((_, code) => code).sort((a, b) => each.probabilities[b] - each.probabilities[a]);
  const chances = order
    .slice(0, 4)
    .map((code) => [
      el("dt", {}, className(code)),
      el("dd", {}, meter(each.probabilities[code]), el("span", { class: "n" }, fixed(each.probabilities[code], 3))),
    ]);
  const lights = each.checks.map((check) =>
    el("li", {}, el("a", { href: "#trust", title: check.meaning }, light(check.passed, inPlainWords(check.name)))),
  );
  fill(
    $("verdict"),
    el(
      "div",
      { class: "strip" },
      el(
        "div",
        { class: "answer" },
        el("p", { class: "eyebrow" }, `Case ${each.number} is predicted as`),
        el("h2", { id: "verdict-title" }, className(each.predicted)),
        say(truth),
      ),
      el(
        "dl",
        { class: "chances", "aria-label": "Probabilities" },
        chances,
        order.length > 4 && [
          el("dt", { class: "faint" }, count(order.length - 4, "more class", "more classes")),
          el(
            "dd",
            {},
            el(
              "span",
              { class: "n" },
              fixed(
                order.slice(4).reduce((sum, code) => sum + each.probabilities[code], 0),
                3,
              ),
            ),
          ),
        ],
      ),
      el(
        "div",
        { class: "steps" },
        el(
          "button",
          { type: "button", class: "quiet", click: () => move(-1), "aria-label": "Previous case" },
          "‹ Previous",
        ),
        el("button", { type: "button", class: "quiet", click: () => move(1), "aria-label": "Next case" }, "Next ›"),
      ),
    ),
    el("p", { class: "summary" }, each.summary),
    each.opinions.length > 1 && el("div", { class: "opinions" }, opinionTable(each)),
    el(
      "div",
      { class: "checks" },
      el(
        "p",
        { class: "verdict-checks" },
        failed
          ? strong(`${each.checks.length - failed} of ${each.checks.length} checks of this explanation passed`)
          : strong(`All ${each.checks.length} checks of this explanation passed`),
      ),
      el("ul", { class: "lights" }, lights),
    ),
  );
}

function meter(value) {
  return svg(
    "svg",
    { viewBox: "0 0 100 8", class: "meter", preserveAspectRatio: "none", "aria-hidden": "true" },
    box(0, 0, 100, 8, { class: "rail" }),
    box(0, 0, 100 * value, 8, { class: "count" }),
  );
}

function drawWhy() {
  const { target, contrast } = shown;
  const margin = target.score - contrast.score;
  const body = bodyOf("why");
  const sheets = [target, contrast];
  const ends = sheets.flatMap((sheet) => partsOf(sheet).flatMap((part) => [part.from, part.to]));
  const span = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const rest = sheets.flatMap((sheet) => sheet.matches.filter(([place]) => !page.gallery[place].decides));
  fill(
    body,
    say(
      "Every class has a score, the sum of what its parts add, and the highest score wins. ",
      strong(className(target.class)),
      " has ",
      strong(fixed(target.score)),
      ", ",
      strong(className(contrast.class)),
      " has ",
      strong(fixed(contrast.score)),
      `: a margin of ${fixed(margin)}.`,
    ),
    el(
      "div",
      { class: page.members.length > 1 ? "stack" : "pair" },
      scoreSheet(target, "for", span),
      scoreSheet(contrast, "against", span),
    ),
    page.gallery.length > 0 &&
      el(
        "p",
        { class: "note" },
        "Likeness is the cosine between the case and a prototype, 1 at most. The share says how much of the class’s say a prototype has. Agreement is what several similar prototypes add together.",
      ),
    rest.length > 0 &&
      numbers(
        "prototypes of the earlier levels, which guide training and do not decide",
        [["Prototype"], ["Level", "n"], ["Likeness", "n"], ["Share", "n"]],
        rest.map(([place, likeness, share]) => [
          prototypeName(place),
          page.gallery[place].level + 1,
          fixed(likeness, 3),
          percent(share),
        ]),
      ),
    heading(`What in the series speaks for ${className(target.class)} rather than ${className(contrast.class)}`),
    say(inWords(shown.why_not, `speaks for ${className(target.class)}`)),
    page.channels.length > FEW_CHANNELS &&
      el(
        "p",
        { class: "note" },
        "The channels with the most evidence are drawn; others can be chosen under “Where”.",
      ),
    timeline("why", "why_not"),
    legend([
      ["for", `speaks for ${className(target.class)}`],
      ["against", `speaks for ${className(contrast.class)}`],
      ["segment", "the spans that hold most of it, with their share"],
    ]),
    segmentTable(shown.why_not),
  );
}

/** Where each part of a score begins and ends when they are laid end to end. */
function partsOf(sheet) {
  const parts = sheet.matches
    .filter(([place]) => page.gallery[place].decides)
    .map(([place, likeness, share, adds]) => ({ name: prototypeName(place), likeness, share, adds }));
  const few = parts.slice(0, 8);
  const others = parts.slice(8);
  if (others.length)
    few.push({
      name: count(others.length, "other prototype"),
      adds: others.reduce((sum, part) => sum + part.adds, 0),
    });
  if (page.gallery.length) few.push({ name: "Agreement", adds: sheet.entropy });
  else few.push({ name: "The series", adds: sheet.score - sheet.offset });
  if (sheet.offset) few.push({ name: "Offset of the class", adds: sheet.offset });
  let at = 0;
  return few.map((part) => {
    const from = at;
    at += part.adds;
    return { ...part, from, to: at };
  });
}

function scoreSheet(sheet, side, span) {
  const bar = (from, to, name) => {
    const x = scale(span[0], span[1], 0, 100);
    return svg(
      "svg",
      { viewBox: "0 0 100 12", class: "bar", preserveAspectRatio: "none", "aria-hidden": "true" },
      span[0] < 0 && box(x(0) - 0.3, 0, 0.6, 12, { class: "rail" }),
      box(Math.min(x(from), x(to)), 1, Math.abs(x(to) - x(from)), 10, { class: name }),
    );
  };
  const short = (name) => name.replace(` of ${className(sheet.class)}`, "");
  const rows = partsOf(sheet).map((part) => [
    short(part.name),
    part.likeness === undefined ? "" : fixed(part.likeness),
    part.share === undefined ? "" : percent(part.share),
    bar(part.from, part.to, side),
    signed(part.adds),
  ]);
  rows.push([strong("Score"), "", "", bar(0, sheet.score, `${side} total`), strong(fixed(sheet.score))]);
  const caption = `${className(sheet.class)}: score ${fixed(sheet.score)}, probability ${fixed(sheet.probability, 3)}`;
  return table(caption, [["Part"], ["Likeness", "n"], ["Share", "n"], ["", "bars"], ["Adds", "n"]], rows, {
    class: "sheet scores",
  });
}

/** The largest spans of a map as a sentence. */
function inWords(map, verb) {
  if (!map.segments.length) return "Nothing in this series speaks for it: no value adds to the sum.";
  const total = map.segments.length + map.more_segments[0];
  const spans = map.segments.slice(0, 3).map(([name, , first, last, share, stamps]) => {
    const channel = page.n_channels > 1 ? ` of ${name}` : "";
    const place = first === last ? `time point ${first}` : `time points ${first} to ${last}`;
    return `${place}${channel} (${stamps ? `${stamps}; ` : ""}${percent(share)})`;
  });
  const listed = spans.length > 1 ? `${spans.slice(0, -1).join(", ")} and ${spans[spans.length - 1]}` : spans[0];
  const more = total > spans.length ? `, the largest of ${total} spans` : "";
  return `What ${verb} lies mostly at ${listed}${more}.`;
}

function segmentTable(map) {
  const rows = map.segments.map(([name, , first, last, share, stamps]) => [
    name,
    first,
    last,
    ...(stamps ? [stamps] : []),
    percent(share, 1),
  ]);
  const stamped = shown.times ? [["Time stamps"]] : [];
  if (map.more_segments[0])
    rows.push([
      count(map.more_segments[0], "more span"),
      "",
      "",
      ...stamped.map(() => ""),
      percent(map.more_segments[1], 1),
    ]);
  return numbers(
    "spans with their share of what speaks for it",
    [["Channel"], ["From", "n"], ["To", "n"], ...stamped, ["Share", "n"]],
    rows,
  );
}

function legend(entries) {
  return el(
    "ul",
    { class: "legend" },
    entries.map(([kind, text]) => el("li", {}, el("span", { class: `key ${kind}`, "aria-hidden": "true" }), text)),
  );
}

/** What each member makes of the case, and what it counts. */
function opinionTable(each) {
  return table(
    "What each view makes of it",
    [["View"], ["Share", "n"], ["Predicts"], ["Probability", "n"]],
    each.opinions.map(([weight, probabilities, predicted], member) => [
      memberName(member, "").replace(/, $/, ""),
      fixed(weight, 2),
      className(predicted),
      fixed(probabilities[predicted], 3),
    ]),
  );
}
