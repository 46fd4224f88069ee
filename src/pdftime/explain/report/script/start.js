// Light and dark, keys, width and paper; then the first case is drawn.

function theme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  $("theme").textContent = dark ? "Light" : "Dark";
  $("theme").setAttribute("aria-pressed", String(dark));
  $("theme").setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
}

/** Draw again at the width there is, or at that of a sheet of paper. */
function fit(width = null) {
  paper = width;
  for (const draw of [...fitted.case, ...fitted.model]) draw();
}

function listen() {
  const wish = matchMedia("(prefers-color-scheme: dark)");
  theme(wish.matches);
  wish.addEventListener("change", () => theme(wish.matches));
  $("theme").addEventListener("click", () => theme(!document.documentElement.classList.contains("dark")));
  for (const id of ["search", "class-filter", "state-filter"]) $(id).addEventListener("input", fillList);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
  const keys = (event) => {
    if (!(event.key in steps)) return;
    event.preventDefault();
    move(steps[event.key]);
  };
  $("list").addEventListener("keydown", keys);
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") keys(event);
  });
  let width = document.body.clientWidth;
  addEventListener("resize", () => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    fit();
  });
  addEventListener("beforeprint", () => fit(PAPER));
  addEventListener("afterprint", () => fit());
  addEventListener("hashchange", () => chooseByHash());
}

function drawModel() {
  fitted.model = [];
  drawPrototypes();
  drawCalibration();
  drawData();
  drawLimits();
}

/** The case that the address names, or none. */
function chooseByHash() {
  const found = /^#case-(\d+)$/.exec(location.hash);
  const place = found ? page.cases.findIndex((each) => each.number === Number(found[1])) : -1;
  if (place >= 0) choose(place);
  return place >= 0;
}

function start() {
  document.title = `${page.names.model} on ${page.names.data} · PDFTime report`;
  $("about").append(
    strong(page.names.model),
    " on ",
    strong(page.names.data),
    `: ${count(page.cases.length, "case")}${page.n_cases > page.cases.length ? ` of ${page.n_cases}` : ""}, ${count(page.n_channels, "channel")}, ${count(page.classes.length, "class", "classes")}`,
  );
  document.querySelectorAll("main section").forEach((section) => {
    const title = section.querySelector("h2");
    $("contents").append(el("li", {}, el("a", { href: `#${section.id}` }, title ? title.textContent : "Verdict")));
  });
  const evidence = page.channels.map((_, channel) =>
    page.cases.reduce((sum, each) => sum + Math.abs(each.where.by_channel[channel]), 0),
  );
  page.leading = evidence.indexOf(Math.max(...evidence));
  fillFilters();
  fillList();
  listen();
  if (!chooseByHash()) choose(0);
  drawModel();
  document.documentElement.dataset.ready = "yes";
}

start();
