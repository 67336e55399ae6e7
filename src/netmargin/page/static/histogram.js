// How far the samples lie from the boundary: bars that can be picked, examples at their places.
const EXAMPLE_EVERY = 50; // pixels

const binsOf = (split) => {
  const { from, to, count } = BLOCK.histograms[split];
  return from.map((low, i) => ({
    low, high: to[i], count: count[i], share: count[i] / BLOCK.splits[split].n,
  }));
};

function drawHistogram() {
  const bins = binsOf(state.split);
  const other = SPLITS.find((split) => split !== state.split);
  const steps = (other ? binsOf(other) : []).map(({ low, share }) => ({ x: low, share }));
  if (other) steps.push({ x: bins.at(-1).high, share: steps.at(-1).share });
  const bars = bins.map((bin, i) => ({
    ...bin,
    tip: `${sayRange(bins, i)}: ${commas(bin.count)} ${samplesOf(state.split)} (${writePercent(bin.share)})`,
  }));
  const isNew = !views.histogram;
  const signals = { extent: BLOCK.histograms.range, picked: pickedRange(), ...placeTicks(bins) };
  draw("histogram", "histogram", { bars, steps }, signals);
  if (isNew) listenToHistogram(views.histogram);
  showPicked();
}

/** The range of a bin in words; the bins at the ends hold what lies beyond them too. */
function sayRange(bins, i) {
  const { folded } = BLOCK.histograms;
  const [low, high] = [writeDistance(bins[i].low), writeDistance(bins[i].high)];
  if (folded[0] && i === 0) return `below ${high}`;
  return folded[1] && i === bins.length - 1 ? `from ${low}` : `${low} to ${high}`;
}

/** Ticks at round numbers, and ≤ and ≥ below the end bins that hold what lies beyond. */
function placeTicks(bins) {
  const { range, folded } = BLOCK.histograms;
  const width = byId("c-histogram").clientWidth;
  const scale = vega.scale("linear")().domain(range);
  const write = scale.tickFormat(width / 75);
  const space = (60 * (range[1] - range[0])) / width;
  const round = scale.ticks(width / 75).filter((tick) =>
    !(folded[0] && tick < range[0] + space) && !(folded[1] && tick > range[1] - space));
  const ends = [
    { ...bins[0], text: `≤ ${write(bins[0].high)}` },
    { ...bins.at(-1), text: `≥ ${write(bins.at(-1).low)}` },
  ].filter((_, i) => folded[i]);
  return {
    ticks: [...round, ...ends.map(({ low, high }) => (low + high) / 2)],
    labels: [...round.map(write), ...ends.map(({ text }) => text)],
  };
}

function listenToHistogram(view) {
  const isBrushed = () => Boolean(view.signal("brush").low);
  view.addSignalListener("brush", (_, { low }) => low && pickBars(...low));
  view.addEventListener("click", (_, item) => {
    if (isBrushed()) return; // the end of a drag
    if (item?.datum?.high != null) pickBars(item.datum.low, item.datum.high);
    else choose({ from: "", to: "" });
  });
  addEventListener("resize", () => setTimeout(drawHistogram));
}

let picking;
/** Pick the bars that a range touches; the list of their samples follows when the hand rests. */
function pickBars(...range) {
  const [low, high] = [Math.min(...range), Math.max(...range)];
  const bins = binsOf(state.split);
  const touched = bins.filter((bin) => bin.high > low && bin.low < high);
  if (!touched.length) return;
  const from = touched[0] === bins[0] ? "" : String(touched[0].low);
  const to = touched.at(-1) === bins.at(-1) ? "" : String(touched.at(-1).high);
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
  const brushed = views.histogram.signal("brush").low;
  if (brushed && !picked) views.histogram.signal("brush_x", [0, 0]).run();
  for (const hint of document.querySelectorAll(".unpicked")) hint.hidden = picked;
  byId("picked").hidden = !picked;
  byId("picked-count").textContent =
    picked ? `${commas(rows.length)} ${shown().noun} picked.` : "";
  if (byId("examples")) drawExamples(byId("examples"));
}

/** About every 50 pixels a picked image, below its place on the axis. */
function drawExamples(place) {
  const { d, image } = shown().columns;
  const [start, end] = BLOCK.histograms.range;
  const view = views.histogram;
  const shareOf = (row) => Math.min(Math.max((d[row] - start) / (end - start), 0), 1);
  let last = -1;
  const apart = rows
    .filter((row) => d[row] != null && image[row] != null)
    .sort((a, b) => d[a] - d[b])
    .filter((row) => {
      const free = (shareOf(row) - last) * view.width() >= EXAMPLE_EVERY;
      if (free) last = shareOf(row);
      return free;
    });
  place.replaceChildren(...apart.map((row) => {
    const sample = sampleOf(state.split, row);
    const text = sample.wrong ? `${sample.label}→${sample.answer}` : sample.label;
    const card = makeCard(sample, make("span", { class: "caption" }, text));
    // In percent of the width, so that it stays below its bar in print too.
    const left = view.origin()[0] + shareOf(row) * view.width();
    card.style.left = `${(100 * left) / place.clientWidth}%`;
    return card;
  }));
  restFocus(place);
}
