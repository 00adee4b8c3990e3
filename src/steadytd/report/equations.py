r"""Equations of the learners' texts, `w += alpha delta z`, as LaTeX.

A learner's text is read in a terminal, so its equations are plain characters: `Phi' D Phi`,
`(I - lam P_gamma)^-1`, `w.x`. On the documentation's pages the same text is set as mathematics. In
prose a run of symbols is recognised by its parts; words, code in backquotes and links stay.

>>> prose("Stable if A_lam w = b_lam, as `td` is.")
'Stable if $A_{\\lambda} w = b_{\\lambda}$, as `td` is.'
>>> latex("w += alpha rho delta x")
'w \\leftarrow w + \\alpha \\rho \\delta x'
"""

from __future__ import annotations

import re

GREEK = (
    "alpha", "beta", "gamma", "delta", "eta", "rho", "mu", "pi", "psi", "nu", "omega", "zeta",
    "phi", "theta", "kappa", "lambda", "Phi", "Psi", "Pi",
)  # fmt: skip
CALLED = ("diag", "sqrt", "sym", "det", "min", "max", "soft", "clip")
WORDS = ("ratio", "ridge", "reg", "power", "delay", "peak")  # parameters that are English words
NEXT = ("x", "s", "a", "w", "h", "gamma", "delta")  # a prime is the next one; else: transposed
OPERATORS = {
    "<-": r"\leftarrow", "->": r"\to", "<=": r"\le", ">=": r"\ge", "!=": r"\ne", "||": r"\Vert",
    "|": r"\vert", "...": r"\dots", "*": r"\cdot",
}  # fmt: skip

SUB = r"(?:_(?:\{[^}\n]+\}|[A-Za-z0-9]+))?"
LETTER = rf"(?:{'|'.join([*GREEK, 'lam', '[whv]0', 'l1'])}|[A-Za-z])(?![A-Za-z0-9]){SUB}"
FUNCTION = r"(?:diag|sym|det)\b|(?:sqrt|min|max|soft|clip)(?=\()|sum_(?:\{[^}\n]+\}|[a-z]+'?)"
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)"
POWER = r"\^(?:[-+]?(?:\d+(?:/\d+)?|[a-z]+)?|(?=\())"
PIECE = re.compile(
    rf"(?P<symbol>{LETTER}|{FUNCTION})|(?P<word>(?:min|max|{'|'.join(WORDS)})(?![A-Za-z]){SUB})"
    rf"|(?P<number>{NUMBER})|(?P<glued>'(?!s\b|t\b)|{POWER}|\.(?=[A-Za-z(])(?!g\.|e\.))"
    r"|(?P<operator>\+=|-=|<-|->|<=|>=|!=|\|\||\.\.\.|[-+=<>/*|])"
    r"|(?P<open>[(\[])|(?P<close>[)\]])|(?P<comma>,)"
)
LEFT = re.compile(r"(`+[^`]*`+|\]\([^)]*\)|\w+://\S+|\*\*?(?=\w)|(?<=\w)\*\*?)")
MATRIX = re.compile(r"\[\[([^]]+)\], \[([^]]+)\]\]")
Piece = re.Match[str]


def prose(text: str) -> str:
    """A paragraph in which every run of symbols is mathematics between dollars."""
    parts = LEFT.split(text)
    return "".join(part if i % 2 else _marked(part) for i, part in enumerate(parts))


def block(text: str) -> str:
    """Lines of equations, one under the other, aligned at their equality signs."""
    lines = [_aligned(line) for line in text.splitlines() if line.strip()]
    body = " \\\\\n".join(lines)
    return f"$$\n\\begin{{aligned}}\n{body}\n\\end{{aligned}}\n$$"


def latex(text: str, display: bool = False) -> str:
    """One formula; in a display a slash is a fraction."""
    text = re.sub(r"^(\S+)\s*([-+])=", r"\1 <- \1 \2", " ".join(text.split()))
    text = re.sub(r"\bsum over (\S+ . \S+) of", r"sum_{\1}", text)
    found = _Reader(text.replace("x x'", "x x^T"), display).row()
    found = re.sub(r"\s*\}\s*\\text\{\s*", " ", found)
    found = re.sub(r" ?\\,(?=[)}]|$)", "", found)  # a thin space is for what follows
    return found.replace(" ,", ",").replace("{- ", "{-")


def bare(part: str) -> str:
    """Without the brackets around all of it."""
    depths = [part[: i + 1].count("(") - part[: i + 1].count(")") for i in range(len(part))]
    return part[1:-1] if part[:1] == "(" and depths.index(0) == len(part) - 1 else part


