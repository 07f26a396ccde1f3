"""What crosses from private to public passes here: secrets out, length bounded.

Pure functions, no I/O, the standard library only, so every actor may use them: `redact` replaces secrets,
`clean` does all of rule A17 (drop what is not text, bound, redact, cut). What counts as a secret is stated in
`docs/redaction.md`, which a test holds to the rules.
"""

from temporality.actors.redaction.bounding import Cleaned, clean
from temporality.actors.redaction.finding import Finding
from temporality.actors.redaction.scanner import Redacted, redact

__all__ = ["Cleaned", "Finding", "Redacted", "clean", "redact"]
