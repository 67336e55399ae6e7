// One tab stop for a group of many buttons: arrows, Home and End move inside of it.
const members = (group) => [...group.querySelectorAll(":is(button.image, td button, li button)")];

/** Tab comes to the first button of the group, keys lead on. */
function restFocus(group) {
  members(group).forEach((button, i) => (button.tabIndex = i ? -1 : 0));
  group.onkeydown = moveFocus;
}

/** The button that a key leads to; up and down by where the buttons stand. */
function findNext(buttons, from, key) {
  const at = buttons.indexOf(from);
  const step = { Home: -at, End: buttons.length - 1 - at, ArrowLeft: -1, ArrowRight: 1 }[key];
  if (step != null) return buttons[at + step];
  const { left, top } = from.getBoundingClientRect();
  const away = (button) => {
    const box = button.getBoundingClientRect();
    const rise = key === "ArrowUp" ? top - box.top : box.top - top;
    return { button, rise, gap: 1e4 * rise + Math.abs(box.left - left) };
  };
  const beyond = buttons.map(away).filter(({ rise }) => rise > 4);
  return beyond.sort((a, b) => a.gap - b.gap)[0]?.button;
}

function moveFocus(event) {
  const buttons = members(event.currentTarget);
  if (!/^(Arrow|Home|End)/.test(event.key) || !buttons.includes(event.target)) return;
  event.preventDefault();
  const next = findNext(buttons, event.target, event.key);
  if (!next) return;
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
