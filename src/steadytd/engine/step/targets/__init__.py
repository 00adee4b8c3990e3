"""The languages that loops are printed in."""
