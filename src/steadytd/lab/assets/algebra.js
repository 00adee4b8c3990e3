// Dense linear algebra for matrices of up to about fifty rows, as arrays of rows.
"use strict";

const zeros = (n, m) => Array.from({ length: n }, () => new Array(m).fill(0));
const identity = (n) => zeros(n, n).map((row, i) => row.map((_, j) => (i === j ? 1 : 0)));
const transposed = (A) => A[0].map((_, j) => A.map((row) => row[j]));
const dot = (x, y) => x.reduce((sum, v, i) => sum + v * y[i], 0);
const times = (A, B) => {
  const C = transposed(B);
  return A.map((row) => C.map((column) => dot(row, column)));
};
const apply = (A, x) => A.map((row) => dot(row, x));
const added = (A, B, by = 1) => A.map((row, i) => row.map((v, j) => v + by * B[i][j]));
const scaled = (A, rows, columns) => A.map((row, i) => row.map((v, j) => v * rows[i] * columns[j]));

// The solution X of A X = B by elimination with pivots; null where A is singular.
function solve(A, B) {
  const n = A.length;
  const M = A.map((row, i) => [...row, ...B[i]]);
  const size = Math.max(...A.flat().map(Math.abs), 1e-300);
  for (let k = 0; k < n; k++) {
    let p = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(M[i][k]) > Math.abs(M[p][k])) p = i;
    if (!(Math.abs(M[p][k]) > 1e-15 * size)) return null;
    [M[k], M[p]] = [M[p], M[k]];
    for (let i = k + 1; i < n; i++) {
      const by = M[i][k] / M[k][k];
      if (by !== 0) for (let j = k; j < M[i].length; j++) M[i][j] -= by * M[k][j];
    }
  }
  for (let k = n - 1; k >= 0; k--)
    for (let j = n; j < M[k].length; j++) {
      for (let i = k + 1; i < n; i++) M[k][j] -= M[k][i] * M[i][j];
      M[k][j] /= M[k][k];
    }
  return M.map((row) => row.slice(n));
}

function solveOne(A, b) {
  const X = solve(A, b.map((v) => [v]));
  return X && X.map((row) => row[0]);
}

// The lower triangle L of a positive definite G = L L'.
function cholesky(G) {
  const n = G.length;
  const L = zeros(n, n);
  for (let i = 0; i < n; i++)
    for (let j = 0; j <= i; j++) {
      let sum = G[i][j];
      for (let k = 0; k < j; k++) sum -= L[i][k] * L[j][k];
      L[i][j] = i === j ? Math.sqrt(sum) : sum / L[j][j];
    }
  return L;
}

// L^-1 A L^-T: the matrix A in coordinates in which G = L L' is the identity.
function whitened(A, L) {
  const left = solve(L, A);
  return transposed(solve(L, transposed(left)));
}

// An orthonormal basis [d][rank] of the span of some rows: the largest remainder comes next.
function rowSpace(rows) {
  const left = rows.map((row) => [...row]);
  const basis = [];
  const first = Math.max(...left.map((row) => Math.sqrt(dot(row, row))), 0);
  while (basis.length < rows[0].length) {
    const norms = left.map((row) => Math.sqrt(dot(row, row)));
    const k = norms.indexOf(Math.max(...norms));
    if (!(norms[k] > 1e-12 * first)) break;
    const q = left[k].map((v) => v / norms[k]);
    for (let again = 0; again < 2; again++)
      for (const row of left) {
        const by = dot(row, q);
        q.forEach((v, j) => (row[j] -= by * v));
      }
    basis.push(q);
  }
  return basis.length ? transposed(basis) : [];
}

// The eigenvalues of a symmetric matrix by Jacobi's rotations, in ascending order.
function symmetricEigenvalues(S) {
  const n = S.length;
  const A = S.map((row) => [...row]);
  for (let sweep = 0; sweep < 60; sweep++) {
    let off = 0;
    for (let p = 0; p < n; p++)
      for (let q = p + 1; q < n; q++) {
        off += A[p][q] ** 2;
        if (A[p][q] === 0) continue;
        const half = (A[q][q] - A[p][p]) / (2 * A[p][q]);
        const t = Math.sign(half || 1) / (Math.abs(half) + Math.sqrt(half * half + 1));
        const c = 1 / Math.sqrt(t * t + 1);
        const s = t * c;
        for (let k = 0; k < n; k++) {
          const [u, v] = [A[k][p], A[k][q]];
          A[k][p] = c * u - s * v;
          A[k][q] = s * u + c * v;
        }
        for (let k = 0; k < n; k++) {
          const [u, v] = [A[p][k], A[q][k]];
          A[p][k] = c * u - s * v;
          A[q][k] = s * u + c * v;
        }
      }
    if (off < 1e-300) break;
  }
  return A.map((row, i) => row[i]).sort((a, b) => a - b);
}

