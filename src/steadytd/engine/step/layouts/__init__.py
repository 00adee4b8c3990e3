"""Where the numbers of a program live, and in which order loops go over them."""
