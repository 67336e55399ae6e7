// The samples that the filters leave: as cards or as a table, some first, more on demand.
const MORE = 60;
const shown = { rows: [], limit: 0 };

/** How many come first: whole rows of cards on a desktop and on a phone. */
const firstLimit = () => (innerWidth <= 640 ? 20 : BLOCK.sprites ? 39 : 24);

function showSamples() {
  shown.rows = chooseRows();
  shown.limit = firstLimit();
  const said = describeFilters();
  byId("count").textContent =
    `${commas(shown.rows.length)} of ${commas(BLOCK.splits[state.split].n)} ${samplesOf()}` +
    (said ? ` (${said})` : "");
  showPart();
}

function showPart() {
  const table = state.view === "table";
  byId("gallery").hidden = table;
  byId("table").hidden = !table;
  press(byId("view"), state.view);
  const rows = shown.rows.slice(0, shown.limit);
  if (table) byId("table").replaceChildren(makeTable(rows));
  else byId("gallery").replaceChildren(...rows.map((row) => makeCard(state.split, row)));
  restFocus(table ? byId("table").querySelector("tbody") : byId("gallery"));
  const left = shown.rows.length - rows.length;
  byId("more").hidden = left <= 0;
  byId("more").textContent = `Show ${Math.min(left, MORE)} more`;
}

function listenToGallery() {
  if (!byId("gallery")) return;
  byId("more").addEventListener("click", () => {
    shown.limit += MORE;
    showPart();
  });
  byId("csv").addEventListener("click", saveCsv);
  onPress(byId("view"), (view) => choose({ view }));
  rove(byId("gallery"));
  rove(byId("table"));
}
