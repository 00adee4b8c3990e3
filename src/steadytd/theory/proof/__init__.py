"""Proofs in exact fractions: `make` writes them, `verify` checks them without the library."""
