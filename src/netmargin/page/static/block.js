// What Python sends: the samples by column, and what the charts need.
const byId = (id) => document.getElementById(id);
const BLOCK = JSON.parse(byId("block").textContent);
const SPECS = JSON.parse(byId("specs").textContent);
const SPLITS = Object.keys(BLOCK.splits ?? {});

/** The split that is shown. */
const shown = () => BLOCK.splits[state.split];

const className = (label) => BLOCK.names?.[label] ?? String(label ?? "–");

/** "held-out images" or "training images". */
const samplesOf = (split) =>
  `${BLOCK.splits[split].title.toLowerCase()} ${BLOCK.splits[split].noun}`;

/** One sample with all that is known of it; a net that gives no answer is wrong. */
function sampleOf(split, row) {
  const sample = { split, row, noun: BLOCK.splits[split].noun.replace(/s$/, "") };
  for (const [name, values] of Object.entries(BLOCK.splits[split].columns))
    sample[name] = values[row];
  sample.wrong = sample.y !== sample.p;
  sample.label = className(sample.y);
  sample.answer = className(sample.p);
  sample.rival = className(sample.r);
  return sample;
}
