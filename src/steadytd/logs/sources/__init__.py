"""Where the rows of a log come from: Parquet, CSV, Arrow tables and frames, Minari."""
