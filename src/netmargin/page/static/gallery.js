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
  byId("gallery").hidden = table;
  byId("table").hidden = !table;
  press("view", state.view);
  const samples = rows.slice(0, limit).map((row) => sampleOf(state.split, row));
  if (table) byId("table").replaceChildren(makeTable(samples));
  else byId("gallery").replaceChildren(...samples.map(makeFullCard));
  restFocus(byId(table ? "table" : "gallery"));
  byId("more").hidden = limit >= rows.length;
  byId("more").textContent = `Show ${Math.min(rows.length - limit, MORE)} more`;
}

function listenToGallery() {
  byId("more").onclick = () => {
    limit += MORE;
    showPart();
  };
  onPress("counted", (chosen) => choose({ ...initial, ...JSON.parse(chosen) }));
  byId("csv").onclick = saveCsv;
  onPress("view", (view) => choose({ view }));
}