def _aligned(line: str) -> str:
    left, sign, right = re.split(r"\s*(\+=|-=|<-|=)\s*", line.strip(), maxsplit=1)
    right, remark = _remark(right)
    formula = latex(f"{left} {sign} {right}", display=True)
    shown = re.sub(r"(=|\\leftarrow)", r"&\1", formula, count=1)
    return f"{shown} && {remark}" if remark else shown


def _remark(text: str) -> tuple[str, str]:
    """What stands behind a wide gap, unless the gap is inside brackets."""
    for gap in re.finditer(r"\s{3,}", text):
        before, after = text[: gap.start()], text[gap.end() :]
        if before.count("(") == before.count(")"):
            formula = "=" in after and not re.search(r"[a-z]{3}", after)
            return before.rstrip(","), latex(after) if formula else rf"\text{{{after}}}"
    return text, ""


# runs of symbols in prose


def _marked(text: str) -> str:
    text = MATRIX.sub(lambda m: f"${_matrix(m)}$", text)
    found, end, at = [], 0, 0
    while at < len(text):
        if text[at] == "$":
            at = text.index("$", at + 1) + 1
        elif pieces := _run(text, at):
            found += [text[end : pieces[0].start()], "$"]
            end = at = pieces[-1].end()
            found += [latex(text[pieces[0].start() : end]), "$"]
        else:
            at += 1
    return "".join([*found, text[end:]])


def _matrix(rows: Piece) -> str:
    lines = [" & ".join(latex(entry) for entry in row.split(",")) for row in rows.groups()]
    return r"\begin{pmatrix} " + r" \\ ".join(lines) + r" \end{pmatrix}"


def _run(text: str, at: int) -> list[Piece]:
    """The run of symbols that begins here; empty if none does."""
    if at and (text[at - 1].isalnum() or text[at - 1] in "_-./'$"):
        return []
    pieces = _trimmed(_pieces(text, at))
    symbols = [m.group() for m in pieces if m.lastgroup == "symbol"]
    return pieces if symbols and symbols != ["O"] else []


def _pieces(text: str, at: int) -> list[Piece]:
    """Pieces that follow each other with at most one space, as far as they are symbols."""
    pieces: list[Piece] = []
    depth = 0
    while (piece := PIECE.match(text, at)) and _belongs(text, pieces, piece):
        if piece.lastgroup == "comma" and not depth:
            break
        depth += (piece.lastgroup == "open") - (piece.lastgroup == "close")
        if depth < 0:
            break
        pieces.append(piece)
        at = piece.end() + bool(re.match(r"\s(?=\S)", text[piece.end() :]))
    return pieces


def _belongs(text: str, before: list[Piece], piece: Piece) -> bool:
    """Whether a piece is a symbol here, and not a word, a hyphen or a full stop."""
    rest, kind, word = text[piece.end() :], piece.lastgroup, piece.group()
    spaced = text[: piece.start()][-1:].isspace()
    after = before[-1].lastgroup if before else ""
    if kind == "glued" or re.match(r"\.[a-z]\.", rest):  # the second: e.g.
        return kind == "glued" and bool(before) and not spaced
    if kind == "word":  # `ratio` the parameter has an operator beside it
        return after == "operator" or bool(re.match(r"\s?[=<>]", rest))
    if word == "a":  # an index, or a step size that is being defined
        return bool(re.match(r"\s?=|['|)\]]", rest)) or (bool(before) and rest[:1] == ",")
    if word in ("A", "I") and not before:
        named = r"\s?(?:[=+<>^'/]|- |is\b|has\b|w\b|need\b|may\b|, [A-Z]\b)|[_(\[]"
        told = text[: piece.start()].rstrip()[-1:]
        return bool(re.match(named, rest)) or (word == "A" and (told.isalnum() or told == ")"))
    if word == "-":  # between spaces, or a sign
        signed = after in ("", "operator", "open", "comma") and bool(re.match(r"[\w(]", rest))
        return signed or (spaced and rest[:1].isspace())
    return True


def _trimmed(pieces: list[Piece]) -> list[Piece]:
    """Without operators at the ends, brackets that are not closed, and brackets around all."""
    while pieces:
        ends = _closing(pieces, 0) if pieces[0].lastgroup == "open" else None
        open_ones = [i for i, m in enumerate(pieces)
                     if m.lastgroup == "open" and _closing(pieces, i) is None]  # fmt: skip
        if open_ones:
            pieces = pieces[: open_ones[0]] or pieces[1:]
        elif pieces[-1].lastgroup in ("operator", "comma") and "|" not in pieces[-1].group():
            pieces = pieces[:-1]
        elif pieces[0].lastgroup in ("operator", "comma") and pieces[0].group() not in ("-", "||"):
            pieces = pieces[1:]
        elif ends == len(pieces) - 1:
            pieces = pieces[1:-1]
        else:
            break
    return pieces


