"""WebAssembly, as much of it as the lab needs: bytes of instructions, functions and modules.

WebAssembly is a stack machine: `f64.add` takes two numbers from the stack and leaves their sum.
Its arithmetic is IEEE double precision, every operation rounded by itself, and its integers have
64 bits where we want them. So what is translated from the engine's loop gives the engine's bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Type = Literal["i32", "i64", "f64"]

CODE: dict[Type, int] = {"i32": 0x7F, "i64": 0x7E, "f64": 0x7C}
BLOCK, LOOP, IF, ELSE, END, BR, BR_IF = 0x02, 0x03, 0x04, 0x05, 0x0B, 0x0C, 0x0D
GET, SET, SELECT = 0x20, 0x21, 0x1B
NOTHING = 0x40  # the type of a block that leaves nothing on the stack
LOAD = {"i32": (0x28, 2), "f64": (0x2B, 3)}  # instruction, alignment
STORE = {"i32": (0x36, 2), "f64": (0x39, 3)}
CONVERT = {
    ("i32", "f64"): 0xB7, ("f64", "i32"): 0xAA, ("i64", "f64"): 0xBA, ("i32", "i64"): 0xAD,
}  # signed, the last unsigned: sizes are never negative; i64 holds at most 53 bits  # fmt: skip
OPERATIONS: dict[tuple[str, Type], int] = {
    ("+", "i32"): 0x6A, ("-", "i32"): 0x6B, ("*", "i32"): 0x6C, ("%", "i32"): 0x6F,
    ("+", "i64"): 0x7C, ("*", "i64"): 0x7E, ("^", "i64"): 0x85, (">>", "i64"): 0x88,
    ("+", "f64"): 0xA0, ("-", "f64"): 0xA1, ("*", "f64"): 0xA2, ("/", "f64"): 0xA3,
    ("==", "i32"): 0x46, ("!=", "i32"): 0x47, ("<", "i32"): 0x48, (">", "i32"): 0x4A,
    ("<=", "i32"): 0x4C, (">=", "i32"): 0x4E,
    ("==", "f64"): 0x61, ("!=", "f64"): 0x62, ("<", "f64"): 0x63, (">", "f64"): 0x64,
    ("<=", "f64"): 0x65, (">=", "f64"): 0x66,
    ("abs", "f64"): 0x99, ("neg", "f64"): 0x9A, ("sqrt", "f64"): 0x9F,
    ("and", "i32"): 0x71, ("or", "i32"): 0x72, ("not", "i32"): 0x45,
}  # fmt: skip
SIZE = {"i32": 4, "f64": 8}


def unsigned(n: int) -> bytes:
    """A number of any length, seven bits per byte.

    >>> unsigned(624485).hex()
    'e58e26'
    """
    found = bytearray()
    while n > 0x7F:
        found.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*found, n])


def signed(n: int) -> bytes:
    """The same for numbers that may be negative.

    >>> signed(-123456).hex()
    'c0bb78'
    """
    found = bytearray()
    while not -64 <= n < 64:
        found.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*found, n & 0x7F])


def listed(parts: list[bytes]) -> bytes:
    """A list: its length, then its parts."""
    return unsigned(len(parts)) + b"".join(parts)


def text(word: str) -> bytes:
    """A name."""
    return listed([bytes([b]) for b in word.encode()])


@dataclass
class Routine:
    """One function that a module exports: its arguments, what it returns, locals and code."""

    name: str
    arguments: dict[str, Type]
    returns: tuple[Type, ...] = ()
    inner: list[Type] = field(default_factory=list)
    code: bytearray = field(default_factory=bytearray)

    def signature(self) -> bytes:
        """Its type."""
        given = listed([bytes([CODE[t]]) for t in self.arguments.values()])
        return b"\x60" + given + listed([bytes([CODE[t]]) for t in self.returns])

    def body(self) -> bytes:
        """Locals and instructions, with their length in front."""
        own = listed([b"\x01" + bytes([CODE[t]]) for t in self.inner])
        whole = own + bytes(self.code) + bytes([END])
        return unsigned(len(whole)) + whole


def module(routines: list[Routine]) -> bytes:
    """The binary of a module that works on the memory "lab.memory" and exports the routines."""
    memory = text("lab") + text("memory") + b"\x02\x00" + unsigned(1)
    exports = [text(r.name) + b"\x00" + unsigned(i) for i, r in enumerate(routines)]
    sections = {
        1: listed([r.signature() for r in routines]),
        2: listed([memory]),
        3: listed([unsigned(i) for i in range(len(routines))]),
        7: listed(exports),
        10: listed([r.body() for r in routines]),
    }
    written = [bytes([number]) + unsigned(len(s)) + s for number, s in sections.items()]
    return b"\x00asm\x01\x00\x00\x00" + b"".join(written)
