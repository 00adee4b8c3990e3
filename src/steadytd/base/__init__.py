"""What every room needs and no room owns: errors, arrays, files, threads, words."""
