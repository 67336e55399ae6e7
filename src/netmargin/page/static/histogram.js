// How far the samples lie from the boundary: bars that can be picked, examples at their places.

function drawHistogram() {
  // No distance is finite.
  if (!byId("c-histogram")) return;
  const bars = toRows(BLOCK.histograms[state.split]);
  const other = SPLITS.find((split) => split !== state.split);
  const steps = other ? toRows(BLOCK.histograms[other]) : [];
  // A step holds up to the next one: the last needs an end.
  if (other) steps.push({ ...steps.at(-1), from: steps.at(-1).to });
  const isNew = !views.histogram;
  const { range: extent, folded } = BLOCK.histograms;
  const signals = { extent, folded, picked: pickedRange(), samples: samplesOf(state.split) };
  draw("histogram", "histogram", { bars, steps }, { ...signals, ...placeTicks(bars) });
  if (isNew) listenToHistogram(views.histogram);
  showPicked();
}

/** Ticks at round numbers, and ≤ and ≥ below the end bins that hold what lies beyond. */
function placeTicks(bars) {
  const { range, folded } = BLOCK.histograms;
  const width = byId("c-histogram").clientWidth;
  const scale = vega.scale("linear")().domain(range);
  const write = scale.tickFormat(width / 75);
  const writeEdge = scale.tickFormat(bars.length);
  const space = (60 * (range[1] - range[0])) / width;
  const round = scale.ticks(width / 75).filter((tick) =>
    !(folded[0] && tick < Math.max(range[0] + space, bars[0].to)) &&
    !(folded[1] && tick > Math.min(range[1] - space, bars.at(-1).from)));
  const ends = [
    { ...bars[0], text: `≤ ${writeEdge(bars[0].to)}` },
    { ...bars.at(-1), text: `≥ ${writeEdge(bars.at(-1).from)}` },
  ].filter((_, i) => folded[i]);
  return {
    ticks: [...round, ...ends.map(({ from, to }) => (from + to) / 2)],
    labels: [...round.map(write), ...ends.map(({ text }) => text)],
  };
}

function listenToHistogram(view) {
  const clear = () => choose({ from: "", to: "" });
  byId("clear-picked").onclick = clear;
  view.addSignalListener("brush", (_, { from }) => from && pickBars(...from));
  view.addEventListener("click", (_, item) => {
    // The end of a drag.
    if (view.signal("brush").from) return;
    if (item?.datum?.count != null) pickBars(item.datum.from, item.datum.to);
    else clear();
  });
  addEventListener("resize", () => setTimeout(drawHistogram));
}

let picking;
/** Pick the bars that a range touches; the list of their samples follows when the hand rests. */
function pickBars(...range) {
  const [low, high] = [Math.min(...range), Math.max(...range)];
  const bars = toRows(BLOCK.histograms[state.split]);
  const touched = bars.filter((bar) => bar.to > low && bar.from < high);
  if (!touched.length) return;
  // What lies beyond the axis is in its last bars.
  const from = touched[0] === bars[0] ? "" : String(touched[0].from);
  const to = touched.at(-1) === bars.at(-1) ? "" : String(touched.at(-1).to);
  views.histogram.signal("picked", pickedRange({ from, to })).runAsync();
  clearTimeout(picking);
  picking = setTimeout(() => choose({ from, to }), 80);
}

/** The picked range for the chart, null where nothing is picked. */
const pickedRange = ({ from, to } = state) =>
  from || to ? [from ? +from : -1e308, to ? +to : 1e308] : null;

/** What is picked, said in the caption, for the list may be below the screen. */
function showPicked() {
  const picked = Boolean(pickedRange());
  if (!picked) views.histogram.signal("brush_x", [0, 0]).run();
  byId("picked").hidden = !picked;
  byId("picked-count").textContent =
    picked ? `${commas(rows.length)} ${shown().noun} picked.` : "";
  if (byId("examples")) drawExamples(byId("examples"));
}

/** A picked image every 50 pixels, or where words stand below it 88, at its place on the axis. */
function drawExamples(place) {
  const { d, image } = shown().columns;
  const [left, right] = BLOCK.histograms.range;
  const view = views.histogram;
  // What lies beyond the axis stands in the middle of the bar that holds it.
  const half = 0.5 / BLOCK.histograms[state.split].from.length;
  const shareOf = (row) => Math.min(Math.max((d[row] - left) / (right - left), half), 1 - half);
  const every = place.matches(".named") ? 88 : 50;
  let last = -1;
  const apart = rows
    .filter((row) => d[row] != null && image[row] != null)
    .sort((a, b) => d[a] - d[b])
    .filter((row) => {
      const free = (shareOf(row) - last) * view.width() >= every;
      if (free) last = shareOf(row);
      return free;
    });
  place.replaceChildren(...apart.map((row) => {
    const sample = sampleAt(row);
    const text = sample.wrong ? `${sample.label} → ${sample.answer}` : sample.label;
    const card = makeCard(sample, make("span", { class: "caption" }, text));
    // In percent of the width, so that it stays below its bar in print too.
    const x = view.origin()[0] + shareOf(row) * view.width();
    card.style.left = `${(100 * x) / place.clientWidth}%`;
    return card;
  }));
  restFocus(place);
}
