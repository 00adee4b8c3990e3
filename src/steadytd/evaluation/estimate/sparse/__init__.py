"""The same equations where few features are active: from the rows, with sparse matrices."""
