// What the loops in JavaScript use. min and max compare in Python's order, which says what becomes of
// nan; a remainder has the sign of the divisor; a whole number is never -0.
const abs = Math.abs;
const index = (i) => i;
const int = (x) => Math.trunc(x) + 0;
const min = (a, b) => (b < a ? b : a);
const max = (a, b) => (b > a ? b : a);
const square = (x) => x * x;

function mod(a, b) {
  const rest = a % b;
  if (rest === 0) return b < 0 ? -0 : 0;
  return rest < 0 !== b < 0 ? rest + b : rest;
}

// An inner product of two rows of a feature table: walk along both, in order.
function row_dot(feature, value, p, last_p, shift_p, q, last_q, shift_q) {
  let total = 0;
  while (p < last_p && q < last_q) {
    const k_p = feature[p - shift_p], k_q = feature[q - shift_q];
    if (k_p === k_q) total += value[p] * value[q];
    p += k_p <= k_q;
    q += k_q <= k_p;
  }
  return total;
}
