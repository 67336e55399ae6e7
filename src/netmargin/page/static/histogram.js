// How far the samples lie from the boundary: bars that can be picked, examples at their places.
const EXAMPLE_EVERY = 50; // pixels; an example is 40 wide

const binsOf = (split) => {
  const { from, to, count } = BLOCK.histograms[split];
  const all = Math.max(1, BLOCK.splits[split].n);
  return from.map((low, i) => ({ low, high: to[i], count: count[i], share: count[i] / all }));
};

function drawHistogram() {
  if (!byId("c-histogram") || !BLOCK.histograms) return;
  const bins = binsOf(state.split);
  const other = SPLITS.find((split) => split !== state.split);
  const steps = other ? binsOf(other).map(({ low, share }) => ({ x: low, share })) : [];
  if (steps.length) steps.push({ x: bins.at(-1).high, share: steps.at(-1).share });
  const first = !views.histogram;
  const view = draw("histogram", "histogram", {
    bars: bins.map((bin) => ({ ...bin, side: bin.high <= 0 ? "wrong" : "right", tip: sayBin(bin) })),
    steps,
  }, { extent: BLOCK.histograms.range, ...ticksOf(bins, byId("c-histogram").clientWidth) });
  if (first) listenToHistogram(view);
  showPicked();
  fillNumbers("histogram", () => [
    ["distance", ...SPLITS.map((split) => samplesOf(split))],
    ...bins.map((bin, i) => [sayRange(bin), ...SPLITS.map((split) => commas(binsOf(split)[i].count))]),
  ]);
}

/** The range of a bin in words; the bins at the ends hold what lies beyond them too. */
function sayRange({ low, high }) {
  const { range, folded } = BLOCK.histograms;
  if (folded[0] && low === range[0]) return `below ${writeDistance(high)}`;
  if (folded[1] && high === range[1]) return `from ${writeDistance(low)}`;
  return `${writeDistance(low)} to ${writeDistance(high)}`;
}

const sayBin = (bin) => `${sayRange(bin)}: ${commas(bin.count)} ${samplesOf()} (${writePercent(bin.share, 1)})`;

/** Where ticks stand: round numbers, and the middles of end bins that hold what lies beyond. */
function ticksOf(bins, width) {
  const { range, folded } = BLOCK.histograms;
  const round = vega.scale("linear")().domain(range).ticks(Math.max(3, width / 75));
  const space = (60 * (range[1] - range[0])) / width;
  const ticks = round.filter(
    (tick) => !(folded[0] && tick < range[0] + space) && !(folded[1] && tick > range[1] - space),
  );
  const ends = [bins[0], bins.at(-1)].filter((_, i) => folded[i]);
  const decimals = Math.max(0, Math.ceil(-Math.log10(round[1] - round[0]) - 1e-9));
  return {
    ticks: [...ticks, ...ends.map(({ low, high }) => (low + high) / 2)],
    lowest: folded[0] ? bins[0].high : -1e308,
    highest: folded[1] ? bins.at(-1).low : 1e308,
    tick_format: `,.${decimals}f`,
  };
}

function listenToHistogram(view) {
  const isBrushed = () => Boolean(view.signal("brush")?.low);
  view.addSignalListener("brush", (_, { low }) => {
    if (low) pickRange(Math.min(...low), Math.max(...low));
  });
  view.addEventListener("click", (_, item) => {
    if (isBrushed()) return; // the end of a drag
    if (item?.datum?.high != null) pickRange(item.datum.low, item.datum.high);
    else clearPicked();
  });
  addEventListener("resize", () => requestAnimationFrame(drawHistogram));
}

let picking;
/** Pick the bars that the range touches, and the samples in them; the list follows at rest. */
function pickRange(low, high) {
  const touched = binsOf(state.split).filter((bin) => bin.high > low && bin.low < high);
  if (!touched.length) return;
  const { range, folded } = BLOCK.histograms;
  const from = touched[0].low;
  const to = touched.at(-1).high;
  Object.assign(state, {
    from: folded[0] && from === range[0] ? "" : String(from),
    to: folded[1] && to === range[1] ? "" : String(to),
  });
  // A drag over everything picks everything.
  if (state.from === "" && state.to === "") Object.assign(state, { from: String(-1e9) });
  views.histogram.signal("picked", pickedRange()).run();
  clearTimeout(picking);
  picking = setTimeout(showState, 80);
}

function clearPicked() {
  choose({ from: "", to: "" });
}

/** The picked range for the chart, null where nothing is picked. */
function pickedRange() {
  const { from, to } = state;
  return from === "" && to === "" ? null : [from === "" ? -1e308 : +from, to === "" ? 1e308 : +to];
}

/** What is picked, said in the caption, for the list may be below the screen. */
function showPicked() {
  if (!views.histogram) return;
  const picked = pickedRange();
  const view = views.histogram;
  if (!picked && view.signal("brush")?.low) view.signal("brush_x", [0, 0]);
  view.signal("picked", picked).run();
  const caption = byId("picked");
  const unpicked = caption.parentElement.querySelectorAll(".unpicked");
  for (const element of unpicked) element.hidden = Boolean(picked);
  caption.hidden = !picked;
  if (picked)
    caption.replaceChildren(
      `${commas(shown.rows.length)} ${BLOCK.splits[state.split].noun} picked. `,
      make("a", { href: "#images", onclick: goTo }, "See them below"),
      " / ",
      make("button", { type: "button", class: "link", onclick: clearPicked }, "Clear"),
    );
  drawExamples();
}

/** About every 50 pixels the picked image that lies nearest, below its place on the axis. */
function drawExamples() {
  const place = document.querySelector(".examples");
  if (!place) return;
  const view = views.histogram;
  const columns = columnsOf();
  const [start, end] = BLOCK.histograms.range;
  const width = view.width();
  const total = byId("c-histogram").clientWidth;
  const slots = Math.max(1, Math.floor(width / EXAMPLE_EVERY));
  const best = new Map();
  for (const row of shown.rows) {
    const d = columns.d[row];
    if (d == null || columns.image?.[row] == null) continue;
    const x = (Math.min(Math.max((d - start) / (end - start), 0), 1)) * slots;
    const slot = Math.min(Math.floor(x), slots - 1);
    const off = Math.abs(x - slot - 0.5);
    if (off < 0.4 && (!best.has(slot) || off < best.get(slot).off)) best.set(slot, { row, off, x });
  }
  const left = view.origin()[0];
  const cards = [...best.entries()].sort((a, b) => a[0] - b[0]).map(([, { row, x }]) => {
    const card = makeCard(state.split, row, { number: false });
    card.style.left = `${(100 * (left + (x / slots) * width)) / total}%`;
    if (!isWrong(columns, row)) card.querySelector(".caption").textContent = className(columns.y[row]);
    else card.querySelector(".caption").textContent = `${className(columns.y[row])}→${className(columns.p[row])}`;
    return card;
  });
  place.replaceChildren(...cards);
  restFocus(place);
}
