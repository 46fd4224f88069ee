// How far to trust it: the checks.

function drawTrust() {
  const name = className(shown.target.class);
  const rows = shown.checks.map((check) => [
    light(check.passed, check.passed ? "pass" : "fail"),
    [
      strong(inPlainWords(check.name)),
      el("span", { class: "faint" }, ` ${check.name}`),
      el("br"),
      el("span", { class: "faint" }, check.meaning),
    ],
    [
      strong(measured(check.value)),
      el("br"),
      el("span", { class: "faint" }, `${check.at_least ? "≥" : "≤"} ${measured(check.bar)}`),
    ],
  ]);
  fill(
    bodyOf("trust"),
    say(
      "An explanation is a claim about the model. Each check tries to show that the claim is wrong, and says how it went: a value, and below it the bar that it must reach (≥) or stay under (≤).",
    ),
    shown.warnings.length > 0 && warningList(shown.warnings),
    table("Checks of this explanation", [["Result"], ["Check"], ["Value", "n"]], rows, {
      class: "checks-table",
    }),
    el(
      "div",
      { class: "pair" },
      curveFigure(
        shown.deletion,
        "Taking away",
        "share of the series taken away",
        `If the map is right, taking away what it ranks first makes ${name} improbable sooner than taking away at random.`,
      ),
      curveFigure(
        shown.insertion,
        "Giving back",
        "share of the series given back",
        `Starting from nothing, giving back what it ranks first should make ${name} probable sooner.`,
      ),
    ),
    legend([
      ["lead", "in the order of the map"],
      ["chance", `in random order: mean and range of ${count(shown.deletion.n_orders, "order")}`],
    ]),
  );
}

function curveFigure(curve, title, xTitle, text) {
  const caption = `${title}: probability of ${className(shown.target.class)}`;
  return el(
    "figure",
    {},
    el("figcaption", {}, strong(caption), el("br"), text),
    fitting("case", () => curveChart({ width: halfOf("trust"), curve, xTitle, title: caption })),
    numbers(
      caption.toLowerCase(),
      [
        ["Share", "n"],
        ["By the map", "n"],
        ["At random", "n"],
      ],
      curve.shares.map((share, place) => [
        percent(share),
        fixed(curve.by_map[place], 3),
        fixed(curve.chance_mean[place], 3),
      ]),
    ),
  );
}
