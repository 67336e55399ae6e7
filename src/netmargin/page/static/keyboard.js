// One tab stop for a group of many buttons: arrows, Home and End move inside of it.
const members = (group) => [...(group?.querySelectorAll("button:not([disabled])") ?? [])];

/** Tab comes to the first button of the group. */
function restFocus(group) {
  members(group).forEach((button, index) => (button.tabIndex = index ? -1 : 0));
}

/** The next button in the direction of a key, by where the buttons stand. */
function nextButton(buttons, from, key) {
  const at = buttons.indexOf(from);
  if (key === "Home") return buttons[0];
  if (key === "End") return buttons.at(-1);
  if (key === "ArrowRight") return buttons[at + 1];
  if (key === "ArrowLeft") return buttons[at - 1];
  const { left, top } = from.getBoundingClientRect();
  const down = key === "ArrowDown";
  const placed = buttons.map((button) => ({ button, box: button.getBoundingClientRect() }));
  const beyond = placed.filter(({ box }) => (down ? box.top > top + 4 : box.top < top - 4));
  const gap = ({ box }) => 1000 * Math.abs(box.top - top) + Math.abs(box.left - left);
  return beyond.sort((a, b) => gap(a) - gap(b))[0]?.button;
}

function rove(group) {
  group?.addEventListener("keydown", (event) => {
    const keys = ["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End"];
    if (!keys.includes(event.key) || event.target.closest("thead")) return;
    const buttons = members(group).filter((button) => !button.closest("thead"));
    const next = nextButton(buttons, event.target, event.key);
    event.preventDefault();
    if (!next) return;
    for (const button of buttons) button.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}
