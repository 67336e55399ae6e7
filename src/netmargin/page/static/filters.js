// What is chosen: the switch, filters, order and view. The URL keeps it, so that a view can be sent.
const DEFAULTS = {
  split: SPLITS[0],
  show: "all",
  class: "",
  rival: "",
  from: "",
  to: "",
  sort: "near",
  view: "images",
};
const state = { ...DEFAULTS };

const SHOW = {
  all: "all",
  wrong: "wrong",
  right: "right",
  weight: "with weight",
  radii: "with radii",
};
const SORT = {
  near: "nearest to the boundary",
  d: "most wrong first",
  "-d": "farthest from the boundary",
  "-w": "heaviest first",
};

/** The rows that the filters leave, in order; those without the value that orders them last. */
function chooseRows() {
  const columns = columnsOf();
  const { y, r, d, w, lower, upper } = columns;
  const last = BLOCK.histograms?.range[1];
  const from = state.from === "" ? -Infinity : Number(state.from);
  const to = state.to === "" ? Infinity : Number(state.to);
  const near = (value) =>
    (state.from === "" && state.to === "") ||
    (value != null && value >= from && (value < to || (value === to && (to === last || to === Infinity))));
  const shown = {
    all: () => true,
    wrong: (i) => isWrong(columns, i),
    right: (i) => !isWrong(columns, i),
    weight: (i) => w?.[i] > 0,
    radii: (i) => lower?.[i] != null || upper?.[i] != null,
  }[state.show];
  const rows = y
    .map((_, i) => i)
    .filter(
      (i) =>
        shown(i) &&
        (state.class === "" || y[i] === Number(state.class)) &&
        (state.rival === "" || r[i] === Number(state.rival)) &&
        near(d[i]),
    );
  return sortRows(rows, columns);
}

function sortRows(rows, columns) {
  const down = state.sort.startsWith("-");
  const name = state.sort.replace("-", "");
  const values = name === "near" ? columns.d.map((d) => d && Math.abs(d)) : columns[name];
  if (name === "row") return down ? rows.reverse() : rows;
  if (!values) return rows;
  const key = (i) => values[i] ?? (down ? -Infinity : Infinity);
  const order =
    name === "text"
      ? (a, b) => String(values[a]).localeCompare(String(values[b]))
      : (a, b) => (key(a) === key(b) ? (values[a] == null) - (values[b] == null) : key(a) < key(b) ? -1 : 1);
  return rows.sort((a, b) => (down ? -order(a, b) : order(a, b)) || a - b);
}

/** Take over some choices and show what follows from them. */
function choose(changes) {
  Object.assign(state, changes);
  showState();
}

/** The choices from the URL, such as #show=wrong&class=4; a name of a section chooses nothing. */
function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(DEFAULTS)) {
    const value = given.get(key) ?? DEFAULTS[key];
    state[key] = isChoice(key, value) ? value : DEFAULTS[key];
  }
}

function isChoice(key, value) {
  if (key === "split") return SPLITS.includes(value);
  if (key === "show") return value in SHOW;
  if (key === "view") return ["images", "table"].includes(value);
  if (key === "sort") return value in SORT || value.replace("-", "") in TABLE;
  if (key === "class" || key === "rival") return value === "" || Number(value) in NAMES;
  return value === "" || Number.isFinite(Number(value));
}

function writeHash() {
  const kept = Object.entries(state).filter(([key, value]) => value !== DEFAULTS[key]);
  const hash = new URLSearchParams(kept).toString();
  if (hash === location.hash.slice(1) || (!hash && !location.hash.includes("="))) return;
  // A page shown inside of another one may not write its URL: it works without.
  try {
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  } catch {
    return;
  }
}

/** What the filters say, in words: "wrong, class 4, distance below 0.25". */
function describeFilters() {
  const { from, to } = state;
  const between =
    from !== "" && to !== ""
      ? `distance ${writeDistance(+from)} to ${writeDistance(+to)}`
      : from !== ""
        ? `distance from ${writeDistance(+from)}`
        : to !== ""
          ? `distance below ${writeDistance(+to)}`
          : "";
  return [
    state.show !== "all" && SHOW[state.show],
    state.class !== "" && `class ${className(state.class)}`,
    state.rival !== "" && `rival ${className(state.rival)}`,
    between,
  ]
    .filter(Boolean)
    .join(", ");
}

function fillSelect(select, options, value) {
  select.replaceChildren(
    ...options.map(([key, text]) => make("option", { value: key }, text)),
  );
  select.value = value;
}

/** The form shows the choices; what no sample has cannot be chosen. */
function showFilters() {
  const form = byId("filters");
  const weights = Boolean(columnsOf().w);
  const radii = Boolean(columnsOf().lower ?? columnsOf().upper);
  const shows = Object.entries(SHOW).filter(
    ([key]) => (key !== "weight" || weights) && (key !== "radii" || radii),
  );
  const sorts = Object.entries(SORT).filter(([key]) => key !== "-w" || weights);
  if (!(state.sort in SORT)) sorts.push([state.sort, "as in the table"]);
  const classes = [["", "all"], ...NAMES.map((name, label) => [String(label), name])];
  fillSelect(form.elements.show, shows, state.show);
  fillSelect(form.elements.sort, sorts, state.sort);
  for (const name of ["class", "rival"]) {
    if (form.elements[name].length !== classes.length) fillSelect(form.elements[name], classes, "");
    form.elements[name].value = state[name];
  }
  for (const name of ["from", "to"])
    if (form.elements[name].value !== state[name]) form.elements[name].value = state[name];
}

function listenToFilters() {
  const form = byId("filters");
  if (!form) return;
  form.addEventListener("input", ({ target }) => choose({ [target.name]: target.value }));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    choose({ ...DEFAULTS, split: state.split, view: state.view });
  });
  addEventListener("hashchange", () => {
    readHash();
    showState();
  });
}
