"""Finding rules and proving them: Algorithm 1, certificates, and simpler rules to compare with."""
