// Elements of the page; every text goes in as text, never as HTML.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.onclick = value;
    else if (value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null && child !== ""));
  return element;
}

const makeButton = (attributes, ...children) =>
  make("button", { type: "button", ...attributes }, ...children);

const all = (selector) => document.querySelectorAll(selector);

/** Of a group of buttons the one with this value is pressed. */
function press(id, value) {
  for (const button of all(`#${id} button`))
    button.setAttribute("aria-pressed", String(button.value === value));
}

/** Call `take` with the value of the button of a group that is pressed. */
function onPress(id, take) {
  for (const button of all(`#${id} button`)) button.onclick = () => take(button.value);
}

/** Go to a section, with the focus too, and leave the URL to the choices. */
function showSection(id) {
  const heading = byId(id).querySelector("h2") ?? byId(id);
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  byId(id).scrollIntoView();
}

function followLink(event) {
  event.preventDefault();
  showSection(event.currentTarget.hash.slice(1));
}
