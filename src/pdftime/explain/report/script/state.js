// What is shown now, and what all sections use. Everything comes from the embedded content.

const page = JSON.parse(document.getElementById("content").textContent);
const state = { place: -1, range: [0, 1], channels: new Set(), prototype: null, neighbour: 0 };
const FEW_CHANNELS = 3;
const NARROW = 560;
const PAPER = 680;
const FEW_CLASSES = 4;
let shown = null; // the chosen case with its drawings unpacked
let timed = []; // functions that draw again when the span of time changes
let fitted = { case: [], model: [] }; // functions that draw again when the width changes
let paper = null; // the width of the page while it is printed

const $ = (id) => document.getElementById(id);
const bodyOf = (id) => $(id).querySelector(".body");
const className = (code) => page.classes[code];
const say = (...children) => el("p", {}, ...children);
const strong = (text) => el("strong", {}, text);
const heading = (text) => el("h3", {}, text);

function widthOf(section) {
  return Math.max(280, paper || bodyOf(section).clientWidth);
}

function halfOf(section) {
  const width = widthOf(section);
  return width < NARROW ? width : Math.floor(width / 2 - 12);
}

/** A place for a drawing that fits the width it has. */
function fitting(scope, draw) {
  const place = el("div", {});
  const again = () => fill(place, draw());
  fitted[scope].push(again);
  again();
  return place;
}

/** What a level's name begins with: its member, where there are several. */
function memberName(member, word) {
  const name = page.members[member];
  return page.members.length > 1 ? `${name[0].toUpperCase()}${name.slice(1)}, ${word.toLowerCase()}` : word;
}

function prototypeName(place) {
  const entry = page.gallery[place];
  const network = page.members.length > 1 ? `, ${page.members[entry.member]}` : "";
  return `Prototype ${entry.number + 1} of ${className(entry.class)}${network}`;
}

function warningList(sentences) {
  return el(
    "ul",
    { class: "warnings", "aria-label": "Warnings" },
    sentences.map((sentence) => el("li", {}, sentence)),
  );
}

/** Lights are told apart by shape and words, not by colour alone. */
function light(passed, words) {
  return el(
    "span",
    { class: passed ? "light pass" : "light fail" },
    el("span", { class: "dot", "aria-hidden": "true" }, passed ? "✓" : "!"),
    words,
  );
}

/** Checks in plain words; the name itself stands beside them in the table. */
const PLAIN = [
  [/^additivity error$/, "The parts add up to the score"],
  [/^completeness gap$/, "The map adds up to the score"],
  [/^completeness gap of the margin$/, "The map of the margin adds up"],
  [/^comprehensiveness at (.+)$/, "Without the top $1 the class fades"],
  [/^sufficiency at (.+)$/, "The top $1 alone carry the class"],
  [/^AOPC$/, "Its order beats random orders"],
  [/^likeness to an untrained network$/, "It was learned, not built in"],
  [/^stability$/, "It is steady under small noise"],
];

function inPlainWords(name) {
  const found = PLAIN.find(([pattern]) => pattern.test(name));
  return found ? name.replace(...found) : name;
}
