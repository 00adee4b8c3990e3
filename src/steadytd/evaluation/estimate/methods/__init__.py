"""The estimators, one file each with its equation; `registry` names them."""
