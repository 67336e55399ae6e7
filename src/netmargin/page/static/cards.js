// One sample as a card: its image or text, what it is, how far it lies from the boundary.
function placeImage(pic, cell) {
  const { columns, per_sprite: perSprite } = BLOCK.sprites;
  const inside = cell % perSprite;
  pic.style.backgroundImage = `var(--sprite-${Math.floor(cell / perSprite)})`;
  const down = Math.floor(inside / columns);
  pic.style.backgroundPosition = `calc(var(--s) * ${-(inside % columns)}) calc(var(--s) * var(--tall) * ${-down})`;
  return pic;
}

/** The image of a sample, or an empty frame if it is not on the page. */
function makeImage(columns, row) {
  const cell = columns.image?.[row];
  if (cell == null) return make("span", { class: "pic none", title: "its image is not on this page" });
  return placeImage(make("span", { class: "pic" }), cell);
}

/** "image 362, label 2, right, rival 7, distance <0.001": what a card says to those who hear it. */
function sayCard(split, row) {
  const columns = columnsOf(split);
  const answer = isWrong(columns, row) ? `wrong, answer ${className(columns.p[row])}` : "right";
  const rival = isWrong(columns, row) ? "" : `, rival ${className(columns.r[row])}`;
  const distance = writeDistance(columns.d[row]).replace(MINUS, "minus ");
  return `${nounOf(split)} ${row}, label ${className(columns.y[row])}, ${answer}${rival}, distance ${distance}`;
}

/** "4 → 9" of a wrong sample, else "4 vs 9" with the label in bold. */
function makeCaption(columns, row) {
  const label = className(columns.y[row]);
  if (isWrong(columns, row))
    return make("span", { class: "caption" }, `${label} → ${className(columns.p[row])}`);
  const rival = columns.r[row] == null ? "" : ` vs ${className(columns.r[row])}`;
  return make("span", { class: "caption" }, make("b", {}, label), rival);
}

function makeCard(split, row, { number = true, caption = true } = {}) {
  const columns = columnsOf(split);
  const picture = BLOCK.sprites
    ? makeImage(columns, row)
    : make("span", { class: "text" }, columns.text?.[row] ?? `${nounOf(split)} ${row}`);
  const card = make(
    "button",
    {
      type: "button",
      class: isWrong(columns, row) ? "image wrong" : "image",
      "aria-label": sayCard(split, row),
      "data-row": row,
      tabindex: -1,
    },
    picture,
    caption ? makeCaption(columns, row) : null,
    number ? make("span", { class: "number" }, writeDistance(columns.d[row])) : null,
  );
  card.addEventListener("click", () => openSample(split, row));
  return card;
}
