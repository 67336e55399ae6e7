// Vega draws the charts; their colours are the page's variables, so that nothing is drawn twice.
const views = {};

/** Draw #c-NAME, or give what is drawn there new rows and signals. */
function draw(name, spec, data, signals) {
  views[name] ??= openView(byId(`c-${name}`), SPECS[spec]);
  for (const [signal, value] of Object.entries(signals)) views[name].signal(signal, value);
  for (const [set, rows] of Object.entries(data)) views[name].data(set, rows);
  return views[name].run();
}

function openView(place, spec) {
  // A chart is described by its sentence and its table; its hundreds of marks are not read out.
  const container = place.appendChild(make("div", { "aria-hidden": "true" }));
  const view = new vega.View(vega.parse(spec), { renderer: "svg", logLevel: vega.Error });
  // What is nearest to the pointer is a cell around a mark: the row is that of the mark.
  view.tooltip((_, event, item, text) => showTip(event, text && (item.datum.datum ?? item.datum).tip));
  return view.initialize(container).hover();
}

/** What a mark tells, beside the pointer. */
function showTip({ clientX, clientY }, text) {
  const tip = byId("tip");
  tip.hidden = !text;
  tip.textContent = text;
  const left = Math.min(clientX + 14, document.body.clientWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(left, 8)}px`;
  tip.style.top = `${Math.max(clientY - tip.offsetHeight - 12, 4)}px`;
}

/** A row for each entry of the columns, with its number. */
const toRows = (columns) =>
  Object.values(columns)[0].map((_, row) => ({ row, ...rowOf(columns, row) }));
