"""What meets the outside: results that show themselves, progress, packages that plug in."""
