// What is chosen: the form holds it, with the switch and the view in hidden fields, and so does the
// URL, so that a view can be sent.
const state = {};
const initial = {};

const fields = () => [...byId("filters").elements].filter(({ name }) => name);

/** Take over some choices, "" for no choice, and show what follows from them. */
function choose(changes) {
  for (const [name, value] of Object.entries(changes)) setField(name, value);
  showState();
}

function setField(name, value) {
  const field = byId("filters").elements[name];
  if (name === "sort" && TABLE.some(([key]) => key === value.replace("-", "")) && !hasOption(field, value))
    field.add(new Option("as in the table", value));
  field.value = field.options && !hasOption(field, value) ? initial[name] : value;
}

const hasOption = (select, value) => [...select.options].some((option) => option.value === value);

function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const { name } of fields()) setField(name, given.get(name) ?? initial[name]);
  if (!SPLITS.includes(byId("filters").elements.split.value)) setField("split", SPLITS[0]);
}

function writeHash() {
  const kept = Object.entries(state).filter(([name, value]) => value !== initial[name]);
  const hash = `#${new URLSearchParams(kept)}`;
  if (hash === location.hash || (hash === "#" && !location.hash.includes("="))) return;
  try {
    history.replaceState(null, "", hash);
  } catch {
    // A page inside of another one may not write its URL: it works without.
  }
}

/** The filters in words, such as "wrong, class 4, distance below 0.25". */
function describeFilters() {
  const { show, rival, from, to } = state;
  return [
    show !== "all" && byId("filters").elements.show.selectedOptions[0].text,
    state.class && `class ${className(state.class)}`,
    rival && `rival ${className(rival)}`,
    from && `${WHAT} from ${writeDistance(+from)}`,
    to && `${WHAT} below ${writeDistance(+to)}`,
  ].filter(Boolean).join(", ");
}

/** The rows that the filters leave, in order. */
function chooseRows() {
  const { show, rival, from, to } = state;
  const { y, p, r, o, d, w, lower, upper } = shown().columns;
  const isShown = {
    all: () => true,
    wrong: (i) => y[i] !== p[i],
    right: (i) => y[i] === p[i],
    other: (i) => o?.[i] != null,
    weight: (i) => w?.[i] > 0,
    radii: (i) => (lower?.[i] ?? upper?.[i]) != null,
  }[show];
  const isNear = (i) =>
    (!from && !to) || (d[i] != null && (!from || d[i] >= +from) && (!to || d[i] < +to));
  const isOf = (values, label) => (i) => !label || values[i] === +label;
  const tests = [isShown, isNear, isOf(y, state.class), isOf(r, rival)];
  return sortRows([...y.keys()].filter((i) => tests.every((test) => test(i))));
}

/** Rows without the value that orders them come last, either way. */
function sortRows(rows) {
  const [, minus, name] = state.sort.match(/(-?)(.*)/);
  const { columns } = shown();
  const near = (i) => columns.d[i] && Math.abs(columns.d[i]);
  const value = name === "near" ? near : (i) => (name === "row" ? i : columns[name]?.[i]);
  const sign = minus ? -1 : 1;
  return rows.sort((a, b) => {
    const [x, y] = [value(a) ?? null, value(b) ?? null];
    if (x === y) return a - b;
    if (x === null || y === null) return x === null ? 1 : -1;
    return x < y ? -sign : sign;
  });
}

function listenToFilters() {
  const form = byId("filters");
  for (const { name, value } of fields()) initial[name] = value;
  form.oninput = showState;
  form.onsubmit = () => false;
  form.onreset = () => setTimeout(showState);
  addEventListener("hashchange", () => {
    readHash();
    showState();
  });
}
