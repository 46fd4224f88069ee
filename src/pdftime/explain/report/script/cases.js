// The list of cases: search, filter, choose.

function caseText(each) {
  return `case ${each.number} ${className(each.predicted)} ${each.label === null ? "" : each.label}`.toLowerCase();
}

function matching() {
  const words = $("search").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const code = $("class-filter").value;
  const kind = $("state-filter").value;
  return page.cases
    .map((each, place) => [each, place])
    .filter(([each]) => {
      const text = caseText(each);
      const number = String(each.number);
      return (
        words.every((word) => (/^\d+$/.test(word) && number === word) || text.includes(word)) &&
        (code === "" || each.predicted === Number(code)) &&
        (kind === "" ||
          (kind === "right" && each.right) ||
          (kind === "wrong" && each.right === false) ||
          (kind === "passed" && each.checks.every((check) => check.passed)) ||
          (kind === "failed" && each.checks.some((check) => !check.passed)))
      );
    })
    .map(([, place]) => place);
}

function fillFilters() {
  $("class-filter").append(el("option", { value: "" }, "any class"));
  const present = new Set(page.cases.map((each) => each.predicted));
  page.classes.forEach((name, code) => {
    if (present.has(code)) $("class-filter").append(el("option", { value: code }, name));
  });
  const kinds = [
    ["", "all cases"],
    ["failed", "a check failed"],
    ["passed", "all checks passed"],
  ];
  if (page.labelled) kinds.splice(1, 0, ["wrong", "wrong predictions"], ["right", "right predictions"]);
  for (const [value, text] of kinds) $("state-filter").append(el("option", { value }, text));
}

function fillList() {
  const places = matching();
  const items = places.map((place) => {
    const each = page.cases[place];
    const failed = each.checks.filter((check) => !check.passed).length;
    const words = failed ? `${count(failed, "check")} failed` : "all checks passed";
    return el(
      "li",
      {
        role: "option",
        id: `option-${place}`,
        "aria-selected": String(place === state.place),
        click: () => choose(place),
      },
      el("span", { class: "number" }, each.number),
      el(
        "span",
        { class: "name" },
        className(each.predicted),
        each.right === false && el("span", { class: "wrong" }, ` label: ${each.label}`),
      ),
      el("span", { class: "chance" }, fixed(each.probabilities[each.predicted])),
      el(
        "span",
        { class: failed ? "light fail" : "light pass", title: words },
        el("span", { class: "dot", "aria-hidden": "true" }, failed ? "!" : "✓"),
        el("span", { class: "unseen" }, words),
      ),
    );
  });
  fill($("list"), items);
  $("found").textContent = `${places.length} of ${count(page.cases.length, "case")}`;
  mark();
}

function mark() {
  for (const item of $("list").children)
    item.setAttribute("aria-selected", String(item.id === `option-${state.place}`));
  const item = $(`option-${state.place}`);
  if (item) {
    $("list").setAttribute("aria-activedescendant", item.id);
    const list = $("list");
    const above = item.offsetTop - list.offsetTop;
    if (above < list.scrollTop) list.scrollTop = above;
    else if (above + item.offsetHeight > list.scrollTop + list.clientHeight)
      list.scrollTop = above + item.offsetHeight - list.clientHeight;
  } else $("list").removeAttribute("aria-activedescendant");
}

/** The case some places further in the list as it is filtered now. */
function move(steps) {
  const places = matching();
  if (!places.length) return;
  const at = places.indexOf(state.place);
  choose(places[at < 0 ? 0 : Math.max(0, Math.min(places.length - 1, at + steps))]);
}

function choose(place) {
  state.place = place;
  const each = page.cases[place];
  shown = {
    ...each,
    rows: unpack(each.series.values),
    maps: { where: unpack(each.where.values), why_not: unpack(each.why_not.values) },
  };
  state.range = [0, each.length];
  const order = byEvidence(each.where);
  state.channels = new Set(order.slice(0, order.length <= FEW_CHANNELS ? order.length : FEW_CHANNELS - 1));
  const deciding = decidingOf(each.target);
  state.prototype = deciding.length ? deciding[0][0] : null;
  state.neighbour = 0;
  drawCase();
  mark();
  try {
    history.replaceState(null, "", `#case-${each.number}`);
  } catch {
    // a page inside another page has no address of its own
  }
}

function byEvidence(map) {
  return map.by_channel
    .map((_, channel) => channel)
    .sort((a, b) => Math.abs(map.by_channel[b]) - Math.abs(map.by_channel[a]));
}

/** The matches that decide and say something of their own. */
function decidingOf(sheet) {
  return sheet.matches.filter(([place]) => {
    const entry = page.gallery[place];
    return entry.decides && !entry.dead && entry.duplicate_of === null;
  });
}

function drawCase() {
  timed = [];
  fitted.case = [() => timed.forEach((draw) => draw())];
  drawVerdict();
  drawWhy();
  drawLikeness();
  drawWhere();
  drawTrust();
}
