// Which classes lie close to each other: a matrix or a list of pairs, and distances by class.
const FIRST_CLASSES = 20;
const looks = { relation: "rival", allClasses: false };

const RELATIONS = {
  rival: { note: "row: label; column: nearest other class; number of images, pick one to see them", paint: "--right", say: (a, b) => `“${a}” next to “${b}”` },
  mistake: { note: "row: label; column: answer; number of images, pick one to see them", paint: "--wrong", say: (a, b) => `“${a}” taken for “${b}”` },
};

function drawClasses() {
  if (!byId("classes")) return;
  drawPairs();
  const columns = BLOCK.classes[state.split];
  const count = columns.label.length;
  const limit = looks.allClasses ? count : Math.min(count, FIRST_CLASSES);
  const part = Object.fromEntries(Object.entries(columns).map(([key, values]) => [key, values.slice(0, limit)]));
  drawSpread("classes", part, part.label.map(className), "class");
  byId("all-classes").hidden = count <= FIRST_CLASSES;
  byId("all-classes").textContent = looks.allClasses ? `Show the first ${FIRST_CLASSES}` : `Show all ${commas(count)} classes`;
}

function drawPairs() {
  const pairs = BLOCK.pairs?.[state.split]?.[looks.relation];
  byId("pairs").hidden = !pairs;
  if (!pairs) return;
  const { note, paint } = RELATIONS[looks.relation];
  press(byId("relation"), looks.relation);
  byId("relation-note").textContent = note.replaceAll("images", BLOCK.splits[state.split].noun);
  const matrix = byId("matrix");
  matrix.style.setProperty("--paint", `var(${paint})`);
  matrix.replaceChildren(Array.isArray(pairs) ? makeMatrix(pairs) : makePairs(pairs));
  restFocus(matrix);
}

/** A button that shows the samples of a pair; pressed while they are shown. */
function makePair(label, other, count, largest, ...content) {
  const mistakes = looks.relation === "mistake";
  const say = RELATIONS[looks.relation].say(className(label), className(other));
  const pressed = state.class === String(label) && state.rival === String(other) && (state.show === "wrong") === mistakes;
  const filter = { ...DEFAULTS, split: state.split, view: state.view, class: String(label), rival: String(other), show: mistakes ? "wrong" : "all" };
  return make("button", {
    type: "button",
    style: `--share: ${count / largest}`,
    "aria-label": `${say}: ${commas(count)}`,
    "aria-pressed": String(pressed),
    title: `${say}: ${commas(count)}`,
    onclick: () => {
      choose(filter);
      showSection("images");
    },
  }, ...content);
}

function makeMatrix(counts) {
  const largest = Math.max(1, ...counts.flat());
  const long = NAMES.some((name) => name.length > 3);
  const head = NAMES.map((name) => make("th", { scope: "col", title: name }, make("span", {}, name)));
  const line = (row, label) =>
    make("tr", {}, make("th", { scope: "row", title: NAMES[label] }, NAMES[label]), ...row.map((count, other) =>
      make("td", { class: label === other ? "same" : null }, count && label !== other ? makePair(label, other, count, largest, commas(count)) : null)));
  return make("table", { class: long ? "matrix long" : "matrix", style: long ? "--names: 92px" : null },
    make("thead", {}, make("tr", {}, make("th", { scope: "row" }), ...head)),
    make("tbody", {}, ...counts.map(line)));
}

function makePairs({ label, other, count }) {
  const largest = Math.max(1, ...count);
  const { say } = RELATIONS[looks.relation];
  return make("ol", { class: "pairs" }, ...label.map((a, i) =>
    make("li", {}, makePair(a, other[i], count[i], largest,
      make("span", {}, say(className(a), className(other[i]))), make("span", {}, commas(count[i]))))));
}

function listenToClasses() {
  if (!byId("classes")) return;
  rove(byId("matrix"));
  onPress(byId("relation"), (relation) => {
    looks.relation = relation;
    drawPairs();
  });
  byId("all-classes").addEventListener("click", () => {
    looks.allClasses = !looks.allClasses;
    drawClasses();
  });
}
