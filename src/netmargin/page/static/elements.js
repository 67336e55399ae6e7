// Elements of the page made by script; every text goes in as text, never as HTML.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value == null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

const certainty = (kind) => make("span", { class: `certainty ${kind.toLowerCase()}` }, kind);

/** Press the one button of a group whose value is given. */
function press(group, value) {
  for (const button of group?.querySelectorAll("button") ?? [])
    button.setAttribute("aria-pressed", String(button.value === value));
}

/** Call `choose` with the value of the button that is pressed in a group. */
function onPress(group, choose) {
  group?.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) choose(button.value);
  });
}

/** A folded table, filled when it is opened: `rows` gives its head and its lines. */
function fillNumbers(name, rows) {
  const details = byId(`n-${name}`);
  if (!details) return;
  const fill = () => {
    if (!details.open) return;
    const [head, ...lines] = rows();
    const cells = (line, tag) =>
      make("tr", {}, ...line.map((cell) => make(tag, {}, String(cell))));
    details.lastElementChild.replaceChildren(
      make(
        "table",
        {},
        make("thead", {}, cells(head, "th")),
        make("tbody", {}, ...lines.map((line) => cells(line, "td"))),
      ),
    );
  };
  details.ontoggle = fill;
  fill();
}