def _closing(pieces: list[Piece], at: int) -> int | None:
    """Where the bracket that opens here is closed."""
    depth = 0
    for i, m in enumerate(pieces[at:], at):
        depth += (m.lastgroup == "open") - (m.lastgroup == "close")
        if depth == 0:
            return i
    return None


# a formula


class _Reader:
    """Reads a formula from left to right; `row` returns its LaTeX."""

    def __init__(self, text: str, display: bool) -> None:
        self.text, self.display, self.at = text, display, 0

    def row(self, until: str = "") -> str:
        """All that stands before a closing bracket, or before the end."""
        parts: list[str] = []
        while self.at < len(self.text) and not (until and self.take(re.escape(until))):
            if self.take(r"\s+"):
                continue
            if parts and self.display and self.take(r"/\s*"):
                parts[-1] = rf"\frac{{{bare(parts[-1])}}}{{{bare(self.atom())}}}"
            else:
                parts.append(self.atom())
        return " ".join(parts)

    def take(self, pattern: str) -> str:
        """Read on over a pattern; empty if it does not stand here."""
        match = re.compile(pattern).match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match.group() if match else ""

    def atom(self) -> str:
        """A number, a symbol with what is glued to it, brackets, or an operator."""
        if number := self.take(NUMBER):
            return self.raised(_number(number), "")
        if group := self.brackets():
            return self.raised(group, "")
        if word := self.take(r"[A-Za-z]+[0-9]?"):
            return self.symbol(word)
        if sign := self.take("|".join(map(re.escape, OPERATORS))):
            return self.raised(OPERATORS[sign], "")
        return self.take(r"(?s).")

    def brackets(self) -> str:
        """A group in brackets, if one begins here."""
        opening = self.take(r"[(\[]")
        closing = {"(": ")", "[": "]"}.get(opening, "")
        return f"{opening}{self.row(closing)}{closing}" if opening else ""

    def symbol(self, word: str) -> str:
        """A letter or a word, with its index."""
        sub = self.take(SUB)[1:].strip("{}")
        if word == "sum":
            if limits := re.fullmatch(r"(\w=\w+)\.\.(\w+)", sub):
                return rf"\sum_{{{limits[1]}}}^{{{limits[2]}}}"
            return rf"\sum_{{{_index(sub)}{self.take(chr(39))}}}"
        if word == "sqrt":
            return rf"\sqrt{{{bare(self.brackets())}}}"
        shown = _letter(word)
        if sub == "bar":
            shown, sub = rf"\bar{{{shown}}}", ""
        if self.take(r"\^(?![-+\w(])"):
            shown = rf"\hat{{{shown}}}"
        shown = f"{shown}_{{{_index(sub)}}}" if sub else shown
        return self.raised(shown, word) + (r" \," if word in WORDS else "")

    def raised(self, base: str, name: str) -> str:
        """What is glued behind: primes, powers, arguments, and the dot of an inner product."""
        while True:
            if self.take("'"):
                base += "'" if name in NEXT else r"^{\top}"
            elif self.take(r"\^"):
                twice = "^" in base and base.endswith("}")  # P transposed, to the power k
                base = (f"({base})" if twice else base) + f"^{self.exponent(name)}"
            elif self.take(r"\.(?=[A-Za-z(])"):
                return rf"{base}^{{\top}}"
            elif name and (arguments := self.brackets()):
                base += arguments
            else:
                return base

    def exponent(self, name: str) -> str:
        """A power; F^(n) is not one, and keeps its brackets."""
        if group := self.brackets():
            return f"{{{group if name == 'F' else group[1:-1]}}}"
        if self.take("T"):
            return r"{\top}"
        return f"{{{latex(self.take(r'[-+]?(?:[0-9]+(?:/[0-9]+)?|[A-Za-z]+)|[+]'))}}}"


def _letter(word: str) -> str:
    special = {"lam": r"\lambda", "l1": r"\ell_1"}
    if word in special or word in GREEK:
        return special.get(word, f"\\{word}")
    if word in CALLED:
        return f"\\{word}" if word in ("min", "max", "det") else rf"\operatorname{{{word}}}"
    if word in WORDS:
        return rf"\mathrm{{{word}}}"
    if re.fullmatch(r"[A-Za-z]\d", word):
        return f"{word[0]}_{word[1]}"
    return word if len(word) == 1 else rf"\text{{ {word} }}"


def _index(sub: str) -> str:
    words = re.fullmatch(r"[a-z]{3,}|pd", sub) and sub not in (*GREEK, "lam", "max", "min")
    return rf"\mathrm{{{sub}}}" if words else " ".join(sub) if sub == "ij" else latex(sub)


def _number(text: str) -> str:
    mantissa, _, power = text.partition("e")
    shown = mantissa.replace(",", "{,}")
    return rf"{shown} \cdot 10^{{{int(power)}}}" if power else shown
