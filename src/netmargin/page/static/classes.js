// Which classes lie close to each other: a matrix or a list of pairs, and distances by class.
const FIRST_CLASSES = 20;
let relation = "rival";
let allClasses = false;
/** How the pairs of the pressed button are called and painted. */
const relationWords = () => byId("relation").querySelector(`[value=${relation}]`).dataset;

function drawClasses() {
  drawPairs();
  const every = toRows(BLOCK.classes[state.split]);
  const part = allClasses ? every : every.slice(0, FIRST_CLASSES);
  const names = part.map(({ label }) => className(label));
  if (byId("c-classes")) draw("classes", "spread", { rows: part }, { names });
  byId("all-classes").hidden = part.length === every.length;
}

function drawPairs() {
  const counts = BLOCK.pairs[state.split][relation];
  byId("pairs").hidden = !counts;
  if (!counts) return;
  press("relation", relation);
  byId("relation-column").textContent = relationWords().column;
  byId("matrix").style.setProperty("--paint", `var(${relationWords().paint})`);
  byId("matrix").replaceChildren(Array.isArray(counts) ? makeMatrix(counts) : makePairs(counts));
  restFocus(byId("matrix"));
}

/** A button that shows the samples of a pair; pressed while they are shown. */
function makePair(label, other, count, largest, ...content) {
  const show = relation === "mistake" ? "wrong" : "all";
  const said = `“${className(label)}” ${relationWords().word} “${className(other)}”`;
  const title = `${said}: ${commas(count)}`;
  const filter = { class: String(label), rival: String(other), show };
  const pressed = Object.keys(filter).every((name) => state[name] === filter[name]);
  return makeButton(
    {
      style: `--share: ${count / largest}`,
      title,
      "aria-label": title,
      "aria-pressed": String(pressed),
      onclick: () => {
        choose({ ...filter, from: "", to: "" });
        showSection("images");
      },
    },
    ...(content.length ? content : [said, make("span", {}, commas(count))]),
  );
}

function makeMatrix(counts) {
  const largest = Math.max(1, ...counts.flat());
  const head = (scope, name) => make("th", { scope, title: name }, make("span", {}, name));
  const cell = (count, label, other) =>
    label === other
      ? make("td", { class: "same" })
      : make("td", {}, count ? makePair(label, other, count, largest, commas(count)) : "");
  const line = (row, label) =>
    make("tr", {}, head("row", className(label)), ...row.map((n, other) => cell(n, label, other)));
  return make(
    "table",
    { class: "matrix" },
    make("thead", {}, make("tr", {}, make("td"), ...BLOCK.names.map((name) => head("col", name)))),
    make("tbody", {}, ...counts.map(line)),
  );
}

const makePairs = ({ label, other, count }) =>
  make("ol", { class: "pairs" }, ...label.map((first, i) =>
    make("li", {}, makePair(first, other[i], count[i], count[0]))));

function listenToClasses() {
  onPress("relation", (value) => {
    relation = value;
    drawPairs();
  });
  byId("all-classes").onclick = () => {
    allClasses = true;
    drawClasses();
  };
}
