// Vega draws the charts; their colours are the page's variables, so that nothing is drawn twice.
const views = {};

/** Draw the chart `spec` into #c-NAME, or give a drawn one new rows and signals. */
function draw(name, spec, data, signals = {}) {
  const place = byId(`c-${name}`);
  if (!place) return null;
  views[name] ??= openView(place, SPECS[spec]);
  const view = views[name];
  for (const [signal, value] of Object.entries(signals)) view.signal(signal, value);
  for (const [set, rows] of Object.entries(data)) view.data(set, rows);
  view.run();
  return view;
}

function openView(place, spec) {
  // The picture is described by its sentence and its table: its hundreds of nodes are not read out.
  const container = make("div", { "aria-hidden": "true" });
  place.append(container);
  const view = new vega.View(vega.parse(spec), { renderer: "svg", logLevel: vega.Error, hover: true });
  view.tooltip((_, event, __, text) => showTip(event, text));
  return view.initialize(container);
}

/** The height of #c-NAME for so many rows of the spread chart is Vega's; the text follows the pointer. */
function showTip(event, text) {
  const tip = byId("tip");
  tip.hidden = text == null || text === "";
  if (tip.hidden) return;
  tip.textContent = text;
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(left, 8)}px`;
  tip.style.top = `${Math.max(event.clientY - tip.offsetHeight - 12, 4)}px`;
}

/** Rows, one for each entry of the columns. */
const toRows = (columns, row) => Object.values(columns)[0].map((_, index) => row(index));

/** Rows of the spread chart with what each tells. */
function spreadRows(columns, names) {
  return toRows(columns, (i) => {
    const [p10, p25, p50, p75, p90] = ["low", "first", "median", "third", "high"].map(
      (column) => columns[column][i],
    );
    const middle = `middle half ${writeDistance(p25)} to ${writeDistance(p75)}`;
    const tip = `${names[i]}: median ${writeDistance(p50)}, ${middle}`;
    return { order: i, p10, p25, p50, p75, p90, tip };
  }).filter((row) => Number.isFinite(row.p10) && Number.isFinite(row.p90));
}

/** The spread chart #c-NAME and its table. */
function drawSpread(name, columns, names, of) {
  draw(name, "spread", { rows: spreadRows(columns, names) }, { names });
  fillNumbers(name, () => [
    [of, "10%", "25%", "median", "75%", "90%"],
    ...names.map((text, i) => [
      text,
      ...["low", "first", "median", "third", "high"].map((key) => writeDistance(columns[key][i])),
    ]),
  ]);
}
