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
  const table = state.view === "table";
  byId("gallery").hidden = table || !rows.length;
  byId("table").hidden = !table || !rows.length;
  for (const none of all(".none")) none.hidden = rows.length > 0;
  press("view", state.view);
  if (table) byId("table").replaceChildren(makeTable(rows.slice(0, limit).map(sampleAt)));
  else byId("gallery").replaceChildren(...makeCards());
  restFocus(byId(table ? "table" : "gallery"));
  byId("more").hidden = limit >= rows.length;
  byId("more").textContent = `Show ${Math.min(rows.length - limit, MORE)} more`;
}

/** In the order of nearness the wrong ones, and apart from them the right ones. */
function makeCards() {
  const { y, p } = shown().columns;
  const cards = (some) => some.map((row) => makeFullCard(sampleAt(row)));
  const isRight = (row) => y[row] === p[row];
  const right = rows.filter(isRight);
  const wrong = rows.filter((row) => !isRight(row));
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
