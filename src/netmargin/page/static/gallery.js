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
  byId("gallery").hidden = byId("key").hidden = table;
  byId("table").hidden = !table;
  press("view", state.view);
  const samples = rows.slice(0, limit).map((row) => sampleOf(state.split, row));
  if (table) byId("table").replaceChildren(makeTable(samples));
  else byId("gallery").replaceChildren(...samples.map(makeFullCard));
  restFocus(byId(table ? "table" : "gallery"));
  byId("more").hidden = limit >= rows.length;
  byId("more").textContent = `Show ${Math.min(rows.length - limit, MORE)} more`;
}

/** The samples that the sentence counts, or the wrong ones, those farthest on that side first. */
function showCounted(below) {
  const none = { class: "", rival: "", from: "", to: below };
  choose(below ? { ...none, show: "all", sort: "near" } : { ...none, show: "wrong", sort: "d" });
}

function listenToGallery() {
  byId("more").onclick = () => {
    limit += MORE;
    showPart();
  };
  for (const button of all("[data-below]")) button.onclick = () => showCounted(button.dataset.below);
  byId("csv").onclick = saveCsv;
  onPress("view", (view) => choose({ view }));
}