// The eigenvalues [re, im] of a real matrix: Hessenberg form, then QR steps with Wilkinson's shift
// in complex arithmetic. Rotations turn rows (p, p + 1) so that the entry below the diagonal is 0.
function eigenvalues(A) {
  const n = A.length;
  const R = hessenberg(A);
  const I = zeros(n, n);
  const found = [];
  let end = n - 1;
  let rounds = 0;
  while (end >= 0) {
    let begin = end;
    while (begin > 0 && !small(R, I, begin)) begin--;
    if (begin > 0) R[begin][begin - 1] = I[begin][begin - 1] = 0;
    if (begin === end) {
      found.push([R[end][end], I[end][end]]);
      end--;
      rounds = 0;
      continue;
    }
    if (++rounds > 300) throw new Error("eigenvalues do not settle");
    const shift = rounds % 11 === 10
      ? [R[end][end] + Math.abs(R[end][end - 1]), I[end][end]]
      : wilkinson(R, I, end);
    step(R, I, begin, end, shift);
  }
  return found;
}

function hessenberg(A) {
  const n = A.length;
  const H = A.map((row) => [...row]);
  for (let k = 1; k < n - 1; k++) {
    let p = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(H[i][k - 1]) > Math.abs(H[p][k - 1])) p = i;
    if (H[p][k - 1] === 0) continue;
    [H[k], H[p]] = [H[p], H[k]];
    for (const row of H) [row[k], row[p]] = [row[p], row[k]];
    for (let i = k + 1; i < n; i++) {
      const by = H[i][k - 1] / H[k][k - 1];
      if (by === 0) continue;
      for (let j = 0; j < n; j++) H[i][j] -= by * H[k][j];
      for (let j = 0; j < n; j++) H[j][k] += by * H[j][i];
    }
  }
  for (let i = 2; i < n; i++) for (let j = 0; j < i - 1; j++) H[i][j] = 0;
  return H;
}

function small(R, I, k) {
  const near = Math.hypot(R[k][k], I[k][k]) + Math.hypot(R[k - 1][k - 1], I[k - 1][k - 1]);
  return Math.hypot(R[k][k - 1], I[k][k - 1]) <= 1e-16 * (near || 1e-300);
}

// The eigenvalue of the last two rows and columns that is nearer to the last entry.
function wilkinson(R, I, e) {
  const a = [R[e - 1][e - 1], I[e - 1][e - 1]];
  const d = [R[e][e], I[e][e]];
  const bc = multiply([R[e - 1][e], I[e - 1][e]], [R[e][e - 1], I[e][e - 1]]);
  const half = [(a[0] - d[0]) / 2, (a[1] - d[1]) / 2];
  const square = multiply(half, half);
  const root = squareRoot([square[0] + bc[0], square[1] + bc[1]]);
  const plus = Math.hypot(half[0] + root[0], half[1] + root[1]);
  const minus = Math.hypot(half[0] - root[0], half[1] - root[1]);
  const sign = plus >= minus ? 1 : -1;
  const bottom = [half[0] + sign * root[0], half[1] + sign * root[1]];
  if (bottom[0] === 0 && bottom[1] === 0) return d;
  const part = divide(bc, bottom);
  return [d[0] - part[0], d[1] - part[1]];
}

function step(R, I, begin, end, shift) {
  for (let i = begin; i <= end; i++) {
    R[i][i] -= shift[0];
    I[i][i] -= shift[1];
  }
  const turns = [];
  for (let k = begin; k < end; k++) {
    const [x, y] = [[R[k][k], I[k][k]], [R[k + 1][k], I[k + 1][k]]];
    const size = Math.hypot(...x, ...y) || 1;
    const c = [x[0] / size, x[1] / size];
    const s = [y[0] / size, y[1] / size];
    turns.push([c, s]);
    for (let j = k; j <= end; j++) {
      const [u, v] = [[R[k][j], I[k][j]], [R[k + 1][j], I[k + 1][j]]];
      const up = plus(multiply(conjugate(c), u), multiply(conjugate(s), v));
      const down = plus(multiply([-s[0], -s[1]], u), multiply(c, v));
      [R[k][j], I[k][j]] = up;
      [R[k + 1][j], I[k + 1][j]] = down;
    }
  }
  turns.forEach(([c, s], i) => {
    const k = begin + i;
    for (let j = begin; j <= Math.min(k + 1, end); j++) {
      const [u, v] = [[R[j][k], I[j][k]], [R[j][k + 1], I[j][k + 1]]];
      const left = plus(multiply(u, c), multiply(v, s));
      const right = plus(multiply([-u[0], -u[1]], conjugate(s)), multiply(v, conjugate(c)));
      [R[j][k], I[j][k]] = left;
      [R[j][k + 1], I[j][k + 1]] = right;
    }
  });
  for (let i = begin; i <= end; i++) {
    R[i][i] += shift[0];
    I[i][i] += shift[1];
  }
}

const plus = (a, b) => [a[0] + b[0], a[1] + b[1]];
const conjugate = (a) => [a[0], -a[1]];
const multiply = (a, b) => [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]];

function divide(a, b) {
  const size = b[0] * b[0] + b[1] * b[1];
  return [(a[0] * b[0] + a[1] * b[1]) / size, (a[1] * b[0] - a[0] * b[1]) / size];
}

function squareRoot(a) {
  const size = Math.hypot(a[0], a[1]);
  const re = Math.sqrt(Math.max(0, (size + a[0]) / 2));
  const im = Math.sqrt(Math.max(0, (size - a[0]) / 2));
  return [re, a[1] < 0 ? -im : im];
}
