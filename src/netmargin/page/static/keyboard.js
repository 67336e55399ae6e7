// One tab stop for a group of many buttons: arrows, Home and End move inside of it.
const members = (group) => [...group.querySelectorAll(":is(button.image, td button, li button)")];

/** Tab comes to the first button of the group. */
function restFocus(group) {
  members(group).forEach((button, i) => (button.tabIndex = i ? -1 : 0));
}

/** The button that a key leads to, by where the buttons stand. */
function findNext(buttons, from, key) {
  const at = buttons.indexOf(from);
  const { left, top } = from.getBoundingClientRect();
  const inRow = (up) => {
    const away = (button) => {
      const box = button.getBoundingClientRect();
      const rise = up ? top - box.top : box.top - top;
      return rise > 4 ? 1e4 * rise + Math.abs(box.left - left) : Infinity;
    };
    const near = buttons.map(away);
    const least = near.reduce((a, b) => Math.min(a, b), Infinity);
    return least < Infinity ? buttons[near.indexOf(least)] : null;
  };
  if (key === "ArrowUp" || key === "ArrowDown") return inRow(key === "ArrowUp");
  return buttons[{ Home: 0, End: buttons.length - 1, ArrowLeft: at - 1, ArrowRight: at + 1 }[key]];
}

function rove(group) {
  group?.addEventListener("keydown", (event) => {
    const buttons = members(group);
    if (!/^(Arrow|Home|End)/.test(event.key) || !buttons.includes(event.target)) return;
    event.preventDefault();
    const next = findNext(buttons, event.target, event.key);
    if (!next) return;
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}
