"""The independent checker of certificates: numpy, the standard library, the instance reader."""
