"""The MILP oracle: cones of directions, closed by counting or by HiGHS."""
