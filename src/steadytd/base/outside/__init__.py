"""What meets the outside: results that show themselves, progress, callable and plugged packages."""
