"""Every tolerance and limit of the package, each with the reason for its size.

Limits on what a file or a rule may contain:
"""

from __future__ import annotations

# Data beyond this size are refused: the product of three of them must not overflow a float.
LARGEST = 1e100
# Coefficients nearer to 0 than this are refused: scaling them by up to LARGEST must not lose them.
SMALLEST = 1e-150
# Weights below this share of the largest are refused: their products with reaches must not vanish.
LIGHTEST = 1e-150
# Prices of features lie between this and its inverse: other units are meant otherwise, and products
# of prices with data and quality must neither overflow nor vanish.
DEAREST = 1e30
# Rules may be written in any scale, so only what floats cannot hold is refused there.
LARGEST_IN_RULES = 1e300
# P² = P = Pᵀ may be violated by this much: the error of a projection printed with ten digits.
PROJECTION_TOLERANCE = 1e-9
# Rows whose smallest singular value (rows of length one) is below this share of the largest are
# dependent for every practical purpose. If they are not exactly dependent, they are refused.
DEPENDENT = 1e-9
# A rule on a general view is given in rounded weights. Rounding of v costs up to 1e-7 where rows
# are nearly dependent; farther from Bᵀv than this share of its length, it is another rule.
OUT_OF_VIEW = 1e-6

# More features than these are refused, and more numbers in the matrix of what is seen. Bases of a
# view are found in rationals, in time that grows with the cube of its rows, and before any clock is
# looked at: a general view has few numbers (MOST_VIEW; some seconds at the worst).
MOST_FEATURES, MOST_SEEN, MOST_ROWS, MOST_VIEW = 10_000, 4_000_000, 50, 200_000

# Files of more bytes than these are not read. A sample may have 1e8 numbers, of up to 25 letters
# each; half as much again is for names and spaces.
LARGEST_TABLE = 4_000_000_000
# A byte of a certificate holds two nodes of its tree or more, and there are 80 million at most; a
# run may list a million jobs of less than a kilobyte each.
LARGEST_CERTIFICATE, LARGEST_RUN_FILE = 200_000_000, 1_000_000_000
# A line of the journal holds the result of one job, 100 kB if it is long; the journal of a million
# jobs takes some gigabytes, and is read line by line.
LARGEST_RECORD, LARGEST_JOURNAL = 100_000_000, 100_000_000_000
# Plans are written by hand, in a few kilobytes. Reading TOML takes time that grows with the square
# of the depth of its keys; twice as many parts as this, on every line, take a fifth of a second.
LARGEST_PLAN = 64_000
DEEPEST_KEY = 50

# Rounding:

# Half the distance from 1 to the next float: the relative error of one operation.
EPSILON = 2.0**-53
# Error bounds are themselves computed in floats; this factor covers that many times over.
SAFETY = 1.01
# Underflow of a product or quotient loses less than this, whatever the data.
UNDERFLOW = 1e-300
# A handful of operations on exact sums, with room to spare: guarantees are lowered and ranges
# raised by this share, and floats that are this close to a tie are settled exactly.
ROUNDING = 1e-12
# Angles of a grid are computed in floats; a step smaller by this share makes up for it.
ANGLE_ROUNDING = 1e-9
# Unit vectors nearer than this to parallel span no plane that floats can resolve.
PARALLEL = 1e-12
# A vector is taken for a unit vector if its length is 1 to within this.
UNIT = 1e-9
# Payoffs within this are ties; an indifferent agent does what the planner prefers, as in Lemma 1.
TIE = 1e-12

# The problem:

# Density bounds this near to each other (relatively) count as met: a solver's cutoff cannot tell
# sums of weights apart that differ by less. Densities of fewer than a million equal weights differ
# by more.
CLOSED = 1e-6
# Soft density is not a count; its oracle stops at this gap.
SOFT_CLOSED = 2e-5

# An answer at η is an answer for |u·p/‖u‖ − η| ≤ BAND·‖p‖, since u·p = η has in general no solution
# in floats: far above rounding, far below any use.
BAND = 1e-12
# Coordinates of agents that are not larger than this many times their rounding are noise.
NOISE = 16.0
# The unit of length is at least this share of the largest reach, so that reach/unit stays finite.
SMALLEST_SPREAD = 2.0**-200

# Rules as they are handed out:

# Stepping off the end of somebody's reach may cost this share of the gain; a step by more than
# rounding costs about 1e-14 on data of usual size, and 1e-5 at an offset of 1e10 with spread 1.
STEADY_LOSS = 1e-3
# Agents that move at least this near to the end of their reach (as a share of it) are fragile.
EDGE = 0.01
# A rule is printed in as few digits as keep this share of its gain.
PRINTED_SHARE = 0.999
