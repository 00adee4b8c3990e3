"""Studies: many learners, grids of hyper-parameters and seeds, run into a directory."""
