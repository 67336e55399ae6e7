// Numbers as the page writes them: a true minus sign, commas, few digits.
const MINUS = "−";
const commas = (count) => count.toLocaleString("en-US");

/** A distance: two decimals, three below 0.095, fewer where it is large, as Python writes it. */
function writeDistance(value) {
  if (value == null) return "–";
  const size = Math.abs(value);
  const minus = value < 0 ? MINUS : "";
  if (size === Infinity) return `${minus}∞`;
  if (size > 0 && size < 0.0005) return `${minus}<0.001`;
  const digits = size >= 1000 ? 0 : size >= 100 ? 1 : size > 0 && size < 0.095 ? 3 : 2;
  return (
    minus +
    size.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })
  );
}

/** A share of 1 as percent, never 0% or 100% for what is only near to it. */
function writePercent(share, digits = 0) {
  if (share == null) return "–";
  const value = 100 * share;
  const step = 10 ** -digits;
  if (value > 0 && value < step / 2) return `<${step.toFixed(digits)}%`;
  if (value > 100 - step / 2 && value < 100) return `>${(100 - step).toFixed(digits)}%`;
  return `${value.toFixed(digits)}%`;
}

/** A number with three significant digits, powers of ten where it is very large or small. */
function writeNumber(value) {
  if (value == null) return "–";
  const size = Math.abs(value);
  if (size !== 0 && size !== Infinity && (size < 1e-4 || size >= 1e6)) {
    const exponent = Math.floor(Math.log10(size));
    return `${value < 0 ? MINUS : ""}${(size / 10 ** exponent).toFixed(1)}·${tenTo(exponent)}`;
  }
  if (size === Infinity) return value < 0 ? `${MINUS}∞` : "∞";
  return value.toLocaleString("en-US", { maximumSignificantDigits: 3 }).replace("-", MINUS);
}

/** A power of ten in writing. */
const tenTo = (exponent) =>
  `10${String(Math.round(exponent)).replace(/[-\d]/g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)])}`;
