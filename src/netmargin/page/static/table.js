// The table of samples, and the same rows as CSV.
const SURE = BLOCK.axis?.label;
const WHAT = SURE === "Estimated" ? "distance" : "score margin";
const TABLE = [
  ["row", "#", String],
  ["y", "label", className],
  ["p", "answer", className, "Measured"],
  ["o", "another net answers", className, "Measured"],
  ["r", "rival", className, SURE],
  ["q", "score margin", writeNumber, "Measured"],
  // Without distances the score margin stands for them.
  ...(WHAT === "distance" ? [["d", "distance (est.)", writeDistance, SURE]] : []),
  ["lower", "proved safe below", writeProved, "Proved"],
  ["upper", "flip found at", writeDistance, "Measured"],
  ["w", "share", writePercent, "Measured"],
  ["s", "suggested label", className],
  ["f", "label score", writeNumber, "Measured"],
  ["e", "label wrong", writePercent, "Estimated"],
  ["text", "text", (text) => text ?? "–"],
];

/** Columns without any value are left out. */
const tableColumns = () =>
  TABLE.filter(([key]) =>
    key === "row" || shown().columns[key]?.some((value) => value != null));

/** A title that sorts by its column, again the other way round. */
function makeTitle([key, title]) {
  const order = { [key]: "ascending", [`-${key}`]: "descending" }[state.sort];
  const sort = () => {
    choose({ sort: state.sort === key ? `-${key}` : key });
    byId("table").querySelector(`[value="${key}"]`).focus();
  };
  return make(
    "th",
    { scope: "col", class: key, "aria-sort": order },
    makeButton({ value: key, onclick: sort }, title),
  );
}

function makeTable(samples) {
  const columns = tableColumns();
  const cell = (sample, [key, , write]) =>
    make("td", { class: sample.wrong ? `${key} wrong` : key }, write(sample[key]));
  const opened = (sample) => {
    const card = makeCard(sample);
    if (!BLOCK.sprites) card.replaceChildren("Open");
    return make("tr", {}, make("td", {}, card), ...columns.map((column) => cell(sample, column)));
  };
  return make(
    "table",
    { class: "rows" },
    make("thead", {}, make("tr", {}, make("td"), ...columns.map(makeTitle))),
    make("tbody", {}, ...samples.map(opened)),
  );
}

/** All rows that the filters leave; a cell that begins a formula is kept from being one. */
function writeCsv() {
  const columns = tableColumns();
  const quote = (text) =>
    /^[=+@]|[",\r\n]/.test(text) ? `"${text.replace(/^[=+@]/, "'$&").replaceAll('"', '""')}"` : text;
  const cell = (sample, [key, , write]) =>
    quote(write === className ? className(sample[key]) : String(sample[key] ?? ""));
  const lines = rows.map((row) => {
    const sample = sampleAt(row);
    return columns.map((column) => cell(sample, column)).join(",");
  });
  return [columns.map(([, title]) => title).join(","), ...lines, ""].join("\r\n");
}

function saveCsv() {
  const href = URL.createObjectURL(new Blob([writeCsv()], { type: "text/csv" }));
  const name = `${BLOCK.name}-${state.split}`.replace(/[^\w-]+/g, "_");
  make("a", { href, download: `${name}.csv` }).click();
}
