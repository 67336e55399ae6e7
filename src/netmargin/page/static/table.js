// The table of samples, and the same rows as CSV. Columns without any value are left out.
const TABLE = {
  row: { title: "#", read: (columns, row) => row, write: String },
  y: { title: "label", read: (columns, row) => columns.y[row], write: className, name: true },
  p: { title: "answer", read: (columns, row) => columns.p[row], write: className, name: true },
  r: { title: "rival", read: (columns, row) => columns.r[row], write: className, name: true },
  q: { title: "score margin", read: (columns, row) => columns.q[row], write: writeNumber },
  d: { title: "distance (est.)", read: (columns, row) => columns.d[row], write: writeDistance },
  lower: { title: "proved safe below", read: (columns, row) => columns.lower?.[row], write: writeDistance },
  upper: { title: "flip found at", read: (columns, row) => columns.upper?.[row], write: writeDistance },
  w: { title: "weight", read: (columns, row) => columns.w?.[row], write: (share) => writePercent(share, 1) },
  text: { title: "text", read: (columns, row) => columns.text?.[row], write: (text) => text ?? "–", name: true },
};

const tableColumns = () =>
  Object.entries(TABLE).filter(([key]) => key === "row" || columnsOf()[key]?.some((v) => v != null));

/** A title that sorts by its column, again the other way round. */
function makeTitle([key, column]) {
  const sorted = state.sort.replace("-", "") === key;
  const down = state.sort === `-${key}`;
  return make(
    "th",
    {
      scope: "col",
      class: column.name ? "left" : null,
      "aria-sort": sorted ? (down ? "descending" : "ascending") : null,
    },
    make(
      "button",
      { type: "button", onclick: () => sortBy(key, sorted && !down ? `-${key}` : key) },
      column.title,
    ),
  );
}

function sortBy(key, sort) {
  choose({ sort });
  const titles = tableColumns().map(([name]) => name);
  byId("table").querySelectorAll("thead button")[titles.indexOf(key)].focus();
}

function makeTable(rows) {
  const columns = columnsOf();
  const keys = tableColumns();
  const pictures = Boolean(BLOCK.sprites);
  const open = (row) => {
    if (pictures) return makeCard(state.split, row, { number: false, caption: false });
    return make(
      "button",
      { type: "button", class: "link", "data-row": row, tabindex: -1, "aria-label": sayCard(state.split, row), onclick: () => openSample(state.split, row) },
      String(row),
    );
  };
  const line = (row) =>
    make(
      "tr",
      {},
      make("td", {}, open(row)),
      ...keys.filter(([key]) => pictures || key !== "row").map(([key, column]) =>
        make(
          "td",
          { class: key === "text" ? "text" : key === "p" && isWrong(columns, row) ? "left wrong" : column.name ? "left" : null },
          column.write(column.read(columns, row)),
        ),
      ),
    );
  const titles = keys.map(makeTitle);
  const head = pictures ? [make("th", { scope: "col", class: "left" }, nounOf()), ...titles] : titles;
  return make(
    "table",
    { class: "rows" },
    make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...rows.map(line)),
  );
}

/** The rows that the filters leave, all of them, as the page knows them. */
function writeCsv() {
  const columns = columnsOf();
  const keys = tableColumns();
  const quote = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const cell = (column, row) => {
    const value = column.read(columns, row);
    if (value == null) return "";
    return column.write === className ? className(value) : String(value);
  };
  const lines = shown.rows.map((row) => keys.map(([, column]) => quote(cell(column, row))).join(","));
  return [keys.map(([, column]) => quote(column.title)).join(","), ...lines, ""].join("\r\n");
}

function saveCsv() {
  const url = URL.createObjectURL(new Blob([writeCsv()], { type: "text/csv" }));
  const name = `${BLOCK.name}-${state.split}`.replace(/[^\w-]+/g, "_");
  make("a", { href: url, download: `${name}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
