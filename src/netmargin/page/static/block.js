// What Python sends: the samples by column, and what the charts need.
const byId = (id) => document.getElementById(id);
const BLOCK = JSON.parse(byId("block").textContent);
const SPECS = JSON.parse(byId("specs").textContent);
const SPLITS = Object.keys(BLOCK.splits ?? {});

/** The split that is shown. */
const shown = () => BLOCK.splits[state.split];

const className = (label) => BLOCK.names?.[label] ?? String(label ?? "–");

/** "held-out images", "training images" or "images". */
const samplesOf = (split) =>
  `${BLOCK.splits[split].title.toLowerCase()} ${BLOCK.splits[split].noun}`.trim();

/** What the columns hold in one row. */
const rowOf = (columns, row) =>
  Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values[row]]));

/** One sample with all that is known of it; a net that gives no answer is wrong. */
function sampleOf(split, row) {
  const { columns, noun } = BLOCK.splits[split];
  const sample = { split, row, noun: noun.replace(/s$/, ""), ...rowOf(columns, row) };
  sample.wrong = sample.y !== sample.p;
  sample.label = className(sample.y);
  sample.answer = className(sample.p);
  sample.rival = className(sample.r);
  return sample;
}

/** One sample of the split that is shown. */
const sampleAt = (row) => sampleOf(state.split, row);
