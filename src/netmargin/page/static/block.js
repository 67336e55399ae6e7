// What Python sends: the rows of all samples by column, and what the charts need.
const BLOCK = JSON.parse(document.getElementById("block").textContent);
const SPECS = JSON.parse(document.getElementById("specs").textContent);
const SPLITS = Object.keys(BLOCK.splits);
const NAMES = BLOCK.names ?? [];

const byId = (id) => document.getElementById(id);

/** The columns of the split that the switch shows, or of another. */
const columnsOf = (split = state.split) => BLOCK.splits[split].columns;

const className = (label) => (label == null ? "–" : (NAMES[label] ?? String(label)));

/** Whether the answer is not the label; a net that gives no answer is wrong. */
const isWrong = (columns, row) => columns.y[row] !== columns.p[row];

/** Whether a column is there and holds a value. */
const hasColumn = (name) =>
  SPLITS.some((split) => columnsOf(split)[name]?.some((value) => value != null));

/** What one sample is called: "image" of "images". */
const nounOf = (split = state.split) => BLOCK.splits[split].noun.replace(/s$/, "");

/** "held-out images" or "training images". */
const samplesOf = (split = state.split) =>
  `${BLOCK.splits[split].title.toLowerCase()} ${BLOCK.splits[split].noun}`;
