// The samples that the filters leave, as cards or as a table: some first, more on demand.
const MORE = 60;
let rows = [];
let limit = 0;

function showSamples() {
  rows = chooseRows();
  // Whole rows of cards on a phone and on a desktop.
  limit = innerWidth <= 640 ? 20 : BLOCK.sprites ? 39 : 24;
  const said = describeFilters();
  byId("count").textContent =
    `${commas(rows.length)} of ${commas(shown().n)} ${samplesOf(state.split)}` +
    (said && ` (${said})`);
  showPart();
}

function showPart() {
  const name = state.view === "table" ? "table" : "gallery";
  for (const id of ["gallery", "table"]) byId(id).hidden = id !== name || !rows.length;
  for (const none of all(".none")) none.hidden = rows.length;
  press("view", state.view);
  const made = name === "table" ? [makeTable(rows.slice(0, limit).map(sampleAt))] : makeCards();
  byId(name).replaceChildren(...made);
  restFocus(byId(name));
  byId("more").hidden = limit >= rows.length;
  byId("more").textContent = `Show ${Math.min(rows.length - limit, MORE)} more`;
}

/** In the order of nearness the wrong ones, and apart from them the right ones. */
function makeCards() {
  const { y, p } = shown().columns;
  const cards = (some) => some.map((row) => makeFullCard(sampleAt(row)));
  const [right, wrong] = [true, false].map((is) => rows.filter((i) => (y[i] === p[i]) === is));
  if (state.sort !== "near" || !right.length || !wrong.length) return cards(rows.slice(0, limit));
  const few = Math.min(wrong.length, Math.max(Math.floor(limit / 3), limit - right.length));
  const title = (side, { length }) =>
    make("p", { class: "side" }, `${side}: ${commas(length)}, nearest first`);
  return [
    title("Wrong side", wrong),
    ...cards(wrong.slice(0, few)),
    title("Right side", right),
    ...cards(right.slice(0, limit - few)),
  ];
}

function listenToGallery() {
  byId("more").onclick = () => {
    limit += MORE;
    showPart();
  };
  // Links beside sentences show the samples that these are about.
  for (const button of all(".choice"))
    button.onclick = () => {
      choose({ ...initial, ...JSON.parse(button.value) });
      showSection("images");
    };
  byId("csv").onclick = saveCsv;
  onPress("view", (view) => choose({ view }));
}
